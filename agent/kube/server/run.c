/* SPDX-License-Identifier: Apache-2.0 */
/* run - a command in a container whose whole output is the answer (kubelet's /run). */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"

enum { RUN_OUTPUT_MAX = 1024 * 1024, RUN_STATUS_MAX = 64 * 1024 };

struct run {
    struct caller *caller;
    struct channels *channels;
    struct buf output, status;
};

static void run_free(struct run *r)
{
    channels_close(r->channels);
    buf_done(&r->output);
    buf_done(&r->status);
    free(r);
}

static void run_gone(struct caller *c)
{
    run_free(c->job);
}

static const struct caller_source run_source = { .gone = run_gone };

static void run_data(unsigned char channel, const char *p, size_t n, void *owner)
{
    struct run *r = owner;

    if (channel == CHANNEL_STDOUT || channel == CHANNEL_STDERR)
        buf_add(&r->output, p, n); /* too long an output fails the answer */
    else if (channel == CHANNEL_ERROR)
        buf_add(&r->status, p, n);
}

static void run_end(const struct err *failure, int http, void *owner)
{
    struct run *r = owner;
    struct caller *c = r->caller;
    json_auto_t *status = NULL;

    if (json_parse(r->status.p, r->status.n, RUN_STATUS_MAX, &status, "status", ERR_IGNORED) != ERR_OK)
        status = NULL;
    c->source = NULL;
    if (failure != NULL)
        caller_text(c, http != 0 ? http : 500, failure->text);
    else if (!str_eq(json_str(status, "status"), "Success"))
        caller_text(c, 500, relay_message(status));
    else if (r->output.failed)
        caller_text(c, 500, "the output is longer than 1 MiB");
    else
        caller_answer(c, 200, "application/json", NULL, r->output.p, r->output.n); /* kubelet's type for it */
    run_free(r);
}

static const struct channels_ops run_channels = { .data = run_data, .end = run_end };

void run_begin(struct caller *c, const char *target)
{
    struct run *r = calloc(1, sizeof(*r));
    struct err e = { 0 };

    if (r == NULL) {
        caller_text(c, 500, "out of memory\n");
        return;
    }
    r->caller = c;
    buf_init(&r->output, RUN_OUTPUT_MAX);
    buf_init(&r->status, RUN_STATUS_MAX);
    r->channels = channels_open(c->server, target, &run_channels, r, &e);
    if (r->channels == NULL) {
        run_free(r);
        caller_text(c, 503, e.text);
        return;
    }
    caller_serve(c, &run_source, r);
}
