/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup - opens the tree and sets the limits of pods and classes; the other files implement the rest of
 * cgroup.h. */
#include "cgroups/cgroup.h"

#include "base/buf.h"
#include "base/files/file_lock.h"
#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"
#include "cgroups/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PROC_FILE_MAX (4u * 1024 * 1024) /* enough for thousands of mounts */
#define CLOSE_TIMEOUT_MS 2000            /* for killed processes to die during removal */
#define UID_MAX_LENGTH 128               /* UUIDs have 36 characters, static pods 32 */
#define PODS_MAX 16384

static const char *const class_paths[] = {
    [CG_GUARANTEED] = "/kubepods",
    [CG_BURSTABLE] = "/kubepods/burstable",
    [CG_BEST_EFFORT] = "/kubepods/besteffort",
};

static enum err_code set_root(struct cg_tree *t, const char *root, struct err *e)
{
    if (strcmp(root, "/") == 0)
        return ERR_OK;
    /* Half of the path's maximum is reserved for levels below. */
    if (root[0] != '/' || !fs_path_is_safe(root + 1) || strlen(root) >= sizeof(t->root))
        return err_set(
            e, ERR_INVALID,
            "cgroup root \"%.200s\": must be / or an absolute path without empty, . or .. elements", root);
    snprintf(t->root, sizeof(t->root), "%s", root);
    return ERR_OK;
}

/* The agent must not be inside a cgroup that it may kill. */
static enum err_code refuse_living_in_it(const struct cg_tree *t, const struct cg_found *f, struct err *e)
{
    for (size_t i = 0; i < f->n; i++)
        if (cg_path_is_ours(t, f->hiers[i].own))
            return err_set(e, ERR_PRECONDITION,
                           "the agent itself runs in cgroup %.200s (%s), which is where it would put pods: "
                           "start it elsewhere or "
                           "set another cgroup root",
                           f->hiers[i].own, f->hiers[i].name);
    return ERR_OK;
}

static int hier_rank(const struct cg_found_hier *h)
{
    return h->v2 ? 0 : h->controllers & CG_CTL_FREEZER ? 1 : h->controllers & CG_CTL_PIDS ? 2 : 3;
}

static enum err_code open_hiers(struct cg_tree *t, const struct cg_found *f, int root_fd, struct err *e)
{
    for (int rank = 0; rank <= 3; rank++) {
        for (size_t i = 0; i < f->n; i++) {
            const struct cg_found_hier *from = &f->hiers[i];
            if (hier_rank(from) != rank)
                continue;
            struct cg_hier *h = &t->hiers[t->n_hiers];
            h->backend = from->v2 ? &cg_backend_v2 : &cg_backend_v1;
            h->controllers = from->controllers;
            memcpy(h->name, from->name, sizeof(h->name));
            h->point = strdup(from->point);
            h->fd = openat(root_fd, from->point + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            t->n_hiers++; /* from now on cg_free() frees it */
            if (h->point == NULL)
                return err_nomem(e);
            if (h->fd < 0)
                return err_sys(e, errno, "open cgroup %s", from->point);
        }
    }
    return ERR_OK;
}

static enum err_code make_skeleton(struct cg_tree *t, struct err *e)
{
    static const struct {
        const char *sub;
        bool inner;
    } parts[] = {
        /* Prepare each level: an earlier run may have died in between. */
        { "/kubepods", true }, { "/kubepods/burstable", true }, { "/kubepods/besteffort", true },
        { "/coracle", true },  { "/coracle/ops", false },       { "/coracle/conmon", false },
    };
    bool fresh = false;

    for (size_t i = 0; i < t->n_hiers; i++) {
        if (cg_make_root(t, &t->hiers[i], e) != ERR_OK)
            return e->code;
        for (size_t k = 0; k < ARRAY_LEN(parts); k++)
            if (cg_make(t, &t->hiers[i], parts[k].sub, parts[k].inner, &fresh, NULL, e) != ERR_OK)
                return e->code;
    }
    return ERR_OK;
}

static enum err_code require_controllers(const struct cg_tree *t, unsigned required, struct err *e)
{
    char missing[128];
    unsigned have = 0;

    for (size_t i = 0; i < t->n_hiers; i++)
        have |= t->hiers[i].controllers;
    if ((required & ~have) == 0)
        return ERR_OK;
    cg_controllers_format(required & ~have, '\0', missing, sizeof(missing));
    return err_set(
        e, ERR_PRECONDITION,
        "cgroup controllers missing in %s: %s (see cgroup.controllers there and the kernel command line: "
        "cgroup_enable=memory, no cgroup_disable=)",
        t->root[0] != '\0' ? t->root : "/", missing);
}

/*
 * Processes below <root>/kubepods that belong to none of our pods are killed, so the tree must be an agent's:
 * an agent creates <root>/coracle next to it, and removes that only at its own end.
 */
static enum err_code refuse_foreign_pods(struct cg_tree *t, struct err *e)
{
    char mark[CG_PATH_MAX], pods[CG_PATH_MAX];

