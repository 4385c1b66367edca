/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/csi_volumes.h"

#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/volume/csi_object.h"
#include "agent/pod/volume/csi_usage.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "volumes/csi/csi.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RETRY_FIRST_MS 500 /* kubelet's back-off of volume operations */
#define RETRY_MAX_MS 122000
/* requiresRepublish: kubelet publishes again when it syncs the pod: as its status changes, then each 60 to 90
 * s. */
#define REPUBLISH_FIRST_MS 500
#define REPUBLISH_MS 60000
#define REPUBLISH_JITTER_MS 30000

/* One inline volume. Its texts are copies: an edit may replace the pod's manifest while a driver is called.
 */
struct csi_vol {
    struct pod *pod;
    char *name; /* of the volume */
    enum { CSI_VOL_NONE, CSI_VOL_MOUNTING, CSI_VOL_READY } state;
    int64_t since_ns;
    char handle[CSI_HASHED_SIZE];
    struct csi_volume volume; /* while a set-up runs */
    struct arena memory;      /* of `volume` */
    struct api_config *secret;
    struct csi_mount mount;
    bool has_usage; /* the driver can be asked how full it is */
    struct csi_vol_usage usage;
    uint64_t backoff_ms;
    struct boot_time retry_at; /* of a set-up, or of the next one of a volume that is published again */
    bool republishes;          /* requiresRepublish: while it is ready, the driver is asked again and again */
    bool republished;          /* this was done at least once */
    char error[512];
};

static struct csi_vol *csi_vol_at(const struct pod *p, size_t i)
{
    return &volumes_of(p)->csi.v[i];
}

static void set_state(struct csi_vol *v, int state)
{
    v->state = state;
    v->since_ns = clock_wall_ns();
}

/* ---- the volumes of the pod ---- */

static bool is_csi(const struct pod *p, const struct api_volume *v)
{
    return v->kind == API_VOL_CSI && volumes_is_mounted(p, v->name);
}

static struct csi_vol *find(const struct pod *p, const char *name)
{
    for (size_t i = 0; i < volumes_of(p)->csi.n; i++)
        if (strcmp(csi_vol_at(p, i)->name, name) == 0)
            return csi_vol_at(p, i);
    return NULL;
}

/* All that the manifest names, at once: a container that is added later may mount one of them. The array
 * never moves, since operations are in it. */
static bool make_all(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;
    size_t n = 0;

    if (csi->v != NULL)
        return true;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++)
        n += p->api->spec.volumes[i].kind == API_VOL_CSI;
    if (n == 0)
        return true;
    csi->v = calloc(n, sizeof(csi->v[0]));
    csi->known = calloc(n, sizeof(csi->known[0]));
    if (csi->v == NULL || csi->known == NULL)
        goto no_memory;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        struct csi_vol *v = &csi->v[csi->n];
        char *driver;

        if (api->kind != API_VOL_CSI)
            continue;
        *v = (struct csi_vol){ .pod = p, .name = strdup(api->name), .since_ns = clock_wall_ns() };
        driver = strdup(api->csi_driver);
        csi_inline_handle(p->uid, api->name, v->handle);
        csi->known[csi->n++] = (struct csi_known){ v->name, driver, v->handle, true };
        if (v->name == NULL || driver == NULL)
            goto no_memory;
    }
    return true;
no_memory:
    csi_volumes_free(p);
    return false;
}

void csi_volumes_free(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;

    for (size_t i = 0; i < csi->n; i++) {
        arena_done(&csi->v[i].memory);
        api_config_unref(csi->v[i].secret);
        csi_usage_free(&csi->v[i].usage);
        free(csi->v[i].name);
        free((char *)csi->known[i].driver);
    }
    free(csi->v);
    free(csi->known);
    free(csi->remove);
    csi->remove = NULL;
    csi->v = NULL;
    csi->known = NULL;
    csi->n = 0;
}

