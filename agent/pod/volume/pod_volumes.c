/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's volumes: set up in parallel with network and images, removed at the end. pod_payloads.c refreshes
 * them in between. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/limits/hugepages.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/project/project.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/volume/csi_volumes.h"
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/payload_set.h"
#include "agent/pod/volume/storage_volumes.h"
#include "agent/pod/volume/volume_cover.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

#define RETRY_FIRST_MS 500 /* kubelet's back-off of volume operations: 500 ms doubling to 2 m 2 s */
#define RETRY_MAX_MS 122000
#define SHM_BYTES (64 * 1024 * 1024) /* the size of /dev/shm in every engine */
#define MS INT64_C(1000000)

static const char *volumes_state_name(enum vols_state s)
{
    switch (s) {
    case VOLS_NONE:
        return "waiting";
    case VOLS_SETTING_UP:
        return "setting up";
    case VOLS_READY:
        return "ready";
    case VOLS_REMOVING:
        return "removing";
    case VOLS_REMOVED:
        return "removed";
    }
    return "?";
}

void volumes_set_state(struct pod *p, enum vols_state s)
{
    struct pod_volumes *vols = volumes_of(p);

    if (vols->vols != s)
        log_debug("pod volumes state", F_STR("pod", p->key), F_STR("from", volumes_state_name(vols->vols)),
                  F_STR("to", volumes_state_name(s)));
    vols->vols = s;
    vols->vols_since_ns = clock_wall_ns();
    if (s == VOLS_SETTING_UP)
        start_times_begin(p, START_VOLUMES);
    else if (s == VOLS_READY)
        start_times_end(p, START_VOLUMES);
}

bool volumes_ready(const struct pod *p)
{
    return volumes_of(p)->vols == VOLS_READY && csi_volumes_ready(p) && storage_volumes_ready(p);
}

bool volumes_working(const struct pod *p)
{
    return op_live(&volumes_of(p)->vols_call.op) || payloads_working(p) || csi_volumes_busy(p) ||
           storage_volumes_working(p);
}

const char *volumes_shm_path(const struct pod *p)
{
    return volumes_of(p)->shm_path;
}

void volumes_more(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    if (vols->vols == VOLS_READY)
        volumes_set_state(p, VOLS_NONE);
    else
        vols->vols_more = vols->vols == VOLS_SETTING_UP;
}

void volumes_stale(struct pod *p)
{
    volumes_of(p)->payload_stale = true;
}

void volumes_config_changed(struct pod *p, enum api_config_kind kind, const char *name)
{
    if (!volumes_use_config(p->api, kind, name))
        return;
    volumes_of(p)->payload_stale = true;
    volumes_of(p)->vols_retry_at = CLOCK_BOOT_NONE;
    csi_volumes_retry(p);
    storage_volumes_retry(p);
}

void volumes_drivers_changed(struct node *n)
{
    pods_each (n, p)
        csi_volumes_retry(p);
}

bool volumes_trust_changed(struct pod *p)
{
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];

        for (size_t k = 0; k < v->n_sources; k++)
            if (v->sources[k].kind == API_SRC_TRUST) {
                volumes_of(p)->payload_stale = true;
                volumes_of(p)->vols_retry_at = CLOCK_BOOT_NONE;
                return true;
            }
    }
    return false;
}

bool volumes_mounts_changed(struct node *n)
{
    bool waits = false;

    pods_each (n, p) {
        struct pod_volumes *vols = volumes_of(p);

        waits = waits || vols->vols_held || vols->vols == VOLS_REMOVING;
        if (vols->vols_held) {
            vols->vols_held = false;
            pod_wake(p, "mounts changed");
        }
    }
    return waits;
}

