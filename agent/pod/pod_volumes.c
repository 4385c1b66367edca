/* The pod's volumes: set up side by side with network and images, refreshed when a ConfigMap or Secret
 * changes, removed at the end. */
#include "agent/pod/hugepages.h"
#include "agent/pod/live_sub_path.h"
#include "agent/pod/mount_watch.h"
#include "agent/pod/nested.h"
#include "agent/pod/payload.h"
#include "agent/pod/pod.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"

#include <string.h>
#include <sys/mman.h>

#define RETRY_FIRST_MS 500 /* kubelet's back-off of volume operations: 500 ms doubling to 2 m 2 s */
#define RETRY_MAX_MS 122000
#define HOST_PATH_DEADLINE_MS 30000
#define REFRESH_RETRY_MS 30000 /* a payload that runs on with its old content */
#define TEARDOWN_DEADLINE_MS 120000
#define SHM_BYTES (64 * 1024 * 1024) /* the size every engine gives /dev/shm */
#define REMOVE_RETRY_MS 5000
#define MS INT64_C(1000000)

static void set_vols(struct pod *p, int state)
{
    p->vols = (__typeof__(p->vols))state;
    p->vols_since_ns = clock_wall_ns();
}

bool volumes_is_mounted(const struct pod *p, const char *volume)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        for (size_t j = 0; j < p->ctrs[i].spec->n_mounts; j++)
            if (strcmp(p->ctrs[i].spec->mounts[j].name, volume) == 0)
                return true;
    return false;
}

bool volumes_use_config(const struct api_pod *api, enum api_config_kind kind, const char *name)
{
    for (size_t i = 0; i < api->spec.n_volumes; i++)
        for (size_t j = 0; j < api->spec.volumes[i].n_sources; j++) {
            const struct api_payload_source *s = &api->spec.volumes[i].sources[j];
            if (s->kind == (kind == API_SECRET ? API_SRC_SECRET : API_SRC_CONFIG_MAP) &&
                strcmp(s->name, name) == 0)
                return true;
        }
    return false;
}

static void failed(struct pod *p, const char *volume, const struct err *e)
{
    if (e->code == ERR_PRECONDITION &&
        pod_is_new(p)) { /* the file that holds it may be read next: no event yet */
        snprintf(p->vols_error, sizeof(p->vols_error), "%s", e->text);
        p->vols_retry_ns = p->created_ns + POD_NEW_NS;
        set_vols(p, VOLS_NONE);
        return;
    }
    snprintf(p->vols_error, sizeof(p->vols_error), "MountVolume.SetUp failed for volume \"%s\" : %.400s",
             volume, e->text);
    p->vols_backoff_ms = p->vols_backoff_ms == 0 ? RETRY_FIRST_MS : p->vols_backoff_ms * 2;
    if (p->vols_backoff_ms > RETRY_MAX_MS)
        p->vols_backoff_ms = RETRY_MAX_MS;
    p->vols_retry_ns = clock_wall_ns() + (int64_t)p->vols_backoff_ms * MS;
    set_vols(p, VOLS_NONE);
    if (strcmp(p->vols_event, p->vols_error) != 0)
        log_warn("volume cannot be set up", F_STR("pod", p->key), F_STR("volume", volume), F_ERR(e));
    snprintf(p->vols_event, sizeof(p->vols_event), "%s", p->vols_error);
    pod_event(p, NULL, true, "FailedMount", "%s", p->vols_error);
}

/* `found`: the whole pod's, `"a" of ...; volume "w": ...`; "" : none. */
static void note_overlaps(struct pod *p, const struct buf *found)
{
    const char *now = found->n > 0 && !found->failed ? found->p : NULL;

    if (str_eq(now, p->overlaps))
        return;
    free(p->overlaps);
    p->overlaps = now != NULL ? strdup(now) : NULL;
    p->overlaps_since_ns = clock_wall_ns();
    if (p->overlaps != NULL) {
        log_warn("files of a volume are hidden by later sources", F_STR("pod", p->key),
                 F_STR("files", p->overlaps));
        pod_event(p, NULL, true, "VolumeFilesHidden", "%s", p->overlaps);
    }
}

