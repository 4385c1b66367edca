/* SPDX-License-Identifier: Apache-2.0 */
/* The claims that a pod's volumes name: taken, or waited for. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/volumes.h"
#include "base/log.h"

#include <string.h>

#define CLAIM_WAITS_MS 12000 /* events of a claim that is waited for: kubelet's are 10 to 18 s apart */
#define CLAIM_ASKED_MS 1000  /* until the apiserver has answered, which wakes the pod */

/* kubelet's words, of desired_state_of_world_populator.go. CSI volumes are csi_volumes.c's. */
static enum err_code check_mode(const struct pod *p, const struct api_volume *v, const struct claim_place *at,
                                struct err *e)
{
    const char *mode = at->block ? "Block" : "Filesystem";
    const bool served = at->path != NULL || at->volume->pv->storage.kind == API_STORAGE_CSI ||
                        api_storage_has_devices(at->volume->pv->storage.kind);

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct api_container *c = p->ctrs[i]->spec;

        for (size_t k = 0; at->block && k < c->n_mounts; k++)
            if (strcmp(c->mounts[k].name, v->name) == 0)
                return err_set(e, ERR_PRECONDITION,
                               "volume %s has volumeMode %s, but is specified in volumeMounts", v->name,
                               mode);
        for (size_t k = 0; !at->block && k < c->n_devices; k++)
            if (strcmp(c->devices[k].name, v->name) == 0)
                return err_set(e, ERR_PRECONDITION,
                               "volume %s has volumeMode %s, but is specified in volumeDevices", v->name,
                               mode);
    }
    return !at->block || served
               ? ERR_OK
               : err_set(e, ERR_UNIMPLEMENTED, "%s", "no volume plugin of this node maps its block device");
}

static enum err_code take_one(struct pod *p, const struct api_volume *v, struct err *e)
{
    struct claim_place at = { 0 };

    if (v->kind != API_VOL_CLAIM)
        return ERR_OK;
    if (claim_take(p, v, e) != ERR_OK || claim_place(p, v, &at, e) != ERR_OK)
        return e->code;
    return check_mode(p, v, &at, e);
}

/* A claim of the apiserver, in kubelet's words. A missing answer is no event. */
static void served_claim_waits(struct pod *p, const char *volume, const struct err *e)
{
    struct pod_volumes *vols = volumes_of(p);
    char text[512];

    snprintf(text, sizeof(text),
             "Unable to attach or mount volumes: unmounted volumes=[%.63s], unattached volumes=[], failed to "
             "process volumes=[%.63s]: %.270s",
             volume, volume, e->text);
    str_keep(&vols->vols_error, text);
    vols->vols_retry_at = clock_boot_in_ms(e->code == ERR_UNAVAILABLE ? CLAIM_ASKED_MS : CLAIM_WAITS_MS);
    volumes_set_state(p, VOLS_NONE);
    if (e->code == ERR_UNAVAILABLE)
        return;
    if (str_keep(&vols->vols_event, text))
        log_warn("a pod waits for a claim", F_STR("pod", p->key), F_STR("volume", volume), F_ERR(e));
    pod_event(p, NULL, true, "FailedMount", "%s", text);
}

bool volumes_take_claims(struct pod *p)
{
    struct err e = { 0 };

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];

        if (!volumes_is_mounted(p, v->name) || take_one(p, v, &e) == ERR_OK)
            continue;
        if (v->kind == API_VOL_CLAIM && p->api->origin == API_FROM_SERVER && e.code != ERR_UNIMPLEMENTED)
            served_claim_waits(p, v->name, &e);
        else
            volumes_failed(p, v->name, &e);
        pod_wake_at(p, volumes_of(p)->vols_retry_at, "volumes are tried again");
        return false;
    }
    return true;
}
