/* SPDX-License-Identifier: Apache-2.0 */
/* facts - predicates that only need a pod's structs; every room may call them. */
#include "agent/pod/core/facts.h"

#include "agent/pod/core/storage_place.h"
#include "base/clock.h"
#include "volumes/csi/place.h"

#include <stdio.h>
#include <string.h>

const char *pod_state_name(enum pod_state s)
{
    switch (s) {
    case POD_PENDING:
        return "pending";
    case POD_STARTING:
        return "starting";
    case POD_RUNNING:
        return "running";
    case POD_TERMINATING:
        return "terminating";
    case POD_TERMINATED:
        return "terminated";
    }
    return "?";
}

const char *ctr_state_name(enum ctr_state s)
{
    switch (s) {
    case CTR_NONE:
        return "none";
    case CTR_MOUNTING:
        return "mounting";
    case CTR_CREATING:
        return "creating";
    case CTR_CREATED:
        return "created";
    case CTR_STARTING:
        return "starting";
    case CTR_RUNNING:
        return "running";
    case CTR_PRESTOP:
        return "pre-stop";
    case CTR_STOPPING:
        return "stopping";
    case CTR_KILLING:
        return "killing";
    }
    return "?";
}

bool pod_is_new(const struct pod *p)
{
    int64_t age_ns = clock_boot_since_ns(p->seen_at);

    if (!clock_boot_is_set(p->seen_at))
        return false;
    return age_ns < POD_NEW_NS ||
           (age_ns < POD_NEW_MAX_NS && p->node->folder != NULL && src_folder_busy(p->node->folder));
}

struct boot_time pod_new_until(const struct pod *p)
{
    struct boot_time until = clock_boot_after(p->seen_at, POD_NEW_NS), soon = clock_boot_in_ms(100);

    return clock_boot_is_before(until, soon) ? soon : until;
}

enum err_code pod_may_lack(const struct pod *p, enum api_config_kind kind, const char *name, struct err *e)
{
    if (!pod_is_new(p) || p->node->folder == NULL || !src_folder_busy(p->node->folder))
        return ERR_OK;
    return err_set(e, ERR_PRECONDITION, "%s \"%s\" may still be in a file that is being read",
                   kind == API_SECRET ? "secret" : "configmap", name);
}

enum err_code pod_lacks_config(const struct pod *p, enum api_config_kind kind, const char *name,
                               bool optional, struct err *e)
{
    struct err unknown = { 0 };

    if (presence_is_unknown(src_store_look_config(p->node->o.store, p->api->origin, kind,
                                                  p->api->meta.namespace, name, &unknown)))
        return err_set(e, ERR_PRECONDITION, "%s", unknown.text);
    if (optional)
        return pod_may_lack(p, kind, name, e);
    return err_set(e, ERR_PRECONDITION, "%s \"%s\" not found", kind == API_SECRET ? "secret" : "configmap",
                   name);
}

bool ctr_alive(const struct ctr *c)
{
    return c->state != CTR_NONE && c->state != CTR_MOUNTING && c->state != CTR_CREATING;
}

static bool has_device(const struct api_container *c, const char *volume)
{
    for (size_t i = 0; i < c->n_devices; i++)
        if (strcmp(c->devices[i].name, volume) == 0)
            return true;
    return false;
}

bool volumes_is_mounted(const struct pod *p, const char *volume)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        if (has_device(p->ctrs[i]->spec, volume))
            return true;
        for (size_t j = 0; j < p->ctrs[i]->spec->n_mounts; j++)
            if (strcmp(p->ctrs[i]->spec->mounts[j].name, volume) == 0)
                return true;
    }
    return false;
}

