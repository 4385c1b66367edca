/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward - port-forward over SPDY: each connection is a pair of streams with the same requestID, one for
 * data, one for an error. Each has its own connection of the status socket. Source:
 * k8s.io/cri-streaming/pkg/streaming/portforward/httpstream.go.
 */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"
#include "base/parse.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

enum { FORWARD_PAIRS_MAX = 64, FORWARD_SMALL_MAX = 64 * 1024 };

struct forward;
struct forward_pair {
    struct forward *forward; /* NULL: free */
    char request[64];
    uint16_t port;
    uint32_t data, error; /* streams; 0: not there yet, or gone */
    bool had_data, had_error;
    struct channels *channels;
    struct buf pending; /* for the client */
    struct buf status;
    bool started, pod_done, ended,
        finished; /* pod_done: it sends no more; finished: both ends are notified */
    struct err failure;
};

struct forward {
    struct caller *caller;
    struct spdy_wire wire;
    char *target;
    struct forward_pair pairs[FORWARD_PAIRS_MAX];
};

static void forward_step(struct forward *f);

static void pair_free(struct forward_pair *p)
{
    if (p->forward == NULL)
        return;
    channels_close(p->channels);
    buf_done(&p->pending);
    buf_done(&p->status);
    *p = (struct forward_pair){ 0 };
}

static void forward_free(struct forward *f)
{
    for (size_t i = 0; i < FORWARD_PAIRS_MAX; i++)
        pair_free(&f->pairs[i]);
    spdy_wire_done(&f->wire);
    free(f->target);
    free(f);
}

static void forward_gone(struct caller *c)
{
    forward_free(c->job);
}

/* ---- one connection: the pod's side ---- */

static void pair_data(unsigned char channel, const char *p, size_t n, void *owner)
{
    struct forward_pair *pair = owner;

    if (channel == CHANNEL_STDOUT)
        buf_add(&pair->pending, p, n);
    else if (channel == CHANNEL_ERROR)
        buf_add(&pair->status, p, n);
    else if (channel == CHANNEL_CLOSE && n == 1 && p[0] == CHANNEL_STDOUT)
        pair->pod_done = true;
    else
        return;
    forward_step(pair->forward);
}

static void pair_end(const struct err *failure, int http, void *owner)
{
    struct forward_pair *pair = owner;

    (void)http;
    pair->ended = true;
    if (failure != NULL)
        pair->failure = *failure;
    forward_step(pair->forward);
}

static void pair_drained(void *owner)
{
    forward_step(((struct forward_pair *)owner)->forward);
}

static const struct channels_ops pair_channels = { .data = pair_data,
                                                   .end = pair_end,
                                                   .drained = pair_drained };

/* ---- one connection: the client's side ---- */

static struct forward_pair *pair_of(struct forward *f, uint32_t stream)
{
    for (size_t i = 0; i < FORWARD_PAIRS_MAX; i++)
        if (f->pairs[i].forward != NULL && (f->pairs[i].data == stream || f->pairs[i].error == stream))
            return &f->pairs[i];
    return NULL;
}

static struct forward_pair *pair_for(struct forward *f, const char *request)
{
    struct forward_pair *free_one = NULL;

    for (size_t i = 0; i < FORWARD_PAIRS_MAX; i++) {
        if (f->pairs[i].forward == NULL)
            free_one = free_one == NULL ? &f->pairs[i] : free_one;
        else if (!f->pairs[i].started && strcmp(f->pairs[i].request, request) == 0)
            return &f->pairs[i];
    }
    if (free_one == NULL)
        return NULL;
    *free_one = (struct forward_pair){ .forward = f };
    snprintf(free_one->request, sizeof(free_one->request), "%s", request);
    buf_init(&free_one->pending, CALLER_OUT_MAX);
    buf_init(&free_one->status, FORWARD_SMALL_MAX);
    return free_one;
}

