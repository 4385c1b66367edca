/* SPDX-License-Identifier: Apache-2.0 */
/* calls - calls of a plugin as the provider of its resource: Allocate, GetPreferredAllocation,
 * PreStartContainer. */
#include "deviceplugin/plugin/plugin.h"

#include "base/scope.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const paths[] = {
    [PLUGIN_ALLOCATE] = "/v1beta1.DevicePlugin/Allocate",
    [PLUGIN_PREFERRED] = "/v1beta1.DevicePlugin/GetPreferredAllocation",
    [PLUGIN_PRE_START] = "/v1beta1.DevicePlugin/PreStartContainer",
};
static const char *const names[] = {
    [PLUGIN_ALLOCATE] = "device plugin Allocate",
    [PLUGIN_PREFERRED] = "device plugin GetPreferredAllocation",
    [PLUGIN_PRE_START] = "device plugin PreStartContainer",
};

static enum err_code read_answer(struct plugin_call *c, struct err *e)
{
    const struct grpc_bytes *b = &c->call.response;
    struct dp_ask *a = c->ask;
    struct err wrong = { 0 };

    switch (c->method) {
    case PLUGIN_ALLOCATE:
        ERR_IGNORE(dp_allocated_unpack(&a->answer, &a->raw, &a->n_raw, b->p, b->n, &wrong));
        break;
    case PLUGIN_PREFERRED:
        ERR_IGNORE(dp_preferred_unpack(&a->preferred, b->p, b->n, &wrong));
        break;
    case PLUGIN_PRE_START: /* the answer has no fields that are used */
        break;
    }
    if (wrong.code == ERR_OK)
        return ERR_OK;
    *e = wrong;
    if (wrong.code == ERR_INVALID) /* grpc-go's text */
        err_wrap(e, "rpc error: code = Internal desc = grpc: failed to unmarshal the received message");
    return e->code;
}

static void on_called(struct op *op, const struct err *result)
{
    struct plugin_call *c = op->owner;
    struct dp_ask *ask = c->ask;
    struct plugin *p = c->plugin;
    struct err e = *result;

    if (e.code == ERR_OK)
        ERR_IGNORE(read_answer(c, &e));
    if (c->method == PLUGIN_ALLOCATE)
        dp_counts_allocated(&p->all->counts, p->resource,
                            (clock_mono_ms() - ask->op.started_ms) * UINT64_C(1000000));
    LIST_REMOVE(c, link);
    free(c);
    ask->run = NULL;
    op_finish(&ask->op, &e);
    plugin_settle(p);
}

static void ask_abort(struct op *op)
{
    struct dp_ask *a = container_of(op, struct dp_ask, op);
    struct plugin_call *c = a->run;

    if (c != NULL)
        op_cancel(&c->call.op);
}

/* `packed`: ERR_OK with the packed request, or an error with *e, which then ends the question. */
static void ask_begin(struct dp_provider *provider, struct dp_ask *a, enum plugin_method method,
                      const struct grpc_bytes *request, const struct err *packed, op_done_fn done,
                      void *owner)
{
    struct plugin *p = container_of(provider, struct plugin, provider);
    const struct grpc_call_options o = { .path = paths[method],
                                         .request = *request,
                                         .deadline_ms = DP_CALL_MS };
    struct plugin_call *c;
    struct err e = *packed;

    *a = (struct dp_ask){ 0 };
    op_init(&a->op, p->all->o.loop, names[method], 0, ask_abort, done, owner);
    op_set_subject(&a->op, p->resource);
    if (e.code == ERR_OK && (p->state != PLUGIN_SERVES || p->all->cancelled))
        err_set(&e, ERR_UNAVAILABLE, "the plugin of %s is gone", p->resource);
    c = e.code == ERR_OK ? calloc(1, sizeof(*c)) : NULL;
    if (c == NULL) {
        if (e.code == ERR_OK)
            err_nomem(&e);
        op_finish(&a->op, &e);
        return;
    }
    c->plugin = p;
    c->ask = a;
    c->method = method;
    a->run = c;
    LIST_INSERT_HEAD(&p->calls, c, link);
    grpc_call_start(&c->call, p->channel, &o, on_called, c);
    op_set_subject(&c->call.op, p->resource);
}

static void plugin_allocate(struct dp_provider *provider, struct dp_ask *a, const char *const *ids, size_t n,
                            op_done_fn done, void *owner)
{
    mem_auto uint8_t *bytes = NULL;
    struct err e = { 0 };

    ERR_IGNORE(dp_allocate_pack(ids, n, &bytes, &n, &e));
    ask_begin(provider, a, PLUGIN_ALLOCATE, &(struct grpc_bytes){ bytes, n }, &e, done, owner);
}

static void plugin_preferred(struct dp_provider *provider, struct dp_ask *a, const char *const *available,
                             size_t n_available, const char *const *must, size_t n_must, int32_t size,
                             op_done_fn done, void *owner)
{
    mem_auto uint8_t *bytes = NULL;
    struct err e = { 0 };
    size_t n = 0;

    ERR_IGNORE(dp_preferred_pack(available, n_available, must, n_must, size, &bytes, &n, &e));
    ask_begin(provider, a, PLUGIN_PREFERRED, &(struct grpc_bytes){ bytes, n }, &e, done, owner);
}

static void plugin_pre_start(struct dp_provider *provider, struct dp_ask *a, const char *const *ids, size_t n,
                             op_done_fn done, void *owner)
{
    mem_auto uint8_t *bytes = NULL;
    struct err e = { 0 };

    ERR_IGNORE(dp_pre_start_pack(ids, n, &bytes, &n, &e));
    ask_begin(provider, a, PLUGIN_PRE_START, &(struct grpc_bytes){ bytes, n }, &e, done, owner);
}

static void plugin_describe(const struct dp_provider *provider, char *ret, size_t size)
{
    const struct plugin *p = container_of(provider, const struct plugin, provider);

    if (p->pid > 0)
        snprintf(ret, size, "unix socket %s, pid %ld", p->path, (long)p->pid);
    else
        snprintf(ret, size, "unix socket %s", p->path);
    text_printable(ret); /* the plugin chose the socket's name */
}

const struct dp_provider plugin_provider = {
    .rank = DP_RANK_PLUGIN,
    .kind = "plugin",
    .allocate = plugin_allocate,
    .preferred = plugin_preferred,
    .pre_start = plugin_pre_start,
    .describe = plugin_describe,
};
