/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/storage_volumes.h"

#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/storage_place.h"
#include "agent/pod/volume/storage_vol.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define MOUNT_MS 125000 /* mount.nfs itself tries for 120 s */
#define SAID_MS 10000   /* waiting for an attachment for so long is an event */

static bool may_be_mounted(const struct api_volume *v)
{
    return v->kind == API_VOL_STORAGE || v->kind == API_VOL_CLAIM;
}

void storage_vol_state(struct storage_vol *v, enum storage_state state)
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
    free(take_ptr(&s->error));
}

/* ---- set-up ---- */

/* kubelet's names of the operations. */
static const char *what_failed(const struct storage_vol *v, enum storage_step step)
{
    switch (step) {
    case STORAGE_ATTACH:
        return v->block ? "MapVolume.WaitForAttach" : "MountVolume.WaitForAttach";
    case STORAGE_MOUNT_DEVICE:
        return "MountVolume.MountDevice";
    case STORAGE_SET_UP:
        break;
    }
    return v->block ? "MapVolume.MapPodDevice" : "MountVolume.SetUp";
}

/* kubelet's words: a driver that is not there is no plugin. */
static void describe_failure(const struct storage_vol *v, enum storage_step step, const struct err *e,
                             char ret[800])
{
    if (e->code == ERR_NOT_FOUND && str_starts(e->text, "there is no "))
        snprintf(
            ret, 800,
            "Unable to attach or mount volumes: unmounted volumes=[%.63s], unattached volumes=[], failed to "
            "process volumes=[%.63s]: failed to get Plugin from volumeSpec for volume \"%.100s\" err=no "
            "volume plugin matched: %.150s",
            v->name, v->name, v->shown, e->text);
    else
        snprintf(ret, 800, "%s failed for volume \"%.200s\" : %.250s", what_failed(v, step), v->shown,
                 e->text);
    text_printable(ret);
}

void storage_vol_failed(struct storage_vol *v, const struct err *e, const char *text)
{
    struct pod *p = v->pod;

    v->backoff_ms = backoff_next_ms(v->backoff_ms, STORAGE_RETRY_FIRST_MS, STORAGE_RETRY_MAX_MS);
    v->retry_at = clock_boot_in_ms(v->backoff_ms);
    v->said_at = CLOCK_BOOT_NONE;
    if (strcmp(v->error, text) != 0)
        log_warn("cannot mount a volume", F_STR("pod", p->key), F_STR("volume", v->name), F_ERR(e));
    snprintf(v->error, sizeof(v->error), "%s", text);
    pod_event(p, NULL, true, "FailedMount", "%s", text);
    pod_wake_at(p, v->retry_at, "a volume is tried again");
}

static void vol_failed(struct storage_vol *v, enum storage_step step, const struct err *e)
{
    char text[sizeof(v->error)];

    describe_failure(v, step, e, text);
    storage_vol_state(v, STORAGE_NONE);
    storage_vol_failed(v, e, text);
}

static void vol_waits(struct storage_vol *v, const struct err *why, struct boot_time until)
{
    snprintf(v->error, sizeof(v->error), "%.500s", why->text);
    v->retry_at = until;
    pod_wake_at(v->pod, until, "a volume is tried again");
}

/* A controller attaches it once it is in volumesInUse. A long wait is reported; kubelet is silent. */
static void waits_for_attachment(struct storage_vol *v, const struct err *why)
{
    struct pod *p = v->pod;
    bool first = !clock_boot_is_set(v->said_at);

    if (!first && clock_boot_is_due(v->said_at)) {
        pod_event(p, NULL, true, "FailedMount",
                  "Unable to attach or mount volumes: unmounted volumes=[%.63s], unattached volumes=[%.63s], "
                  "failed to process volumes=[]: %.300s",
                  v->name, v->name, why->text);
        v->said_at = clock_boot_in_ms(STORAGE_RETRY_MAX_MS);
    }
    if (first)
        v->said_at = clock_boot_in_ms(SAID_MS);
    vol_waits(v, why, v->said_at);
    if (first && p->node->cluster != NULL && p->node->cluster->node_changed != NULL)
        p->node->cluster->node_changed(p->node->cluster->arg); /* volumesInUse */
}

