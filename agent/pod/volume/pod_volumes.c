/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's volumes: set up in parallel with network and images, removed at the end. pod_payloads.c refreshes
 * them in between. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/leftovers/sweep.h"
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
#include <sys/mman.h>

#define RETRY_FIRST_MS 500 /* kubelet's back-off of volume operations: 500 ms doubling to 2 m 2 s */
#define RETRY_MAX_MS 122000
#define CLAIM_WAITS_MS 12000 /* events of a claim that is waited for: kubelet's are 10 to 18 s apart */
#define CLAIM_ASKED_MS 1000  /* until the apiserver has answered, which wakes the pod */
#define HOST_PATH_DEADLINE_MS 30000
#define TEARDOWN_DEADLINE_MS 120000
#define SHM_BYTES (64 * 1024 * 1024) /* the size every engine gives /dev/shm */
#define REMOVE_RETRY_MS 5000
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

static void pod_volumes_failed(struct pod *p, const char *volume, const struct err *e)
{
    struct pod_volumes *vols = volumes_of(p);

    if (e->code == ERR_PRECONDITION &&
        pod_is_new(p)) { /* the file with the missing object may be read next: no event yet */
        snprintf(vols->vols_error, sizeof(vols->vols_error), "%s", e->text);
        vols->vols_retry_at = pod_new_until(p);
        volumes_set_state(p, VOLS_NONE);
        return;
    }
    snprintf(vols->vols_error, sizeof(vols->vols_error),
             "MountVolume.SetUp failed for volume \"%s\" : %.400s", volume, e->text);
    vols->vols_backoff_ms = backoff_next_ms(vols->vols_backoff_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    vols->vols_retry_at = clock_boot_in_ms(vols->vols_backoff_ms);
    volumes_set_state(p, VOLS_NONE);
    if (strcmp(vols->vols_event, vols->vols_error) != 0)
        log_warn("cannot set up volume", F_STR("pod", p->key), F_STR("volume", volume), F_ERR(e));
    snprintf(vols->vols_event, sizeof(vols->vols_event), "%s", vols->vols_error);
    pod_event(p, NULL, true, "FailedMount", "%s", vols->vols_error);
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
            pod_volumes_failed(p, v->name, &e);
            return;
        }
    }
    if (!p->api->spec.host_ipc && vol_shm_setup(p->node->o.volumes, p->uid, SHM_BYTES, vols->shm_path,
                                                sizeof(vols->shm_path), &e) != ERR_OK) {
        pod_volumes_failed(p, "dev-shm", &e);
        return;
    }
    payloads_note_overlaps(p, &overlaps);
    vols->vols_error[0] = vols->vols_event[0] = '\0';
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
        pod_volumes_failed(p, "payload", &e);
    }
}

/* ---- host paths, in a child: they may hang ---- */

/* The path that the child has to examine: a hostPath, or a claim's. False: none. */
static bool path_of(const struct pod *p, const struct api_volume *v, struct claim_place *ret)
{
    if (!volumes_is_mounted(p, v->name))
        return false;
    *ret = (struct claim_place){ .path = v->host_path, .type = v->host_path_type };
    return v->kind == API_VOL_HOST_PATH ||
           (v->kind == API_VOL_CLAIM && claim_place(p, v, ret, ERR_IGNORED) == ERR_OK && ret->path != NULL);
}

/* The agent's own folder gets the pod's group, with all that is in it (fsGroup). */
static bool group_differs(const struct pod *p, const struct claim_place *at)
{
    const struct api_pod_security *s = &p->api->spec.security;

    return s->has_fs_group && claim_place_is_own(at) && !vol_group_is(at->path, s->fs_group);
}

static bool path_is_known(const struct pod *p, const struct claim_place *at)
{
    return !claim_place_is_own(at) ? vol_host_path_known(at->path, at->type) : !group_differs(p, at);
}

static enum err_code check_path(const struct pod *p, const struct claim_place *at, struct err *e)
{
    if (!claim_place_is_own(at))
        return vol_host_path_check(at->path, at->type, e);
    return group_differs(p, at) ? vol_group_set(at->path, p->api->spec.security.fs_group, e) : ERR_OK;
}

static enum err_code check_host_paths(const void *arg, struct buf *out, struct err *e)
{
    const struct pod *p = arg;
    const struct pod_volumes *vols = volumes_of(p);

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        struct claim_place at;

        if (!path_of(p, v, &at))
            continue;
        if (vols->vols_at != NULL) /* names the path if the check hangs */
            *(volatile unsigned *)vols->vols_at = (unsigned)i + 1;
        if (check_path(p, &at, e) != ERR_OK) {
            buf_addf(out, "%s\n%s", v->name, e->text); /* volume name and bare text, for an event */
            return e->code;
        }
    }
    return ERR_OK;
}