    snprintf(mark, sizeof(mark), "%s/coracle", t->root);
    snprintf(pods, sizeof(pods), "%s/kubepods", t->root);
    fd_auto dir = cg_open_dir(&t->hiers[0], mark);
    if (dir < 0 && errno != ENOENT)
        return err_sys(e, errno, "open cgroup %s", mark);
    if (dir >= 0)
        return ERR_OK;
    switch (presence_of(cg_procs_left(t, pods, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_ABSENT:
        return ERR_OK;
    case PRESENCE_PRESENT:
        break;
    }
    return err_set(e, ERR_PRECONDITION,
                   "processes run in cgroup %s, but not of this agent (a kubelet's pods?): end them "
                   "first, or set another cgroup root",
                   pods);
}

/*
 * Locks a file that is never opened for another purpose, because closing it would release the lock
 * (file_lock.h).
 */
static enum err_code lock_root(struct cg_tree *t, struct err *e)
{
    static const char *const files[] = { "cgroup.max.depth", "notify_on_release" }; /* v2, v1 */
    char path[CG_PATH_MAX];
    pid_t holder;

    snprintf(path, sizeof(path), "%s/coracle", t->root);
    fd_auto dir = cg_open_dir(&t->hiers[0], path);
    for (size_t i = 0; i < ARRAY_LEN(files) && t->lock_fd < 0; i++)
        t->lock_fd = openat(dir, files[i], O_RDWR | O_CLOEXEC);
    if (t->lock_fd < 0)
        return err_sys(e, errno, "open a file of cgroup %s%s to lock it", t->hiers[0].point, path);
    if (file_lock(t->lock_fd, &holder, e) == ERR_EXISTS)
        return err_set(e, ERR_EXISTS,
                       "another coracle (process %d) has its pods in cgroup %s: give each its own root",
                       (int)holder, t->root[0] != '\0' ? t->root : "/");
    return e->code != ERR_OK ? err_wrap(e, "cgroup %s", path) : ERR_OK;
}

static void cg_free(struct cg_tree *t)
{
    scope_close_p(&t->lock_fd);
    for (size_t i = 0; i < t->n_hiers; i++) {
        scope_close_p(&t->hiers[i].fd);
        free(t->hiers[i].point);
    }
    cg_unpin_controllers(t);
    cg_close_leaves(t);
    free(t->scratch_dir);
    free(t);
}
SCOPE_DEFINE(struct cg_tree, cg_free)

enum err_code cg_open_env(struct cg_tree **ret, const struct cg_options *o, const struct cg_env *env,
                          struct err *e)
{
    scoped(cg_free) struct cg_tree *t = calloc(1, sizeof(*t));
    mem_auto struct cg_found *found = calloc(1, sizeof(*found));

    if (t == NULL || found == NULL)
        return err_nomem(e);
    t->lock_fd = t->leaf_fd[0] = t->leaf_fd[1] = -1;
    if (o->scratch_dir != NULL && (t->scratch_dir = strdup(o->scratch_dir)) == NULL)
        return err_nomem(e);
    if (set_root(t, o->root, e) != ERR_OK ||
        cg_discover(found, env->mountinfo, env->proc_cgroup, e) != ERR_OK ||
        refuse_living_in_it(t, found, e) != ERR_OK)
        return e->code;
    t->layout = found->layout;
    if (open_hiers(t, found, env->root_fd, e) != ERR_OK ||
        (env->alone && refuse_foreign_pods(t, e) != ERR_OK) || cg_pin_controllers(t, found, e) != ERR_OK ||
        make_skeleton(t, e) != ERR_OK || (env->alone && lock_root(t, e) != ERR_OK) ||
        require_controllers(t, env->required, e) != ERR_OK || cg_open_leaves(t, e) != ERR_OK)
        return e->code;
    *ret = take_ptr(&t);
    return ERR_OK;
}

static enum err_code cgroup_open_once(struct cg_tree **ret, const struct cg_options *o, struct err *e)
{
    str_auto mountinfo = NULL;
    str_auto proc_cgroup = NULL;
    fd_auto root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root_fd < 0)
        return err_sys(e, errno, "open /");
    if (fs_read_at(AT_FDCWD, "/proc/self/mountinfo", PROC_FILE_MAX, &mountinfo, NULL, e) != ERR_OK ||
        fs_read_at(AT_FDCWD, "/proc/self/cgroup", PROC_FILE_MAX, &proc_cgroup, NULL, e) != ERR_OK)
        return e->code;
    struct cg_env env = { .mountinfo = mountinfo,
                          .proc_cgroup = proc_cgroup,
                          .root_fd = root_fd,
                          .alone = true,
                          .required = CG_REQUIRED };
    return cg_open_env(ret, o, &env, e);
}

/* A shortage, or a file that cannot be read, may last a moment. */
enum err_code cg_open(struct cg_tree **ret, const struct cg_options *o, struct err *e)
{
    struct patience patience = { 0 };

