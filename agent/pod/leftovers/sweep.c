/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/leftovers/foreign.h"
#include "agent/pod/leftovers/internal.h"
#include "agent/pod/leftovers/mount_watch.h"
#include "agent/pod/leftovers/record_files.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/project/project.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/strs.h"
#include "cni/host/netns.h"
#include "volumes/csi/csi.h"
#include "volumes/flex/flex.h"
#include "volumes/storage/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Between tries, doubled: a cgroup needs a moment after its processes were killed. */
#define PATIENCE_MS 10000 /* for a mount whose server may be gone */
#define PAUSE_FIRST_MS 50
#define PAUSE_MAX_MS 60000
#define DRAIN_PAUSE_MAX_MS 1600 /* when everything is being removed: given up after 3 s */
#define SAID_AFTER_MS 3000      /* longer removals are logged */

/* An item that is being removed, or a failed listing of items that is repeated. */
struct job {
    struct node *node;
    const char *what;
    void (*begin)(struct job *j);                         /* one try; ends in sweep_on_done() */
    enum err_code (*look)(struct node *n, struct err *e); /* NULL: something is being removed */
    char id[512];                                         /* container id, uid or cgroup path */
    struct rt_action action;
    struct cni_op cni;
    struct cni_attachment attachment;
    struct proc_call call;
    struct csi_remove csi;
    uv_timer_t retry;
    uint64_t pause_ms, since_ms;
    bool waiting, over, held; /* held by a foreign mount */
    char error[512];
    TAILQ_ENTRY(job) link;
};

static void sweep_on_closed(uv_handle_t *handle)
{
    struct job *j = handle->data;
    struct node *n = j->node;

    TAILQ_REMOVE(&leftovers_node(n)->jobs, j, link);
    free(j);
    n->sweeps--;
    node_check_idle(n);
}

static void finished(struct job *j)
{
    if (j->over)
        return;
    j->over = true;
    j->waiting = false;
    uv_close((uv_handle_t *)&j->retry, sweep_on_closed);
}

static void sweep_on_retry(uv_timer_t *timer)
{
    struct job *j = timer->data;

    j->waiting = false;
    j->begin(j);
}

static void tried(struct job *j, const struct err *result)
{
    struct node *n = j->node;
    const char *trouble = j->look != NULL ? "cannot list leftovers, so none are removed; will retry"
                                          : "cannot remove a leftover; will retry";

    if (result->code == ERR_OK && j->look == NULL) {
        log_info("removed a leftover", F_STR("what", j->what), F_STR("id", j->id));
        project_gone(n, NULL);
    }

    if (result->code == ERR_OK || result->code == ERR_CANCELLED || n->closing ||
        (n->draining && j->pause_ms >= DRAIN_PAUSE_MAX_MS)) {
        if (result->code != ERR_OK && result->code != ERR_CANCELLED)
            log_warn("cannot remove a leftover; the next start will retry", F_STR("what", j->what),
                     F_STR("id", j->id), F_ERR(result));
        finished(j);
        return;
    }
    j->held = result->code == ERR_PRECONDITION;
    if (strcmp(j->error, result->text) != 0 && (j->held || clock_mono_ms() - j->since_ms > SAID_AFTER_MS)) {
        log_warn(trouble, F_STR("what", j->what), F_STR("id", j->id), F_ERR(result));
        snprintf(j->error, sizeof(j->error), "%s", result->text);
    }
    j->pause_ms = backoff_next_ms(j->pause_ms, PAUSE_FIRST_MS, PAUSE_MAX_MS);
    if (j->held) { /* a mount that disappeared before the watch began is noticed by the next try */
        struct err e = { 0 };
        bool new;
        if (mount_watch_begin(n, &new, &e) != ERR_OK)
            log_debug("cannot watch mounts", F_ERR(&e));
    }
    j->waiting = true;
    uv_timer_start(&j->retry, sweep_on_retry, j->pause_ms, 0);
}

static void sweep_on_done(struct op *op, const struct err *result)
{
    tried(op->owner, result);
}

static struct job *make_job(struct node *n, const char *id, const char *what, void (*begin)(struct job *j))
{
    struct job *j = strlen(id) < sizeof(j->id) ? calloc(1, sizeof(*j)) : NULL;