json_t *volumes_overlaps_json(const struct pod *p)
{
    char since[CLOCK_RFC3339_SIZE];
    json_t *o;

    if (p->overlaps == NULL)
        return NULL;
    o = json_object();
    clock_format_s(p->overlaps_since_ns, since);
    json_put_str(o, "type", "coracle.dev/VolumeFilesHidden");
    json_put_str(o, "status", "True");
    json_put_str(o, "lastTransitionTime", since);
    json_put_str(o, "reason", "LaterSourceWins");
    json_put_str(o, "message", p->overlaps);
    return o;
}

/* ---- payloads ----------------------------------------------------------------------------------------- */

/* Superseded versions stay a moment for their readers (volumes.h). */
static void tidy_later(struct pod *p)
{
    p->vols_tidy_ns = clock_wall_ns() + VOL_KEEP_MS * MS;
}

static void tidy_step(struct pod *p)
{
    if (p->vols_tidy_ns == 0 || p->vols != VOLS_READY)
        return;
    if (p->vols_tidy_ns <= clock_wall_ns()) {
        p->vols_tidy_ns = 0;
        for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
            const struct api_volume *v = &p->api->spec.volumes[i];
            bool kept = false;
            if (v->kind == API_VOL_PAYLOAD && volumes_is_mounted(p, v->name))
                vol_payload_tidy(p->node->o.volumes, p->uid, v->name, &kept);
            if (kept)
                tidy_later(p);
        }
    }
    if (p->vols_tidy_ns != 0)
        pod_wake_at(p, p->vols_tidy_ns);
}

static enum err_code publish(struct pod *p, const struct api_volume *v, struct buf *overlaps,
                             bool *ret_changed, struct err *e)
{
    struct arena a = { 0 };
    /* As programs find it under kubelet: ConfigMaps on disk, the others on a tmpfs with its default mode. */
    struct vol_payload payload = { .uid = p->uid, .name = v->name, .fs_group = -1, .root_mode = 01777 };
    struct payload made;
    enum err_code code;
    bool kept = false;

    if (!v->projected && v->n_sources == 1 && v->sources[0].kind == API_SRC_CONFIG_MAP)
        payload.root_mode = 0777;
    if (p->api->spec.security.has_fs_group)
        payload.fs_group = p->api->spec.security.fs_group;
    code = payload_build(p, v, &a, &made, e);
    if (code == ERR_OK) {
        if (made.overlaps != NULL)
            buf_addf(overlaps, "%svolume \"%s\": %s", overlaps->n > 0 ? "; " : "", v->name, made.overlaps);
        if (made.renew_ns != 0 && (p->tokens_renew_ns == 0 || made.renew_ns < p->tokens_renew_ns))
            p->tokens_renew_ns = made.renew_ns;
        payload.files = made.files;
        payload.n_files = made.n_files;
        payload.ret_kept = &kept;
        code = vol_payload_publish(p->node->o.volumes, &payload, ret_changed, e);
    }
    if (kept)
        tidy_later(p);
    arena_done(&a);
    return code;
}

static enum err_code set_up_one(struct pod *p, const struct api_volume *v, struct buf *overlaps,
                                struct err *e)
{
    const struct api_pod_security *s = &p->api->spec.security;
    char path[1024];
    bool changed;

    switch (v->kind) {
    case API_VOL_PAYLOAD:
        return publish(p, v, overlaps, &changed, e) == ERR_OK ? nested_make(p, v, e) : e->code;
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
            d.size_bytes = hugepages_memory_left(p->node);
            if (all_declare && quantity_value(&limit) > 0 && (uint64_t)quantity_value(&limit) < d.size_bytes)
                d.size_bytes = (uint64_t)quantity_value(&limit);
            if (v->has_size_limit && quantity_value(&v->size_limit) > 0 &&
                (uint64_t)quantity_value(&v->size_limit) < d.size_bytes)
                d.size_bytes = (uint64_t)quantity_value(&v->size_limit);
        }
        return vol_empty_dir_setup(p->node->o.volumes, &d, path, sizeof(path), e);
    }
    case API_VOL_HOST_PATH: /* checked by the child before */
    case API_VOL_IMAGE:     /* mounted for the first container: its image may still be on its way */
        return ERR_OK;
    }
    return ERR_OK;
}

