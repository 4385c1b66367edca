#include "agent/pod/sweep.h"
#include "agent/pod/mount_watch.h"
#include "agent/pod/net_attach.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "cni/netns.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#define PAUSE_FIRST_MS                                                                                       \
    50 /* between tries, doubling: a cgroup needs a moment after its processes were killed */
#define PAUSE_MAX_MS 60000
#define DRAIN_PAUSE_MAX_MS 1600 /* when all is taken down: given up after 3 s */
#define SAID_AFTER_MS 3000      /* what takes longer is worth a line in the log */

/* One thing being removed. */
struct job {
    struct node *node;
    const char *what;
    void (*begin)(struct job *j); /* one try; ends in on_done() */
    char id[512];                 /* container id, uid or cgroup path */
    struct rt_action action;
    struct cni_op cni;
    struct cni_attachment attachment;
    struct proc_call call;
    uv_timer_t retry;
    uint64_t pause_ms, since_ms;
    bool waiting, over, held; /* by a mount that is not ours */
    char error[512];
    TAILQ_ENTRY(job) link;
};

static void on_closed(uv_handle_t *handle)
{
    struct job *j = handle->data;
    struct node *n = j->node;

    TAILQ_REMOVE(&n->jobs, j, link);
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
    uv_close((uv_handle_t *)&j->retry, on_closed);
}

static void on_retry(uv_timer_t *timer)
{
    struct job *j = timer->data;

    j->waiting = false;
    j->begin(j);
}

static void tried(struct job *j, const struct err *result)
{
    struct node *n = j->node;

    if (result->code == ERR_OK || result->code == ERR_CANCELLED || n->closing ||
        (n->draining && j->pause_ms >= DRAIN_PAUSE_MAX_MS)) {
        if (result->code != ERR_OK && result->code != ERR_CANCELLED)
            log_warn("left-over cannot be removed; the next start tries again", F_STR("what", j->what),
                     F_STR("id", j->id), F_ERR(result));
        finished(j);
        return;
    }
    j->held = result->code == ERR_PRECONDITION;
    if (strcmp(j->error, result->text) != 0 && (j->held || clock_mono_ms() - j->since_ms > SAID_AFTER_MS)) {
        log_warn("left-over cannot be removed; trying again", F_STR("what", j->what), F_STR("id", j->id),
                 F_ERR(result));
        snprintf(j->error, sizeof(j->error), "%s", result->text);
    }
    j->pause_ms = j->pause_ms == 0 ? PAUSE_FIRST_MS : j->pause_ms * 2;
    if (j->pause_ms > PAUSE_MAX_MS)
        j->pause_ms = PAUSE_MAX_MS;
    if (j->held) { /* a mount that goes unseen, before the watch began, is seen with the next try */
        struct err e = { 0 };
        bool new;
        if (mount_watch_begin(n, &new, &e) != ERR_OK)
            log_debug("mounts cannot be watched", F_ERR(&e));
    }
    j->waiting = true;
    uv_timer_start(&j->retry, on_retry, j->pause_ms, 0);
}

static void on_done(struct op *op, const struct err *result)
{
    tried(op->owner, result);
}

static void new_job(struct node *n, const char *id, const char *what, void (*begin)(struct job *j))
{
    struct job *j = strlen(id) < sizeof(j->id) ? calloc(1, sizeof(*j)) : NULL;

    if (j == NULL) {
        log_error("no memory to remove a left-over; the next start does it", F_STR("id", id));
        return;
    }
    log_info("left-over removed", F_STR("what", what), F_STR("id", id));
    j->node = n;
    j->what = what;
    j->begin = begin;
    j->since_ms = clock_mono_ms();
    snprintf(j->id, sizeof(j->id), "%s", id);
    uv_timer_init(n->o.loop, &j->retry);
    j->retry.data = j;
    n->sweeps++;
    TAILQ_INSERT_TAIL(&n->jobs, j, link);
    j->begin(j);
}

