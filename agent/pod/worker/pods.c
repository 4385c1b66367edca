/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of pods, and how the store's objects become pods: new ones, edits in place, edits that need a new
 * pod, and removals.
 */
#include "agent/pod/worker/pods.h"
#include "agent/api/kept_meta.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/image/images.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/project/project.h"
#include "agent/pod/record/record.h"
#include "agent/pod/status/status.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/volume/volumes.h"
#include "agent/pod/worker/internal.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <string.h>

#define LEFT_OUT_RETRY_MS 5000 /* after a failed allocation; otherwise retried when a pod is gone */

/* ---- building ---- */

static enum ctr_kind pods_kind_of(const struct api_container *c, bool init)
{
    if (!init)
        return CTR_REGULAR;
    return c->restart_policy == API_RESTART_ALWAYS ? CTR_SIDECAR : CTR_INIT;
}

static bool pods_has_ctr(const struct pod *p, const char *name)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (strcmp(p->ctrs[i]->spec->name, name) == 0)
            return true;
    return false;
}

/* As many containers as the pod can ever have. */
static size_t pods_max_ctrs(const struct api_pod_spec *s)
{
    size_t later =
        s->n_ephemeral_containers > POD_EPHEMERAL_MAX ? s->n_ephemeral_containers : POD_EPHEMERAL_MAX;

    return s->n_init_containers + s->n_containers + later;
}

static enum err_code pods_open_ctr(struct pod *p, const struct api_container *spec, enum ctr_kind kind,
                                   struct err *e)
{
    struct ctr *c = rooms_add_ctr(p);

    if (c == NULL)
        return err_nomem(e);
    c->spec = spec;
    c->kind = kind;
    c->state_began = clock_boot();
    return ERR_OK;
}

static bool pods_mounts_more(const struct pod *p, const struct api_container *s)
{
    for (size_t i = 0; i < s->n_mounts; i++)
        if (!volumes_is_mounted(p, s->mounts[i].name))
            return true;
    for (size_t i = 0; i < s->n_devices; i++)
        if (!volumes_is_mounted(p, s->devices[i].name))
            return true;
    return false;
}

/* Those of p->api that the pod does not have yet. */
static enum err_code pods_add_ephemeral(struct pod *p, struct err *e)
{
    const struct api_pod_spec *s = &p->api->spec;

    for (size_t i = 0; i < s->n_ephemeral_containers; i++) {
        const struct api_container *c = &s->ephemeral_containers[i];
        bool more;

        if (pods_has_ctr(p, c->name))
            continue;
        more = pods_mounts_more(p, c); /* than the containers before it */
        if (pods_open_ctr(p, c, CTR_EPHEMERAL, e) != ERR_OK)
            return e->code;
        if (more)
            volumes_more(p);
        log_info("ephemeral container added", F_STR("pod", p->key), F_STR("podUID", p->uid),
                 F_STR("containerName", c->name));
    }
    return ERR_OK;
}

/* Fills in the pod's containers and images from p->api. */
static enum err_code pods_build(struct pod *p, struct err *e)
{
    const struct api_pod_spec *s = &p->api->spec;

    for (size_t i = 0; i < s->n_init_containers + s->n_containers; i++) {
        const struct api_container *c = api_container_at(s, i);

        if (pods_open_ctr(p, c, pods_kind_of(c, i < s->n_init_containers), e) != ERR_OK)
            return e->code;
    }
    return pods_add_ephemeral(p, e) == ERR_OK ? images_build(p, e) : e->code;
}

/* Of another version of its manifest; NULL: it is not there. */
static const struct api_container *pods_spec_in(const struct api_pod *api, const struct ctr *c)
{
    return c->kind == CTR_EPHEMERAL ? api_ephemeral_find(&api->spec, c->spec->name)
                                    : api_container_at(&api->spec, c->index);
}

static void pod_free(struct pod *p);