    if (j == NULL) {
        log_error("no memory to remove a leftover; the next start will remove it", F_STR("what", what),
                  F_STR("id", id));
        return NULL;
    }
    j->node = n;
    j->what = what;
    j->begin = begin;
    j->since_ms = clock_mono_ms();
    snprintf(j->id, sizeof(j->id), "%s", id);
    uv_timer_init(n->o.loop, &j->retry);
    j->retry.data = j;
    n->sweeps++;
    TAILQ_INSERT_TAIL(&leftovers_node(n)->jobs, j, link);
    return j;
}

static void new_job(struct node *n, const char *id, const char *what, void (*begin)(struct job *j))
{
    struct job *j = make_job(n, id, what, begin);

    if (j == NULL)
        return;
    log_info("removing a leftover", F_STR("what", what), F_STR("id", id));
    j->begin(j);
}

static void sweep_look_again(struct job *j)
{
    struct err e = { 0 };

    ERR_IGNORE(j->look(j->node, &e));
    tried(j, &e);
}

/* The content of an unreadable folder is unknown: nothing in it is removed, and the lookup is repeated. */
static void sweep_look(struct node *n, const char *what, enum err_code (*fn)(struct node *n, struct err *e))
{
    struct err e = { 0 };
    struct job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link)
        if (j->look == fn && !j->over)
            return; /* already being repeated */
    if (fn(n, &e) == ERR_OK)
        return;
    log_warn("cannot list leftovers, so none are removed; will retry", F_STR("what", what), F_ERR(&e));
    j = make_job(n, "", what, sweep_look_again);
    if (j == NULL)
        return;
    j->look = fn;
    snprintf(j->error, sizeof(j->error), "%s", e.text);
    tried(j, &e);
}

void sweep_cancel(struct node *n)
{
    struct job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link) {
        op_cancel(&j->action.op);
        op_cancel(&j->cni.op);
        op_cancel(&j->call.op);
        op_cancel(&j->csi.op);
        if (j->waiting)
            finished(j);
    }
}

void sweep_hurry(struct node *n)
{
    struct job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link)
        if (j->waiting) {
            j->pause_ms = 0;
            uv_timer_start(&j->retry, sweep_on_retry, 0, 0);
        }
}

bool sweep_mounts_changed(struct node *n)
{
    bool some = false;
    struct job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link) {
        some = some || (j->held && !j->over);
        if (j->held && j->waiting)
            uv_timer_start(&j->retry, sweep_on_retry, 0, 0);
    }
    return some;
}

void sweep_each(struct node *n, void (*fn)(const char *what, const char *id, const char *error, void *arg),
                void *arg)
{
    const struct job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link)
        if (!j->over)
            fn(j->what, j->id, j->error, arg);
}

static bool is_being_swept(struct node *n, const char *id, void (*begin)(struct job *j))
{
    const struct job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link)
        if (!j->over && j->begin == begin && strcmp(j->id, id) == 0)
            return true;
    return false;
}

static void remove_container(struct job *j)
{
    rt_delete_start(&j->action, j->node->rt, j->id, NULL, sweep_on_done, j);
}

static enum err_code look_containers(struct node *n, struct err *e)
{
    struct strs ids = { 0 };

    if (rt_list(n->rt, &ids, e) != ERR_OK)
        return e->code;
    for (const char *const *id = strs_list(&ids); *id != NULL; id++)
        if (!rooms_know(n, *id) && !is_being_swept(n, *id, remove_container))
            new_job(n, *id, "container", remove_container);
    strs_done(&ids);
    return ERR_OK;
}

static void detach(struct job *j)
{
    j->attachment = (struct cni_attachment){ .container_id = j->id,
                                             .netns = "",
                                             .ifname = POD_IFNAME,
                                             .pod_namespace = "",
                                             .pod_name = "",
                                             .pod_uid = "" };
    cni_del_start(&j->cni, j->node->o.cni, &j->attachment, sweep_on_done, j);
}

static enum err_code look_network(struct node *n, struct err *e)
{
    struct strs ids = { 0 };

