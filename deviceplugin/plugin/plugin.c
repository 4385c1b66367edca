/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin - one plugin, from the dial to the end of its stream of lists.
 *
 *     CONNECTS  dial, GetDevicePluginOptions
 *     SERVES    provides its resource; ListAndWatch is open
 *     ENDED     provides nothing; calls in progress finish, then it is freed
 *
 * Each plugin has a separate connection, so that the end of an older plugin does not affect a newer one of
 * the same resource (kubelet closes both). If two plugins register one resource, the later registration wins,
 * even if the other plugin answers later.
 */
#include "deviceplugin/plugin/plugin.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* After each list, a pause of this many times its processing time: a plugin that floods gets a quarter of
     * the loop's time. */
    LIST_REST = 3,
    LIST_PAUSE_MS = 100, /* the shortest pause: a change also causes work for pods */
};

/* ---- the end ---- */

static void turn_on_closed(uv_handle_t *handle)
{
    struct plugin *p = handle->data;

    p->turn_closed = true;
    plugin_settle(p);
}

void plugin_settle(struct plugin *p)
{
    if (p->state != PLUGIN_ENDED || !p->turn_closed || op_live(&p->options.op) || op_live(&p->stream.op) ||
        !LIST_EMPTY(&p->calls))
        return;
    grpc_channel_close(p->channel);
    TAILQ_REMOVE(&p->all->plugins, p, link);
    p->all->n_plugins--;
    free(p->list);
    free(p->path);
    free(p);
}

void plugin_end(struct plugin *p, const struct err *why)
{
    if (p->state == PLUGIN_ENDED)
        return;
    if (p->state == PLUGIN_SERVES)
        dp_inventory_withdraw(p->all->o.inventory, &p->provider, p->resource);
    p->state = PLUGIN_ENDED;
    p->owner = NULL;
    if (why != NULL)
        dp_problem_set(p->all, p->resource, p->resource, why);
    if (op_live(&p->options.op))
        op_cancel(&p->options.op);
    if (op_live(&p->stream.op))
        op_cancel(&p->stream.op);
    uv_close((uv_handle_t *)&p->turn, turn_on_closed);
}

void plugin_cancel(struct plugin *p)
{
    struct plugin_call *c;

    plugin_end(p, NULL);
    LIST_FOREACH (c, &p->calls, link)
        op_cancel(&c->call.op);
}

/* Ends the plugin and reports that to its owner. `why` NULL: a later registration replaced it. */
static void end_and_report(struct plugin *p, const struct err *why)
{
    const struct plugin_owner *owner = p->owner;
    void *arg = p->owner_arg;

    if (p->state == PLUGIN_ENDED)
        return;
    plugin_end(p, why);
    if (owner != NULL)
        owner->ended(p, why == NULL, arg);
}

/* ---- lists ---- */

static void process_list(struct plugin *p)
{
    mem_auto uint8_t *bytes = take_ptr(&p->list);
    struct dp_list list = { 0 };
    struct err e = { 0 };

    if (dp_list_unpack(&list, bytes, p->n_list, &e) == ERR_OK &&
        dp_inventory_list(p->all->o.inventory, &p->provider, p->resource, list.v, list.n, &e) == ERR_OK) {
        p->listed = true;
        log_debug("devices of a plugin", F_STR("resource", p->resource), F_U64("devices", list.n));
    }
    dp_list_done(&list);
    if (e.code == ERR_OK)
        return;
    /* If a list is invalid, nothing in it is reliable. */
    err_wrap(&e, "ListAndWatch");
    end_and_report(p, &e);
}

static void on_turn(uv_timer_t *timer)
{
    struct plugin *p = timer->data;
    uint64_t from = uv_hrtime(), rest_ms;

    process_list(p);
    rest_ms = LIST_REST * ((uv_hrtime() - from) / 1000000);
    uv_update_time(p->all->o.loop);
    p->rests_until_ms = uv_now(p->all->o.loop) + (rest_ms > LIST_PAUSE_MS ? rest_ms : LIST_PAUSE_MS);
}

/* The newest list replaces an earlier one that was not processed yet. */
static void on_list(struct grpc_call *call, struct grpc_bytes message)
{
    struct plugin *p = container_of(call, struct plugin, stream);
    uint64_t now = uv_now(p->all->o.loop);
    uint8_t *copy;

    if (p->state != PLUGIN_SERVES)
        return;
    copy = malloc(message.n + 1);
    if (copy == NULL) {
        struct err e = { 0 };
        err_nomem(&e);
        err_wrap(&e, "ListAndWatch");
        end_and_report(p, &e);
        return;
    }
    if (message.n > 0)
        memcpy(copy, message.p, message.n);
    free(p->list);
    p->list = copy;
    p->n_list = message.n;
    if (!uv_is_active((uv_handle_t *)&p->turn))
        uv_timer_start(&p->turn, on_turn, p->rests_until_ms > now ? p->rests_until_ms - now : 0, 0);
}

static void on_stream_ended(struct op *op, const struct err *result)
{
    struct plugin *p = op->owner;
    struct err e = { 0 };

    /* The last list may still be new; it applies until the plugin is withdrawn. */
    if (p->state == PLUGIN_SERVES && p->list != NULL)
        process_list(p);
    if (result->code == ERR_OK)
        err_set(&e, ERR_UNAVAILABLE, "ListAndWatch ended for device plugin");
    else
        err_set(&e, result->code, "ListAndWatch ended unexpectedly for device plugin: %s", result->text);
    end_and_report(p, &e);
    plugin_settle(p);
}

