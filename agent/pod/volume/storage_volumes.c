/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/storage_volumes.h"

#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/storage_spec.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_MS 500 /* kubelet's back-off of volume operations */
#define RETRY_MAX_MS 122000
#define MOUNT_MS 125000 /* mount.nfs itself tries for 120 s */
#define REMOVE_MS 120000
#define PATIENCE_MS 10000 /* for an unmount, which writes what is not written yet */
#define PATIENCE_SHORT_MS 1000

struct storage_vol {
    struct pod *pod;
    char *name; /* of the pod's volume */
    enum storage_state { STORAGE_NONE, STORAGE_MOUNTING, STORAGE_READY } state;
    int64_t since_ns;
    struct proc_call call;
    uint64_t backoff_ms;
    struct boot_time retry_at;
    char shown[256]; /* the name in events */
    char error[800];
};

static struct pod_storage *storage_of(const struct pod *p)
{
    return &volumes_of(p)->storage;
}

static bool may_be_mounted(const struct api_volume *v)
{
    return v->kind == API_VOL_STORAGE || v->kind == API_VOL_CLAIM;
}

static void set_state(struct storage_vol *v, enum storage_state state)
{
    v->state = state;
    v->since_ns = clock_wall_ns();
}

static struct storage_vol *find(const struct pod *p, const char *name)
{
    for (size_t i = 0; i < storage_of(p)->n; i++)
        if (strcmp(storage_of(p)->v[i].name, name) == 0)
            return &storage_of(p)->v[i];
    return NULL;
}

/* All that the manifest names, at once: the array never moves, since operations are in it. */
static bool make_all(struct pod *p)
{
    struct pod_storage *s = storage_of(p);
    size_t n = 0;

    if (s->v != NULL)
        return true;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++)
        n += may_be_mounted(&p->api->spec.volumes[i]);
    if (n == 0)
        return true;
    s->v = calloc(n, sizeof(s->v[0]));
    if (s->v == NULL)
        return false;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        struct storage_vol *v = &s->v[s->n];

        if (!may_be_mounted(&p->api->spec.volumes[i]))
            continue;
        *v = (struct storage_vol){ .pod = p, .name = strdup(p->api->spec.volumes[i].name) };
        s->n++;
        if (v->name == NULL) {
            storage_volumes_free(p);
            return false;
        }
    }
    return true;
}

void storage_volumes_free(struct pod *p)
{
    struct pod_storage *s = storage_of(p);

    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].name);
    free(s->v);
    s->v = NULL;
    s->n = 0;
}

/* ---- set-up ---- */

/* kubelet's words: a driver that is not there is no plugin. */
static void describe_failure(const struct storage_vol *v, const struct err *e, char ret[800])
{
    if (e->code == ERR_NOT_FOUND && str_starts(e->text, "there is no "))
        snprintf(
            ret, 800,
            "Unable to attach or mount volumes: unmounted volumes=[%.63s], unattached volumes=[], failed to "
            "process volumes=[%.63s]: failed to get Plugin from volumeSpec for volume \"%.100s\" err=no "
            "volume plugin matched: %.150s",
            v->name, v->name, v->shown, e->text);
    else
        snprintf(ret, 800, "MountVolume.SetUp failed for volume \"%.200s\" : %.250s", v->shown, e->text);
    text_printable(ret);
}

