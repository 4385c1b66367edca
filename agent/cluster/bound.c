/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound - answers requests of pods: the volume of a claim, and whether it is attached
 * (agent/pod/core/driver_link.h); and volumesInUse of the node's status.
 *
 * A volume that has to be attached is in use from the moment at which a pod is known to need it until it is
 * unstaged, because a controller detaches no volume in use. The attachment counts only once the apiserver
 * shows the volume in both volumesInUse and volumesAttached, as with kubelet.
 */
#include "agent/cluster/claim_state.h"
#include "agent/cluster/internal.h"
#include "agent/pod/core/claim_link.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "volumes/csi/csi.h"
#include "volumes/flex/flex.h"

#include <string.h>

/* kubelet waits this long for a pod's volumes before it checks why one is not attached. */
#define ATTACH_WAIT_MS 120000
#define SWEEP_MIN_MS 500
#define SWEEP_MAX_MS 30000

/* ---- claims ---- */

static enum err_code not_read(const struct cluster_thing *t, const char *subject, struct err *e)
{
    if (t != NULL && t->absent)
        return err_set(e, ERR_NOT_FOUND, "failed to fetch %s from API server: %s \"%s\" not found", subject,
                       t->kind == THING_CLAIM ? "persistentvolumeclaims" : "persistentvolumes", t->name);
    if (t != NULL && t->denied != NULL)
        return err_set(e, ERR_PRECONDITION, "failed to fetch %s from API server: %.300s", subject, t->denied);
    return err_set(e, ERR_UNAVAILABLE, "waiting for the apiserver to send %s", subject);
}

static enum err_code find_volume(struct cluster *c, struct cluster_thing *claim, const char *name,
                                 struct driver_bound *ret, struct err *e)
{
    struct cluster_thing *volume = storage_find(c, THING_VOLUME, NULL, name);
    const char *capacity = json_str(json_at(claim->object, "status.capacity"), "storage");
    struct quantity size = { 0 };
    char subject[300];

    if (volume == NULL || volume->object == NULL) {
        snprintf(subject, sizeof(subject), "PV %.253s", name);
        return not_read(volume, subject, e);
    }
    if (claim_state_is_bound(claim->object, volume->object, e) != ERR_OK) {
        storage_hot(c, volume, true);
        storage_hot(c, claim, true);
        return e->code;
    }
    storage_hot(c, volume, false);
    ret->volume = src_store_generic(c->o.store, API_FROM_SERVER, API_KIND_PERSISTENT_VOLUME, NULL, name);
    if (ret->volume == NULL)
        return err_set(e, ERR_PRECONDITION, "PV %.253s has a source that this version does not support",
                       name);
    if (capacity != NULL && quantity_parse(capacity, &size, ERR_IGNORED) == ERR_OK)
        ret->claim_bytes = quantity_value(&size);
    return ERR_OK;
}

static enum err_code bound(const struct pod *p, const struct api_volume *v, struct driver_bound *ret,
                           void *arg, struct err *e)
{
    const struct claim_user user = { .namespace_ = p->api->meta.namespace,
                                     .pod = p->api->meta.name,
                                     .uid = p->uid,
                                     .ephemeral = v->ephemeral,
                                     .starts = p->state == POD_PENDING };
    struct driver_bound found = { 0 };
    struct cluster *c = arg;
    struct cluster_thing *claim;
    const char *volume = NULL;
    char name[600];

    claim_name(p, v, name, sizeof(name));
    claim = storage_find(c, THING_CLAIM, user.namespace_, name);
    if (claim == NULL || claim->object == NULL)
        return not_read(claim, "PVC", e);
    if (claim_state_volume(claim->object, &user, &volume, e) != ERR_OK) {
        storage_hot(c, claim, true);
        return e->code;
    }
    if (find_volume(c, claim, volume, &found, e) != ERR_OK)
        return e->code;
    storage_hot(c, claim, false);
    *ret = found;
    return ERR_OK;
}

/* ---- attachments ---- */

static enum err_code not_attached(const struct driver_attachment *a, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "volume %.160s is not attached for volume attachment %.80s", a->handle,
                   a->name);
}

static enum err_code check_attachment(const struct driver_attachment *a, const struct cluster_thing *t,
                                      const json_t **ret, struct err *e)
{
    const struct attachment_want want = { a->name, a->handle };

    if (t->object != NULL)
        return attachment_state(t->object, &want, ret, e);
    if (t->absent)
        return err_set(e, ERR_UNAVAILABLE,
                       "volume %.100s has GET error for volume attachment %.80s: "
                       "volumeattachments.storage.k8s.io \"%.80s\" not found",
                       a->handle, a->name, a->name);
    if (t->denied != NULL)
        return err_set(e, ERR_UNAVAILABLE, "volume %.100s has GET error for volume attachment %.80s: %.250s",
                       a->handle, a->name, t->denied);
    return not_attached(a, e);
}