/* ---- the beginning ---- */

static struct plugin *serving(struct plugin *p)
{
    struct plugin *x;

    TAILQ_FOREACH (x, &p->all->plugins, link) {
        if (x != p && x->state == PLUGIN_SERVES && strcmp(x->resource, p->resource) == 0)
            return x;
    }
    return NULL;
}

static void fail(struct plugin *p, const struct err *e)
{
    const struct plugin_owner *owner = p->owner;
    void *arg = p->owner_arg;

    plugin_end(p, e->code == ERR_ABORTED ? NULL
                                         : e); /* a later registration has replaced it, which is no problem */
    if (owner != NULL)
        owner->ready(p, e, arg);
}

static enum err_code provide(struct plugin *p, struct err *e)
{
    struct plugin *other = serving(p);
    struct dp_options o = { 0 };
    uid_t uid;

    if (other != NULL && other->order > p->order)
        return err_set(e, ERR_ABORTED, "a later registration of %s is in effect", p->resource);
    if (dp_options_unpack(&o, p->options.response.p, p->options.response.n, e) != ERR_OK)
        return err_wrap(e, "failed to get device plugin options");
    p->state = PLUGIN_SERVES; /* it may be called from now on */
    if (dp_inventory_provide(p->all->o.inventory, p->resource, &p->provider, o, e) != ERR_OK) {
        p->state = PLUGIN_CONNECTS;
        return e->code;
    }
    p->since_ms = clock_mono_ms();
    if (!grpc_channel_peer(p->channel, &p->pid, &uid))
        p->pid = 0;
    dp_problem_clear(p->all, p->resource);
    if (dp_may_report(p->all))
        log_info("a device plugin registered", F_STR("resource", p->resource), F_STR("socket", p->path),
                 F_I64("pid", p->pid));
    if (other != NULL)
        end_and_report(other, NULL); /* it is no longer the provider: the newer plugin is */
    return ERR_OK;
}

static void on_options(struct op *op, const struct err *result)
{
    struct plugin *p = op->owner;
    const struct grpc_call_options stream = { .path = "/v1beta1.DevicePlugin/ListAndWatch",
                                              .on_message = on_list };
    struct err e = { 0 };
    pid_t pid;
    uid_t uid;

    if (p->state == PLUGIN_ENDED) {
        plugin_settle(p);
        return;
    }
    if (result->code != ERR_OK) {
        /* Only a dial is repeated until the deadline: after any other error the call had begun, even if the
         * plugin has died since. */
        bool dialed = result->code != ERR_DEADLINE || grpc_channel_peer(p->channel, &pid, &uid);
        e = *result;
        err_wrap(&e, dialed ? "failed to get device plugin options" : "failed to dial device plugin");
        fail(p, &e);
        return;
    }
    if (provide(p, &e) != ERR_OK) {
        fail(p, &e);
        return;
    }
    grpc_call_start(&p->stream, p->channel, &stream, on_stream_ended, p);
    op_set_subject(&p->stream.op, p->resource);
    if (p->owner != NULL)
        p->owner->ready(p, &e, p->owner_arg);
}

static enum err_code plugin_connect(struct plugin *p, struct err *e)
{
    str_auto target = str_printf("unix:%s", p->path);
    const struct grpc_channel_options o = { .loop = p->all->o.loop, .target = target };
    const struct grpc_call_options call = { .path = "/v1beta1.DevicePlugin/GetDevicePluginOptions",
                                            .deadline_ms = DP_DIAL_MS };

    if (target == NULL)
        return err_nomem(e);
    if (grpc_channel_open(&p->channel, &o, e) != ERR_OK)
        return e->code;
    grpc_call_start(&p->options, p->channel, &call, on_options, p);
    op_set_subject(&p->options.op, p->resource);
    return ERR_OK;
}

enum err_code plugin_start(struct plugin **ret, struct dp_plugins *all, const char *resource,
                           const char *path, const struct plugin_owner *owner, void *arg, struct err *e)
{
    struct plugin *p;

    if (all->cancelled)
        return err_set(e, ERR_CANCELLED, "the agent is shutting down");
    if (all->n_plugins >= DP_PLUGINS_MAX)
        return err_set(e, ERR_EXHAUSTED, "%d device plugins are already registered, the maximum",
                       DP_PLUGINS_MAX);
    p = calloc(1, sizeof(*p));
    if (p == NULL || (p->path = strdup(path)) == NULL) {
        free(p);
        return err_nomem(e);
    }
    p->provider = plugin_provider;
    p->all = all;
    p->order = ++all->last_order;
    snprintf(p->resource, sizeof(p->resource), "%s", resource);
    p->owner = owner;
    p->owner_arg = arg;
    LIST_INIT(&p->calls);
    if (plugin_connect(p, e) != ERR_OK) {
        free(p->path);
        free(p);
        return e->code;
    }
    uv_timer_init(all->o.loop, &p->turn);
    p->turn.data = p;
    TAILQ_INSERT_TAIL(&all->plugins, p, link);
    all->n_plugins++;
    *ret = p;
    return ERR_OK;
}