/* Says where a block device is bound; of a failure the bare text, for an event, and after it the step. */
static enum err_code mount_it(const void *arg, struct buf *out, struct err *e)
{
    const struct storage_job *job = arg;
    enum storage_step step = STORAGE_SET_UP;
    struct flex_volume flex = job->flex;
    struct storage_spec spec = job->spec;
    char folder[1024];

    flex.step = spec.step = &step;
    if ((job->is_flex ? flex_mount(&flex, e) : storage_mount(&spec, e)) != ERR_OK) {
        buf_adds(out, e->text);
        buf_add(out, "\0", 1);
        buf_addf(out, "%d", (int)step);
    } else if (!job->is_flex && spec.block &&
               storage_disk_folder(&spec, folder, sizeof(folder), ERR_IGNORED) == ERR_OK) {
        buf_adds(out, folder);
    }
    return e->code;
}

static enum storage_step step_of(const struct proc_call *call)
{
    size_t n = call->out.n > 0 ? strlen(call->out.p) : 0;

    if (n + 1 >= call->out.n)
        return STORAGE_SET_UP;
    return call->out.p[n + 1] == '1'   ? STORAGE_ATTACH
           : call->out.p[n + 1] == '2' ? STORAGE_MOUNT_DEVICE
                                       : STORAGE_SET_UP;
}

struct err storage_call_error(const struct proc_call *call, const struct err *result)
{
    struct err e = *result;

    if (e.code != ERR_OK && call->out.n > 0)
        snprintf(e.text, sizeof(e.text), "%s", call->out.p);
    return e;
}

/* kubelet's two events of a block device. */
static void say_mapped(const struct storage_vol *v)
{
    const struct api_volume *api = api_volume_find(&v->pod->api->spec, v->name);
    struct storage_source source;
    char plugin[256];

    if (!v->block || v->call.out.n == 0 || api == NULL || !storage_source_of(v->pod, api, &source) ||
        storage_plugin_name(source.storage, plugin, sizeof(plugin), ERR_IGNORED) != ERR_OK)
        return;
    pod_event(v->pod, NULL, false, "SuccessfulMountVolume",
              "MapVolume.MapPodDevice succeeded for volume \"%.100s\" globalMapPath \"%.600s\"", v->shown,
              v->call.out.p);
    pod_event(v->pod, NULL, false, "SuccessfulMountVolume",
              "MapVolume.MapPodDevice succeeded for volume \"%.100s\" volumeMapPath "
              "\"%.120s/pods/%s/volumeDevices/%s\"",
              v->shown, v->pod->node->o.root_dir, v->pod->uid, plugin);
}