/* ---- set-up ---- */

static void vol_failed(struct csi_vol *v, const struct err *e)
{
    struct pod *p = v->pod;
    char text[sizeof(v->error)];

    snprintf(text, sizeof(text), "MountVolume.SetUp failed for volume \"%s\" : %.430s", v->name, e->text);
    text_printable(text);
    v->backoff_ms = backoff_next_ms(v->backoff_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    v->retry_at = clock_boot_in_ms(v->backoff_ms);
    if (v->state != CSI_VOL_READY) /* one that is published again is mounted all the while */
        set_state(v, CSI_VOL_NONE);
    if (strcmp(v->error, text) != 0)
        log_warn("cannot set up a CSI volume", F_STR("pod", p->key), F_STR("volume", v->name), F_ERR(e));
    strcpy(v->error, text);
    pod_event(p, NULL, true, "FailedMount", "%s", text);
    pod_wake_at(p, v->retry_at, "a CSI volume is tried again");
}

/* It may still come: no event, and the volume is tried again soon. */
static void vol_waits(struct csi_vol *v, const char *why)
{
    snprintf(v->error, sizeof(v->error), "%.500s", why);
    v->retry_at = pod_new_until(v->pod);
    pod_wake_at(v->pod, v->retry_at, "a CSI volume is tried again");
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

static void on_mounted(struct op *op, const struct err *result)
{
    struct csi_vol *v = op->owner;

    arena_done(&v->memory);
    api_config_unref(take_ptr(&v->secret));
    if (result->code == ERR_OK) {
        v->error[0] = '\0';
        v->backoff_ms = 0;
        v->has_usage = csi_can(csi_mount_caps(&v->mount), CSI_CAN_STATS);
        v->republished = v->state == CSI_VOL_READY;
        if (!v->republished)
            set_state(v, CSI_VOL_READY);
        plan_republish(v);
    } else if (v->mount.op.why.code == ERR_CANCELLED) {
        if (v->state != CSI_VOL_READY)
            set_state(v, CSI_VOL_NONE);
    } else {
        vol_failed(v, result);
    }
    pod_wake(v->pod, "a CSI volume was tried");
}

static bool copy_attributes(struct csi_vol *v, const struct api_kvs *from)
{
    struct csi_pair *pairs = arena_alloc(&v->memory, (from->n + 1) * sizeof(pairs[0]));

    if (pairs == NULL)
        return false;
    for (size_t i = 0; i < from->n; i++) {
        pairs[i].key = arena_strdup(&v->memory, from->v[i].key);
        pairs[i].value = arena_strdup(&v->memory, from->v[i].value);
        if (pairs[i].key == NULL || pairs[i].value == NULL)
            return false;
    }
    v->volume.attributes = (struct csi_pairs){ pairs, from->n };
    return true;
}

/* The values stay in the Secret, of which a reference is held. */
static enum err_code use_secret(struct csi_vol *v, const struct api_config *secret, struct err *e)
{
    struct csi_pair *pairs = arena_alloc(&v->memory, (secret->n_data + 1) * sizeof(pairs[0]));

    if (pairs == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < secret->n_data; i++) {
        const struct api_datum *d = &secret->data[i];

        if (!utf8_is_valid(d->data, d->size) || memchr(d->data, '\0', d->size) != NULL)
            return err_set(e, ERR_INVALID, "the value of %.100s in secret \"%s\" is no text, as drivers need",
                           d->key, secret->meta.name);
        pairs[i] = (struct csi_pair){ d->key, d->data };
    }
    v->volume.publish_secrets = (struct csi_pairs){ pairs, secret->n_data };
    v->secret = api_config_ref((struct api_config *)secret);
    return ERR_OK;
}

static enum err_code find_secret(struct csi_vol *v, const char *name, struct err *e)
{
    const struct pod *p = v->pod;
    const char *namespace_ = p->api->meta.namespace;
    const struct api_config *secret;

    if (name == NULL || name[0] == '\0')
        return ERR_OK;
    secret = src_store_config(p->node->o.store, p->api->origin, API_SECRET, namespace_, name);
    if (secret != NULL)
        return use_secret(v, secret, e);
    ERR_IGNORE(pod_lacks_config(p, API_SECRET, name, false, e));
    return err_wrap(
        e,
        "fetching NodePublishSecretRef %s/%s failed: kubernetes.io/csi: failed to find the secret "
        "%s in the namespace %s with error",
        namespace_, name, name, namespace_);
}

static enum err_code find_object(const struct pod *p, const char *driver, struct csi_object *ret,
                                 struct err *e)
{
    const struct api_generic *g =
        src_store_generic(p->node->o.store, p->api->origin, API_KIND_CSI_DRIVER, NULL, driver);

    if (g != NULL && csi_object_read(g, ret, e) != ERR_OK)
        return e->code;
    if (g == NULL && pod_is_new(p))
        return err_set(e, ERR_PRECONDITION, "CSIDriver \"%s\" is not known yet", driver);
    return csi_object_allows_inline(g != NULL ? ret : NULL, driver, e);
}

static enum err_code describe(struct csi_vol *v, const struct api_volume *api, struct err *e)
{
    const struct pod *p = v->pod;
    const struct api_pod_security *s = &p->api->spec.security;
    const char *account = p->api->spec.service_account_name;
    struct csi_object object = { 0 };
    struct arena *m = &v->memory;

    if (find_object(p, api->csi_driver, &object, e) != ERR_OK)
        return e->code;
    v->republishes = object.republish;
    v->volume = (struct csi_volume){
        .driver = arena_strdup(m, api->csi_driver),
        .handle = v->handle,
        .spec_name = v->name,
        .ephemeral = true,
        .read_only = api->csi_read_only,
        .fs_type = arena_strdup(m, api->csi_fs_type),
        .pod_uid = p->uid,
        .pod_name = arena_strdup(m, p->api->meta.name),
        .pod_namespace = arena_strdup(m, p->api->meta.namespace),
        .service_account = arena_strdup(m, account != NULL && account[0] != '\0' ? account : "default"),
        .pod_info = object.pod_info,
        .fs_group = s->has_fs_group ? s->fs_group : -1,
        .group_if_wrong = str_eq(s->fs_group_change_policy, "OnRootMismatch"),
        .group_policy = object.group_policy,
    };
    if (v->volume.driver == NULL || v->volume.pod_name == NULL || v->volume.pod_namespace == NULL ||
        v->volume.service_account == NULL || !copy_attributes(v, &api->csi_attributes))
        return err_nomem(e);
    return find_secret(v, api->csi_secret, e);
}

static void set_up(struct csi_vol *v, const struct api_volume *api)
{
    struct pod *p = v->pod;
    struct err e = { 0 };

    if (p->node->csi == NULL)
        err_set(&e, ERR_UNAVAILABLE, "CSI drivers cannot be served");
    else
        ERR_IGNORE(describe(v, api, &e));
    if (e.code == ERR_OK) {
        if (v->state != CSI_VOL_READY)
            set_state(v, CSI_VOL_MOUNTING);
        csi_mount_start(&v->mount, p->node->csi, &v->volume, on_mounted, v);
        return;
    }
    arena_done(&v->memory);
    api_config_unref(take_ptr(&v->secret));
    if (e.code == ERR_PRECONDITION && pod_is_new(p))
        vol_waits(v, e.text);
    else
        vol_failed(v, &e);
}

void csi_volumes_step(struct pod *p)
{
    if (!make_all(p)) {
        pod_wake_at(p, clock_boot_in_ms(RETRY_FIRST_MS), "memory for CSI volumes");
        return;
    }
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        struct csi_vol *v = is_csi(p, api) ? find(p, api->name) : NULL;

        if (v != NULL && v->state == CSI_VOL_READY && v->has_usage && p->node->csi != NULL)
            csi_usage_step(&v->usage, p, v->name, api->csi_driver, v->handle);
        if (v == NULL || op_live(&v->mount.op) || (v->state == CSI_VOL_READY && !v->republishes))
            continue;
        if (clock_boot_is_due(v->retry_at))
            set_up(v, api);
        else
            pod_wake_at(p, v->retry_at, "a CSI volume is tried again");
    }
}

bool csi_volumes_ready(const struct pod *p)
{
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        const struct csi_vol *v = is_csi(p, api) ? find(p, api->name) : NULL;

        if (is_csi(p, api) && (v == NULL || v->state != CSI_VOL_READY))
            return false;
    }
    return true;
}

