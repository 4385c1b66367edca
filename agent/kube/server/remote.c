/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote - exec and attach over SPDY: streams of the client on one side, channels of the status socket on the
 * other. The process begins with the upgrade; its output waits until the client has made its streams.
 * Source: k8s.io/cri-streaming/pkg/streaming/remotecommand, protocols v1 to v4.
 */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

enum { REMOTE_SMALL_MAX = 64 * 1024, REMOTE_SIZE_MAX = 1024 };

enum remote_stream { REMOTE_STDIN, REMOTE_STDOUT, REMOTE_STDERR, REMOTE_ERROR, REMOTE_RESIZE, REMOTE_N };
static const char *const stream_names[REMOTE_N] = { "stdin", "stdout", "stderr", "error", "resize" };

static const char *const remote_protocols[] = { "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io",
                                                "channel.k8s.io", NULL };

struct remote {
    struct caller *caller;
    struct channels *channels;
    struct spdy_wire wire;
    int version;
    bool expected[REMOTE_N], had[REMOTE_N];
    uint32_t ids[REMOTE_N];       /* 0: gone, or not there yet */
    struct buf pending[REMOTE_N]; /* for the client: its windows are full, or its streams do not exist yet */
    struct buf size;              /* of a terminal, so far */
    bool ready, ended;            /* all streams are there; the process ended */
    struct err failure;           /* code ERR_OK: it ended in order */
};

static void remote_step(struct remote *r);

static void remote_free(struct remote *r)
{
    channels_close(r->channels);
    spdy_wire_done(&r->wire);
    for (size_t i = 0; i < REMOTE_N; i++)
        buf_done(&r->pending[i]);
    buf_done(&r->size);
    free(r);
}

static void remote_gone(struct caller *c)
{
    remote_free(c->job);
}

/* ---- the client's streams ---- */

static enum remote_stream remote_stream_of(const struct remote *r, uint32_t id)
{
    for (int i = 0; i < REMOTE_N; i++)
        if (r->ids[i] == id)
            return (enum remote_stream)i;
    return REMOTE_N;
}

static bool remote_on_stream(uint32_t id, const struct spdy_headers *h, void *owner)
{
    struct remote *r = owner;
    const char *type = spdy_header(h, "streamtype");

    for (int i = 0; i < REMOTE_N; i++) {
        if (strcmp(type, stream_names[i]) != 0 || !r->expected[i] || r->had[i])
            continue;
        r->ids[i] = id;
        r->had[i] = true;
        return true;
    }
    return false;
}

static void remote_on_opened(uint32_t id, void *owner)
{
    struct remote *r = owner;

    (void)id;
    if (r->ready || memcmp(r->had, r->expected, sizeof(r->had)) != 0)
        return;
    r->ready = true;
    r->caller->silent_ms = 0;
    channels_resume(r->channels);
}

/* JSON objects one after the other; none of them has a brace inside. */
static void remote_take_sizes(struct remote *r, const char *p, size_t n)
{
    char *end;

    buf_add(&r->size, p, n);
    if (r->size.failed)
        buf_reset(&r->size);
    while (r->size.n > 0 && (end = memchr(r->size.p, '}', r->size.n)) != NULL) {
        size_t used = (size_t)(end + 1 - r->size.p);

        if (!r->ended)
            channels_send(r->channels, CHANNEL_RESIZE, r->size.p, used);
        buf_remove_front(&r->size, used);
    }
}

static void remote_on_data(uint32_t id, const char *p, size_t n, void *owner)
{
    struct remote *r = owner;
    enum remote_stream s = remote_stream_of(r, id);

    if (s == REMOTE_RESIZE)
        remote_take_sizes(r, p, n);
    else if (s == REMOTE_STDIN && !r->ended)
        channels_send(r->channels, CHANNEL_STDIN, p, n);
}

static void remote_on_fin(uint32_t id, void *owner)
{
    struct remote *r = owner;

    if (remote_stream_of(r, id) == REMOTE_STDIN && !r->ended)
        channels_end_input(r->channels);
}

static void remote_on_reset(uint32_t id, void *owner)
{
    struct remote *r = owner;
    enum remote_stream s = remote_stream_of(r, id);

    if (s == REMOTE_N)
        return;
    if (s == REMOTE_STDIN && !r->ended)
        channels_end_input(r->channels);
    r->ids[s] = 0;
    buf_reset(&r->pending[s]);
}

static const struct spdy_events remote_events = { .on_stream = remote_on_stream,
                                                  .on_opened = remote_on_opened,
                                                  .on_data = remote_on_data,
                                                  .on_fin = remote_on_fin,
                                                  .on_reset = remote_on_reset };

/* ---- the process ---- */

static void remote_opened(void *owner)
{
    struct remote *r = owner;

    channels_pause(r->channels);
    r->caller->silent_ms = CALLER_CREATE_MS;
    if (spdy_wire_begin(&r->wire, &remote_events, r) && r->caller->in.n > 0)
        r->caller->source->input(r->caller);
}

static void remote_data(unsigned char channel, const char *p, size_t n, void *owner)
{
    struct remote *r = owner;
    enum remote_stream s = channel == CHANNEL_STDOUT   ? REMOTE_STDOUT
                           : channel == CHANNEL_STDERR ? REMOTE_STDERR
                           : channel == CHANNEL_ERROR  ? REMOTE_ERROR
                                                       : REMOTE_N;

    if (s == REMOTE_N || !r->expected[s] || (r->had[s] && r->ids[s] == 0))
        return;
    buf_add(&r->pending[s], p, n);
    if (s != REMOTE_ERROR) /* the end is sent in its own form */
        remote_step(r);
}

