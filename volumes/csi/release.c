/* SPDX-License-Identifier: Apache-2.0 */
/*
 * release - staged volumes that pods have released: each is unstaged as soon as no pod has it, and tried
 * again with kubelet's back-off. A pod's end does not wait for that. A volume that an earlier run of the
 * agent left is found on the disk (csi_sweep).
 */
#include "volumes/csi/internal.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "volumes/csi/device_place.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_MS 500 /* kubelet's back-off of volume operations */
#define RETRY_MAX_MS 122000
#define DEVICES_MAX 16384 /* on one node */
#define AWAY_MS 10000     /* a driver that has not registered shortly after a start is not worth a message */

struct csi_release {
    LIST_ENTRY(csi_release) link;
    struct csi *csi;
    struct csi_id id; /* texts are in `memory` */
    struct arena memory;
    struct csi_unstage unstage;
    struct op pause; /* until the next try */
    uint64_t pause_ms;
    bool again; /* a pod released it meanwhile */
    bool told;  /* of the last error */
    struct boot_time since;
    char error[400];
};

static void release_try(struct csi_release *r);

static void release_free(struct csi_release *r)
{
    LIST_REMOVE(r, link);
    arena_done(&r->memory);
    free(r);
}

static void count(struct csi *c, bool begins)
{
    if (c->o.releasing != NULL)
        c->o.releasing(begins, c->o.arg);
}

static void pause_abort(struct op *op)
{
    op_finish(op, NULL);
}

static void on_paused(struct op *op, const struct err *result)
{
    struct csi_release *r = op->owner;

    (void)result;
    if (r->csi->stopped)
        release_free(r);
    else
        release_try(r);
}

static void tell(struct csi_release *r, const struct err *why)
{
    const struct csi *c = r->csi;

    if (r->told || c->o.not_released == NULL)
        return;
    if (csi_driver_find(c, r->id.driver) == NULL &&
        clock_boot_since_ns(r->since) < AWAY_MS * INT64_C(1000000))
        return;
    r->told = true;
    c->o.not_released(&r->id, why, c->o.arg);
}

static void release_failed(struct csi_release *r, const struct err *why)
{
    struct csi *c = r->csi;

    if (strncmp(r->error, why->text, sizeof(r->error) - 1) != 0) {
        log_warn("cannot unstage a CSI volume; will retry", F_ERR(why));
        r->told = false;
    }
    tell(r, why);
    snprintf(r->error, sizeof(r->error), "%.399s", why->text);
    r->pause_ms = backoff_next_ms(r->pause_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    op_init(&r->pause, c->o.loop, "wait to unstage a CSI volume", r->pause_ms, pause_abort, on_paused, r);
}

static void on_released(struct op *op, const struct err *result)
{
    struct csi_release *r = op->owner;
    struct csi *c = r->csi;

    if (c->stopped || (result->code == ERR_OK && !r->again))
        release_free(r);
    else if (result->code == ERR_OK)
        release_try(r);
    else
        release_failed(r, result);
    count(c, false);
}

static void release_try(struct csi_release *r)
{
    r->again = false;
    count(r->csi, true);
    csi_unstage_start(&r->unstage, r->csi, &r->id, on_released, r);
}

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static struct csi_release *find(const struct csi *c, const struct csi_id *id)
{
    struct csi_release *r;

    LIST_FOREACH (r, &c->releases, link)
        if (r->id.block == id->block && same(r->id.driver, id->driver) && same(r->id.handle, id->handle) &&
            (!id->block || same(r->id.spec_name, id->spec_name)))
            return r;
    return NULL;
}

void csi_release(struct csi *c, const struct csi_id *id)
{
    struct csi_release *r = find(c, id);

    if (c->stopped || id->ephemeral)
        return;
    if (r != NULL) {
        r->again = true;
        r->pause_ms = 0;
        if (op_live(&r->pause))
            op_cancel(&r->pause);
        return;
    }
    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        log_error("no memory to unstage a CSI volume; the next start will unstage it",
                  F_STR("volume", id->handle));
        return;
    }
    r->csi = c;
    r->since = clock_boot();
    r->id = *id;
    r->id.driver = arena_strdup(&r->memory, id->driver);
    r->id.handle = arena_strdup(&r->memory, id->handle);
    r->id.spec_name = arena_strdup(&r->memory, id->spec_name);
    LIST_INSERT_HEAD(&c->releases, r, link);
    if (r->id.driver == NULL || r->id.handle == NULL || (id->block && r->id.spec_name == NULL)) {
        release_free(r);
        return;
    }
    release_try(r);
}

void csi_hurry_releases(struct csi *c, const char *driver)
{
    struct csi_release *r;

    LIST_FOREACH (r, &c->releases, link)
        if (op_live(&r->pause) && (driver == NULL || strcmp(r->id.driver, driver) == 0))
            op_cancel(&r->pause);
}

void csi_stop_releases(struct csi *c)
{
    struct csi_release *r;

    LIST_FOREACH (r, &c->releases, link) {
        if (op_live(&r->pause))
            op_cancel(&r->pause);
        if (op_live(&r->unstage.op))
            op_cancel(&r->unstage.op);
    }
    if (op_live(&c->sweep.op))
        op_cancel(&c->sweep.op);
}

bool csi_releases(const struct csi *c)
{
    return !LIST_EMPTY(&c->releases) || op_live(&c->sweep.op);
}

void csi_each_release(const struct csi *c, void (*fn)(const struct csi_id *id, const char *error, void *arg),
                      void *arg)
{
    const struct csi_release *r;

    LIST_FOREACH (r, &c->releases, link)
        fn(&r->id, r->error, arg);
}

/* ---- leftovers of an earlier run ---- */

static void take_device(struct csi *c, const json_t *o)
{
    const char *driver = json_str(o, "driver"), *handle = json_str(o, "handle");
    const char *name = json_str(o, "name"), *folder = json_str(o, "folder");
    struct csi_id id = { .driver = driver, .handle = handle, .spec_name = name, .block = name != NULL };

    if (driver == NULL && c->o.find != NULL)
        (void)c->o.find(folder, &id, c->o.arg);
    if (id.driver != NULL && id.handle != NULL)
        csi_release(c, &id);
    else
        log_warn("a staged CSI volume is kept: its driver and handle are unknown", F_STR("folder", folder),
                 F_STR("why", json_str(o, "error")));
}

static void on_swept(struct op *op, const struct err *result)
{
    struct csi *c = op->owner;
    struct err e = *result;
    json_t *list = NULL, *o;
    size_t i;

    if (e.code == ERR_OK &&
        json_parse(c->sweep.out.p, c->sweep.out.n, SIZE_MAX, &list, "CSI volumes", &e) == ERR_OK)
        json_array_foreach (list, i, o)
            if (i < DEVICES_MAX)
                take_device(c, o);
    json_decref(list);
    if (e.code != ERR_OK && !c->stopped)
        log_warn("cannot search for staged CSI volumes; the next start will retry", F_ERR(&e));
    count(c, false);
}

static enum err_code sweep_look(const void *arg, struct buf *out, struct err *e)
{
    const struct csi *c = arg;

    return csi_devices_list(c->o.root_dir, out, e);
}

void csi_sweep(struct csi *c)
{
    if (c->stopped || op_live(&c->sweep.op))
        return;
    count(c, true);
    csi_child(c, &c->sweep, "look for staged CSI volumes", c->o.node_name, sweep_look, c, on_swept, c);
}