/* ---- removal ---- */

static bool is_removing(const struct pod *p)
{
    const struct csi_remove *r = volumes_of(p)->csi.remove;

    return r != NULL && op_live(&r->op);
}

static void removal_failed(struct pod *p, const struct err *why)
{
    struct pod_csi *csi = &volumes_of(p)->csi;

    if (strcmp(csi->error, why->text) != 0) {
        log_warn("cannot remove a pod's CSI volumes; will retry", F_STR("pod", p->key), F_ERR(why));
        pod_event(p, NULL, true, "FailedUnMount", "%s", why->text);
    }
    snprintf(csi->error, sizeof(csi->error), "%s", why->text);
    csi->backoff_ms = backoff_next_ms(csi->backoff_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    csi->retry_at = clock_boot_in_ms(csi->backoff_ms);
}

static void on_csi_removed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct pod_csi *csi = &volumes_of(p)->csi;

    if (result->code == ERR_OK) {
        csi->removed = true;
        csi->error[0] = '\0';
        csi->backoff_ms = 0;
    } else if (csi->remove->op.why.code != ERR_CANCELLED) {
        removal_failed(p, result);
    }
    pod_wake(p, "CSI volumes were removed");
}

static bool cancel_mounts(struct pod *p)
{
    bool some = false;

    for (size_t i = 0; i < volumes_of(p)->csi.n; i++) {
        struct csi_vol *v = csi_vol_at(p, i);

        if (op_live(&v->mount.op) || csi_usage_busy(&v->usage))
            some = true;
        if (op_live(&v->mount.op))
            op_cancel(&v->mount.op);
        csi_usage_cancel(&v->usage);
    }
    return some;
}

