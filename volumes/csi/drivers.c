/* SPDX-License-Identifier: Apache-2.0 */
/* drivers - registration of drivers: checks, NodeGetInfo, and which driver a name means. Rules and words are
 * kubelet's (ValidatePlugin and RegisterPlugin in pkg/volume/csi/csi_plugin.go). */
#include "volumes/csi/internal.h"

#include "base/buf.h"
#include "base/codec/go_quote.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

static void driver_free(struct csi_driver *d)
{
    grpc_channel_close(d->channel);
    csi_node_info_done(&d->node);
    free(d->name);
    free(d->endpoint);
    free(d);
}

/* Frees it unless its call is still in progress; the end of the call leads here again. */
static void driver_drop(struct csi_driver *d)
{
    bool was_here = d->state == DRIVER_HERE;
    struct csi *c = d->csi;

    d->state = DRIVER_GONE;
    d->offer = NULL;
    if (was_here && c->o.changed != NULL)
        c->o.changed(d->name, false, c->o.arg);
    if (op_live(&d->call.op)) {
        op_cancel(&d->call.op);
        return;
    }
    LIST_REMOVE(d, link);
    driver_free(d);
}

struct csi_driver *csi_driver_find(const struct csi *c, const char *name)
{
    struct csi_driver *d;

    LIST_FOREACH (d, &c->drivers, link)
        if (d->state == DRIVER_HERE && strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

/* ---- an offer ---- */

static enum err_code not_valid(const char *name, struct err *e)
{
    struct err why = *e;

    return err_set(e, ERR_INVALID, CSI_LOG "ValidatePlugin for CSI driver \"%.80s\" failed. %s", name,
                   why.text);
}

static enum err_code validate(const struct csi *c, const struct dp_plugin_info *info, struct csi_version *ret,
                              struct err *e)
{
    const struct csi_driver *other = csi_driver_find(c, info->name);
    buf_auto list = BUF_INIT(400);

    if (csi_version_highest(info->versions, info->n_versions, ret, e) != ERR_OK) {
        struct err why = *e;

        for (size_t i = 0; i < info->n_versions; i++) {
            if (i > 0)
                buf_addc(&list, ' ');
            go_quote(&list, info->versions[i], strnlen(info->versions[i], 40));
        }
        err_set(e, ERR_INVALID, "None of the versions specified [%s] are supported. err=%s", list.p,
                why.text);
        return not_valid(info->name, e);
    }
    if (other != NULL && csi_version_compare(&other->version, ret) >= 0) {
        err_set(e, ERR_EXISTS,
                "Another driver with the same name is already registered with a higher supported version: "
                "\"%s\"",
                other->version_text);
        return not_valid(info->name, e);
    }
    return ERR_OK;
}

static void refuse(struct entry *offer, const char *stage, const struct err *why)
{
    struct err e = *why;

    err_wrap(&e, "%s", stage);
    dp_offer_answer(offer, &e);
}

static void replace_older(struct csi *c, const struct csi_driver *by)
{
    struct csi_driver *d;

    LIST_FOREACH (d, &c->drivers, link)
        if (d != by && d->state == DRIVER_HERE && strcmp(d->name, by->name) == 0)
            d->state = DRIVER_REPLACED;
}

static void driver_is_here(struct csi_driver *d)
{
    struct csi *c = d->csi;

    replace_older(c, d);
    d->state = DRIVER_HERE;
    log_info("a CSI driver registered", F_STR("driver", d->name), F_STR("socket", d->endpoint),
             F_STR("node_id", d->node.node_id), F_I64("max_volumes", d->node.max_volumes));
    csi_hurry_releases(c, d->name);
    if (c->o.changed != NULL)
        c->o.changed(d->name, true, c->o.arg);
    dp_offer_answer(d->offer, &(struct err){ 0 }); /* the offer may end within it, and the driver with it */
}

static void on_node_info(struct op *op, const struct err *result)
{
    struct csi_driver *d = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK && d->state != DRIVER_GONE &&
        csi_node_info_unpack(&d->node, d->call.response.p, d->call.response.n, &e) == ERR_OK &&
        d->node.node_id[0] == '\0')
        err_set(&e, ERR_INVALID, "error adding CSI driver node info: driverNodeID must not be empty");
    if (e.code == ERR_OK && d->state != DRIVER_GONE && d->csi->o.admit != NULL)
        ERR_IGNORE(d->csi->o.admit(d->name, &d->node, d->csi->o.arg, &e));
    grpc_channel_close(take_ptr(&d->channel));
    if (d->state == DRIVER_GONE) {
        driver_drop(d);
        return;
    }
    if (e.code == ERR_OK) {
        driver_is_here(d);
        return;
    }
    refuse(d->offer, DP_NOT_REGISTERED, &e);
    driver_drop(d);
}

static enum err_code driver_ask(struct csi_driver *d, op_done_fn done, struct err *e)
{
    const struct grpc_bytes nothing = { 0 };
    str_auto target = str_printf("unix:%s", d->endpoint);
    const struct grpc_channel_options o = { .loop = d->csi->o.loop, .target = target, .once = true };