struct pod *pods_new(struct node *n, struct api_pod *api, const char *uid)
{
    struct pod *p;
    struct err e = { 0 };

    if (n->n_pods >= NODE_PODS_MAX) {
        log_error("too many pods in the manifests; ignoring one", F_STR("namespace", api->meta.namespace),
                  F_STR("pod", api->meta.name), F_U64("allowed", NODE_PODS_MAX));
        return NULL;
    }
    p = rooms_make_pod(n, pods_max_ctrs(&api->spec));
    if (p == NULL)
        return NULL;
    p->api = api_pod_ref(api);
    pods_key(p->key, api->meta.namespace, api->meta.name);
    if (uid != NULL)
        snprintf(p->uid, sizeof(p->uid), "%s", uid);
    else
        id_random_uuid(p->uid);
    boot_timer_init(n->timers, &p->timer);
    p->created_ns = p->state_since_ns = clock_wall_ns();
    p->seen_at = p->state_began = clock_boot();
    rooms_init_pod(p);
    start_times_open(p);
    p->priority = pods_priority(n, api);
    if (pods_build(p, &e) == ERR_OK)
        HASH_ADD_STR(n->pods, key, p);
    if (e.code != ERR_OK || p->hh.tbl == NULL) {
        log_error("cannot add pod", F_STR("pod", p->key), F_STR("err", "out of memory"));
        pod_free(p);
        return NULL;
    }
    n->n_pods++;
    return p;
}

/* ---- going ---- */

static void pods_on_closed(struct boot_timer *timer)
{
    rooms_free_memory(container_of(timer, struct pod, timer));
}

static void pod_free(struct pod *p)
{
    rooms_free_pod(p);
    free(p->message);
    free(p->measured);
    api_pod_unref(p->api);
    api_pod_unref(p->successor);
    p->freed = true;
    p->n_ctrs = 0;
    boot_timer_close(&p->timer, pods_on_closed);
}

void pods_free(struct pod *p)
{
    HASH_DEL(p->node->pods, p);
    p->node->n_pods--;
    pod_free(p);
}

static void pods_remove_logs(const struct pod *p)
{
    char folder[512];

    snprintf(folder, sizeof(folder), "%s_%s_%s", p->api->meta.namespace, p->api->meta.name, p->uid);
    sweep_logs(p->node, folder);
}

static void take_left_out(struct node *n);

static void on_left_timer(uv_timer_t *timer)
{
    take_left_out(timer->data);
}

static void leave_out(struct node *n, const struct api_pod *api, const char *why)
{
    struct worker_node *part = worker_node(n);

    snprintf(part->left_out, sizeof(part->left_out), "%.63s/%.100s: %.80s", api->meta.namespace,
             api->meta.name, why);
}

static bool uid_taken(struct node *n, const struct pod *but)
{
    pods_each (n, p)
        if (p != but && strcmp(p->uid, but->uid) == 0)
            return true;
    return false;
}

/* Adds a pod of the store that the table lacks. */
static void take_on(struct node *n, struct api_pod *api)
{
    bool room = n->n_pods < NODE_PODS_MAX;
    struct pod *p = pods_new(n, api, api->meta.uid);

    if (p == NULL) {
        leave_out(n, api, room ? "out of memory" : "too many pods in the manifests");
        if (room && !n->closing)
            uv_timer_start(&worker_node(n)->left_timer, on_left_timer, LEFT_OUT_RETRY_MS, 0);
        return;
    }
    if (uid_taken(n, p)) {
        log_error("two pods have the same metadata.uid; the second one waits for the end of the first",
                  F_STR("pod", p->key), F_STR("podUID", p->uid));
        leave_out(n, api, "another pod has its metadata.uid");
        pods_free(p);
        return;
    }
    p->wanted = true;
    p->record_dirty = true;
    log_info("pod added", F_STR("pod", p->key), F_STR("podUID", p->uid));
    pod_show(p, "ADDED");
    pod_wake(p, "added");
}