    if (cni_cached_ids(n->o.cni, &ids, e) != ERR_OK)
        return e->code;
    for (const char *const *id = strs_list(&ids); *id != NULL; id++)
        if (!rooms_know(n, *id) && !is_being_swept(n, *id, detach))
            new_job(n, *id, "network attachment", detach);
    strs_done(&ids);
    return ERR_OK;
}

void sweep_network(struct node *n)
{
    sweep_look(n, "network attachments", look_network);
}

static enum err_code remove_volumes(const void *arg, struct buf *out, struct err *e)
{
    const struct job *j = arg;
    const struct node_options *o = &j->node->o;
    const struct flex_pod flex = { .root = o->root_dir,
                                   .uid = j->id,
                                   .node = o->node_name,
                                   .plugin_dir = o->volume_plugin_dir,
                                   .how = { .patience_ms = PATIENCE_MS,
                                            .detaches = j->node->driver_link == NULL } };

    (void)out;
    if (o->root_dir != NULL && ((o->volume_plugin_dir != NULL && flex_unmount_all(&flex, e) != ERR_OK) ||
                                storage_unmount_all(o->root_dir, j->id, PATIENCE_MS, e) != ERR_OK))
        return e->code;
    return vol_pod_teardown(o->volumes, j->id, e);
}

static void remove_pod_folders(struct job *j)
{
    struct node *n = j->node;
    const struct proc_call_spec call = {
        .name = "remove leftover volumes",
        .subject = j->id,
        .fn = remove_volumes,
        .arg = j,
        .deadline_ms = 120000,
        CG_OPS(n->o.cgroups),
    };

    proc_call_start(&j->call, &call, n->o.loop, sweep_on_done, j);
}

static void sweep_on_csi_removed(struct op *op, const struct err *result)
{
    struct job *j = op->owner;

    if (result->code == ERR_OK)
        remove_pod_folders(j);
    else
        tried(j, result);
}

/* Drivers first unpublish their volumes; only then may the folders be removed. */
static void remove_pod_volumes(struct job *j)
{
    struct node *n = j->node;
    struct err e = { 0 };

    if (pods_by_uid(n, j->id) != NULL) /* a manifest now names that uid */
        finished(j);
    else if (n->csi == NULL || presence_is_absent(csi_look(n->csi, j->id, &e)))
        remove_pod_folders(j);
    else
        csi_remove_start(&j->csi, n->csi, j->id, NULL, 0, sweep_on_csi_removed, j);
}

/* Neither a pod's, nor foreign. */
static bool is_left_over(struct node *n, const char *uid)
{
    return pods_by_uid(n, uid) == NULL && !foreign_has(n, uid);
}

static enum err_code look_volumes(struct node *n, struct err *e)
{
    struct strs uids = { 0 };

    if (foreign_load(n, e) != ERR_OK || vol_list_owners(n->o.volumes, &uids, e) != ERR_OK)
        return e->code;
    for (const char *const *uid = strs_list(&uids); *uid != NULL; uid++)
        if (is_left_over(n, *uid) && !is_being_swept(n, *uid, remove_pod_volumes))
            new_job(n, *uid, "volumes", remove_pod_volumes);
    strs_done(&uids);
    return ERR_OK;
}

/* ---- namespaces and logs: at once, a failure is for the next start ---- */

struct listing {
    struct node *node;
    const char *dir;
};

static bool remove_ns(const char *name, void *arg)
{
    const struct listing *l = arg;
    struct err e = { 0 };

    if (name[0] == '.' || pods_by_uid(l->node, name) != NULL)
        return true;
    str_auto path = str_printf("%s/%s", l->dir, name);
    if (path == NULL)
        return true;
    log_info("removing a leftover", F_STR("what", "namespaces"), F_STR("id", path));
    if (netns_remove(path, &e) != ERR_OK)
        log_warn("cannot remove leftover namespaces", F_STR("path", path), F_ERR(&e));
    return true;
}

static enum err_code look_namespaces(struct node *n, struct err *e)
{
    str_auto ns = str_printf("%s/ns", n->o.run_dir);
    struct listing l = { n, ns };

    if (ns == NULL)
        return err_nomem(e);
    return presence_is_unknown(fs_list(AT_FDCWD, ns, remove_ns, &l, e)) ? e->code : ERR_OK;
}

