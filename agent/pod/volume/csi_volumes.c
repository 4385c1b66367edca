/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/csi_volumes.h"

#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/csi_vol.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#include <string.h>
#include <sys/random.h>

/* requiresRepublish: kubelet publishes again when it syncs the pod: as its status changes, then each 60 to 90
 * s. */
#define REPUBLISH_FIRST_MS 500
#define REPUBLISH_MS 60000
#define REPUBLISH_JITTER_MS 30000
#define LIMIT_EXCEEDED "VolumeAttachmentLimitExceeded"
#define WAIT_LOOK_MS 2000 /* for an attachment or a token: changes wake the pod at once */
#define SAID_MS 10000     /* waiting for so long is an event */

static void set_state(struct csi_vol *v, enum csi_vol_state state)
{
    v->state = state;
    v->since_ns = clock_wall_ns();
}

static bool is_used(const struct pod *p, const struct api_volume *v)
{
    return (v->kind == API_VOL_CSI || v->kind == API_VOL_CLAIM) && volumes_is_mounted(p, v->name);
}

/* ---- set-up ---- */

static const char *what_failed(const struct csi_vol *v)
{
    switch (csi_mount_step(&v->mount)) {
    case CSI_STEP_STAGE:
        return v->block ? "MapVolume.SetUpDevice failed" : "MountVolume.MountDevice failed";
    case CSI_STEP_EXPAND:
        return v->block ? "MapVolume.MapBlockVolume failed while expanding volume"
                        : "MountVolume.Setup failed while expanding volume";
    case CSI_STEP_PUBLISH:
        break;
    }
    return v->block ? "MapVolume.MapPodDevice failed" : "MountVolume.SetUp failed";
}

static void vol_failed(struct csi_vol *v, const char *what, const struct err *e)
{
    struct pod *p = v->pod;
    char text[sizeof(v->error)];

    snprintf(text, sizeof(text), "%s for volume \"%.100s\" : %.370s", what, v->spec_name, e->text);
    text_printable(text);
    v->backoff_ms = backoff_next_ms(v->backoff_ms, CSI_RETRY_FIRST_MS, CSI_RETRY_MAX_MS);
    v->retry_at = clock_boot_in_ms(v->backoff_ms);
    v->said_at = CLOCK_BOOT_NONE;
    if (v->state != CSI_VOL_READY) /* one that is published again is mounted all the while */
        set_state(v, CSI_VOL_NONE);
    if (strcmp(v->error, text) != 0)
        log_warn("cannot set up a CSI volume", F_STR("pod", p->key), F_STR("volume", v->name), F_ERR(e));
    strcpy(v->error, text);
    pod_event(p, NULL, true, "FailedMount", "%s", text);
    pod_wake_at(p, v->retry_at, "a CSI volume is tried again");
}

/* It may still come, so the volume is checked again soon; a long wait is reported. */
static void vol_waits(struct csi_vol *v, const char *why)
{
    struct pod *p = v->pod;

    snprintf(v->error, sizeof(v->error), "%.500s", why);
    v->retry_at = pod_is_new(p) ? pod_new_until(p) : clock_boot_in_ms(WAIT_LOOK_MS);
    if (!clock_boot_is_set(v->said_at))
        v->said_at = clock_boot_in_ms(SAID_MS);
    if (clock_boot_is_due(v->said_at)) {
        /* The beginning comes from kubelet's log line; it is not meant for users. */
        pod_event(
            p, NULL, true, "FailedMount",
            "Unable to attach or mount volumes: unmounted volumes=[%.100s], unattached volumes=[%.100s], "
            "failed to process volumes=[]: %.300s",
            v->name, v->name, why);
        v->said_at = clock_boot_in_ms(CSI_RETRY_MAX_MS);
    }
    pod_wake_at(p, v->retry_at, "a CSI volume is tried again");
}

static void plan_republish(struct csi_vol *v)
{
    uint64_t ms = REPUBLISH_FIRST_MS;
    uint32_t chance = 0;

    if (!v->republishes)
        return;
    if (v->republished && getrandom(&chance, sizeof(chance), 0) == sizeof(chance))
        ms = REPUBLISH_MS + chance % REPUBLISH_JITTER_MS;
    v->retry_at = clock_boot_in_ms(ms);
}