    while (cgroup_open_once(ret, o, e) != ERR_OK) {
        if ((!err_is_shortage(e) && e->sys != EIO) || !patience_wait(&patience))
            return e->code;
        *e = (struct err){ 0 };
    }
    return ERR_OK;
}

/* Removes a subtree from all hierarchies, processes first. */
static void cgroup_take_down(struct cg_tree *t, const char *sub)
{
    char path[CG_PATH_MAX];

    snprintf(path, sizeof(path), "%s%s", t->root, sub);
    cg_kill_below(t, path);
    if (!cg_wait_empty(t, path, CLOSE_TIMEOUT_MS))
        log_debug("processes outlive SIGKILL", F_STR("cgroup", path));
    for (size_t i = 0; i < t->n_hiers; i++) {
        struct err e = { 0 };
        if (cg_remove_below(&t->hiers[i], path, &e) != ERR_OK)
            log_debug("cgroup not removed", F_ERR(&e));
    }
}

/* Removes the elements of <root> that we created, the last one first. */
static void remove_made_root(const struct cg_tree *t, const struct cg_hier *h)
{
    char path[CG_PATH_MAX];

    snprintf(path, sizeof(path), "%s", t->root);
    while (strlen(path) > h->root_existing) {
        if (unlinkat(h->fd, path + 1, AT_REMOVEDIR) != 0)
            return; /* another program uses it now */
        *strrchr(path, '/') = '\0';
    }
}

void cg_close(struct cg_tree *t, bool remove)
{
    if (t == NULL)
        return;
    if (remove) {
        char pods[CG_PATH_MAX];

        snprintf(pods, sizeof(pods), "%s/kubepods", t->root);
        cgroup_take_down(t, "/kubepods");
        if (presence_is_absent(cg_procs_left(t, pods, ERR_IGNORED))) {
            cgroup_take_down(t, "/coracle");
        } else { /* processes that cannot be killed are still ours, so keep the mark */
            cgroup_take_down(t, "/coracle/ops");
            cgroup_take_down(t, "/coracle/conmon");
        }
        for (size_t i = 0; i < t->n_hiers; i++)
            remove_made_root(t, &t->hiers[i]);
    }
    cg_free(t);
}

enum cg_layout cg_layout(const struct cg_tree *t)
{
    return t->layout;
}

enum err_code cg_pod_path(const struct cg_tree *t, enum cg_class class_, const char *uid, char *ret,
                          size_t size, struct err *e)
{
    size_t n = strlen(uid);

    /* A uid is a UUID or a hash; anything else must at least be one harmless path element. */
    if (n == 0 || n > UID_MAX_LENGTH)
        return err_set(e, ERR_INVALID, "pod uid: must have 1 to %d characters", UID_MAX_LENGTH);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)uid[i]) && strchr("-_.", uid[i]) == NULL)
            return err_set(e, ERR_INVALID, "pod uid \"%s\": only letters, digits, -, _ and . are allowed",
                           uid);
    int put = snprintf(ret, size, "%s%s/pod%s", t->root, class_paths[class_], uid);
    if (put < 0 || (size_t)put >= size)
        return err_set(e, ERR_RANGE, "cgroup path of pod %s: longer than %zu bytes", uid, size);
    return ERR_OK;
}

/* Creates <root><sub> in all hierarchies and writes each limit in its controller's hierarchy. */
static enum err_code cgroup_apply(struct cg_tree *t, const char *sub, const struct cg_limits *l,
                                  struct err *e)
{
    for (size_t i = 0; i < t->n_hiers; i++) {
        struct cg_hier *h = &t->hiers[i];
        int made = -1;
        bool fresh = false;
        if (cg_make(t, h, sub, true, &fresh, &made, e) != ERR_OK)
            return e->code;
        fd_auto dir = made;
        if (h->backend->limit(h, dir, l, fresh, e) != ERR_OK)
            return err_wrap(e, "cgroup %s%s%s", h->point, t->root, sub);
    }
    return ERR_OK;
}

enum err_code cg_pod_apply(struct cg_tree *t, enum cg_class class_, const char *uid,
                           const struct cg_limits *l, struct err *e)
{
    char path[CG_PATH_MAX];

    if (cg_pod_path(t, class_, uid, path, sizeof(path), e) != ERR_OK)
        return e->code;
    return cgroup_apply(t, path + strlen(t->root), l, e);
}

