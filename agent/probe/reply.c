/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/reply.h"

#include "base/codec/go_quote.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static enum probe_reply_state probe_reply_broken(struct probe_reply *r, const char *what, const char *text,
                                                 size_t n)
{
    buf_auto b = BUF_INIT(sizeof(r->error) - 1);

    if (r->state != REPLY_BROKEN) {
        buf_adds(&b, what);
        if (text != NULL)
            go_quote(&b, text, n < 120 ? n : 120);
        snprintf(r->error, sizeof(r->error), "%s", b.p);
    }
    r->state = REPLY_BROKEN;
    return r->state;
}

/* ---- llhttp callbacks ---- */

static int on_field(llhttp_t *l, const char *at, size_t n)
{
    struct probe_reply *r = l->data;

    for (size_t i = 0; i < n; i++, r->field_n++)
        if (r->field_n < sizeof(r->field))
            r->field[r->field_n] = at[i];
    return 0;
}

static int on_field_complete(llhttp_t *l)
{
    struct probe_reply *r = l->data;

    r->in_location = r->field_n == 8 && strncasecmp(r->field, "location", 8) == 0 && r->location.n == 0;
    r->field_n = 0;
    return 0;
}

static int on_value(llhttp_t *l, const char *at, size_t n)
{
    struct probe_reply *r = l->data;

    if (r->in_location)
        buf_add(&r->location, at, n);
    return 0;
}

static int on_value_complete(llhttp_t *l)
{
    struct probe_reply *r = l->data;

    while (r->in_location && r->location.n > 0 && isspace((unsigned char)r->location.p[r->location.n - 1]))
        r->location.p[--r->location.n] = '\0';
    r->in_location = false;
    return 0;
}

static int probe_reply_on_headers_complete(llhttp_t *l)
{
    struct probe_reply *r = l->data;

    r->status = (int)l->status_code;
    if (r->status / 100 == 1 && r->status != 101)
        return 0;
    r->state = REPLY_BODY;
    return 0;
}

static int probe_reply_on_body(llhttp_t *l, const char *at, size_t n)
{
    struct probe_reply *r = l->data;
    size_t room = PROBE_BODY_MAX - r->body.n;

    buf_add(&r->body, at, n < room ? n : room);
    if (r->body.n < PROBE_BODY_MAX && !r->body.failed)
        return 0;
    r->state = REPLY_COMPLETE; /* the rest is not needed */
    return HPE_PAUSED;
}

static int probe_reply_on_message_complete(llhttp_t *l)
{
    struct probe_reply *r = l->data;

    if (r->state == REPLY_BODY) {
        r->state = REPLY_COMPLETE;
        return HPE_PAUSED;
    }
    if (++r->informational > PROBE_INFORMATIONAL_MAX)
        probe_reply_broken(r, "net/http: too many 1xx informational responses", NULL, 0);
    buf_reset(&r->location);
    r->line_done = false; /* the next status line */
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_field,
    .on_header_field_complete = on_field_complete,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = probe_reply_on_headers_complete,
    .on_body = probe_reply_on_body,
    .on_message_complete = probe_reply_on_message_complete,
};

static void parser_init(struct probe_reply *r)
{
    llhttp_init(&r->parser, HTTP_RESPONSE, &settings);
    r->parser.data = r;
    llhttp_set_lenient_chunked_length(&r->parser, 1); /* as in Go, Transfer-Encoding wins */
}

void probe_reply_init(struct probe_reply *r)
{
    *r = (struct probe_reply){ 0 };
    buf_init(&r->location, PROBE_LOCATION_MAX);
    buf_init(&r->body, PROBE_BODY_MAX);
    buf_init(&r->line, PROBE_LINE_MAX);
    parser_init(r);
}

void probe_reply_done(struct probe_reply *r)
{
    buf_done(&r->location);
    buf_done(&r->body);
    buf_done(&r->line);
}

/* ---- feeding ---- */

static void probe_reply_give(struct probe_reply *r, const char *data, size_t n)
{
    llhttp_errno_t code = llhttp_execute(&r->parser, data, n);

    if (r->state == REPLY_BROKEN || r->state == REPLY_COMPLETE)
        return;
    if (code == HPE_PAUSED) { /* after an informational response */
        parser_init(r);
        return;
    }
    if (code == HPE_PAUSED_UPGRADE) {
        r->state = REPLY_COMPLETE;
        return;
    }
    if (code != HPE_OK) {
        const char *why = llhttp_get_error_reason(&r->parser);
        char text[160];
        snprintf(
            text, sizeof(text), "%s%s",
            r->state == REPLY_HEAD ? "malformed MIME header: " : "malformed body: ", why != NULL ? why : "?");
        probe_reply_broken(r, text, NULL, 0);
    }
}