/* The limit counts only at the end of kubelet's wait, because the controller retries in the meantime. A pod
 * that follows a rejected one has the same time. */
static enum err_code limit_reached(struct cluster *c, const struct pod *p, const struct driver_attachment *a,
                                   const struct cluster_thing *t, struct err *e)
{
    const int64_t wait_ns = ATTACH_WAIT_MS * INT64_C(1000000);

    if (!csi_drivers_limits_change(c, a->driver) || clock_boot_since_ns(t->since) < wait_ns ||
        clock_boot_since_ns(p->state_began) < wait_ns)
        return not_attached(a, e);
    csi_drivers_ask(c, a->driver); /* how many volumes it allows now */
    return e->code;
}

static enum err_code attached(const struct pod *p, const struct driver_attachment *a, json_t **ret, void *arg,
                              struct err *e)
{
    struct cluster *c = arg;
    struct cluster_thing *t = storage_find(c, THING_ATTACHMENT, NULL, a->name);
    const json_t *found = NULL;
    char name[800];

    attachable_name(a->driver, a->handle, name, sizeof(name));
    if (t == NULL) {
        reports_wake(c); /* a CSIDriver object may have been added or deleted */
        return not_attached(a, e);
    }
    if (check_attachment(a, t, &found, e) == ERR_EXHAUSTED)
        return limit_reached(c, p, a, t, e);
    if (!attachable_is_in(c->in_use, name) || !attachable_is_in(c->attached, name)) {
        storage_hot(c, t, true);
        return not_attached(a, e);
    }
    storage_hot(c, t, e->code != ERR_OK);
    if (e->code ==
        ERR_UNAVAILABLE) /* the Node shows it as attached: kubelet also reports errors from here on */
        e->code = ERR_ABORTED;
    if (e->code == ERR_OK)
        *ret = found != NULL ? json_deep_copy(found) : NULL;
    return e->code;
}

/* ---- FlexVolumes ---- */

static enum err_code device(const char *name, char *ret, size_t size, void *arg, struct err *e)
{
    struct cluster *c = arg;
    const char *path;

    /* kubelet's text, from its log */
    if (!attachable_is_in(c->in_use, name))
        return err_set(e, ERR_UNAVAILABLE,
                       "Volume %.300s has not been added to the list of VolumesInUse in the node's volume "
                       "status",
                       name);
    if (!attachable_is_in(c->attached, name))
        return err_set(e, ERR_UNAVAILABLE, "volume %.300s is not attached", name);
    path = attachable_device(c->attached, name);
    snprintf(ret, size, "%s", path != NULL ? path : "");
    return ERR_OK;
}

static void add_attach_name(const char *name, void *arg)
{
    json_t *list = arg;

    if (!json_has(list, name))
        json_array_append_new(list, json_string_of(name));
}

/* ---- expansions ---- */

static const char *expand_state(const struct err *result)
{
    switch (result->code) {
    case ERR_OK:
        return "done";
    case ERR_INVALID: /* volumetypes.IsInfeasibleError() */
    case ERR_RANGE:
    case ERR_NOT_FOUND:
        return "infeasible";
    default:
        return "failed";
    }
}

/* NULL: no error, or no memory. */
static json_t *expand_error(const struct err *result)
{
    struct err e = *result;

    if (str_starts(e.text, "rpc error")) /* kubelet's text for a driver's error */
        err_wrap(&e, "Expander.NodeExpand failed to expand the volume ");
    return result->code != ERR_OK ? json_string_of(e.text) : NULL;
}

static void expanded(const struct pod *p, const struct api_volume *v, uint64_t bytes,
                     const struct err *result, void *arg)
{
    struct cluster *c = arg;
    const char *volume, *size, *namespace_ = p->api->meta.namespace;
    struct cluster_thing *claim, *pv;
    char name[600];

    (void)bytes;
    claim_name(p, v, name, sizeof(name));
    claim = storage_find(c, THING_CLAIM, namespace_, name);
    volume = claim != NULL ? json_str(json_object_get(claim->object, "spec"), "volumeName") : NULL;
    pv = storage_find(c, THING_VOLUME, NULL, volume);
    size = pv != NULL ? json_str(json_at(pv->object, "spec.capacity"), "storage") : NULL;
    if (claim == NULL || size == NULL)
        return;
    cluster_send(c, json_pack("{s:s, s:s, s:s, s:s*, s:{s:s, s:s, s:o*}}", "type", "claim", "namespace",
                              namespace_, "name", name, "uid",
                              json_str(json_object_get(claim->object, "metadata"), "uid"), "resize", "state",
                              expand_state(result), "size", size, "error", expand_error(result)));
    if (result->code ==
        ERR_OK) { /* kept until the apiserver shows it, so that the driver is not called again */
        json_t *capacity = json_at(claim->object, "status.capacity");

        json_object_set_new(capacity, "storage", json_string(size));
    }
}