void sweep_cancel(struct node *n)
{
    struct job *j;

    TAILQ_FOREACH (j, &n->jobs, link) {
        op_cancel(&j->action.op);
        op_cancel(&j->cni.op);
        op_cancel(&j->call.op);
        if (j->waiting)
            finished(j);
    }
}

void sweep_hurry(struct node *n)
{
    struct job *j;

    TAILQ_FOREACH (j, &n->jobs, link)
        if (j->waiting) {
            j->pause_ms = 0;
            uv_timer_start(&j->retry, on_retry, 0, 0);
        }
}

bool sweep_mounts_changed(struct node *n)
{
    bool some = false;
    struct job *j;

    TAILQ_FOREACH (j, &n->jobs, link) {
        some = some || (j->held && !j->over);
        if (j->held && j->waiting)
            uv_timer_start(&j->retry, on_retry, 0, 0);
    }
    return some;
}

void sweep_each(struct node *n, void (*fn)(const char *what, const char *id, const char *error, void *arg),
                void *arg)
{
    const struct job *j;

    TAILQ_FOREACH (j, &n->jobs, link)
        if (!j->over)
            fn(j->what, j->id, j->error, arg);
}

/* A run that ended is known only while its remains are being removed. */
static bool knows_container(struct node *n, const char *id)
{
    const struct ctr *c = pods_by_container(n, id);
    struct pod *p, *tmp;

    HASH_ITER (hh, n->pods, p, tmp) {
        struct reap *r;
        TAILQ_FOREACH (r, &p->reaps, link)
            if (strcmp(r->id, id) == 0)
                return true; /* being removed already */
    }
    return c != NULL && !c->cur.ended;
}

static bool knows_sandbox(struct node *n, const char *id)
{
    struct pod *p, *tmp;

    HASH_ITER (hh, n->pods, p, tmp)
        if (strcmp(p->sandbox_id, id) == 0)
            return true;
    return false;
}

static void remove_container(struct job *j)
{
    rt_delete_start(&j->action, j->node->rt, j->id, NULL, on_done, j);
}

static void sweep_containers(struct node *n)
{
    char **ids = NULL;
    struct err e = { 0 };

    if (rt_list(n->rt, &ids, &e) != ERR_OK) {
        log_warn("left-over containers cannot be listed", F_ERR(&e));
        return;
    }
    for (char **id = ids; *id != NULL; id++)
        if (!knows_container(n, *id))
            new_job(n, *id, "container", remove_container);
    cg_free_list(ids);
}

static void detach(struct job *j)
{
    j->attachment = (struct cni_attachment){ .container_id = j->id,
                                             .netns = "",
                                             .ifname = POD_IFNAME,
                                             .pod_namespace = "",
                                             .pod_name = "",
                                             .pod_uid = "" };
    cni_del_start(&j->cni, j->node->o.cni, &j->attachment, on_done, j);
}

static bool is_being_removed(struct node *n, const char *id)
{
    const struct job *j;

    TAILQ_FOREACH (j, &n->jobs, link)
        if (!j->over && j->begin == detach && strcmp(j->id, id) == 0)
            return true;
    return false;
}

void sweep_network(struct node *n)
{
    char **ids = NULL;
    struct err e = { 0 };

    if (cni_cached_ids(n->o.cni, &ids, &e) != ERR_OK) {
        log_warn("left-over network attachments cannot be listed", F_ERR(&e));
        return;
    }
    for (char **id = ids; *id != NULL; id++)
        if (!knows_sandbox(n, *id) && !is_being_removed(n, *id))
            new_job(n, *id, "network attachment", detach);
    cg_free_list(ids);
}

static enum err_code remove_volumes(const void *arg, struct buf *out, struct err *e)
{
    const struct job *j = arg;

    (void)out;
    return vol_pod_teardown(j->node->o.volumes, j->id, e);
}