static bool forward_on_stream(uint32_t id, const struct spdy_headers *h, void *owner)
{
    struct forward *f = owner;
    const char *type = spdy_header(h, "streamtype"), *request = spdy_header(h, "requestid");
    bool is_data = strcmp(type, "data") == 0;
    struct forward_pair *pair;
    char own[16];
    uint64_t port;

    if ((!is_data && strcmp(type, "error") != 0) || strlen(request) >= sizeof(pair->request) ||
        parse_u64(spdy_header(h, "port"), 1, UINT16_MAX, &port, "port", ERR_IGNORED) != ERR_OK)
        return false;
    if (request[0] == '\0') { /* old clients: the data stream is made next after the error stream */
        snprintf(own, sizeof(own), "#%u", is_data ? id - 2 : id);
        request = own;
    }
    pair = pair_for(f, request);
    if (pair == NULL || (is_data ? pair->had_data : pair->had_error))
        return false;
    pair->port = (uint16_t)port;
    if (is_data) {
        pair->data = id;
        pair->had_data = true;
    } else {
        pair->error = id;
        pair->had_error = true;
    }
    return true;
}

static void forward_on_opened(uint32_t id, void *owner)
{
    struct forward *f = owner;
    struct forward_pair *pair = pair_of(f, id);
    struct buf target = BUF_INIT(HTTP_URL_MAX);
    struct err e = { 0 };

    if (pair == NULL || pair->started || !pair->had_data || !pair->had_error)
        return;
    pair->started = true;
    buf_addf(&target, "%s?port=%u", f->target, pair->port);
    pair->channels =
        target.failed ? NULL : channels_open(f->caller->server, target.p, &pair_channels, pair, &e);
    if (pair->channels == NULL) {
        pair->ended = true;
        pair->failure = e;
        if (e.code == ERR_OK)
            err_nomem(&pair->failure);
    }
    buf_done(&target);
}

static void forward_on_data(uint32_t id, const char *p, size_t n, void *owner)
{
    struct forward_pair *pair = pair_of(owner, id);

    if (pair != NULL && pair->data == id && pair->channels != NULL && !pair->ended)
        channels_send(pair->channels, CHANNEL_STDIN, p, n);
}

static void forward_on_fin(uint32_t id, void *owner)
{
    struct forward_pair *pair = pair_of(owner, id);

    /* Clients close their side of the error stream at once: it is ours alone. */
    if (pair != NULL && pair->data == id && pair->channels != NULL && !pair->ended)
        channels_end_input(pair->channels);
}

static void forward_on_reset(uint32_t id, void *owner)
{
    struct forward_pair *pair = pair_of(owner, id);

    if (pair == NULL)
        return;
    if (pair->data == id) {
        pair->data = 0;
        pair->ended = true; /* the rest is not read */
        buf_reset(&pair->pending);
    } else {
        pair->error = 0;
    }
    if (!pair->started)
        pair->ended = true;
}

static const struct spdy_events forward_events = { .on_stream = forward_on_stream,
                                                   .on_opened = forward_on_opened,
                                                   .on_data = forward_on_data,
                                                   .on_fin = forward_on_fin,
                                                   .on_reset = forward_on_reset };

/* ---- both ---- */

bool forward_failure(const struct caller *c, uint16_t port, const struct buf *answer,
                     const struct err *failure, bool pod_done, struct buf *ret)
{
    json_auto_t *status = NULL;
    const char *message = NULL;

    if (json_parse(answer->p, answer->n, FORWARD_SMALL_MAX, &status, "status", ERR_IGNORED) != ERR_OK)
        status = NULL;
    if (status != NULL && str_eq(json_str(status, "status"), "Success"))
        return false;
    if (status == NULL && failure->code == ERR_OK && pod_done) /* the pod closed it */
        return false;
    message = status != NULL ? json_str(status, "message") : failure->code != ERR_OK ? failure->text : NULL;
    buf_addf(ret, "error forwarding port %u to pod %s, uid %s: %s", port, c->route.pod,
             c->route.uid != NULL ? c->route.uid : "", message != NULL ? message : "the connection ended");
    return true;
}