    if (target == NULL)
        return err_nomem(e);
    if (grpc_channel_open(&d->channel, &o, e) != ERR_OK)
        return e->code;
    csi_call(&d->call, d->channel, "/csi.v1.Node/NodeGetInfo", &nothing, d->name, done, d);
    return ERR_OK;
}

static enum err_code driver_begin(struct csi *c, struct entry *offer, const struct dp_plugin_info *info,
                                  const struct csi_version *version, struct err *e)
{
    struct csi_driver *d;

    if (!csi_driver_name_ok(info->name))
        return err_set(e, ERR_INVALID,
                       "the name of a driver is a DNS subdomain of at most %d bytes; \"%.80s\" is none",
                       CSI_NAME_MAX, info->name);
    if (info->endpoint[0] != '/')
        return err_set(e, ERR_INVALID, "the endpoint %.100s is not an absolute path", info->endpoint);
    d = calloc(1, sizeof(*d));
    if (d == NULL)
        return err_nomem(e);
    d->csi = c;
    d->offer = offer;
    d->version = *version;
    csi_version_print(version, d->version_text);
    d->name = strdup(info->name);
    d->endpoint = strdup(info->endpoint);
    if (d->name == NULL || d->endpoint == NULL)
        err_nomem(e);
    else
        ERR_IGNORE(driver_ask(d, on_node_info, e));
    if (e->code != ERR_OK) {
        driver_free(d);
        return e->code;
    }
    LIST_INSERT_HEAD(&c->drivers, d, link);
    return ERR_OK;
}

static void on_offered(struct entry *offer, const struct dp_plugin_info *info, void *arg)
{
    struct csi *c = arg;
    struct csi_version version;
    struct err e = { 0 };

    if (validate(c, info, &version, &e) != ERR_OK) {
        err_wrap(&e, "validation failed for CSI Driver %.80s at endpoint %.120s", info->name, info->endpoint);
        refuse(offer, DP_NOT_VALID, &e);
    } else if (driver_begin(c, offer, info, &version, &e) != ERR_OK) {
        refuse(offer, DP_NOT_REGISTERED, &e);
    }
}

static void on_gone(struct entry *offer, void *arg)
{
    struct csi *c = arg;
    struct csi_driver *d;

    LIST_FOREACH (d, &c->drivers, link) {
        if (d->offer != offer)
            continue;
        log_info("a CSI driver is gone", F_STR("driver", d->name), F_STR("socket", d->endpoint));
        driver_drop(d);
        return;
    }
}

/* ---- once more ---- */

/* Only the number of volumes may change while a driver is registered. */
static void on_again(struct op *op, const struct err *result)
{
    struct csi_driver *d = op->owner;
    struct csi_node_info info = { 0 };
    struct err e = *result;

    if (e.code == ERR_OK)
        ERR_IGNORE(csi_node_info_unpack(&info, d->call.response.p, d->call.response.n, &e));
    grpc_channel_close(take_ptr(&d->channel));
    if (d->state == DRIVER_GONE) {
        csi_node_info_done(&info);
        driver_drop(d);
        return;
    }
    if (e.code != ERR_OK && e.code != ERR_CANCELLED)
        log_warn("a CSI driver does not report its volume limit", F_STR("driver", d->name), F_ERR(&e));
    if (e.code == ERR_OK && info.max_volumes != d->node.max_volumes) {
        d->node.max_volumes = info.max_volumes;
        if (d->state == DRIVER_HERE && d->csi->o.changed != NULL)
            d->csi->o.changed(d->name, true, d->csi->o.arg);
    }
    csi_node_info_done(&info);
}

void csi_ask_again(struct csi *c, const char *driver)
{
    struct csi_driver *d = csi_driver_find(c, driver);
    struct err e = { 0 };

    if (d == NULL || op_live(&d->call.op))
        return;
    if (driver_ask(d, on_again, &e) != ERR_OK)
        log_warn("cannot get the volume limit of a CSI driver", F_STR("driver", driver), F_ERR(&e));
}

/* ---- calls ---- */

enum err_code csi_connect(const struct csi *c, const char *driver, struct grpc_channel **ret, struct err *e)
{
    const struct csi_driver *d = csi_driver_find(c, driver);
    str_auto target = d != NULL ? str_printf("unix:%s", d->endpoint) : NULL;
    const struct grpc_channel_options o = { .loop = c->o.loop, .target = target, .once = true };