static void remove_pod_volumes(struct job *j)
{
    struct node *n = j->node;
    const struct proc_call_spec call = {
        .name = "remove left-over volumes",
        .subject = j->id,
        .fn = remove_volumes,
        .arg = j,
        .deadline_ms = 120000,
        .cgroup_fd = cg_leaf_fd(n->o.cgroups, CG_LEAF_OPS),
        .cgroup_procs = cg_leaf_procs(n->o.cgroups, CG_LEAF_OPS),
    };

    if (pods_by_uid(n, j->id) != NULL) /* a manifest names that uid by now */
        finished(j);
    else
        proc_call_start(&j->call, &call, n->o.loop, on_done, j);
}

static void sweep_volumes(struct node *n)
{
    char **uids = NULL;
    struct err e = { 0 };

    if (vol_list_owners(n->o.volumes, &uids, &e) != ERR_OK) {
        log_warn("left-over volumes cannot be listed", F_ERR(&e));
        return;
    }
    for (char **uid = uids; *uid != NULL; uid++)
        if (pods_by_uid(n, *uid) == NULL)
            new_job(n, *uid, "volumes", remove_pod_volumes);
    cg_free_list(uids);
}

/* Calls fn(path) for each folder in `dir` that is not the uid of a pod. */
static void each_unknown(struct node *n, const char *dir, void (*fn)(const char *path))
{
    struct dirent *entry;
    DIR *d = opendir(dir);

    if (d == NULL)
        return;
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] != '.' && pods_by_uid(n, entry->d_name) == NULL) {
            str_auto path = str_printf("%s/%s", dir, entry->d_name);
            if (path != NULL)
                fn(path);
        }
    }
    closedir(d);
}

static void remove_ns(const char *path)
{
    struct err e = { 0 };

    if (netns_remove(path, &e) != ERR_OK)
        log_warn("left-over namespaces cannot be removed", F_STR("path", path), F_ERR(&e));
}

static void remove_dir(const char *path)
{
    struct err e = { 0 };

    if (fs_remove_tree(AT_FDCWD, path, &e) != ERR_OK)
        log_warn("left-over folder cannot be removed", F_STR("path", path), F_ERR(&e));
}

/* Logs: "<namespace>_<name>_<uid>" whose uid is nobody's. */
static void sweep_logs(struct node *n)
{
    struct dirent *entry;
    DIR *d = opendir(n->o.pod_logs_dir);

    if (d == NULL)
        return;
    while ((entry = readdir(d)) != NULL) {
        const char *uid = strrchr(entry->d_name, '_');
        if (entry->d_name[0] == '.' || uid == NULL || strchr(entry->d_name, '_') == uid ||
            pods_by_uid(n, uid + 1) != NULL)
            continue;
        str_auto path = str_printf("%s/%s", n->o.pod_logs_dir, entry->d_name);
        if (path != NULL)
            remove_dir(path);
    }
    closedir(d);
    d = opendir(n->o.container_logs_dir);
    if (d == NULL)
        return;
    while ((entry = readdir(d)) != NULL) {
        struct stat st;
        if (str_ends(entry->d_name, ".log") &&
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
            fstatat(dirfd(d), entry->d_name, &st, 0) != 0 && errno == ENOENT)
            unlinkat(dirfd(d), entry->d_name, 0); /* dangling */
    }
    closedir(d);
}

/* Its own: not that of a pod with the same uid that was of another class. */
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

static void sweep_cgroups(struct node *n)
{
    char **paths = NULL;
    struct err e = { 0 };

    if (cg_list_pods(n->o.cgroups, &paths, &e) != ERR_OK) {
        log_warn("left-over cgroups cannot be listed", F_ERR(&e));
        return;
    }
    for (char **path = paths; *path != NULL; path++) {
        const char *leaf = strrchr(*path, '/');
        if (leaf != NULL && str_starts(leaf, "/pod") && !is_cgroup_of(pods_by_uid(n, leaf + 4), *path))
            new_job(n, *path, "cgroup", remove_cgroup);
    }
    cg_free_list(paths);
}

void sweep_start(struct node *n)
{
    str_auto ns = str_printf("%s/ns", n->o.run_dir);

    sweep_containers(n);
    sweep_network(n);
    sweep_volumes(n);
    sweep_cgroups(n);
    sweep_logs(n);
    if (ns != NULL)
        each_unknown(n, ns, remove_ns);
}