/* The pod that an evicted one becomes must not bring the same pressure again and again. */
static void follow(struct node *n, const struct api_pod *api, unsigned disruptions)
{
    struct pod *p = disruptions > 0 ? pods_find(n, api->meta.namespace, api->meta.name) : NULL;

    if (p != NULL)
        p->disruptions = disruptions;
}

void pods_gone(struct pod *p)
{
    struct node *n = p->node;
    struct api_pod *next = take_ptr(&p->successor);
    unsigned disruptions = p->disrupted ? p->disruptions : 0;

    log_info("pod gone", F_STR("pod", p->key), F_STR("podUID", p->uid));
    pods_remove_logs(p);
    project_gone(n, p->uid);
    devices_gone(p);
    record_remove(p);
    pod_show(p, "DELETED");
    pods_free(p);
    if (next != NULL) {
        take_on(n, next);
        follow(n, next, disruptions);
        api_pod_unref(next);
    }
    take_left_out(n);
    pods_wake_pending(n, "a pod is gone");
    node_check_idle(n);
}

/* ---- the store's wishes ---- */

/* Applies the new manifest to the running pod. */
void pods_apply(struct pod *p, struct api_pod *api)
{
    struct api_pod *old = p->api, *taken = resize_take(p, api);
    size_t before = p->n_ctrs;
    struct err e = { 0 };

    if (taken == NULL)
        return;
    p->api = api = taken;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        const struct api_container *was = c->spec;
        c->spec = pods_spec_in(api, c);
        if (strcmp(was->image, c->spec->image) != 0)
            ctr_image_edited(c);
    }
    if (pods_add_ephemeral(p, &e) != ERR_OK)
        log_error("cannot add an ephemeral container", F_STR("pod", p->key), F_ERR(&e));
    if (p->n_ctrs > before)
        local_storage_forget(p); /* measured anew, with the files of the new ones */
    e = (struct err){ 0 };
    if (images_build(p, &e) != ERR_OK)
        log_error("cannot determine a pod's images; the pod waits until its manifest changes",
                  F_STR("pod", p->key), F_ERR(&e));
    p->priority = pods_priority(p->node, api);
    live_sub_path_due(p); /* the annotation that enables it may be new */
    volumes_stale(p);     /* downward API volumes may show labels and annotations */
    p->record_dirty = true;
    if (p->cgroup_made && !resize_is_under_way(p) && resize_pod_cgroup(p, &e) != ERR_OK)
        log_warn("cannot update the pod's cgroup", F_STR("pod", p->key), F_ERR(&e));
    resources_qos_update(p->node);
    api_pod_unref(old);
    log_info("manifest edit applied in place", F_STR("pod", p->key), F_STR("podUID", p->uid));
}

/* Call only if the number of containers is equal. */
static bool has_other_image(const struct pod *p, const struct api_pod *api)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct api_container *c = pods_spec_in(api, p->ctrs[i]);
        if (c != NULL && strcmp(p->ctrs[i]->spec->image, c->image) != 0)
            return true;
    }
    return false;
}

/* Tells whether an edit needs a new pod; `why` names the fields that differ. */
static bool needs_new_pod(const struct pod *p, const struct api_pod *api, char *why, size_t size)
{
    bool over = p->state == POD_TERMINATING || p->state == POD_TERMINATED;

    if (p->api->origin != api->origin)
        snprintf(why, size, "its source");
    else if (api->meta.uid != NULL && strcmp(api->meta.uid, p->uid) != 0)
        snprintf(why, size, "metadata.uid");
    else if (p->rejected)
        snprintf(why, size, "it was rejected");
    else if (api_pod_edit_needs_restart(p->api, api, why, size))
        return true;
    else if (over && has_other_image(p, api)) /* its containers never start again */
        snprintf(why, size, "image, of a pod that has ended");
    else
        return false;
    return true;
}