/* Go's checks of a status line, in the same order and with the same texts. */
static void probe_reply_check_line(struct probe_reply *r)
{
    const char *line = r->line.p, *space = strchr(line, ' '), *code;
    size_t n;

    if (space == NULL) {
        probe_reply_broken(r, "malformed HTTP response ", line, strlen(line));
        return;
    }
    code = space + strspn(space, " ");
    n = strcspn(code, " ");
    if (n != 3 || !isdigit((unsigned char)code[0]) || !isdigit((unsigned char)code[1]) ||
        !isdigit((unsigned char)code[2])) {
        probe_reply_broken(r, "malformed HTTP status code ", code, n);
        return;
    }
    if (strncmp(line, "HTTP/", 5) != 0 || space - line != 8 || !isdigit((unsigned char)line[5]) ||
        line[6] != '.' || !isdigit((unsigned char)line[7])) {
        probe_reply_broken(r, "malformed HTTP version ", line, (size_t)(space - line));
        return;
    }
    if (code[0] == '0') { /* llhttp, like all clients, accepts only codes from 100 */
        probe_reply_broken(r, "malformed HTTP status code ", code, n);
        return;
    }
    /* Any version is read as 1.1 or 1.0: the framing is the same, and the connection ends with the reply. */
    probe_reply_give(r, line[7] == '0' ? "HTTP/1.0 " : "HTTP/1.1 ", 9);
    if (r->state == REPLY_HEAD)
        probe_reply_give(r, code, 3);
    if (r->state == REPLY_HEAD)
        probe_reply_give(r, " \r\n", 3); /* the reason may hold any bytes and is not needed */
}

/* One byte of the head: collects the status line and converts a bare newline to CR LF. */
static void head_byte(struct probe_reply *r, char c)
{
    if (++r->head_bytes > PROBE_HEAD_MAX) {
        probe_reply_broken(r, "net/http: server response headers exceeded 262144 bytes; aborted", NULL, 0);
        return;
    }
    if (!r->line_done) {
        if (c != '\n' && r->line.n < PROBE_LINE_MAX) {
            buf_addc(&r->line, c == '\0' ? ' ' : c);
            if (r->line.failed)
                probe_reply_broken(r, "out of memory", NULL, 0);
            return;
        }
        while (r->line.n > 0 && (r->line.p[r->line.n - 1] == '\r' || r->line.p[r->line.n - 1] == ' '))
            r->line.p[--r->line.n] = '\0';
        probe_reply_check_line(r);
        buf_reset(&r->line);
        r->line_done = true;
        r->last_cr = false;
        return;
    }
    if (c == '\n' && !r->last_cr)
        probe_reply_give(r, "\r", 1);
    r->last_cr = c == '\r';
    if (r->state == REPLY_HEAD)
        probe_reply_give(r, &c, 1);
}

enum probe_reply_state probe_reply_feed(struct probe_reply *r, const char *data, size_t n)
{
    size_t i = 0;

    while (i < n && r->state == REPLY_HEAD)
        head_byte(r, data[i++]);
    if (i < n && r->state == REPLY_BODY)
        probe_reply_give(r, data + i, n - i);
    r->raw_bytes += n;
    if (r->raw_bytes > PROBE_RAW_MAX && r->state != REPLY_COMPLETE)
        return probe_reply_broken(r, "the response is too long for what is in it", NULL, 0);
    if (r->location.failed)
        return probe_reply_broken(r, "the Location header is too long", NULL, 0);
    if (r->body.failed)
        return probe_reply_broken(r, "out of memory", NULL, 0);
    return r->state;
}

enum probe_reply_state probe_reply_eof(struct probe_reply *r)
{
    if (r->state == REPLY_HEAD)
        return probe_reply_broken(r, r->head_bytes == 0 ? "EOF" : "unexpected EOF", NULL, 0);
    if (r->state == REPLY_BODY) {
        llhttp_errno_t code = llhttp_finish(&r->parser);
        if (r->state == REPLY_BODY && code != HPE_OK)
            return probe_reply_broken(r, "unexpected EOF", NULL, 0);
        if (r->state == REPLY_BODY)
            r->state = REPLY_COMPLETE;
    }
    return r->state;
}