static void vol_failed(struct storage_vol *v, const struct err *e)
{
    struct pod *p = v->pod;
    char text[sizeof(v->error)];

    describe_failure(v, e, text);
    v->backoff_ms = backoff_next_ms(v->backoff_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    v->retry_at = clock_boot_in_ms(v->backoff_ms);
    set_state(v, STORAGE_NONE);
    if (strcmp(v->error, text) != 0)
        log_warn("cannot mount a volume", F_STR("pod", p->key), F_STR("volume", v->name), F_ERR(e));
    strcpy(v->error, text);
    pod_event(p, NULL, true, "FailedMount", "%s", text);
    pod_wake_at(p, v->retry_at, "a volume is tried again");
}

static void vol_waits(struct storage_vol *v, const struct err *why, struct boot_time until)
{
    snprintf(v->error, sizeof(v->error), "%.500s", why->text);
    v->retry_at = until;
    pod_wake_at(v->pod, until, "a volume is tried again");
}

static enum err_code mount_it(const void *arg, struct buf *out, struct err *e)
{
    const struct storage_job *job = arg;

    if ((job->is_flex ? flex_mount(&job->flex, e) : storage_mount(&job->spec, e)) != ERR_OK)
        buf_adds(out, e->text); /* the bare text, for an event */
    return e->code;
}

static struct err bare(const struct proc_call *call, const struct err *result)
{
    struct err e = *result;

    if (e.code != ERR_OK && call->out.n > 0)
        snprintf(e.text, sizeof(e.text), "%s", call->out.p);
    return e;
}

static void on_mounted(struct op *op, const struct err *result)
{
    struct storage_vol *v = op->owner;

    if (result->code == ERR_OK) {
        v->error[0] = '\0';
        v->backoff_ms = 0;
        set_state(v, STORAGE_READY);
    } else if (result->code == ERR_CANCELLED) {
        set_state(v, STORAGE_NONE);
    } else {
        const struct err e = bare(&v->call, result);

        vol_failed(v, &e);
    }
    pod_wake(v->pod, "a volume was tried");
}

static void set_up(struct storage_vol *v, const struct storage_source *source)
{
    struct pod *p = v->pod;
    struct arena memory = { 0 };
    struct storage_job job;
    struct err e = { 0 };

    snprintf(v->shown, sizeof(v->shown), "%.253s", source->name);
    if (storage_job_make(p, source, volume_node(p->node)->flex, &memory, &job, &e) == ERR_OK) {
        const struct proc_call_spec call = {
            .name = "mount a volume",
            .subject = p->key,
            .fn = mount_it,
            .arg = &job,
            .out_max = 1024,
            .deadline_ms = MOUNT_MS,
            CG_OPS(p->node->o.cgroups),
        };

        set_state(v, STORAGE_MOUNTING);
        proc_call_start(&v->call, &call, p->node->o.loop, on_mounted, v);
    } else if (e.code == ERR_UNAVAILABLE) {
        vol_waits(v, &e, clock_boot_in_ms(RETRY_MAX_MS)); /* the driver's answer comes sooner */
    } else if (e.code == ERR_PRECONDITION && pod_is_new(p)) {
        vol_waits(v, &e, pod_new_until(p));
    } else {
        vol_failed(v, &e);
    }
    arena_done(&memory);
}

void storage_volumes_step(struct pod *p)
{
    struct storage_source source;

    if (!make_all(p)) {
        pod_wake_at(p, clock_boot_in_ms(RETRY_FIRST_MS), "memory for volumes");
        return;
    }
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        struct storage_vol *v =
            may_be_mounted(api) && volumes_is_mounted(p, api->name) ? find(p, api->name) : NULL;

        if (v == NULL || v->state != STORAGE_NONE || !storage_source_of(p, api, &source))
            continue;
        if (clock_boot_is_due(v->retry_at))
            set_up(v, &source);
        else
            pod_wake_at(p, v->retry_at, "a volume is tried again");
    }
}

bool storage_volumes_ready(const struct pod *p)
{
    struct storage_source source;

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        const struct storage_vol *v;

        if (!may_be_mounted(api) || !volumes_is_mounted(p, api->name) || !storage_source_of(p, api, &source))
            continue;
        v = find(p, api->name);
        if (v == NULL || v->state != STORAGE_READY)
            return false;
    }
    return true;
}

/* ---- removal ---- */

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
                                   .patience_ms = patience(p) };

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

    if (strcmp(s->error, why->text) != 0) {
        log_warn("cannot unmount a pod's volumes; will retry", F_STR("pod", p->key), F_ERR(why));
        pod_event(p, NULL, true, "FailedUnMount", "%s", why->text);
    }
    snprintf(s->error, sizeof(s->error), "%s", why->text);
    s->backoff_ms = backoff_next_ms(s->backoff_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    s->retry_at = clock_boot_in_ms(s->backoff_ms);
}

static void on_storage_removed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct pod_storage *s = storage_of(p);

    if (result->code == ERR_OK) {
        s->removed = true;
        s->error[0] = '\0';
    } else if (result->code != ERR_CANCELLED) {
        const struct err e = bare(&s->removal, result);

        removal_failed(p, &e);
    }
    pod_wake(p, "volumes were unmounted");
}

static bool cancel_mounts(struct pod *p)
{
    bool some = false;

    for (size_t i = 0; i < storage_of(p)->n; i++)
        if (op_live(&storage_of(p)->v[i].call.op)) {
            op_cancel(&storage_of(p)->v[i].call.op);
            some = true;
        }
    return some;
}

struct asking {
    struct flex_drivers *drivers;
    bool waits;
};