/* kubelet's two events of a block device. */
static void say_mapped(const struct csi_vol *v)
{
    const char *root = v->pod->node->o.root_dir;

    if (!v->block)
        return;
    pod_event(v->pod, NULL, false, "SuccessfulMountVolume",
              "MapVolume.MapPodDevice succeeded for volume \"%.100s\" globalMapPath "
              "\"%.120s/" CSI_PLUGIN "/volumeDevices/%.100s/dev\"",
              v->spec_name, root, v->spec_name);
    pod_event(
        v->pod, NULL, false, "SuccessfulMountVolume",
        "MapVolume.MapPodDevice succeeded for volume \"%.100s\" volumeMapPath \"%.120s/pods/%s/" CSI_DEVICES
        "\"",
        v->spec_name, root, v->pod->uid);
}

static void vol_is_ready(struct csi_vol *v)
{
    const struct api_volume *api = api_volume_find(&v->pod->api->spec, v->name);

    v->error[0] = '\0';
    v->backoff_ms = 0;
    v->said_at = CLOCK_BOOT_NONE;
    v->caps = csi_mount_caps(&v->mount);
    v->republished = v->state == CSI_VOL_READY;
    if (!v->republished) {
        set_state(v, CSI_VOL_READY);
        say_mapped(v);
    }
    plan_republish(v);
    if (v->growing > 0 && api != NULL)
        csi_grown(v, api, v->growing);
    v->growing = 0;
}

/* For the claim's status. */
static void expand_failed(const struct csi_vol *v, const struct err *why)
{
    const struct api_volume *api = api_volume_find(&v->pod->api->spec, v->name);

    if (csi_mount_step(&v->mount) == CSI_STEP_EXPAND && v->growing > 0 && api != NULL)
        driver_expanded(v->pod, api, v->growing, why);
}

static void on_mounted(struct op *op, const struct err *result)
{
    struct csi_vol *v = op->owner;

    csi_described_done(&v->described);
    if (result->code == ERR_OK) {
        vol_is_ready(v);
    } else if (csi_mount_stopped(&v->mount)) {
        if (v->state != CSI_VOL_READY)
            set_state(v, CSI_VOL_NONE);
    } else {
        expand_failed(v, result);
        vol_failed(v, what_failed(v), result);
    }
    pod_wake(v->pod, "a CSI volume was tried");
}

/* The cluster has to find another node: kubelet's rejection of a pod that it had admitted. */
static bool rejected(struct csi_vol *v, const struct err *e)
{
    struct pod *p = v->pod;
    char text[400];

    /* The code alone may be a lack of memory. */
    if (e->code != ERR_EXHAUSTED || p->state != POD_STARTING ||
        !str_starts(e->text, "Node has reached its volume attachment limit"))
        return false;
    snprintf(text, sizeof(text),
             "Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[%.63s], "
             "unattached volumes=[%.63s], failed to process volumes=[]: context deadline exceeded",
             v->name, v->name);
    pod_event(p, NULL, true, LIMIT_EXCEEDED, "%s", text);
    snprintf(p->phase, sizeof(p->phase), "Failed");
    snprintf(p->reason, sizeof(p->reason), LIMIT_EXCEEDED);
    free(p->message);
    p->message = str_printf("Pod was rejected: %s", text);
    pod_ask_end(p, 0, "a volume cannot be attached to this node");
    pod_wake(p, "rejected");
    return true;
}

static bool waits(const struct csi_vol *v, const struct err *e)
{
    return e->code == ERR_UNAVAILABLE || (e->code == ERR_PRECONDITION && pod_is_new(v->pod));
}

