/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pod's volumes: all of them in one child, again and again until nothing is left. */
#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/storage_vol.h"
#include "agent/pod/volume/storage_volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

#define REMOVE_MS 120000
#define PATIENCE_MS 10000 /* for an unmount, which writes dirty data */
#define PATIENCE_SHORT_MS 1000

static unsigned patience(const struct pod *p)
{
    return p->node->draining || p->grace_seconds == 0 ? PATIENCE_SHORT_MS : PATIENCE_MS;
}

static enum err_code remove_all(const void *arg, struct buf *out, struct err *e)
{
    const struct pod *p = arg;
    const struct node_options *o = &p->node->o;
    const struct flex_pod flex = { .root = o->root_dir,
                                   .uid = p->uid,
                                   .node = o->node_name,
                                   .plugin_dir = o->volume_plugin_dir,
                                   .how = { .patience_ms = patience(p),
                                            .detaches = !driver_is_attached_for(p) } };

    if (o->volume_plugin_dir != NULL)
        ERR_IGNORE(flex_unmount_all(&flex, e));
    if (e->code != ERR_OK) /* the others go in any case */
        ERR_IGNORE(storage_unmount_all(o->root_dir, p->uid, patience(p), ERR_IGNORED));
    else
        ERR_IGNORE(storage_unmount_all(o->root_dir, p->uid, patience(p), e));
    if (e->code != ERR_OK)
        buf_adds(out, e->text);
    return e->code;
}

static void removal_failed(struct pod *p, const struct err *why)
{
    struct pod_storage *s = storage_of(p);

    if (str_keep(&s->error, why->text)) {
        log_warn("cannot unmount a pod's volumes; will retry", F_STR("pod", p->key), F_ERR(why));
        pod_event(p, NULL, true, "FailedUnMount", "%s", why->text);
    }
    s->backoff_ms = backoff_next_ms(s->backoff_ms, STORAGE_RETRY_FIRST_MS, STORAGE_RETRY_MAX_MS);
    s->retry_at = clock_boot_in_ms(s->backoff_ms);
}

/* volumesInUse of the node's status has changed. */
static void attachments_changed(struct pod *p)
{
    if (driver_is_attached_for(p) && p->node->cluster != NULL && p->node->cluster->node_changed != NULL)
        p->node->cluster->node_changed(p->node->cluster->arg);
}

static void on_storage_removed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct pod_storage *s = storage_of(p);

    if (result->code == ERR_OK) {
        s->removed = true;
        str_keep(&s->error, "");
        attachments_changed(p);
    } else if (result->code != ERR_CANCELLED) {
        const struct err e = storage_call_error(&s->removal, result);

        removal_failed(p, &e);
    }
    pod_wake(p, "volumes were unmounted");
}

struct asking {
    struct flex_drivers *drivers;
    bool waits;
};

/* The capabilities of a driver are requested before any other call. */
static void ask_driver(const char *name, void *arg)
{
    struct asking *a = arg;
    struct flex_driver found;
    struct err e = { 0 };

    if (flex_drivers_find(a->drivers, name, &found, &e) == ERR_UNAVAILABLE)
        a->waits = true;
}

static bool has_any(const struct pod *p, struct asking *a)
{
    const char *root = p->node->o.root_dir;
    bool flex = flex_has_any(root, p->uid, a->drivers != NULL ? ask_driver : NULL, a);

    return storage_has_any(root, p->uid) || flex;
}

bool storage_volumes_teardown_step(struct pod *p, bool *ret_kept)
{
    struct pod_storage *s = storage_of(p);
    struct asking a = { .drivers = volume_node(p->node)->flex };
    const struct proc_call_spec call = {
        .name = "unmount volumes",
        .subject = p->key,
        .fn = remove_all,
        .arg = p,
        .out_max = 1024,
        .deadline_ms = REMOVE_MS,
        CG_OPS(p->node->o.cgroups),
    };

    *ret_kept = false;
    if (s->removed || p->node->o.root_dir == NULL)
        return true;
    if (storage_cancel_mounts(p) || op_live(&s->removal.op))
        return false;
    if (s->error != NULL && p->node->draining) {
        log_warn("keeping a pod's mounts; the next start will remove them", F_STR("pod", p->key),
                 F_STR("why", s->error));
        *ret_kept = true;
        return false;
    }
    if (!clock_boot_is_due(s->retry_at)) {
        pod_wake_at(p, s->retry_at, "volumes are unmounted again");
        return false;
    }
    if (!has_any(p, &a)) {
        s->removed = true;
        return true;
    }
    if (a.waits) {
        pod_wake_at(p, clock_boot_in_ms(STORAGE_RETRY_FIRST_MS),
                    "a FlexVolume driver is asked for its capabilities");
        return false;
    }
    proc_call_start(&s->removal, &call, p->node->o.loop, on_storage_removed, p);
    return false;
}