static bool has_token(const struct api_volume *v)
{
    for (size_t i = 0; i < v->n_sources; i++)
        if (v->sources[i].kind == API_SRC_TOKEN)
            return true;
    return false;
}

/*
 * Taken over from an earlier run of the agent: what it published stays, though its source is gone or does not
 * fit, as it would if the agent had not been away.  refresh() tells.
 */
static bool keeps_content(struct pod *p, const struct api_volume *v, struct err *e)
{
    if (v->kind != API_VOL_PAYLOAD || (e->code != ERR_PRECONDITION && e->code != ERR_EXHAUSTED) ||
        !vol_payload_published(p->node->o.volumes, p->uid, v->name))
        return false;
    *e = (struct err){ 0 };
    p->payload_stale = true;
    p->vols_retry_ns = 0;
    tidy_later(p); /* what was left of that run's last publish */
    pod_wake(p);
    return true;
}

static void set_up(struct pod *p)
{
    buf_auto overlaps = BUF_INIT(64 * 1024);
    struct err e = { 0 };

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        if (volumes_is_mounted(p, v->name) && set_up_one(p, v, &overlaps, &e) != ERR_OK &&
            !keeps_content(p, v, &e)) {
            /* A downward API file shows the pod's IP, a token is being asked for: both wake the pod. */
            if (e.code == ERR_UNAVAILABLE && (p->net != NET_READY || has_token(v))) {
                set_vols(p, VOLS_NONE);
                return;
            }
            failed(p, v->name, &e);
            return;
        }
    }
    if (!p->api->spec.host_ipc && vol_shm_setup(p->node->o.volumes, p->uid, SHM_BYTES, p->shm_path,
                                                sizeof(p->shm_path), &e) != ERR_OK) {
        failed(p, "dev-shm", &e);
        return;
    }
    note_overlaps(p, &overlaps);
    p->vols_error[0] = p->vols_event[0] = '\0';
    p->vols_backoff_ms = 0;
    set_vols(p, VOLS_READY);
}

/* ---- host paths, in a child: they may hang ----------------------------------------------------------- */

static enum err_code check_host_paths(const void *arg, struct buf *out, struct err *e)
{
    const struct pod *p = arg;

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        if (v->kind != API_VOL_HOST_PATH || !volumes_is_mounted(p, v->name))
            continue;
        if (p->vols_at != NULL) /* so that it is known which one hangs */
            *(volatile unsigned *)p->vols_at = (unsigned)i + 1;
        if (vol_host_path_check(v->host_path, v->host_path_type, e) != ERR_OK) {
            buf_addf(out, "%s\n%s", v->name, e->text); /* whose, and the bare text: it becomes an event */
            return e->code;
        }
    }
    return ERR_OK;
}

void volumes_checking(const struct pod *p, char *ret, size_t size)
{
    unsigned at = p->vols_at != NULL ? *(volatile unsigned *)p->vols_at : 0;

    ret[0] = '\0';
    if (p->vols == VOLS_CHECKING && at > 0 && at <= p->api->spec.n_volumes)
        snprintf(ret, size, "host path %.300s of volume \"%s\"", p->api->spec.volumes[at - 1].host_path,
                 p->api->spec.volumes[at - 1].name);
}

static void check_failed(struct pod *p, const struct err *result)
{
    char *newline = strchr(p->vols_call.out.p, '\n');
    struct err e = *result;

    if (newline == NULL) { /* it never answered */
        unsigned at = p->vols_at != NULL ? *p->vols_at : 0;
        const struct api_volume *v =
            at > 0 && at <= p->api->spec.n_volumes ? &p->api->spec.volumes[at - 1] : NULL;
        if (v != NULL && e.code == ERR_DEADLINE)
            err_set(&e, ERR_DEADLINE, "host path %.300s does not answer: %.100s", v->host_path, result->text);
        failed(p, v != NULL ? v->name : "host path", &e);
        return;
    }
    *newline = '\0';
    snprintf(e.text, sizeof(e.text), "%s", newline + 1);
    failed(p, p->vols_call.out.p, &e);
}

