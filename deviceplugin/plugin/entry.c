/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry - one socket of plugins_registry: requests its type and name (GetInfo), registers it with the handler
 * of its type, and sends it the result (NotifyRegistrationStatus).
 *
 * Texts are kubelet's (pkg/kubelet/pluginmanager/operationexecutor). Failures are retried with kubelet's
 * pauses. A device plugin whose stream ended while its socket still exists is retried as well; kubelet
 * forgets such a plugin.
 */
#include "deviceplugin/plugin/watcher.h"

#include "base/backoff.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFO_MS 1000
#define TELL_MS 5000
/* pkg/util/goroutinemap/exponentialbackoff */
#define AGAIN_FIRST_MS 500
#define AGAIN_MAX_MS (2 * 60 * 1000 + 2 * 1000)

#define DEVICE_PLUGIN "DevicePlugin"

static void entry_step(struct entry *x);
static void set_state(struct entry *x, enum entry_state state);

/* ---- the end ---- */

static void again_on_closed(uv_handle_t *handle)
{
    struct entry *x = handle->data;

    LIST_REMOVE(x, link);
    --*x->n_entries;
    dp_info_done(&x->info);
    free(x->path);
    free(x);
}

static void release(struct entry *x)
{
    struct plugin *p = take_ptr(&x->plugin);
    const struct dp_plugin_handler *h = take_ptr(&x->handler);

    if (p != NULL)
        plugin_end(p, NULL);
    if (h != NULL)
        h->gone(x, h->arg);
}

/* Ends calls in progress; entry_step() continues when there are none. */
static void stop(struct entry *x)
{
    release(x);
    set_state(x, ENTRY_STOPS);
    if (op_live(&x->call.op))
        op_cancel(&x->call.op);
    entry_step(x);
}

void entry_gone(struct entry *x)
{
    if (x->gone)
        return;
    x->gone = true;
    dp_problem_clear(x->all, x->path);
    stop(x);
}

bool entry_is_gone(const struct entry *x)
{
    return x->gone;
}

void entry_is_now(struct entry *x, const struct entry_id *id)
{
    bool same = x->id.dev == id->dev && x->id.ino == id->ino && x->id.made.tv_sec == id->made.tv_sec &&
                x->id.made.tv_nsec == id->made.tv_nsec;

    if (same || x->gone)
        return;
    x->id = *id;
    x->pause_ms = 0;
    stop(x);
}

/* ---- sending the result ---- */

static void on_again(uv_timer_t *timer)
{
    struct entry *x = timer->data;

    set_state(x, ENTRY_ASKS);
    entry_step(x);
}

static void set_state(struct entry *x, enum entry_state state)
{
    x->state = state;
    if (state != ENTRY_FAILED)
        uv_timer_stop(&x->again);
}

static void fail(struct entry *x, const struct err *e)
{
    grpc_channel_close(take_ptr(&x->channel));
    /* A socket appears shortly before its plugin listens, so the first failure is not reported. */
    if (x->pause_ms > 0 || e->code != ERR_UNAVAILABLE)
        dp_problem_set(x->all, x->path, NULL, e);
    x->pause_ms = backoff_next_ms(x->pause_ms, AGAIN_FIRST_MS, AGAIN_MAX_MS);
    set_state(x, ENTRY_FAILED);
    uv_timer_start(&x->again, on_again, x->pause_ms, 0);
}

static void on_notified(struct op *op, const struct err *result)
{
    struct entry *x = op->owner;

    if (x->state == ENTRY_STOPS) {
        entry_step(x);
        return;
    }
    if (x->outcome.code != ERR_OK && !x->replaced) {
        fail(x, &x->outcome);
        return;
    }
    if (result->code != ERR_OK) /* it stays registered, as in kubelet */
        log_warn("a plugin could not be notified of its registration", F_STR("socket", x->path),
                 F_STR("err", result->text));
    grpc_channel_close(take_ptr(&x->channel));
    dp_problem_clear(x->all, x->path);
    x->pause_ms = 0;
    set_state(x, ENTRY_REGISTERED);
    /* The plugin's stream may have ended meanwhile. */
    if (x->plugin == NULL && x->handler == NULL && !x->replaced)
        fail(x, &(struct err){ .code = ERR_UNAVAILABLE, .text = "the device plugin is gone" });
}