bool csi_volumes_teardown_step(struct pod *p, bool *ret_kept)
{
    struct pod_csi *csi = &volumes_of(p)->csi;
    struct err e = { 0 };

    *ret_kept = false;
    if (csi->removed || p->node->csi == NULL)
        return true;
    if (cancel_mounts(p) || is_removing(p))
        return false;
    if (csi->error[0] == '\0' && presence_is_absent(csi_look(p->node->csi, p->uid, &e))) {
        csi->removed = true;
        return true;
    }
    if (csi->error[0] != '\0' && p->node->draining) { /* tried once; the next start of the agent goes on */
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
    if (csi->remove == NULL || !make_all(p)) { /* lost files vol_data.json could not be made up for */
        pod_wake_at(p, clock_boot_in_ms(RETRY_FIRST_MS), "memory for CSI volumes");
        return false;
    }
    csi_remove_start(csi->remove, p->node->csi, p->uid, csi->known, csi->n, on_csi_removed, p);
    return false;
}

/* ---- of the room ---- */

bool csi_volumes_busy(const struct pod *p)
{
    for (size_t i = 0; i < volumes_of(p)->csi.n; i++)
        if (op_live(&csi_vol_at(p, i)->mount.op) || csi_usage_busy(&csi_vol_at(p, i)->usage))
            return true;
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

void csi_volumes_retry(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;
    bool waits = csi->error[0] != '\0';

    csi->retry_at = CLOCK_BOOT_NONE;
    for (size_t i = 0; i < csi->n; i++) {
        struct csi_vol *v = csi_vol_at(p, i);

        if (v->state == CSI_VOL_NONE) {
            waits = true;
            v->retry_at = CLOCK_BOOT_NONE;
        }
    }
    if (waits)
        pod_wake(p, "a CSI driver or what its volumes need changed");
}

bool csi_volumes_use_secret(const struct api_pod *api, const char *name)
{
    for (size_t i = 0; i < api->spec.n_volumes; i++)
        if (api->spec.volumes[i].kind == API_VOL_CSI && str_eq(api->spec.volumes[i].csi_secret, name))
            return true;
    return false;
}

bool volumes_driver_usage(const struct pod *p, const char *volume, struct csi_usage *ret, int64_t *ret_at_ns)
{
    const struct csi_vol *v = find(p, volume);

    if (v == NULL || !v->usage.known)
        return false;
    *ret = v->usage.last;
    *ret_at_ns = v->usage.at_ns;
    return true;
}

void csi_volumes_explain(const struct pod *p, json_t *steps)
{
    const struct pod_csi *csi = &volumes_of(p)->csi;

    for (size_t i = 0; i < csi->n; i++) {
        const struct csi_vol *v = csi_vol_at(p, i);
        bool bad = v->error[0] != '\0', running = v->state == CSI_VOL_MOUNTING;
        char text[700];

        if (csi->removed)
            continue;
        snprintf(text, sizeof(text), "volume \"%s\" of driver %s: %s%s", v->name, csi->known[i].driver,
                 bad                         ? v->error
                 : v->state == CSI_VOL_READY ? "ready"
                 : running                   ? "the driver is asked"
                                             : "waiting",
                 bad && running ? " (the last try); the driver is asked again" : "");
        explain_step(steps, "CSI volume",
                     running                     ? "running"
                     : v->state == CSI_VOL_READY ? "done"
                     : bad                       ? "failed"
                                                 : "waiting",
                     v->since_ns, text, clock_boot_to_wall_ns(v->retry_at));
    }
    if (csi->error[0] != '\0')
        explain_step(steps, "removal of CSI volumes", is_removing(p) ? "running" : "failed",
                     volumes_of(p)->vols_since_ns, csi->error, clock_boot_to_wall_ns(csi->retry_at));
}

/* ---- the node's drivers ---- */

static void on_driver(const char *driver, bool here, void *arg)
{
    struct node *n = arg;

    (void)driver;
    if (n->cluster != NULL && n->cluster->drivers_changed != NULL)
        n->cluster->drivers_changed(n->cluster->arg);
    if (!here)
        return;
    pods_each (n, p)
        csi_volumes_retry(p);
    sweep_hurry(n);
}

static enum err_code let_go(const char *pod_uid, void *arg, struct err *e)
{
    const struct node *n = arg;

    return vol_sub_paths_unmount(n->o.volumes, pod_uid, e);
}

void csi_volumes_open(struct node *n)
{
    const struct csi_options o = {
        .loop = n->o.loop,
        .root_dir = n->o.root_dir,
        .node_name = n->o.node_name,
        .cgroup_fd = n->o.cgroups != NULL ? cg_leaf_fd(n->o.cgroups, CG_LEAF_OPS) : -1,
        .cgroup_procs = n->o.cgroups != NULL ? cg_leaf_procs(n->o.cgroups, CG_LEAF_OPS) : NULL,
        .changed = on_driver,
        .let_go = let_go,
        .arg = n,
    };
    struct err e = { 0 };

    if (n->o.root_dir == NULL || n->o.node_name == NULL)
        return;
    if (csi_open(&n->csi, &o, &e) != ERR_OK)
        log_error("CSI drivers cannot be served", F_ERR(&e));
}