static void on_checked(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;

    if (result->code == ERR_OK)
        set_up(p);
    else if (result->code == ERR_CANCELLED)
        set_vols(p, VOLS_NONE);
    else
        check_failed(p, result);
    if (p->vols_at != NULL)
        munmap(take_ptr(&p->vols_at), sizeof(*p->vols_at));
    pod_wake(p);
}

/* Payloads whose sources changed; errors become events. */
static void refresh(struct pod *p)
{
    buf_auto overlaps = BUF_INIT(64 * 1024);

    p->payload_stale = false;
    p->vols_retry_ns = p->tokens_renew_ns = 0;
    p->vols_error[0] = '\0';
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        struct err e = { 0 };
        bool changed = false;

        if (v->kind != API_VOL_PAYLOAD || !volumes_is_mounted(p, v->name))
            continue;
        if (publish(p, v, &overlaps, &changed, &e) != ERR_OK) {
            /* A deleted object or key leaves the files as they were, as does a token that is being asked for;
             * anything else is worth an event. */
            if (e.code == ERR_PRECONDITION || (e.code == ERR_UNAVAILABLE && has_token(v))) {
                log_info("volume keeps its content", F_STR("pod", p->key), F_STR("volume", v->name),
                         F_ERR(&e));
                continue;
            }
            log_warn("volume cannot be refreshed", F_STR("pod", p->key), F_STR("volume", v->name), F_ERR(&e));
            pod_event(p, NULL, true, "FailedMount",
                      "MountVolume.SetUp failed for volume \"%s\" : %s; it keeps its old content", v->name,
                      e.text);
            snprintf(p->vols_error, sizeof(p->vols_error), "volume \"%s\" keeps its old content: %.400s",
                     v->name, e.text);
            p->payload_stale = true;
            p->vols_retry_ns = clock_wall_ns() + REFRESH_RETRY_MS * MS;
        } else if (changed) {
            log_info("volume published", F_STR("pod", p->key), F_STR("volume", v->name));
            live_sub_path_due(p);
        }
    }
    note_overlaps(p, &overlaps);
}

void volumes_step(struct pod *p)
{
    bool host_paths = false;

    if (p->vols == VOLS_READY && p->tokens_renew_ns != 0 && p->tokens_renew_ns <= clock_wall_ns())
        p->payload_stale = true;
    if (p->vols == VOLS_READY && p->payload_stale && p->vols_retry_ns <= clock_wall_ns())
        refresh(p);
    if (p->vols == VOLS_READY && p->payload_stale)
        pod_wake_at(p, p->vols_retry_ns);
    if (p->vols == VOLS_READY && p->tokens_renew_ns != 0)
        pod_wake_at(p, p->tokens_renew_ns);
    tidy_step(p);
    if (p->vols != VOLS_NONE)
        return;
    if (p->vols_retry_ns > clock_wall_ns()) {
        pod_wake_at(p, p->vols_retry_ns);
        return;
    }
    p->payload_stale = false;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++)
        host_paths = host_paths || (p->api->spec.volumes[i].kind == API_VOL_HOST_PATH &&
                                    volumes_is_mounted(p, p->api->spec.volumes[i].name));
    if (host_paths) {
        struct proc_call_spec call = {
            .name = "check host paths",
            .subject = p->key,
            .fn = check_host_paths,
            .arg = p,
            .out_max = 1024,
            .deadline_ms = HOST_PATH_DEADLINE_MS,
            .cgroup_fd = cg_leaf_fd(p->node->o.cgroups, CG_LEAF_OPS),
            .cgroup_procs = cg_leaf_procs(p->node->o.cgroups, CG_LEAF_OPS),
        };
        set_vols(p, VOLS_CHECKING);
        p->vols_at =
            mmap(NULL, sizeof(*p->vols_at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p->vols_at == MAP_FAILED)
            p->vols_at = NULL; /* then it is not known which one hangs */
        proc_call_start(&p->vols_call, &call, p->node->o.loop, on_checked, p);
        return;
    }
    p->tokens_renew_ns = 0;
    set_up(p);
    if (p->vols == VOLS_READY && p->tokens_renew_ns != 0)
        pod_wake_at(p, p->tokens_renew_ns);
    tidy_step(p);
    if (p->vols == VOLS_NONE && p->vols_retry_ns > clock_wall_ns())
        pod_wake_at(p, p->vols_retry_ns);
}