static void set_up(struct csi_vol *v, const struct api_volume *api)
{
    struct pod *p = v->pod;
    const char *what = "MountVolume.SetUp failed";
    struct err e = { 0 };

    if (p->node->csi == NULL)
        err_set(&e, ERR_INTERNAL, "CSI drivers cannot be served");
    else
        ERR_IGNORE(csi_describe(v, api, &v->described, &what, &e));
    if (e.code == ERR_OK) {
        if (v->state != CSI_VOL_READY)
            set_state(v, CSI_VOL_MOUNTING);
        v->growing = v->described.volume.expand_bytes;
        v->give_up_at = CLOCK_BOOT_NONE;
        csi_mount_start(&v->mount, p->node->csi, &v->described.volume, on_mounted, v);
        return;
    }
    csi_described_done(&v->described);
    if (waits(v, &e))
        vol_waits(v, e.text);
    else if (!rejected(v, &e))
        vol_failed(v, what, &e);
}

static const char *usage_path(const struct csi_vol *v, struct arena *memory)
{
    const struct csi_id id = { v->driver, v->handle, v->spec_name, v->block, v->ephemeral };
    struct csi_paths paths = { 0 };

    if (csi_paths_make(&paths, v->pod->node->o.root_dir, &id, v->pod->uid, memory, ERR_IGNORED) != ERR_OK)
        return NULL;
    return v->block ? paths.map : paths.target;
}

/* While it is ready. */
static void step_ready(struct csi_vol *v, const struct api_volume *api)
{
    struct arena memory = { 0 };
    const char *path;

    if (v->pod->node->csi == NULL)
        return;
    if (csi_can(v->caps, CSI_CAN_STATS)) {
        path = usage_path(v, &memory);
        if (path != NULL)
            csi_usage_step(&v->usage, v->pod, v->driver, v->handle, path);
        arena_done(&memory);
    }
    csi_grow_step(v, api);
}

static void step(struct csi_vol *v, const struct api_volume *api)
{
    struct err e = { 0 };

    if (csi_vol_resolve(v, api, &e) != ERR_OK) {
        if (e.code != ERR_NOT_FOUND)
            pod_wake_at(v->pod, clock_boot_in_ms(CSI_RETRY_FIRST_MS), "memory for CSI volumes");
        return;
    }
    if (v->state == CSI_VOL_READY)
        step_ready(v, api);
    if (op_live(&v->mount.op) || (v->state == CSI_VOL_READY && !v->republishes))
        return;
    if (clock_boot_is_due(v->retry_at))
        set_up(v, api);
    else
        pod_wake_at(v->pod, v->retry_at, "a CSI volume is tried again");
}

void csi_volumes_step(struct pod *p)
{
    if (!csi_vols_make(p)) {
        pod_wake_at(p, clock_boot_in_ms(CSI_RETRY_FIRST_MS), "memory for CSI volumes");
        return;
    }
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        struct csi_vol *v = is_used(p, api) ? csi_vol_find(p, api->name) : NULL;

        if (v != NULL)
            step(v, api);
    }
}

bool csi_volumes_ready(const struct pod *p)
{
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        const struct csi_vol *v;

        if (!is_used(p, api) || (api->kind == API_VOL_CLAIM && csi_pv_of(p, api) == NULL))
            continue;
        v = csi_vol_find(p, api->name);
        if (v == NULL || v->state != CSI_VOL_READY)
            return false;
    }
    return true;
}

/* ---- of the room ---- */

void csi_volumes_retry(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;
    bool some = false;

    if (p->state == POD_TERMINATING || p->state == POD_TERMINATED)
        return;
    for (size_t i = 0; i < csi->n; i++) {
        struct csi_vol *v = csi_vol_at(p, i);

        v->grow_at = CLOCK_BOOT_NONE;
        some = some || v->state == CSI_VOL_READY; /* it may have to grow */
        if (v->state == CSI_VOL_NONE) {
            some = true;
            v->retry_at = CLOCK_BOOT_NONE;
        }
    }
    if (some)
        pod_wake(p, "a CSI driver or objects of its volumes changed");
}

bool csi_volumes_use_secret(const struct api_pod *api, const char *name)
{
    for (size_t i = 0; i < api->spec.n_volumes; i++)
        if (api->spec.volumes[i].kind == API_VOL_CSI && str_eq(api->spec.volumes[i].csi_secret, name))
            return true;
    return false;
}