/* Another one of the other source has this name, and is not about to go. */
static bool name_is_taken(struct node *n, const struct pod *p, const struct api_pod *api)
{
    if (p->api->origin == api->origin || !p->wanted)
        return false;
    log_error("a pod of the cluster and one of the manifest folder have the same name; the first one is used",
              F_STR("pod", p->key), F_STR("podUID", p->uid),
              F_STR("ignored", api->origin == API_FROM_SERVER ? "the cluster's" : "the folder's"));
    leave_out(n, api, "a pod of another source has its name");
    return true;
}

/* The pod has not begun, or has ended: nothing that runs is concerned. */
static void show_manifest(struct pod *p, struct api_pod *api)
{
    struct api_pod *old = p->api;
    struct err e = { 0 };

    resize_forget(p);
    p->api = api_pod_ref(api);
    for (size_t i = 0; i < p->n_ctrs; i++)
        p->ctrs[i]->spec = pods_spec_in(api, p->ctrs[i]);
    if (p->state != POD_PENDING)
        images_clear(p);
    else if (pods_add_ephemeral(p, &e) != ERR_OK || images_build(p, &e) != ERR_OK)
        log_error("cannot determine a pod's containers and images; the pod waits until its manifest changes",
                  F_STR("pod", p->key), F_ERR(&e));
    p->record_dirty = true;
    api_pod_unref(old);
}

/* Edits of a pod of the apiserver: never a new pod, unless the uid is another one. */
static void want_served(struct pod *p, struct api_pod *api)
{
    bool over = p->state == POD_TERMINATING || p->state == POD_TERMINATED;

    p->recovered = false;
    p->wanted = true;
    if (api->meta.uid == NULL || strcmp(api->meta.uid, p->uid) != 0) {
        log_info("another pod with the same name follows", F_STR("pod", p->key), F_STR("podUID", p->uid));
        api_pod_unref(p->successor);
        p->successor = api_pod_ref(api);
    } else {
        api_pod_unref(take_ptr(&p->successor));
        if (!served_takes_edit(p, api))
            ;
        else if (over || p->state == POD_PENDING)
            show_manifest(p, api);
        else
            pods_apply(p, api);
        served_deletion(p, api);
    }
    pod_wake(p, "the apiserver has another version");
}

enum err_code pods_debug(struct pod *p, json_t *container, struct err *e)
{
    scoped(api_pod_unref) struct api_pod *api = NULL;

    if (p->api->origin == API_FROM_SERVER)
        return err_set(e, ERR_PRECONDITION, "pod %s belongs to the cluster: use kubectl debug", p->key);
    if (p->state == POD_TERMINATING || p->state == POD_TERMINATED || !p->wanted)
        return err_set(e, ERR_PRECONDITION, "pod %s has ended, or is about to", p->key);
    if (p->n_ctrs == p->max_ctrs)
        return err_set(e, ERR_PRECONDITION, "pod %s already has %d ephemeral containers, the maximum", p->key,
                       POD_EPHEMERAL_MAX);
    if (api_pod_add_ephemeral(resize_desired(p), container, &api, e) != ERR_OK)
        return e->code;
    if (p->state == POD_PENDING)
        show_manifest(p, api);
    else
        pods_apply(p, api);
    pod_wake(p, "an ephemeral container is added");
    return ERR_OK;
}

/* A newer manifest with the ephemeral containers that the pod got; one that they do not fit makes a new pod
 * without them. NULL: out of memory. */
static struct api_pod *with_ephemeral(const struct pod *p, struct api_pod *api)
{
    struct api_pod *with = NULL;
    struct err e = { 0 };

    if (api_pod_keep_ephemeral(api, p->api, &with, &e) == ERR_INVALID)
        return api_pod_ref(api);
    if (with == NULL)
        log_error("cannot apply an edit", F_STR("pod", p->key), F_ERR(&e));
    return with;
}

/* The pod ends, or has ended, because its manifest was removed or replaced: the same manifest is a new pod.
 */