static void remote_end(const struct err *failure, int http, void *owner)
{
    struct remote *r = owner;
    struct caller *c = r->caller;
    struct err e = { 0 };

    r->ended = true;
    if (failure != NULL)
        e = r->failure = *failure;
    if (r->wire.begun) {
        remote_step(r);
        return;
    }
    c->source = NULL; /* refused, before anything was promised */
    caller_text(c, http != 0 ? http : 503, e.text);
    remote_free(r);
}

static void remote_channels_drained(void *owner)
{
    caller_resume(((struct remote *)owner)->caller);
}

static const struct channels_ops remote_channels = {
    .opened = remote_opened, .data = remote_data, .end = remote_end, .drained = remote_channels_drained
};

/* ---- to the client ---- */

/* The content of the error stream: a Status since v4, before that the message of a failure. */
static void remote_set_outcome(struct remote *r)
{
    struct buf *b = &r->pending[REMOTE_ERROR];
    json_auto_t *status = NULL;
    const char *message;

    if (r->failure.code != ERR_OK && b->n == 0)
        status = json_pack("{s:{}, s:s, s:s, s:s, s:i}", "metadata", "status", "Failure", "reason",
                           "InternalError", "message", r->failure.text, "code", 500);
    else if (json_parse(b->p, b->n, REMOTE_SMALL_MAX, &status, "status", ERR_IGNORED) != ERR_OK)
        status = NULL;
    buf_reset(b);
    message = json_str(status, "message");
    if (r->version >= 4)
        json_add_text(b, status, false, 0);
    else if (!str_eq(json_str(status, "status"), "Success"))
        buf_adds(b, message != NULL ? message : "unknown error");
    b->failed = false;
}

/* True: all of it was sent. */
static bool remote_send_pending(struct remote *r, enum remote_stream s)
{
    struct buf *b = &r->pending[s];
    size_t room = r->ids[s] != 0 ? spdy_room(&r->wire.spdy, r->ids[s]) : 0;
    size_t n = b->n < room ? b->n : room;

    if (r->ids[s] == 0)
        buf_reset(b);
    if (n > 0)
        spdy_send(&r->wire.spdy, r->ids[s], b->p, n, false);
    buf_remove_front(b, n);
    return b->n == 0;
}

/* Everything that depends on something else having changed; never from inside the codec. May free `r`. */
static void remote_step(struct remote *r)
{
    struct caller *c = r->caller;
    bool sent = r->ready, over = r->ended && r->ready;

    if (r->ready)
        sent = remote_send_pending(r, REMOTE_STDOUT) && remote_send_pending(r, REMOTE_STDERR);
    over = over && sent;
    if (over) {
        remote_set_outcome(r);
        remote_send_pending(r, REMOTE_ERROR); /* smaller than any window */
        for (int i = 0; i < REMOTE_N; i++)
            if (r->ids[i] != 0)
                spdy_send(&r->wire.spdy, r->ids[i], NULL, 0, true);
        spdy_goaway(&r->wire.spdy);
    }
    spdy_wire_flush(&r->wire);
    if (c->source == NULL)
        return; /* it closed */
    if (over) {
        caller_over(c);
        return;
    }
    if (!r->ended && r->ready) {
        if (c->high || !sent)
            channels_pause(r->channels);
        else
            channels_resume(r->channels);
    }
    if (!r->ended && channels_backlog(r->channels) > UPSTREAM_OUT_HIGH)
        caller_pause(c);
}

static void remote_input(struct caller *c)
{
    struct remote *r = c->job;

    if (!r->wire.begun)
        return;
    if (spdy_wire_input(&r->wire)) {
        remote_step(r);
        return;
    }
    spdy_wire_flush(&r->wire);
    caller_over(c);
}

static void remote_drained(struct caller *c)
{
    remote_step(c->job);
}

static const struct caller_source remote_source = { .gone = remote_gone,
                                                    .drained = remote_drained,
                                                    .input = remote_input };

/* ---- the beginning ---- */

static bool remote_has_param(const char *target, const char *text)
{
    return strstr(target, text) != NULL; /* values are escaped, so this is no part of one */
}

static int remote_version(const char *protocol)
{
    return protocol[0] == 'v' ? protocol[1] - '0' : 1;
}

void remote_begin(struct caller *c, const char *target)
{
    struct remote *r = calloc(1, sizeof(*r));
    bool tty = remote_has_param(target, "&tty=true");
    struct err e = { 0 };

    if (r == NULL) {
        caller_text(c, 500, "out of memory\n");
        return;
    }
    r->caller = c;
    for (size_t i = 0; i < REMOTE_N; i++)
        buf_init(&r->pending[i], CALLER_OUT_MAX);
    buf_init(&r->size, REMOTE_SIZE_MAX);
    if (!spdy_wire_asked(&r->wire, c, remote_protocols)) {
        remote_free(r);
        return;
    }
    r->version = remote_version(r->wire.protocol);
    r->expected[REMOTE_ERROR] = true;
    r->expected[REMOTE_STDIN] = remote_has_param(target, "&stdin=true");
    r->expected[REMOTE_STDOUT] = remote_has_param(target, "&stdout=true");
    r->expected[REMOTE_STDERR] = remote_has_param(target, "&stderr=true");
    r->expected[REMOTE_RESIZE] = tty && r->version >= 3;
    r->channels = channels_open(c->server, target, &remote_channels, r, &e);
    if (r->channels == NULL) {
        remote_free(r);
        caller_text(c, 503, e.text);
        return;
    }
    caller_serve(c, &remote_source, r);
}