static void pair_finish(struct forward_pair *p)
{
    struct spdy *s = &p->forward->wire.spdy;
    struct buf text = BUF_INIT(4096);

    if (p->error != 0 &&
        forward_failure(p->forward->caller, p->port, &p->status, &p->failure, p->pod_done, &text) &&
        !text.failed)
        spdy_send(s, p->error, text.p, text.n, false);
    buf_done(&text);
    if (p->data != 0)
        spdy_send(s, p->data, NULL, 0, true);
    if (p->error != 0)
        spdy_send(s, p->error, NULL, 0, true);
    pair_free(p);
}

/* False: it holds back the pod's bytes. */
static void pair_step(struct forward_pair *p)
{
    struct spdy *s = &p->forward->wire.spdy;
    size_t room = p->data != 0 ? spdy_room(s, p->data) : 0, n = p->pending.n < room ? p->pending.n : room;

    if (n > 0)
        spdy_send(s, p->data, p->pending.p, n, false);
    buf_remove_front(&p->pending, n);
    if (p->pending.failed) { /* a part is lost: the connection must not appear complete */
        p->ended = true;
        err_set(&p->failure, ERR_EXHAUSTED, "too much data is queued for the client");
        buf_reset(&p->pending);
    }
    if (p->ended && (p->pending.n == 0 || p->data == 0)) {
        pair_finish(p);
        return;
    }
    if (p->pod_done && p->pending.n == 0 && p->data != 0 && !p->finished) {
        p->finished = true;
        spdy_send(s, p->data, NULL, 0, true);
    }
}

/* Never from inside the codec. May free `f`. */
static void forward_step(struct forward *f)
{
    struct caller *c = f->caller;
    bool full = false;

    for (size_t i = 0; i < FORWARD_PAIRS_MAX; i++)
        if (f->pairs[i].forward != NULL)
            pair_step(&f->pairs[i]);
    spdy_wire_flush(&f->wire);
    if (c->source == NULL)
        return; /* it closed */
    for (size_t i = 0; i < FORWARD_PAIRS_MAX; i++) {
        struct forward_pair *p = &f->pairs[i];

        if (p->forward == NULL || p->channels == NULL || p->ended)
            continue;
        if (c->high || p->pending.n > 0)
            channels_pause(p->channels);
        else
            channels_resume(p->channels);
        full = full || channels_backlog(p->channels) > UPSTREAM_OUT_HIGH;
    }
    /* One slow connection holds up the others, as in kubelet: its peer keeps no windows. */
    if (full)
        caller_pause(c);
    else
        caller_resume(c);
}

static void forward_input(struct caller *c)
{
    struct forward *f = c->job;

    if (spdy_wire_input(&f->wire)) {
        forward_step(f);
        return;
    }
    spdy_wire_flush(&f->wire);
    caller_over(c);
}

static void forward_drained(struct caller *c)
{
    forward_step(c->job);
}

static const struct caller_source forward_source = { .gone = forward_gone,
                                                     .drained = forward_drained,
                                                     .input = forward_input };

void forward_begin(struct caller *c, const char *target)
{
    static const char *const protocols[] = { "portforward.k8s.io", NULL };
    struct forward *f = calloc(1, sizeof(*f));

    if (f == NULL || (f->target = strdup(target)) == NULL) {
        free(f);
        caller_text(c, 500, "out of memory\n");
        return;
    }
    f->caller = c;
    if (!spdy_wire_asked(&f->wire, c, protocols)) {
        forward_free(f);
        return;
    }
    caller_serve(c, &forward_source, f);
    if (spdy_wire_begin(&f->wire, &forward_events, f) && c->in.n > 0)
        forward_input(c);
}