enum err_code volumes_host_path(const struct pod *p, const struct api_volume *v, char *ret, size_t size,
                                struct err *e)
{
    int n;

    switch (v->kind) {
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
    default:
        return err_set(e, ERR_INTERNAL, "volume \"%s\": of no kind", v->name);
    }
    return n > 0 && (size_t)n < size
               ? ERR_OK
               : err_set(e, ERR_INVALID, "volume \"%s\": its path is too long", v->name);
}

/* ---- teardown ------------------------------------------------------------------------------------------ */

static enum err_code remove_all(const void *arg, struct buf *out, struct err *e)
{
    const struct pod *p = arg;

    (void)out;
    return vol_pod_teardown(p->node->o.volumes, p->uid, e);
}

/* When a mount that is not ours is in the way: the next try comes with the next change of mounts. */
static void wait_for_mounts(struct pod *p)
{
    struct err e = { 0 };
    bool new = false;

    if (mount_watch_begin(p->node, &new, &e) != ERR_OK) {
        log_warn("mounts cannot be watched; trying again by time", F_STR("pod", p->key), F_ERR(&e));
        p->vols_retry_ns = clock_wall_ns() + REMOVE_RETRY_MS * MS;
    } else if (new) {
        p->vols_retry_ns = 0; /* it may have gone before the watch began */
    } else if (mount_watch_rounds(p->node) != p->vols_mount_round) {
        p->vols_retry_ns = clock_wall_ns() + 1000 * MS; /* or while we looked */
    } else {
        p->vols_held = true;
    }
}

static void not_removed(struct pod *p, const struct err *why)
{
    if (strcmp(p->vols_error, why->text) != 0) {
        log_warn("volumes of a pod cannot be removed; trying again", F_STR("pod", p->key), F_ERR(why));
        pod_event(p, NULL, true, "FailedUnMount", "%s", why->text);
    }
    snprintf(p->vols_error, sizeof(p->vols_error), "%s", why->text);
    if (why->code == ERR_PRECONDITION)
        wait_for_mounts(p);
    else
        p->vols_retry_ns = clock_wall_ns() + REMOVE_RETRY_MS * MS;
}

static void on_removed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;

    if (result->code == ERR_OK) {
        p->vols_error[0] = '\0';
        set_vols(p, VOLS_REMOVED);
    } else if (result->code == ERR_PRECONDITION && p->node->draining) {
        /* The end of all pods waits for nobody outside. */
        log_warn("volumes of a pod stay; the next start removes them", F_STR("pod", p->key), F_ERR(result));
        set_vols(p, VOLS_REMOVED);
    } else {
        set_vols(p, VOLS_READY);
        if (result->code != ERR_CANCELLED)
            not_removed(p, result);
    }
    pod_wake(p);
}

bool volumes_teardown_step(struct pod *p)
{
    struct proc_call_spec call = {
        .name = "remove volumes",
        .subject = p->key,
        .fn = remove_all,
        .arg = p,
        .deadline_ms = TEARDOWN_DEADLINE_MS,
        .cgroup_fd = cg_leaf_fd(p->node->o.cgroups, CG_LEAF_OPS),
        .cgroup_procs = cg_leaf_procs(p->node->o.cgroups, CG_LEAF_OPS),
    };

    switch (p->vols) {
    case VOLS_REMOVED:
        return true;
    case VOLS_CHECKING:
        op_cancel(&p->vols_call.op);
        return false;
    case VOLS_REMOVING:
        return false;
    case VOLS_NONE:
    case VOLS_READY:
        break;
    }
    if (p->vols_held && !p->node->draining)
        return false;
    p->vols_held = false;
    if (p->vols_retry_ns > clock_wall_ns() && p->vols == VOLS_READY) {
        pod_wake_at(p, p->vols_retry_ns);
        return false;
    }
    set_vols(p, VOLS_REMOVING);
    p->vols_mount_round = mount_watch_rounds(p->node);
    proc_call_start(&p->vols_call, &call, p->node->o.loop, on_removed, p);
    return false;
}