static void on_mounted(struct op *op, const struct err *result)
{
    struct storage_vol *v = op->owner;

    if (result->code == ERR_OK) {
        v->error[0] = '\0';
        v->backoff_ms = 0;
        say_mapped(v);
        storage_grow_first(v, api_volume_find(&v->pod->api->spec, v->name));
    } else if (result->code == ERR_CANCELLED) {
        storage_vol_state(v, STORAGE_NONE);
    } else {
        const struct err e = storage_call_error(&v->call, result);

        vol_failed(v, step_of(&v->call), &e);
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
    v->block = source->block;
    ERR_IGNORE(storage_job_make(p, source, volume_node(p->node)->flex, &memory, &job, &e));
    strcpy(v->attach_name, job.attach_name);
    if (e.code == ERR_OK) {
        const struct proc_call_spec call = {
            .name = "mount a volume",
            .subject = p->key,
            .fn = mount_it,
            .arg = &job,
            .out_max = 1024,
            .deadline_ms = MOUNT_MS,
            CG_OPS(p->node->o.cgroups),
        };

        v->said_at = CLOCK_BOOT_NONE;
        v->measured = job.is_flex ? job.flex.caps.metrics : !source->block;
        storage_vol_state(v, STORAGE_MOUNTING);
        proc_call_start(&v->call, &call, p->node->o.loop, on_mounted, v);
    } else if (e.code == ERR_UNAVAILABLE && job.attach_name[0] != '\0') {
        waits_for_attachment(v, &e);
    } else if (e.code == ERR_UNAVAILABLE) {
        vol_waits(v, &e, clock_boot_in_ms(STORAGE_RETRY_MAX_MS)); /* the driver's answer arrives earlier */
    } else if (e.code == ERR_PRECONDITION && pod_is_new(p)) {
        vol_waits(v, &e, pod_new_until(p));
    } else {
        vol_failed(v, STORAGE_SET_UP, &e);
    }
    arena_done(&memory);
}

void storage_volumes_step(struct pod *p)
{
    struct storage_source source;

    if (!make_all(p)) {
        pod_wake_at(p, clock_boot_in_ms(STORAGE_RETRY_FIRST_MS), "memory for volumes");
        return;
    }
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        struct storage_vol *v =
            may_be_mounted(api) && volumes_is_mounted(p, api->name) ? find(p, api->name) : NULL;

        if (v == NULL || !storage_source_of(p, api, &source))
            continue;
        if (v->state == STORAGE_MOUNTED || v->state == STORAGE_READY)
            storage_grow_step(v, api);
        if (v->state == STORAGE_READY)
            storage_usage_step(v, &source);
        if (v->state != STORAGE_NONE)
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

/* ---- of the room ---- */

static bool is_working(const struct storage_vol *v)
{
    return op_live(&v->call.op) || op_live(&v->growth.call.op);
}

static bool is_busy(const struct storage_vol *v)
{
    return is_working(v) || op_live(&v->space.call.op);
}

bool storage_cancel_mounts(struct pod *p)
{
    bool some = false;

    for (size_t i = 0; i < storage_of(p)->n; i++) {
        struct storage_vol *v = &storage_of(p)->v[i];

        some = some || is_busy(v);
        if (op_live(&v->call.op))
            op_cancel(&v->call.op);
        if (op_live(&v->growth.call.op))
            op_cancel(&v->growth.call.op);
        if (op_live(&v->space.call.op))
            op_cancel(&v->space.call.op);
    }
    return some;
}

bool storage_volumes_working(const struct pod *p)
{
    for (size_t i = 0; i < storage_of(p)->n; i++)
        if (is_working(&storage_of(p)->v[i]))
            return true;
    return op_live(&storage_of(p)->removal.op);
}

bool storage_volumes_busy(const struct pod *p)
{
    for (size_t i = 0; i < storage_of(p)->n; i++)
        if (is_busy(&storage_of(p)->v[i]))
            return true;
    return op_live(&storage_of(p)->removal.op);
}

void storage_volumes_cancel(struct pod *p)
{
    (void)storage_cancel_mounts(p);
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
    bool waits = s->error != NULL;

    s->retry_at = CLOCK_BOOT_NONE;
    for (size_t i = 0; i < s->n; i++) {
        s->v[i].growth.retry_at = CLOCK_BOOT_NONE;
        waits = waits || s->v[i].state != STORAGE_MOUNTING; /* one that is mounted may have to grow */
        if (s->v[i].state == STORAGE_NONE)
            s->v[i].retry_at = CLOCK_BOOT_NONE;
    }
    if (waits)
        pod_wake(p, "objects that volumes wait for changed");
}

bool storage_volumes_use_secret(const struct api_pod *api, const char *name)
{
    for (size_t i = 0; i < api->spec.n_volumes; i++)
        if (api->spec.volumes[i].kind == API_VOL_STORAGE &&
            str_eq(api->spec.volumes[i].storage->secret.name, name))
            return true;
    return false;
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
