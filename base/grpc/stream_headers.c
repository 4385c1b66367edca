/* SPDX-License-Identifier: Apache-2.0 */
/* The headers and trailers that arrive on a stream. */
#include "base/grpc/internal.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/codec/base64.h"
#include "base/codec/go_quote.h"
#include "base/grpc/status.h"
#include "base/parse.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_OVERHEAD 32 /* RFC 9113, 6.5.2 */

static int three_digits(const char *value)
{
    uint64_t v = 0;

    return parse_u64(value, 0, 999, &v, "status", ERR_IGNORED) == ERR_OK ? (int)v : -1;
}

static void keep_text(char *to, size_t size, const char *value)
{
    snprintf(to, size, "%s", value);
}

static bool set_details(struct grpc_stream *st, const char *value, size_t n)
{
    uint8_t *out;
    size_t got;

    if (n > BASE64_DECODED_MAX((size_t)GRPC_DETAILS_MAX) / 3 * 4 || st->details != NULL)
        return true; /* they only explain */
    out = malloc(BASE64_DECODED_MAX(n));
    if (out == NULL)
        return false;
    if (!base64_decode(value, n, out, &got) || got > GRPC_DETAILS_MAX) {
        free(out);
        return true;
    }
    st->details = out;
    st->n_details = got;
    return true;
}

static bool set_text(struct grpc_stream *st, const char *value, size_t n)
{
    char text[GRPC_TEXT_MAX];

    if (n == 0)
        return true;
    grpc_message_decode(value, n, text);
    free(st->text);
    st->text = strdup(text);
    return st->text != NULL;
}

static bool set_status(struct grpc_stream *st, const char *value, size_t n)
{
    static const char malformed[] = "transport: malformed grpc-status";

    st->code = grpc_status_number(value, n);
    if (st->code >= 0)
        return true;
    st->code = ERR_UNKNOWN;
    return st->text != NULL || set_text(st, malformed, strlen(malformed));
}

/* ---- metadata ---- */

static bool is_ours(const char *name)
{
    static const char *const names[] = { "content-type", "te",           "grpc-timeout",
                                         "grpc-status",  "grpc-message", "grpc-status-details-bin",
                                         "grpc-encoding" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return name[0] == ':';
}

/* One block: the name, NUL, the value, NUL. */
static bool keep_metadata(struct grpc_stream *st, const char *name, size_t name_n, const char *value,
                          size_t value_n)
{
    bool binary = name_n > 4 && strcmp(name + name_n - 4, "-bin") == 0;
    size_t room = name_n + (binary ? BASE64_DECODED_MAX(value_n) : value_n) + 2;
    char *block, *to;

    if (st->n_metadata == GRPC_METADATA_MAX)
        return true;
    if (!grpc_budget_take(st->session->o.budget, room))
        return false;
    st->charged += room;
    block = malloc(room);
    if (block == NULL || !array_room(st->metadata, st->n_metadata)) {
        free(block);
        return false;
    }
    memcpy(block, name, name_n + 1);
    to = block + name_n + 1;
    if (!binary) {
        memcpy(to, value, value_n);
    } else if (!base64_decode(value, value_n, (unsigned char *)to, &value_n)) {
        free(block);
        return true;
    }
    to[value_n] = '\0';
    st->metadata[st->n_metadata++] = (struct grpc_metadata){ block, to, value_n };
    return true;
}

/* ---- one header ---- */

static bool set_path(struct grpc_stream *st, const char *value)
{
    st->path = strdup(value);
    return st->path != NULL;
}

static bool request_header(struct grpc_stream *st, const char *name, const char *value, size_t value_n,
                           bool *ret_known)
{
    *ret_known = true;
    if (strcmp(name, ":path") == 0)
        return set_path(st, value);
    if (strcmp(name, ":method") == 0)
        st->not_post = strcmp(value, "POST") != 0;
    else if (strcmp(name, "grpc-timeout") == 0)
        keep_text(st->timeout, sizeof(st->timeout), value_n < sizeof(st->timeout) ? value : "?");
    else
        *ret_known = false;
    return true;
}

static bool response_header(struct grpc_stream *st, const char *name, const char *value, size_t value_n,
                            bool *ret_known)
{
    *ret_known = true;
    if (strcmp(name, ":status") == 0)
        st->http_status = three_digits(value);
    else if (strcmp(name, "grpc-status") == 0)
        return set_status(st, value, value_n);
    else if (strcmp(name, "grpc-message") == 0)
        return set_text(st, value, value_n);
    else if (strcmp(name, "grpc-status-details-bin") == 0)
        return set_details(st, value, value_n);
    else
        *ret_known = false;
    return true;
}

bool grpc_stream_header(struct grpc_stream *st, const char *name, size_t name_n, const char *value,
                        size_t value_n)
{
    bool known, fine;

    st->header_size += name_n + value_n + HEADER_OVERHEAD;
    if (st->header_size > GRPC_HEADERS_MAX) {
        st->fault = "peer header list size exceeded limit";
        st->fault_code = ERR_INTERNAL;
        return false;
    }
    if (st->session->o.server && !grpc_request_field_fits(st, name, name_n, value, value_n))
        st->malformed = true;
    if (st->malformed) /* reported when the block is complete */
        return true;
    fine = st->session->o.server ? request_header(st, name, value, value_n, &known)
                                 : response_header(st, name, value, value_n, &known);
    if (!known && strcmp(name, "content-type") == 0)
        keep_text(st->content_type, sizeof(st->content_type), value);
    else if (!known && strcmp(name, "grpc-encoding") == 0)
        keep_text(st->encoding, sizeof(st->encoding), value);
    else if (!known && !is_ours(name))
        fine = keep_metadata(st, name, name_n, value, value_n);
    if (!fine) {
        st->fault = "out of memory";
        st->fault_code = ERR_EXHAUSTED;
    }
    return fine;
}

/* ---- a block of them ---- */

static void request_begins(struct grpc_stream *st)
{
    buf_auto b = BUF_INIT(256);

    if (!grpc_is_content_type(st->content_type)) {
        go_quote(&b, st->content_type, strlen(st->content_type));
        grpc_stream_refuse(st, 415, ERR_INVALID, "invalid gRPC request content-type %s", b.p);
        return;
    }
    if (st->not_post) {
        grpc_stream_refuse(st, 405, ERR_INTERNAL,
                           "Received a HEADERS frame with :method which should be POST");
        return;
    }
    if (st->timeout[0] != '\0' &&
        !(st->has_timeout = grpc_timeout_parse(st->timeout, strlen(st->timeout), &st->timeout_ms))) {
        go_quote(&b, st->timeout, strlen(st->timeout));
        grpc_stream_refuse(st, 400, ERR_INTERNAL, "malformed grpc-timeout: %s", b.p);
        return;
    }
    st->begun = true;
    st->session->o.on->begin(st, st->session->o.arg);
}

void grpc_stream_head_done(struct grpc_stream *st)
{
    if (st->session->o.server && (st->malformed || !grpc_request_head_fits(st))) {
        grpc_stream_reject(st);
        return;
    }
    if (st->head_done || (!st->session->o.server && st->http_status / 100 == 1))
        return;
    st->head_done = true;
    if (st->session->o.server)
        request_begins(st);
    else if (st->http_status != 200 || !grpc_is_content_type(st->content_type))
        grpc_stream_conclude(st); /* the end of the stream may never come */
}