/* "<namespace>_<name>_<uid>" with an unknown uid. */
static bool sweep_remove_logs(const char *name, void *arg)
{
    const struct listing *l = arg;
    const char *uid = foreign_uid_of_logs(name);
    struct err e = { 0 };

    if (uid == NULL || !is_left_over(l->node, uid))
        return true;
    str_auto path = str_printf("%s/%s", l->dir, name);
    if (path == NULL)
        return true;
    log_info("removing a leftover", F_STR("what", "logs"), F_STR("id", path));
    if (fs_remove_tree(AT_FDCWD, path, &e) != ERR_OK)
        log_warn("cannot remove a leftover folder", F_STR("path", path), F_ERR(&e));
    return true;
}

static enum err_code look_logs(struct node *n, struct err *e)
{
    struct listing l = { n, n->o.pod_logs_dir };

    if (foreign_load(n, e) != ERR_OK)
        return e->code;
    return presence_is_unknown(fs_list(AT_FDCWD, l.dir, sweep_remove_logs, &l, e)) ? e->code : ERR_OK;
}

/* A link into our folder of logs whose file is proven gone; foreign ones are kept. */
static bool remove_dangling(const char *name, void *arg)
{
    const struct listing *l = arg;
    char target[4096];

    if (!str_ends(name, ".log"))
        return true;
    str_auto path = str_printf("%s/%s", l->dir, name);
    ssize_t size = path == NULL ? -1 : readlink(path, target, sizeof(target) - 1);
    if (size <= 0)
        return true;
    target[size] = '\0';
    if (!fs_path_is_at_or_below(target, l->node->o.pod_logs_dir))
        return true;
    if (faccessat(AT_FDCWD, path, F_OK, 0) == 0 || errno != ENOENT)
        return true;
    log_info("removing a leftover", F_STR("what", "link to a log"), F_STR("id", path));
    if (unlink(path) != 0 && errno != ENOENT)
        log_warn("cannot remove a leftover link", F_STR("path", path), F_STR("error", strerror(errno)));
    return true;
}

static enum err_code look_log_links(struct node *n, struct err *e)
{
    struct listing l = { n, n->o.container_logs_dir };

    return presence_is_unknown(fs_list(AT_FDCWD, l.dir, remove_dangling, &l, e)) ? e->code : ERR_OK;
}

/* ---- leftovers of pods that are gone ---- */

/* The first try is silent, because it is not a leftover yet. */
static void begin_quietly(struct node *n, const char *id, const char *what, void (*begin)(struct job *j),
                          const struct err *e)
{
    struct job *j;

    log_warn("cannot remove leftovers of a pod; will retry", F_STR("what", what), F_STR("id", id), F_ERR(e));
    if (n->closing || is_being_swept(n, id, begin))
        return; /* the next start finds it */
    j = make_job(n, id, what, begin);
    if (j != NULL)
        tried(j, e);
}

static void remove_record(struct job *j)
{
    struct err e = { 0 };

    if (pods_by_uid(j->node, j->id) != NULL) { /* it now has its own record */
        finished(j);
        return;
    }
    record_remove_files(j->node, j->id, &e);
    tried(j, &e);
}

void sweep_record(struct node *n, const char *uid)
{
    struct err e = { 0 };

    if (record_remove_files(n, uid, &e) != ERR_OK)
        begin_quietly(n, uid, "pod record", remove_record, &e);
}

struct log_links { /* of one pod, for log shippers */
    const char *dir;
    char prefix[512]; /* prefix of their names: "<pod>_<namespace>_" */
    char target[1024];
    struct err *e;
};

static bool remove_log_link(const char *name, void *arg)
{
    struct log_links *l = arg;
    char path[1536], target[1024];
    ssize_t n;

    if (!str_starts(name, l->prefix))
        return true;
    snprintf(path, sizeof(path), "%s/%s", l->dir, name);
    n = readlink(path, target, sizeof(target) - 1);
    if (n >= 0)
        target[n] = '\0';
    if ((n < 0 && errno != ENOENT && errno != EINVAL) ||
        (n > 0 && str_starts(target, l->target) && unlink(path) != 0 && errno != ENOENT))
        err_sys(l->e, errno, "remove %s", path);
    return l->e->code == ERR_OK;
}

