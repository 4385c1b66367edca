/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's end: calls in progress for its volumes are cancelled, everything that they have on the disk is
 * undone, and their staging is released. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/volume/csi_vol.h"
#include "agent/pod/volume/csi_volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define GIVE_UP_MS 10000

static bool is_removing(const struct pod *p)
{
    const struct csi_remove *r = volumes_of(p)->csi.remove;

    return r != NULL && op_live(&r->op);
}

static void removal_failed(struct pod *p, const struct err *why)
{
    struct pod_csi *csi = &volumes_of(p)->csi;
    char text[sizeof(why->text)];

    snprintf(text, sizeof(text), "%s", why->text);
    text_printable(text); /* a driver's words */
    if (str_keep(&csi->error, text)) {
        log_warn("cannot remove a pod's CSI volumes; will retry", F_STR("pod", p->key), F_ERR(why));
        pod_event(p, NULL, true, "FailedUnMount", "%s", text);
    }
    csi->backoff_ms = backoff_next_ms(csi->backoff_ms, CSI_RETRY_FIRST_MS, CSI_RETRY_MAX_MS);
    csi->retry_at = clock_boot_in_ms(csi->backoff_ms);
}

/* The others that wait for a volume which only one pod may have. */
static void tell_waiting(struct node *n)
{
    pods_each (n, p)
        for (size_t i = 0; i < volumes_of(p)->csi.n; i++)
            if (csi_vol_at(p, i)->in_use) {
                csi_volumes_retry(p);
                break;
            }
}

/* A volume staged for a set-up that never reached its publish is released, too. */
static void let_go(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;

    csi->removed = true;
    for (size_t i = 0; i < csi->n; i++) {
        const struct csi_vol *v = csi_vol_at(p, i);

        if (v->staging != NULL)
            csi_release(p->node->csi,
                        &(struct csi_id){ v->driver, v->handle, v->spec_name, v->block, false });
    }
    if (csi->n > 0)
        tell_waiting(p->node);
}

static void on_csi_removed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct pod_csi *csi = &volumes_of(p)->csi;

    if (result->code == ERR_OK) {
        str_keep(&csi->error, "");
        csi->backoff_ms = 0;
        let_go(p);
    } else if (csi->remove->op.why.code != ERR_CANCELLED) {
        removal_failed(p, result);
    }
    pod_wake(p, "CSI volumes were removed");
}

/* A driver that works on a call may do it behind the back of what undoes it, so its answer is waited for, but
 * not for as long as a call may take: a driver that hangs would hold the pod. */
static void stop_volume(struct csi_vol *v)
{
    struct pod *p = v->pod;

    if (!clock_boot_is_set(v->give_up_at)) {
        v->give_up_at = clock_boot_in_ms(GIVE_UP_MS);
        if (op_live(&v->mount.op))
            csi_mount_stop(&v->mount);
    } else if (clock_boot_is_due(v->give_up_at)) {
        if (op_live(&v->mount.op))
            op_cancel(&v->mount.op);
        if (op_live(&v->expand.op))
            op_cancel(&v->expand.op);
        return;
    }
    pod_wake_at(p, v->give_up_at, "a CSI driver's answer is no longer waited for");
}

/* True: some are still at work. */
static bool stop_volumes(struct pod *p)
{
    bool some = false;

    for (size_t i = 0; i < volumes_of(p)->csi.n; i++) {
        struct csi_vol *v = csi_vol_at(p, i);

        csi_usage_cancel(&v->usage);
        if (op_live(&v->mount.op) || op_live(&v->expand.op))
            stop_volume(v);
        some = some || op_live(&v->mount.op) || op_live(&v->expand.op) || csi_usage_busy(&v->usage);
    }
    return some;
}

static bool cancel_mounts(struct pod *p)
{
    bool some = false;

    for (size_t i = 0; i < volumes_of(p)->csi.n; i++) {
        struct csi_vol *v = csi_vol_at(p, i);

        if (op_live(&v->mount.op) || op_live(&v->expand.op) || csi_usage_busy(&v->usage))
            some = true;
        if (op_live(&v->mount.op))
            op_cancel(&v->mount.op);
        if (op_live(&v->expand.op))
            op_cancel(&v->expand.op);
        csi_usage_cancel(&v->usage);
    }
    return some;
}

/* The volumes as the objects name them, for one whose vol_data.json is lost. */
static size_t name_all(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;
    size_t n = 0;

    for (size_t i = 0; i < csi->n; i++) {
        struct csi_vol *v = csi_vol_at(p, i);
        const struct api_volume *api = api_volume_find(&p->api->spec, v->name);

        if (api != NULL)
            ERR_IGNORE(csi_vol_resolve(v, api, ERR_IGNORED));
        if (v->spec_name != NULL)
            csi->known[n++] = (struct csi_known){ v->spec_name, v->driver, v->handle, v->ephemeral };
    }
    return n;
}

bool csi_volumes_teardown_step(struct pod *p, bool *ret_kept)
{
    struct pod_csi *csi = &volumes_of(p)->csi;
    struct err e = { 0 };

    *ret_kept = false;
    if (csi->removed || p->node->csi == NULL)
        return true;
    if ((p->node->draining ? cancel_mounts(p) : stop_volumes(p)) || is_removing(p))
        return false;
    if (csi->error == NULL && presence_is_absent(csi_has_volumes(p->node->csi, p->uid, &e))) {
        let_go(p);
        return true;
    }
    if (csi->error != NULL && p->node->draining) { /* tried once; the next start of the agent continues */
        log_warn("keeping a pod's CSI volumes; the next start will remove them", F_STR("pod", p->key),
                 F_STR("why", csi->error));
        *ret_kept = true;
        return false;
    }
    if (!clock_boot_is_due(csi->retry_at)) {
        pod_wake_at(p, csi->retry_at, "removal of CSI volumes is tried again");
        return false;
    }
    if (csi->remove == NULL)
        csi->remove = calloc(1, sizeof(*csi->remove));
    if (csi->remove == NULL || !csi_vols_make(p)) { /* lost files vol_data.json could not be made up for */
        pod_wake_at(p, clock_boot_in_ms(CSI_RETRY_FIRST_MS), "memory for CSI volumes");
        return false;
    }
    csi_remove_start(csi->remove, p->node->csi, p->uid, csi->known, name_all(p), on_csi_removed, p);
    return false;
}

/* ---- of the room ---- */

bool csi_volumes_busy(const struct pod *p)
{
    for (size_t i = 0; i < volumes_of(p)->csi.n; i++) {
        const struct csi_vol *v = csi_vol_at(p, i);

        if (op_live(&v->mount.op) || op_live(&v->expand.op) || csi_usage_busy(&v->usage))
            return true;
    }
    return is_removing(p);
}

void csi_volumes_cancel(struct pod *p)
{
    (void)cancel_mounts(p);
    if (is_removing(p))
        op_cancel(&volumes_of(p)->csi.remove->op);
}

void csi_volumes_end(struct pod *p)
{
    volumes_of(p)->csi.retry_at = CLOCK_BOOT_NONE;
}

void csi_removal_retry(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;

    csi->retry_at = CLOCK_BOOT_NONE;
    if (csi->error != NULL)
        pod_wake(p, "a CSI driver registered");
}

void csi_volumes_free(struct pod *p)
{
    csi_vols_free(p);
    free(take_ptr(&volumes_of(p)->csi.error));
}