/* ---- volumes in use ---- */

static void add_in_use(json_t *list, const struct cluster *c, const char *driver, const char *handle)
{
    char name[800];

    if (!csi_drivers_attach(c, driver))
        return;
    attachable_name(driver, handle, name, sizeof(name));
    if (!json_has(list, name))
        json_array_append_new(list, json_string(name));
}

/* Adds a mounted volume, which is in use even if its claim or PersistentVolume was removed by force. */
static void add_mounted(json_t *list, const struct cluster *c, const struct pod *p,
                        const struct api_volume *v)
{
    const char *driver, *handle;

    if (volumes_driver_id(p, v->name, &driver, &handle))
        add_in_use(list, c, driver, handle);
}

/* False: a claim of the pod is unknown. */
static bool add_pod(json_t *list, const struct cluster *c, const struct pod *p)
{
    bool known = true;

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        const struct cluster_thing *claim, *volume;
        const json_t *source;
        char name[600];

        if (v->kind != API_VOL_CLAIM)
            continue;
        add_mounted(list, c, p, v);
        claim_name(p, v, name, sizeof(name));
        claim = storage_find(c, THING_CLAIM, p->api->meta.namespace, name);
        if (claim == NULL || claim->object == NULL) {
            known = known && claim != NULL && (claim->absent || claim->denied != NULL);
            continue;
        }
        if (!str_eq(json_str(json_object_get(claim->object, "status"), "phase"), "Bound"))
            continue;
        volume = storage_find(c, THING_VOLUME, NULL,
                              json_str(json_object_get(claim->object, "spec"), "volumeName"));
        if (volume == NULL || volume->object == NULL) {
            known = known && volume != NULL && (volume->absent || volume->denied != NULL);
            continue;
        }
        source = json_at(volume->object, "spec.csi");
        if (json_str(source, "driver") != NULL && json_str(source, "volumeHandle") != NULL)
            add_in_use(list, c, json_str(source, "driver"), json_str(source, "volumeHandle"));
    }
    return known;
}

struct listing {
    const struct cluster *cluster;
    json_t *list;
};

/* Adds a volume whose pods have ended, but which is not unstaged yet. */
static void add_released(const struct csi_id *id, const char *error, void *arg)
{
    struct listing *l = arg;

    (void)error;
    add_in_use(l->list, l->cluster, id->driver, id->handle);
}

/* Whether volumes that an earlier run left staged have been searched, once the pods are known. An absent
 * driver may delay that search, but must not block new pods forever. */
static bool is_swept(struct cluster *c)
{
    if (c->swept || !c->pods_synced)
        return c->swept;
    c->swept =
        clock_boot_since_ns(c->synced_at) > SWEEP_MAX_MS * INT64_C(1000000) ||
        (clock_boot_since_ns(c->synced_at) > SWEEP_MIN_MS * INT64_C(1000000) && c->o.node->sweeps == 0);
    return c->swept;
}

json_t *bound_in_use(struct cluster *c)
{
    json_t *list = json_array();
    struct listing released = { c, list };
    bool known = is_swept(c) && csi_drivers_known(c);

    pods_each (c->o.node, p)
        if (p->api->origin == API_FROM_SERVER && (p->state != POD_TERMINATED || !pod_ask_idle(p))) {
            known = add_pod(list, c, p) && known;
            volumes_each_attached(p, add_attach_name, list);
        }
    if (c->o.node->o.root_dir != NULL)
        flex_each_device(c->o.node->o.root_dir, add_attach_name, list);
    if (c->o.node->csi != NULL)
        csi_each_release(c->o.node->csi, add_released, &released);
    if (known)
        return list;
    json_decref(list);
    return NULL;
}

void bound_node(struct cluster *c, const json_t *status)
{
    json_t *in_use = json_object_get(status, "volumesInUse"),
           *attached = json_object_get(status, "volumesAttached");

    if (json_equal(in_use, c->in_use) && json_equal(attached, c->attached))
        return;
    if (in_use == NULL && attached == NULL && c->in_use == NULL && c->attached == NULL)
        return;
    json_decref(c->in_use);
    json_decref(c->attached);
    c->in_use = json_deep_copy(in_use);
    c->attached = json_deep_copy(attached);
    for (struct cluster_thing *t = c->things; t != NULL; t = t->hh.next)
        if (t->kind == THING_ATTACHMENT && t->hot)
            storage_look(c, t);
    storage_wake(c);
}

/* ---- life ---- */

void bound_open(struct cluster *c)
{
    c->drivers_link = (struct node_driver_link){
        .bound = bound, .attached = attached, .device = device, .expanded = expanded, .arg = c
    };
    node_set_driver_link(c->o.node, &c->drivers_link);
}

void bound_free(struct cluster *c)
{
    json_decref(c->in_use);
    json_decref(c->attached);
}