/* `folder` is "<namespace>_<pod>_<uid>"; the links' names begin with pod and namespace. */
static enum err_code remove_log_links(struct node *n, const char *folder, struct err *e)
{
    size_t namespace_n = strcspn(folder, "_");
    const char *pod = folder[namespace_n] != '\0' ? folder + namespace_n + 1 : "";
    struct log_links l = { .dir = n->o.container_logs_dir, .e = e };

    snprintf(l.prefix, sizeof(l.prefix), "%.*s_%.*s_", (int)strcspn(pod, "_"), pod, (int)namespace_n, folder);
    snprintf(l.target, sizeof(l.target), "%s/%s/", n->o.pod_logs_dir, folder);
    switch (presence_of(fs_list(AT_FDCWD, l.dir, remove_log_link, &l, e))) {
    case PRESENCE_UNKNOWN:
    case PRESENCE_ABSENT:  /* no folder, no links */
    case PRESENCE_PRESENT: /* *ret has one that could not be removed */
        break;
    }
    return e->code;
}

static enum err_code remove_log_folder(struct node *n, const char *folder, struct err *e)
{
    str_auto path = str_printf("%s/%s", n->o.pod_logs_dir, folder);

    if (path == NULL)
        return err_nomem(e);
    if (remove_log_links(n, folder, e) != ERR_OK)
        return e->code;
    return fs_remove_tree(AT_FDCWD, path, e);
}

static void remove_pod_logs(struct job *j)
{
    const char *uid = foreign_uid_of_logs(j->id);
    struct err e = { 0 };

    if (uid != NULL && pods_by_uid(j->node, uid) != NULL) {
        finished(j);
        return;
    }
    remove_log_folder(j->node, j->id, &e);
    tried(j, &e);
}

void sweep_logs(struct node *n, const char *folder)
{
    struct err e = { 0 };

    if (remove_log_folder(n, folder, &e) != ERR_OK)
        begin_quietly(n, folder, "logs of a pod", remove_pod_logs, &e);
}

/* ---- cgroups ---- */

/* Its own: not of a pod with the same uid but another class. */
static bool is_cgroup_of(const struct pod *p, const char *path)
{
    struct err e = { 0 };
    char own[512];

    return p != NULL && (resources_cgroup_path(p, own, sizeof(own), &e) != ERR_OK || strcmp(own, path) == 0);
}

static void remove_cgroup(struct job *j)
{
    struct err e = { 0 };
    struct cg_tree *t = j->node->o.cgroups;
    const char *leaf = strrchr(j->id, '/');

    if (is_cgroup_of(pods_by_uid(j->node, leaf + strlen("/pod")), j->id)) {
        finished(j);
        return;
    }
    if (cg_kill(t, j->id, &e) == ERR_OK && cg_remove(t, j->id, &e) == ERR_OK)
        e = (struct err){ 0 };
    tried(j, &e);
}

static enum err_code look_cgroups(struct node *n, struct err *e)
{
    struct strs paths = { 0 };

    if (foreign_load(n, e) != ERR_OK || cg_list_pods(n->o.cgroups, &paths, e) != ERR_OK)
        return e->code;
    for (const char *const *path = strs_list(&paths); *path != NULL; path++) {
        const char *leaf = strrchr(*path, '/');
        if (leaf != NULL && str_starts(leaf, "/pod") && !foreign_has(n, leaf + 4) &&
            !is_cgroup_of(pods_by_uid(n, leaf + 4), *path) && !is_being_swept(n, *path, remove_cgroup))
            new_job(n, *path, "cgroup", remove_cgroup);
    }
    strs_done(&paths);
    return ERR_OK;
}

void sweep_start(struct node *n)
{
    sweep_look(n, "containers", look_containers);
    sweep_network(n);
    sweep_look(n, "volumes", look_volumes);
    if (n->csi != NULL)
        csi_sweep(n->csi);
    sweep_look(n, "cgroups", look_cgroups);
    sweep_look(n, "logs", look_logs);
    sweep_look(n, "links to logs", look_log_links);
    sweep_look(n, "namespaces", look_namespaces);
    project_swept(n);
}