/* A driver is asked what it can before anything else is asked of it. */
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
    if (cancel_mounts(p) || op_live(&s->removal.op))
        return false;
    if (s->error[0] != '\0' && p->node->draining) {
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
        pod_wake_at(p, clock_boot_in_ms(RETRY_FIRST_MS), "a FlexVolume driver is asked what it can");
        return false;
    }
    proc_call_start(&s->removal, &call, p->node->o.loop, on_storage_removed, p);
    return false;
}

/* ---- of the room ---- */

bool storage_volumes_busy(const struct pod *p)
{
    for (size_t i = 0; i < storage_of(p)->n; i++)
        if (op_live(&storage_of(p)->v[i].call.op))
            return true;
    return op_live(&storage_of(p)->removal.op);
}

void storage_volumes_cancel(struct pod *p)
{
    (void)cancel_mounts(p);
    if (op_live(&storage_of(p)->removal.op))
        op_cancel(&storage_of(p)->removal.op);
}

void storage_volumes_end(struct pod *p)
{
    storage_of(p)->retry_at = CLOCK_BOOT_NONE;
}

void storage_volumes_retry(struct pod *p)
{
    struct pod_storage *s = storage_of(p);
    bool waits = s->error[0] != '\0';

    s->retry_at = CLOCK_BOOT_NONE;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].state == STORAGE_NONE) {
            waits = true;
            s->v[i].retry_at = CLOCK_BOOT_NONE;
        }
    if (waits)
        pod_wake(p, "what volumes wait for changed");
}

bool storage_volumes_use_secret(const struct api_pod *api, const char *name)
{
    for (size_t i = 0; i < api->spec.n_volumes; i++)
        if (api->spec.volumes[i].kind == API_VOL_STORAGE &&
            str_eq(api->spec.volumes[i].storage->secret.name, name))
            return true;
    return false;
}

void storage_volumes_explain(const struct pod *p, json_t *steps)
{
    const struct pod_storage *s = storage_of(p);

    for (size_t i = 0; i < s->n; i++) {
        const struct storage_vol *v = &s->v[i];
        bool bad = v->error[0] != '\0', running = v->state == STORAGE_MOUNTING;
        char text[1000];

        if (s->removed || v->shown[0] == '\0')
            continue;
        snprintf(text, sizeof(text), "volume \"%s\": %s%s", v->name,
                 bad                         ? v->error
                 : v->state == STORAGE_READY ? "mounted"
                 : running                   ? "it is being mounted"
                                             : "waiting",
                 bad && running ? " (the last try); it is being mounted again" : "");
        explain_step(steps, "mount",
                     running                     ? "running"
                     : v->state == STORAGE_READY ? "done"
                     : bad                       ? "failed"
                                                 : "waiting",
                     v->since_ns, text, clock_boot_to_wall_ns(v->retry_at));
    }
    if (s->error[0] != '\0')
        explain_step(steps, "unmount", op_live(&s->removal.op) ? "running" : "failed",
                     volumes_of(p)->vols_since_ns, s->error, clock_boot_to_wall_ns(s->retry_at));
}

/* ---- the node's FlexVolume drivers ---- */

static void on_drivers(void *arg)
{
    struct node *n = arg;

    pods_each (n, p)
        storage_volumes_retry(p);
}

void storage_volumes_open(struct node *n)
{
    const struct flex_drivers_options o = {
        .loop = n->o.loop,
        .dir = n->o.volume_plugin_dir,
        .cgroup_fd = n->o.cgroups != NULL ? cg_leaf_fd(n->o.cgroups, CG_LEAF_OPS) : -1,
        .cgroup_procs = n->o.cgroups != NULL ? cg_leaf_procs(n->o.cgroups, CG_LEAF_OPS) : NULL,
        .changed = on_drivers,
        .arg = n,
    };
    struct err e = { 0 };

    if (n->o.volume_plugin_dir != NULL && n->o.volume_plugin_dir[0] == '/' &&
        flex_drivers_open(&volume_node(n)->flex, &o, &e) != ERR_OK)
        log_error("FlexVolume drivers cannot be served", F_ERR(&e));
}

bool storage_volumes_node_busy(const struct node *n)
{
    struct flex_drivers *d = volume_node(n)->flex;

    if (d == NULL)
        return false;
    if (n->closing)
        flex_drivers_stop(d);
    return flex_drivers_busy(d);
}

void storage_volumes_node_free(struct node *n)
{
    flex_drivers_close(take_ptr(&volume_node(n)->flex));
}