enum err_code volumes_device_path(const struct pod *p, const struct api_volume *v, char *ret, size_t size,
                                  bool *ret_read_only, struct err *e)
{
    struct arena memory = { 0 };
    struct claim_place at;
    struct csi_paths paths;
    struct csi_id id;
    int n = -1;

    if (claim_place(p, v, &at, e) != ERR_OK)
        return e->code;
    if (!at.block)
        return err_set(e, ERR_PRECONDITION,
                       "volume %s has volumeMode Filesystem, but is specified in volumeDevices", v->name);
    *ret_read_only = at.read_only;
    if (at.path != NULL) {
        n = snprintf(ret, size, "%s", at.path);
    } else if (at.volume->pv->storage.kind == API_STORAGE_CSI) {
        id = (struct csi_id){ .spec_name = at.volume->meta.name, .block = true };
        if (csi_paths_make(&paths, p->node->o.root_dir, &id, p->uid, &memory, e) == ERR_OK)
            n = snprintf(ret, size, "%s", paths.target);
        arena_done(&memory);
    } else if (api_storage_has_devices(at.volume->pv->storage.kind)) {
        return storage_device_place(p, &at.volume->pv->storage, at.volume->meta.name, ret, size, e);
    } else {
        return err_set(e, ERR_UNIMPLEMENTED, "volume %s: a block device of %s is not served", v->name,
                       api_storage_name(at.volume->pv->storage.kind));
    }
    if (e->code != ERR_OK)
        return e->code;
    return n > 0 && (size_t)n < size
               ? ERR_OK
               : err_set(e, ERR_INVALID, "volume \"%s\": its path is too long", v->name);
}

enum err_code volumes_host_path(const struct pod *p, const struct api_volume *v, char *ret, size_t size,
                                struct err *e)
{
    struct claim_place at;
    int n = -1;

    switch (v->kind) {
    case API_VOL_CLAIM:
        if (claim_place(p, v, &at, e) != ERR_OK)
            return e->code;
        if (at.path == NULL)
            return storage_place(p, &at.volume->pv->storage, at.volume->meta.name, ret, size, e);
        n = snprintf(ret, size, "%s", at.path);
        break;
    case API_VOL_STORAGE:
        return storage_place(p, v->storage, v->name, ret, size, e);
    case API_VOL_PAYLOAD:
        return vol_payload_path(p->node->o.volumes, p->uid, v->name, ret, size, e);
    case API_VOL_EMPTY_DIR:
        n = snprintf(ret, size, "%s/pods/%s/volumes/kubernetes.io~empty-dir/%s", p->node->o.root_dir, p->uid,
                     v->name);
        break;
    case API_VOL_HOST_PATH:
        n = snprintf(ret, size, "%s", v->host_path);
        break;
    case API_VOL_IMAGE:
        n = snprintf(ret, size, "%s/pods/%s/volumes/kubernetes.io~image/%s", p->node->o.root_dir, p->uid,
                     v->name);
        break;
    case API_VOL_CSI:
        return csi_place_target(p->node->o.root_dir, p->uid, v->name, ret, size, e);
    }
    return n > 0 && (size_t)n < size
               ? ERR_OK
               : err_set(e, ERR_INVALID, "volume \"%s\": its path is too long", v->name);
}

bool userns_wanted(const struct pod *p)
{
    return p->api->spec.has_host_users && !p->api->spec.host_users;
}

bool preempt_is_critical(const struct pod *p)
{
    return p->priority >= POD_CRITICAL_PRIORITY;
}

bool pod_runs_again(const struct pod *p)
{
    bool ran = false;

    if (p->api->origin == API_FROM_SERVER) /* its end is final there; a controller makes another one */
        return false;
    for (size_t i = 0; i < p->n_ctrs; i++)
        ran = ran || p->ctrs[i]->cur.id[0] != '\0';
    return p->rejected || !ran || p->api->spec.restart_policy != API_RESTART_NEVER;
}

bool pod_may_return(const struct pod *p)
{
    if (p->api->origin == API_FROM_SERVER)
        return false;
    return p->rejected || p->preempted_ns != 0 || (p->disrupted && pod_runs_again(p));
}

bool shutdown_now(const struct node *n)
{
    return n->shutting_down;
}

bool pod_record_awaited(const struct pod *p)
{
    return p->record_dirty && !p->record_failing;
}