/* "host path /mnt/x of volume \"v\"", which the child is checking; "" if none. */
static void volumes_checking(const struct pod *p, char *ret, size_t size)
{
    const struct pod_volumes *vols = volumes_of(p);
    unsigned at = vols->vols_at != NULL ? *(volatile unsigned *)vols->vols_at : 0;
    struct claim_place place;

    ret[0] = '\0';
    if (vols->vols == VOLS_SETTING_UP && at > 0 && at <= p->api->spec.n_volumes &&
        path_of(p, &p->api->spec.volumes[at - 1], &place))
        snprintf(ret, size, "host path %.300s of volume \"%s\"", place.path,
                 p->api->spec.volumes[at - 1].name);
}

static void check_failed(struct pod *p, const struct err *result)
{
    struct pod_volumes *vols = volumes_of(p);
    char *newline = strchr(vols->vols_call.out.p, '\n');
    struct err e = *result;

    if (newline == NULL) { /* the child did not answer */
        unsigned at = vols->vols_at != NULL ? *vols->vols_at : 0;
        const struct api_volume *v =
            at > 0 && at <= p->api->spec.n_volumes ? &p->api->spec.volumes[at - 1] : NULL;
        struct claim_place place;
        if (v != NULL && e.code == ERR_DEADLINE && path_of(p, v, &place))
            err_set(&e, ERR_DEADLINE, "host path %.300s does not answer: %.100s", place.path, result->text);
        pod_volumes_failed(p, v != NULL ? v->name : "host path", &e);
        return;
    }
    *newline = '\0';
    snprintf(e.text, sizeof(e.text), "%s", newline + 1);
    pod_volumes_failed(p, vols->vols_call.out.p, &e);
}

static void pod_volumes_on_checked(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct pod_volumes *vols = volumes_of(p);

    if (result->code == ERR_OK)
        pod_volumes_set_up(p);
    else if (result->code == ERR_CANCELLED)
        volumes_set_state(p, VOLS_NONE);
    else
        check_failed(p, result);
    if (vols->vols_at != NULL)
        munmap(take_ptr(&vols->vols_at), sizeof(*vols->vols_at));
    pod_wake(p, "host paths were checked");
}

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

    snprintf(vols->vols_error, sizeof(vols->vols_error),
             "Unable to attach or mount volumes: unmounted volumes=[%.63s], unattached volumes=[], failed to "
             "process volumes=[%.63s]: %.270s",
             volume, volume, e->text);
    vols->vols_retry_at = clock_boot_in_ms(e->code == ERR_UNAVAILABLE ? CLAIM_ASKED_MS : CLAIM_WAITS_MS);
    volumes_set_state(p, VOLS_NONE);
    if (e->code == ERR_UNAVAILABLE)
        return;
    if (strcmp(vols->vols_event, vols->vols_error) != 0)
        log_warn("a pod waits for a claim", F_STR("pod", p->key), F_STR("volume", volume), F_ERR(e));
    snprintf(vols->vols_event, sizeof(vols->vols_event), "%s", vols->vols_error);
    pod_event(p, NULL, true, "FailedMount", "%s", vols->vols_error);
}

/* False: it waits. */
static bool take_claims(struct pod *p)
{
    struct err e = { 0 };

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];

        if (!volumes_is_mounted(p, v->name) || take_one(p, v, &e) == ERR_OK)
            continue;
        if (v->kind == API_VOL_CLAIM && p->api->origin == API_FROM_SERVER && e.code != ERR_UNIMPLEMENTED)
            served_claim_waits(p, v->name, &e);
        else
            pod_volumes_failed(p, v->name, &e);
        pod_wake_at(p, volumes_of(p)->vols_retry_at, "volumes are tried again");
        return false;
    }
    return true;
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
    bool unknown = false;

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
    if (!take_claims(p) || !project_volumes_ready(p) || payloads_wait(p))
        return;
    vols->payload_stale = false;
    for (size_t i = 0; i < p->api->spec.n_volumes && !unknown; i++) {
        struct claim_place at;
        unknown = path_of(p, &p->api->spec.volumes[i], &at) && !path_is_known(p, &at);
    }
    if (unknown) {
        struct proc_call_spec call = {
            .name = "check host paths",
            .subject = p->key,
            .fn = check_host_paths,
            .arg = p,
            .out_max = 1024,
            .deadline_ms = HOST_PATH_DEADLINE_MS,
            CG_OPS(p->node->o.cgroups),
            .moves_late = true,
        };
        volumes_set_state(p, VOLS_SETTING_UP);
        vols->vols_at =
            mmap(NULL, sizeof(*vols->vols_at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (vols->vols_at == MAP_FAILED)
            vols->vols_at = NULL; /* a hanging path cannot be named then */
        proc_call_start(&vols->vols_call, &call, p->node->o.loop, pod_volumes_on_checked, p);
        return;
    }
    pod_volumes_set_up(p);
    payloads_step(p);
    if (vols->vols == VOLS_READY)
        storage_volumes_step(p);
    if (vols->vols == VOLS_NONE && !clock_boot_is_due(vols->vols_retry_at))
        pod_wake_at(p, vols->vols_retry_at, "volumes are tried again");
}

/* ---- teardown ---- */

static enum err_code pod_volumes_remove_all(const void *arg, struct buf *out, struct err *e)
{
    const struct pod *p = arg;

    (void)out;
    return vol_pod_teardown(p->node->o.volumes, p->uid, e);
}

/* A foreign mount blocks the removal: retry when the mounts change. */
static void wait_for_mounts(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);
    struct err e = { 0 };
    bool new = false;

    if (mount_watch_begin(p->node, &new, &e) != ERR_OK) {
        log_warn("cannot watch mounts; will retry periodically", F_STR("pod", p->key), F_ERR(&e));
        vols->vols_retry_at = clock_boot_in_ms(REMOVE_RETRY_MS);
    } else if (new) {
        vols->vols_retry_at = CLOCK_BOOT_NONE; /* the mount may have disappeared before the watch began */
    } else if (mount_watch_rounds(p->node) != vols->vols_mount_round) {
        vols->vols_retry_at = clock_boot_in_ms(1000); /* or during the removal */
    } else {
        vols->vols_held = true;
    }
}