static void notify(struct entry *x)
{
    mem_auto uint8_t *bytes = NULL;
    struct err e = { 0 };
    size_t n = 0;

    set_state(x, ENTRY_NOTIFIES);
    if (dp_status_pack(x->outcome.code != ERR_OK ? x->outcome.text : NULL, &bytes, &n, &e) != ERR_OK) {
        release(x);
        fail(x, &e);
        return;
    }
    const struct grpc_call_options o = { .path = "/pluginregistration.Registration/NotifyRegistrationStatus",
                                         .request = { bytes, n },
                                         .deadline_ms = TELL_MS };
    grpc_call_start(&x->call, x->channel, &o, on_notified, x);
    op_set_subject(&x->call.op, x->path);
}

static void refuse(struct entry *x, const struct err *e)
{
    x->outcome = *e;
    notify(x);
}

/* ---- device plugins ---- */

static void on_ready(struct plugin *p, const struct err *result, void *arg)
{
    struct entry *x = arg;
    struct err e = *result;

    (void)p;
    if (e.code == ERR_OK) {
        notify(x);
        return;
    }
    x->plugin = NULL;
    x->replaced = e.code == ERR_ABORTED;
    err_wrap(&e, DP_NOT_REGISTERED);
    refuse(x, &e);
}

/* The plugin's socket still exists, so the registration is retried. */
static void on_ended(struct plugin *p, bool replaced, void *arg)
{
    struct entry *x = arg;
    struct err e = { 0 };

    (void)p;
    x->plugin = NULL;
    x->replaced = replaced; /* otherwise both plugins would replace each other forever */
    if (replaced || x->state != ENTRY_REGISTERED)
        return; /* on_notified() handles it */
    err_set(&e, ERR_UNAVAILABLE, "the device plugin of %s is gone", x->info.info.name);
    fail(x, &e);
}

static const struct plugin_owner owner = { on_ready, on_ended };

/* Go's %v of a list: "[v1 v2]". */
static void print_versions(const struct dp_plugin_info *info, char *ret, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < info->n_versions && n + 1 < size; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s", i > 0 ? " " : "", info->versions[i]);
    if (info->n_versions == 0)
        ret[0] = '\0';
}

static enum err_code validate(const struct dp_plugin_info *info, struct err *e)
{
    char versions[200];

    for (size_t i = 0; i < info->n_versions; i++) {
        if (strcmp(info->versions[i], DP_API_VERSION) != 0)
            continue;
        if (registration_check_name(info->name, e) != ERR_OK)
            return err_wrap(e, "invalid name of device plugin socket");
        if (info->endpoint[0] != '\0' && info->endpoint[0] != '/')
            return err_set(e, ERR_INVALID, "the endpoint %.100s is not an absolute path", info->endpoint);
        return ERR_OK;
    }
    print_versions(info, versions, sizeof(versions));
    return err_set(e, ERR_INVALID,
                   "manager version, " DP_API_VERSION ", is not among plugin supported versions [%s]",
                   versions);
}

static void register_device_plugin(struct entry *x)
{
    const struct dp_plugin_info *info = &x->info.info;
    const char *path = info->endpoint[0] != '\0' ? info->endpoint : x->path;
    struct err e = { 0 };

    if (validate(info, &e) != ERR_OK) {
        err_wrap(&e, DP_NOT_VALID);
        refuse(x, &e);
        return;
    }
    set_state(x, ENTRY_CONNECTS);
    x->replaced = false;
    if (plugin_start(&x->plugin, x->all, info->name, path, &owner, x, &e) != ERR_OK) {
        err_wrap(&e, DP_NOT_REGISTERED);
        refuse(x, &e);
    }
}

/* ---- other types ---- */