void volumes_failed(struct pod *p, const char *volume, const struct err *e)
{
    struct pod_volumes *vols = volumes_of(p);
    char text[512];

    if (e->code == ERR_PRECONDITION &&
        pod_is_new(p)) { /* the file with the missing object may be read next: no event yet */
        str_keep(&vols->vols_error, e->text);
        vols->vols_retry_at = pod_new_until(p);
        volumes_set_state(p, VOLS_NONE);
        return;
    }
    snprintf(text, sizeof(text), "MountVolume.SetUp failed for volume \"%s\" : %.400s", volume, e->text);
    str_keep(&vols->vols_error, text);
    vols->vols_backoff_ms = backoff_next_ms(vols->vols_backoff_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    vols->vols_retry_at = clock_boot_in_ms(vols->vols_backoff_ms);
    volumes_set_state(p, VOLS_NONE);
    if (str_keep(&vols->vols_event, text))
        log_warn("cannot set up volume", F_STR("pod", p->key), F_STR("volume", volume), F_ERR(e));
    pod_event(p, NULL, true, "FailedMount", "%s", text);
}

/* ---- set-up ---- */

static enum err_code take_payload(struct pod *p, const struct api_volume *v, const struct payload_result *r,
                                  struct buf *overlaps, struct err *e)
{
    if (r == NULL)
        return ERR_OK;
    payloads_note(p, v, r, overlaps);
    *e = r->e;
    return e->code == ERR_OK ? volume_cover_make(p, v, e) : e->code;
}

static enum err_code set_up_one(struct pod *p, const struct api_volume *v, const struct payload_result *r,
                                struct buf *overlaps, struct err *e)
{
    const struct api_pod_security *s = &p->api->spec.security;
    char path[1024];

    switch (v->kind) {
    case API_VOL_PAYLOAD:
        return take_payload(p, v, r, overlaps, e);
    case API_VOL_EMPTY_DIR: {
        struct vol_empty_dir d = {
            .uid = p->uid, .name = v->name, .memory = str_eq(v->medium, "Memory"), .fs_group = -1
        };
        if (s->has_fs_group)
            d.fs_group = s->fs_group;
        if (str_starts(v->medium, "HugePages")) {
            if (hugepages_of_medium(p->api, v->medium, &d.huge_page_bytes, e) != ERR_OK)
                return e->code;
            if (v->has_size_limit && quantity_value(&v->size_limit) > 0)
                d.size_bytes = (uint64_t)quantity_value(&v->size_limit);
        } else if (d.memory) {
            bool all_declare = false;
            struct quantity limit = resources_pod_limit(p->api, "memory", &all_declare);
            d.size_bytes = (uint64_t)node_allocatable(p->node, "memory");
            if (all_declare && quantity_value(&limit) > 0 && (uint64_t)quantity_value(&limit) < d.size_bytes)
                d.size_bytes = (uint64_t)quantity_value(&limit);
            if (v->has_size_limit && quantity_value(&v->size_limit) > 0 &&
                (uint64_t)quantity_value(&v->size_limit) < d.size_bytes)
                d.size_bytes = (uint64_t)quantity_value(&v->size_limit);
        }
        return vol_empty_dir_setup(p->node->o.volumes, &d, path, sizeof(path), e);
    }
    case API_VOL_CLAIM:     /* taken before */
    case API_VOL_HOST_PATH: /* already checked by the child */
    case API_VOL_STORAGE:   /* storage_volumes.c */
    case API_VOL_CSI:       /* csi_volumes.c */
    case API_VOL_IMAGE:     /* mounted for the first container, since its image may still be being pulled */
        return ERR_OK;
    }
    return ERR_OK;
}

/* The pod's /dev/shm. */
static enum err_code setup_shm(struct pod *p, struct err *e)
{
    struct pod_volumes *vols = volumes_of(p);
    char path[512];

    if (vol_shm_setup(p->node->o.volumes, p->uid, SHM_BYTES, path, sizeof(path), e) != ERR_OK)
        return e->code;
    str_keep(&vols->shm_path, path);
    return vols->shm_path != NULL ? ERR_OK : err_nomem(e);
}

static void pod_volumes_on_written(struct pod *p, const struct payload_set *s)
{
    struct pod_volumes *vols = volumes_of(p);
    buf_auto overlaps = BUF_INIT(64 * 1024);
    struct err e = { 0 };

    if (s == NULL) {
        volumes_set_state(p, VOLS_NONE);
        return;
    }
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        if (volumes_is_mounted(p, v->name) &&
            set_up_one(p, v, payload_set_result(s, i), &overlaps, &e) != ERR_OK &&
            !payloads_keep_content(p, v, &e)) {
            /*
             * A downward API file needs the pod's IP, or a token is being requested; the arrival of either
             * wakes the pod.
             */
            if (e.code == ERR_UNAVAILABLE && (sandbox_net(p) != NET_READY || payloads_have_token(v))) {
                volumes_set_state(p, VOLS_NONE);
                return;
            }
            volumes_failed(p, v->name, &e);
            return;
        }
    }
    if (!p->api->spec.host_ipc && setup_shm(p, &e) != ERR_OK) {
        volumes_failed(p, "dev-shm", &e);
        return;
    }
    payloads_note_overlaps(p, &overlaps);
    str_keep(&vols->vols_error, "");
    str_keep(&vols->vols_event, "");
    vols->vols_backoff_ms = 0;
    volumes_set_state(p, vols->vols_more ? VOLS_NONE : VOLS_READY);
    if (vols->vols_more)
        pod_wake(p, "another volume is mounted");
    else if (vols->payload_stale)
        pod_wake(p, "volume content was kept");
    vols->vols_more = false;
}