enum err_code cg_qos_apply(struct cg_tree *t, enum cg_class class_, const struct cg_limits *l, struct err *e)
{
    if (class_ == CG_GUARANTEED)
        return err_set(e, ERR_INVALID, "the Guaranteed class has no cgroup of its own");
    return cgroup_apply(t, class_paths[class_], l, e);
}

enum err_code cg_foreign_apply(struct cg_tree *t, const char *path, const struct cg_limits *l, struct err *e)
{
    unsigned wanted = (l->cpu_shares >= 0 || l->cpu_quota_us >= 0 ? CG_CTL_CPU : 0u) |
                      (l->memory_max >= 0 ? CG_CTL_MEMORY : 0u) | (l->pids_max >= 0 ? CG_CTL_PIDS : 0u);
    char missing[128];

    path += strspn(path, "/");
    if (!fs_path_is_safe(path))
        return err_set(e, ERR_INVALID, "cgroup \"%.200s\": not a path without empty, . or .. elements", path);
    if (cg_is_at_or_below(t->root, "/", path))
        return err_set(e, ERR_PRECONDITION,
                       "cgroup /%s: the pods' own cgroup %s is in it and would be limited, too", path,
                       t->root);
    for (size_t i = 0; i < t->n_hiers && wanted != 0; i++) {
        const struct cg_hier *h = &t->hiers[i];
        unsigned has = h->controllers;
        fd_auto dir = cg_open_dir(h, path);
        if (dir < 0 && (h->backend->v2 || (has & wanted) != 0))
            return err_sys(e, errno, "cgroup %s/%s", h->point, path);
        if (h->backend->v2 && cg_controllers_of(dir, &has, e) != ERR_OK)
            return err_wrap(e, "cgroup %s/%s", h->point, path);
        if ((has & wanted) == 0)
            continue;
        if (h->backend->limit(h, dir, l, true, e) != ERR_OK)
            return err_wrap(e, "cgroup %s/%s", h->point, path);
        wanted &= ~has;
    }
    if (wanted == 0)
        return ERR_OK;
    cg_controllers_format(wanted, '\0', missing, sizeof(missing));
    return err_set(e, ERR_NOT_FOUND, "cgroup /%s: it has no controller %s", path, missing);
}

enum err_code cg_node_apply(struct cg_tree *t, const struct cg_limits *l, struct err *e)
{
    return cgroup_apply(t, "/kubepods", l, e);
}

enum err_code cg_remove(struct cg_tree *t, const char *path, struct err *e)
{
    if (!cg_path_is_ours(t, path))
        return err_set(e, ERR_INVALID, "remove cgroup \"%.200s\": not below %s/kubepods or %s/coracle", path,
                       t->root, t->root);
    for (size_t i = 0; i < t->n_hiers; i++)
        if (cg_remove_below(&t->hiers[i], path, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* ---- listing ---- */
static enum err_code list_class(const struct cg_tree *t, const struct cg_hier *h, const char *sub,
                                struct strs *ret, struct err *e)
{
    char path[CG_PATH_MAX];

    snprintf(path, sizeof(path), "%s%s", t->root, sub);
    int fd = cg_open_dir(h, path);
    if (fd < 0)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "list cgroup %s%s", h->point, path);
    DIR *list = fdopendir(fd);
    if (list == NULL) {
        err_sys(e, errno, "list cgroup %s%s", h->point, path);
        close(fd);
        return e->code;
    }
    enum err_code code = ERR_OK;
    for (;;) {
        errno = 0;
        const struct dirent *d = code == ERR_OK ? readdir(list) : NULL;
        if (d == NULL && errno != 0)
            code = err_sys(e, errno, "list cgroup %s%s", h->point, path);
        if (d == NULL)
            break;
        if (d->d_type != DT_DIR || !str_starts(d->d_name, "pod"))
            continue;
        if (ret->n >= (size_t)PODS_MAX * CG_HIERS_MAX)
            code = err_set(e, ERR_EXHAUSTED, "list cgroup %s%s: more than %d pods", h->point, path, PODS_MAX);
        else if (!strs_take(ret, str_printf("%s/%s", path, d->d_name)))
            code = err_nomem(e);
    }
    closedir(list);
    return code;
}

enum err_code cg_list_pods(struct cg_tree *t, struct strs *ret_paths, struct err *e)
{
    struct strs found = { 0 };

    for (size_t i = 0; i < t->n_hiers; i++) {
        for (size_t k = 0; k < ARRAY_LEN(class_paths); k++) {
            if (list_class(t, &t->hiers[i], class_paths[k], &found, e) != ERR_OK) {
                strs_done(&found);
                return e->code;
            }
        }
    }
    strs_unique(&found);
    *ret_paths = found;
    return ERR_OK;
}