static void not_removed(struct pod *p, const struct err *why)
{
    struct pod_volumes *vols = volumes_of(p);

    if (strcmp(vols->vols_error, why->text) != 0) {
        log_warn("cannot remove a pod's volumes; will retry", F_STR("pod", p->key), F_ERR(why));
        pod_event(p, NULL, true, "FailedUnMount", "%s", why->text);
    }
    snprintf(vols->vols_error, sizeof(vols->vols_error), "%s", why->text);
    if (why->code == ERR_PRECONDITION)
        wait_for_mounts(p);
    else
        vols->vols_retry_at = clock_boot_in_ms(REMOVE_RETRY_MS);
}

static void pod_volumes_on_removed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;

    if (result->code == ERR_OK) {
        volumes_of(p)->vols_error[0] = '\0';
        volumes_set_state(p, VOLS_REMOVED);
        project_gone(p->node, p->uid);
    } else if (result->code == ERR_PRECONDITION && p->node->draining) {
        /* The end of all pods does not wait for foreign mounts. */
        log_warn("keeping a pod's volumes; the next start will remove them", F_STR("pod", p->key),
                 F_ERR(result));
        volumes_set_state(p, VOLS_REMOVED);
    } else {
        volumes_set_state(p, VOLS_READY);
        if (result->code != ERR_CANCELLED)
            not_removed(p, result);
    }
    pod_wake(p, "volumes were removed");
}

bool volumes_teardown_step(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);
    struct proc_call_spec call = {
        .name = "remove volumes",
        .subject = p->key,
        .fn = pod_volumes_remove_all,
        .arg = p,
        .deadline_ms = TEARDOWN_DEADLINE_MS,
        CG_OPS(p->node->o.cgroups),
        .moves_late = true,
    };

    bool kept = false;

    if (project_working(p)) /* folders are being made */
        return false;
    if (payloads_working(p)) { /* it goes on to its end */
        op_cancel(&vols->write.op);
        return false;
    }
    if (vols->vols != VOLS_REMOVED &&
        (!csi_volumes_teardown_step(p, &kept) || !storage_volumes_teardown_step(p, &kept))) {
        if (kept)
            volumes_set_state(p, VOLS_REMOVED);
        return kept;
    }
    switch (vols->vols) {
    case VOLS_REMOVED:
        return true;
    case VOLS_SETTING_UP:
        op_cancel(&vols->vols_call.op);
        return false;
    case VOLS_REMOVING:
        return false;
    case VOLS_NONE:
    case VOLS_READY:
        break;
    }
    if (vols->vols_held && !p->node->draining)
        return false;
    vols->vols_held = false;
    if (!clock_boot_is_due(vols->vols_retry_at) && vols->vols == VOLS_READY) {
        pod_wake_at(p, vols->vols_retry_at, "volume removal is tried again");
        return false;
    }
    volumes_set_state(p, VOLS_REMOVING);
    vols->vols_mount_round = mount_watch_rounds(p->node);
    proc_call_start(&vols->vols_call, &call, p->node->o.loop, pod_volumes_on_removed, p);
    return false;
}

/* ---- for people ---- */

void volumes_explain(const struct pod *p, json_t *steps)
{
    const struct pod_volumes *vols = volumes_of(p);
    bool bad = vols->vols_error[0] != '\0';
    bool done = vols->vols == VOLS_READY || vols->vols == VOLS_REMOVED;
    char at[400], text[1000];

    volumes_checking(p, at, sizeof(at));
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