static bool ends_for_good(const struct pod *p)
{
    return !p->finishing &&
           (p->state == POD_TERMINATING || (p->state == POD_TERMINATED && p->deletion_ns != 0));
}

/* Called when the store has a new or changed pod. */
void pods_want(struct node *n, struct api_pod *api)
{
    struct pod *p = pods_find(n, api->meta.namespace, api->meta.name);
    scoped(api_pod_unref) struct api_pod *with = NULL;
    char why[256] = "";

    if (p == NULL) {
        take_on(n, api);
        return;
    }
    if (name_is_taken(n, p, api))
        return;
    if (p->api->origin == API_FROM_SERVER && api->origin == API_FROM_SERVER) {
        want_served(p, api);
        return;
    }
    if (ends_for_good(p) && !api_kept_meta_deleting(api->meta.kept)) { /* the new pod follows it */
        api_pod_unref(p->successor);
        p->successor = api_pod_ref(api);
        p->wanted = true;
        pod_wake(p, "manifest changed");
        return;
    }
    p->recovered = false;
    p->wanted = true;
    with = with_ephemeral(p, api);
    if (with == NULL)
        return;
    if (str_eq(resize_desired(p)->json, with->json)) {
        api_pod_unref(take_ptr(&p->successor));
        pod_wake(p, "manifest changed");
        return;
    }
    if (needs_new_pod(p, with, why, sizeof(why))) {
        log_info("manifest edit needs a new pod", F_STR("pod", p->key), F_STR("fields", why));
        api_pod_unref(p->successor);
        p->successor = api_pod_ref(api);
    } else if (p->state == POD_TERMINATING || p->state == POD_TERMINATED) {
        show_manifest(p, with);
    } else {
        pods_apply(p, with);
    }
    pod_wake(p, "manifest changed");
}

static void take_if_missing(const struct api_object *o, void *arg)
{
    if (pods_find(arg, o->pod->meta.namespace, o->pod->meta.name) == NULL)
        take_on(arg, o->pod);
}

/* Adds pods of the store that were left out, if there is room now. */
static void take_left_out(struct node *n)
{
    struct worker_node *part = worker_node(n);

    if (part->left_out[0] == '\0' || n->closing || n->draining)
        return;
    part->left_out[0] = '\0';
    src_store_each(n->o.store, API_KIND_POD, take_if_missing, n);
}

const char *pods_left_out(const struct node *n)
{
    const char *left_out = worker_node(n)->left_out;

    return left_out[0] != '\0' ? left_out : NULL;
}

void pods_unwant(struct node *n, const char *namespace_, const char *name)
{
    struct pod *p = pods_find(n, namespace_, name);

    if (p == NULL)
        return;
    p->wanted = false;
    api_pod_unref(take_ptr(&p->successor));
    pod_wake(p, "manifest is gone");
}

void pods_lost(struct node *n, const struct api_pod *api)
{
    struct pod *p = pods_find(n, api->meta.namespace, api->meta.name);

    if (p == NULL)
        return;
    if (p->api->origin == api->origin)
        pods_unwant(n, api->meta.namespace, api->meta.name);
    else if (p->successor != NULL && p->successor->origin == api->origin)
        api_pod_unref(take_ptr(&p->successor));
}

/* A ConfigMap or Secret changed: update volumes at once, and retry containers that wait for it. */
void pods_config_changed(struct node *n, enum api_origin origin, enum api_config_kind kind,
                         const char *namespace_, const char *name)
{
    pods_each (n, p) {
        if (p->api->origin != origin || strcmp(p->api->meta.namespace, namespace_) != 0 ||
            p->state == POD_TERMINATED)
            continue;
        volumes_config_changed(p, kind, name);
        if (kind == API_SECRET)
            images_secret_changed(p, name);
        containers_config_changed(p, kind, name);
        pod_wake(p, "ConfigMap or Secret changed");
    }
}
