/* SPDX-License-Identifier: Apache-2.0 */
/* What a gRPC client sends to our server: HTTP/2 frames, headers, message frames. Each message is answered,
 * the second one of a call ends it. */
#include "base/grpc/frame.h"
#include "base/grpc/session.h"
#include "base/grpc/status.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_begin(struct grpc_stream *st, void *arg)
{
    size_t *open = arg;
    struct grpc_status status = { .code = ERR_UNIMPLEMENTED, .text = "no\n%" };
    size_t n;
    uint64_t ms;

    assert(grpc_stream_path(st)[0] != '\0');
    (void)grpc_stream_timeout(st, &ms);
    (void)grpc_stream_metadata(st, &n);
    assert(n <= GRPC_METADATA_MAX);
    if (strcmp(grpc_stream_path(st), "/no") == 0)
        grpc_stream_finish(st, &status);
    else
        ++*open;
}

static void on_message(struct grpc_stream *st, struct grpc_bytes message, void *arg)
{
    static const struct grpc_status fine = { .code = ERR_OK };
    size_t *open = arg;
    struct err e = { 0 };

    if (grpc_stream_owner(st) == NULL && grpc_stream_send(st, message, &e) == ERR_OK) {
        grpc_stream_set_owner(st, open);
        return;
    }
    --*open;
    grpc_stream_finish(st, &fine);
}

static void on_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg)
{
    size_t *open = arg;

    (void)st;
    (void)status;
    (void)unseen;
    --*open;
}

static void drain(struct grpc_session *s)
{
    const uint8_t *out;

    while (grpc_session_output(s, &out) > 0)
        continue;
}

static void read_texts(const uint8_t *data, size_t size)
{
    char text[GRPC_TEXT_MAX];
    uint64_t ms;

    grpc_message_decode((const char *)data, size, text);
    assert(strlen(text) < sizeof(text));
    (void)grpc_timeout_parse((const char *)data, size, &ms);
    assert(grpc_status_number((const char *)data, size) <= GRPC_NUMBER_MAX);
}

static void read_frames(const uint8_t *data, size_t size, size_t piece)
{
    struct grpc_budget budget = { .max = 4096 };
    struct grpc_frames f = { .max = 8192, .budget = &budget };
    enum grpc_frame got = GRPC_FRAME_MORE;
    struct grpc_bytes m;

    for (size_t at = 0; at < size && (got == GRPC_FRAME_MORE || got == GRPC_FRAME_MESSAGE);) {
        size_t used = 0, n = piece < size - at ? piece : size - at;
        got = grpc_frames_take(&f, data + at, n, &used, &m);
        assert(used <= n && budget.used <= budget.max);
        assert(got != GRPC_FRAME_MORE || used == n);
        at += used;
    }
    grpc_frames_done(&f);
    assert(budget.used == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct grpc_session_events events = { .begin = on_begin,
                                                       .message = on_message,
                                                       .ended = on_ended };
    struct grpc_budget budget = { .max = BUDGET };
    struct grpc_session *s = NULL;
    size_t open = 0, piece = size > 0 ? 1 + data[size - 1] : 1; /* the last byte says in which pieces */
    struct grpc_session_options o = { .server = true,
                                      .message_max = 16384,
                                      .queue_max = 65536,
                                      .max_streams = 10,
                                      .budget = &budget,
                                      .on = &events,
                                      .arg = &open };
    struct err e = { 0 };

    read_texts(data, size);
    read_frames(data, size, piece);
    if (grpc_session_new(&s, &o, &e) != ERR_OK)
        abort();
    for (size_t at = 0; at < size && e.code == ERR_OK; at += piece) {
        ERR_IGNORE(grpc_session_feed(s, data + at, piece < size - at ? piece : size - at, at, &e));
        drain(s);
        assert(budget.used <= budget.max);
        assert(open == grpc_session_streams(s) || open < grpc_session_streams(s));
    }
    grpc_session_lost(s, "EOF");
    assert(open == 0);
    grpc_session_free(s);
    assert(budget.used == 0);
    return 0;
}