    if (d == NULL)
        return err_set(e, ERR_UNAVAILABLE, "driver name %s not found in the list of registered CSI drivers",
                       driver);
    return target != NULL ? grpc_channel_open(ret, &o, e) : err_nomem(e);
}

void csi_call(struct grpc_call *call, struct grpc_channel *channel, const char *path,
              const struct grpc_bytes *bytes, const char *subject, op_done_fn done, void *owner)
{
    const struct grpc_call_options o = { .path = path, .request = *bytes, .deadline_ms = CSI_CALL_MS };

    grpc_call_start(call, channel, &o, done, owner);
    op_set_subject(&call->op, subject);
}

void csi_child(const struct csi *c, struct proc_call *child, const char *name, const char *subject,
               proc_call_fn fn, const void *arg, op_done_fn done, void *owner)
{
    const struct proc_call_spec spec = {
        .name = name,
        .subject = subject,
        .fn = fn,
        .arg = arg,
        .out_max = 1 << 20,
        .deadline_ms = CSI_CHILD_MS,
        .cgroup_fd = c->o.cgroup_fd,
        .cgroup_procs = c->o.cgroup_procs,
        .moves_late = c->o.cgroup_fd >= 0 || c->o.cgroup_procs != NULL,
    };

    proc_call_start(child, &spec, c->o.loop, done, owner);
}

/* ---- life ---- */

enum err_code csi_open(struct csi **ret, const struct csi_options *o, struct err *e)
{
    struct csi *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    c->o = *o;
    c->o.root_dir = strdup(o->root_dir);
    c->o.node_name = strdup(o->node_name);
    c->handler =
        (struct dp_plugin_handler){ .type = "CSIPlugin", .offered = on_offered, .gone = on_gone, .arg = c };
    LIST_INIT(&c->drivers);
    LIST_INIT(&c->releases);
    TAILQ_INIT(&c->turns);
    if (c->o.root_dir == NULL || c->o.node_name == NULL) {
        csi_close(c);
        return err_nomem(e);
    }
    *ret = c;
    return ERR_OK;
}

const struct dp_plugin_handler *csi_plugin_handler(const struct csi *c)
{
    return &c->handler;
}

bool csi_busy(const struct csi *c)
{
    const struct csi_driver *d;

    LIST_FOREACH (d, &c->drivers, link)
        if (op_live(&d->call.op))
            return true;
    return csi_releases(c);
}

void csi_cancel(struct csi *c)
{
    c->stopped = true;
    csi_stop_releases(c);
}

void csi_close(struct csi *c)
{
    struct csi_driver *d;

    if (c == NULL)
        return;
    while ((d = LIST_FIRST(&c->drivers)) != NULL) {
        LIST_REMOVE(d, link);
        driver_free(d);
    }
    csi_staged_done(c);
    free((char *)c->o.root_dir);
    free((char *)c->o.node_name);
    free(c);
}

void csi_each_driver(const struct csi *c, void (*fn)(const struct csi_driver_info *d, void *arg), void *arg)
{
    const struct csi_driver *d;

    LIST_FOREACH (d, &c->drivers, link) {
        const struct csi_driver_info info = { d->name, d->endpoint, d->version_text, &d->node };

        if (d->state == DRIVER_HERE)
            fn(&info, arg);
    }
}