static void pod_volumes_set_up(struct pod *p)
{
    struct err e = { 0 };

    if (payloads_write(p, pod_volumes_on_written, &e) == ERR_OK) {
        if (payloads_working(p))
            volumes_set_state(p, VOLS_SETTING_UP);
    } else if (e.code == ERR_UNAVAILABLE) {
        volumes_set_state(p, VOLS_NONE);
    } else {
        volumes_failed(p, "payload", &e);
    }
}

/* ---- the step ---- */

static void pod_volumes_on_checked(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    const char *volume;
    struct err e;

    if (result->code == ERR_OK) {
        pod_volumes_set_up(p);
    } else if (result->code == ERR_CANCELLED) {
        volumes_set_state(p, VOLS_NONE);
    } else {
        volume = host_paths_problem(p, result, &e);
        volumes_failed(p, volume, &e);
    }
    host_paths_check_done(p);
    pod_wake(p, "host paths were checked");
}

void volumes_claims_changed(struct pod *p)
{
    csi_volumes_retry(p);
    storage_volumes_retry(p);
    for (size_t i = 0; i < p->api->spec.n_volumes; i++)
        if (p->api->spec.volumes[i].kind == API_VOL_CLAIM && volumes_of(p)->vols == VOLS_NONE) {
            volumes_of(p)->vols_retry_at = CLOCK_BOOT_NONE;
            pod_wake(p, "claims changed");
            return;
        }
}

void volumes_step(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    payloads_step(p);
    csi_volumes_step(p);
    if (vols->vols == VOLS_READY)
        storage_volumes_step(p);
    if (vols->vols != VOLS_NONE)
        return;
    if (!clock_boot_is_due(vols->vols_retry_at)) {
        pod_wake_at(p, vols->vols_retry_at, "volumes are tried again");
        return;
    }
    if (!volumes_take_claims(p) || !project_volumes_ready(p) || payloads_wait(p))
        return;
    vols->payload_stale = false;
    if (!host_paths_known(p)) {
        volumes_set_state(p, VOLS_SETTING_UP);
        host_paths_check_start(p, pod_volumes_on_checked);
        return;
    }
    pod_volumes_set_up(p);
    payloads_step(p);
    if (vols->vols == VOLS_READY)
        storage_volumes_step(p);
    if (vols->vols == VOLS_NONE && !clock_boot_is_due(vols->vols_retry_at))
        pod_wake_at(p, vols->vols_retry_at, "volumes are tried again");
}

/* ---- for people ---- */

void volumes_explain(const struct pod *p, json_t *steps)
{
    const struct pod_volumes *vols = volumes_of(p);
    bool bad = vols->vols_error != NULL;
    bool done = vols->vols == VOLS_READY || vols->vols == VOLS_REMOVED;
    char at[400], text[1000];

    host_paths_checking(p, at, sizeof(at));
    if (at[0] != '\0') { /* vols_error belongs to the previous try */
        snprintf(text, sizeof(text), "checking %s%s%s", at, bad ? "; the last try: " : "",
                 bad ? vols->vols_error : "");
        explain_step(steps, "volumes", "running", vols->vols_since_ns, text, 0);
        return;
    }
    csi_volumes_explain(p, steps);
    storage_volumes_explain(p, steps);

    explain_step(steps, "volumes",
                 bad                       ? "failed"
                 : done                    ? "done"
                 : vols->vols == VOLS_NONE ? "waiting"
                                           : "running",
                 vols->vols_since_ns, bad ? vols->vols_error : volumes_state_name(vols->vols),
                 clock_boot_to_wall_ns(vols->vols_retry_at));
}