static const struct dp_plugin_handler *handler_of(const struct entry *x, const char *type)
{
    for (size_t i = 0; i < x->all->o.n_handlers; i++) {
        if (strcmp(x->all->o.handlers[i].type, type) == 0)
            return &x->all->o.handlers[i];
    }
    return NULL;
}

static void register_other(struct entry *x)
{
    struct dp_plugin_info info = x->info.info;
    const struct dp_plugin_handler *h = handler_of(x, info.type);
    struct err e = { 0 };

    if (h == NULL) {
        err_set(&e, ERR_NOT_FOUND,
                "RegisterPlugin error -- no handler registered for plugin type: %.100s at socket %s",
                info.type, x->path);
        refuse(x, &e);
        return;
    }
    if (info.endpoint[0] == '\0')
        info.endpoint = x->path;
    x->handler = h;
    set_state(x, ENTRY_CONNECTS);
    h->offered(x, &info, h->arg);
}

void dp_offer_answer(struct entry *offer, const struct err *result)
{
    if (result->code == ERR_OK) {
        notify(offer);
        return;
    }
    offer->handler = NULL;
    refuse(offer, result);
}

/* ---- asking ---- */

static void on_info(struct op *op, const struct err *result)
{
    struct entry *x = op->owner;
    struct err e = *result;

    if (x->state == ENTRY_STOPS) {
        entry_step(x);
        return;
    }
    dp_info_done(&x->info);
    if (e.code == ERR_OK)
        ERR_IGNORE(dp_info_unpack(&x->info, x->call.response.p, x->call.response.n, &e));
    if (e.code != ERR_OK) {
        err_wrap(&e, "RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket %s, err",
                 x->path);
        fail(x, &e);
        return;
    }
    x->outcome = (struct err){ 0 };
    if (strcmp(x->info.info.type, DEVICE_PLUGIN) == 0)
        register_device_plugin(x);
    else
        register_other(x);
}

static void ask(struct entry *x)
{
    str_auto target = str_printf("unix:%s", x->path);
    const struct grpc_channel_options o = { .loop = x->all->o.loop, .target = target, .once = true };
    const struct grpc_call_options call = { .path = "/pluginregistration.Registration/GetInfo",
                                            .deadline_ms = INFO_MS };
    struct err e = { 0 };

    if (target == NULL)
        err_nomem(&e);
    else
        ERR_IGNORE(grpc_channel_open(&x->channel, &o, &e));
    if (e.code != ERR_OK) {
        err_wrap(&e, "RegisterPlugin error -- dial failed at socket %s, err", x->path);
        fail(x, &e);
        return;
    }
    grpc_call_start(&x->call, x->channel, &call, on_info, x);
    op_set_subject(&x->call.op, x->path);
}

static void entry_step(struct entry *x)
{
    switch (x->state) {
    case ENTRY_ASKS:
        ask(x);
        return;
    case ENTRY_STOPS:
        if (op_live(&x->call.op))
            return;
        grpc_channel_close(take_ptr(&x->channel));
        if (x->gone) {
            uv_close((uv_handle_t *)&x->again, again_on_closed);
            return;
        }
        set_state(x, ENTRY_ASKS);
        ask(x);
        return;
    case ENTRY_CONNECTS:
    case ENTRY_NOTIFIES:
    case ENTRY_FAILED:
    case ENTRY_REGISTERED:
        return;
    }
}

struct entry *entry_new(struct dp_plugins *all, struct entries *list, size_t *n_entries, const char *path,
                        const struct entry_id *id)
{
    struct entry *x = calloc(1, sizeof(*x));

    if (x == NULL || (x->path = strdup(path)) == NULL) {
        free(x);
        return NULL;
    }
    x->all = all;
    x->id = *id;
    x->n_entries = n_entries;
    uv_timer_init(all->o.loop, &x->again);
    x->again.data = x;
    LIST_INSERT_HEAD(list, x, link);
    ++*n_entries;
    set_state(x, ENTRY_ASKS);
    entry_step(x);
    return x;
}
