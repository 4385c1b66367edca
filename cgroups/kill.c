/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill - kills every process at or below a cgroup without waiting for them to die.
 *
 * On v2 the kernel does it (cgroup.kill). Elsewhere a process may fork between our reading of cgroup.procs
 * and our signal, so the cgroup is frozen first: frozen processes cannot fork, and a process thawed with
 * SIGKILL pending dies before it executes another instruction of its own.
 */
#include "base/array.h"
#include "base/clock.h"
#include "cgroups/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define FREEZE_ROUNDS 12
/* Microseconds between rounds: at most 6 ms in total, for processes that sleep in the kernel. */
#define FREEZE_PAUSE_US 500

struct pids {
    pid_t *v;
    size_t n;
    bool failed; /* out of memory: the set is incomplete */
};

static void pids_add(struct pids *s, pid_t pid)
{
    if (array_room(s->v, s->n))
        s->v[s->n++] = pid;
    else
        s->failed = true;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return (x > y) - (x < y);
}

static bool pids_have(const struct pids *s, pid_t pid)
{
    return s->n > 0 && bsearch(&pid, s->v, s->n, sizeof(pid), compare_pids) != NULL;
}

typedef bool (*pid_fn)(pid_t pid, void *arg); /* false stops */

/*
 * A cgroup that could not be read may contain processes, so *e keeps the first error.  One that no longer
 * exists contains none.
 */
static void note_unread(struct err *e, int sys, const char *what)
{
    if (sys != ENOENT && sys != ENODEV && sys != ENOTDIR && e->code == ERR_OK)
        err_sys(e, sys, "read %s of a cgroup", what);
}

static bool each_line(int fd, pid_fn fn, void *arg, struct err *e)
{
    char chunk[4096];
    uint64_t pid = 0;

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EOPNOTSUPP) /* a threaded child: its processes are listed in an ancestor */
            note_unread(e, errno, "cgroup.procs");
        if (n <= 0)
            return true;
        for (ssize_t i = 0; i < n; i++) {
            if (chunk[i] >= '0' && chunk[i] <= '9') {
                pid = pid < INT32_MAX / 10 ? 10 * pid + (uint64_t)(chunk[i] - '0') : INT32_MAX;
                continue;
            }
            /*
             * 0 is a process outside our pid namespace.  Such a process, init and this process never belong
             * to a pod.
             */
            if (pid > 1 && pid < INT32_MAX && (pid_t)pid != getpid() && !fn((pid_t)pid, arg))
                return false;
            pid = 0;
        }
    }
}

static bool each_pid_in(int dir, pid_fn fn, void *arg, struct err *e)
{
    fd_auto fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        note_unread(e, errno, "cgroup.procs");
    return fd < 0 || each_line(fd, fn, arg, e);
}

/* Calls fn for dir and each cgroup below it, parents first; false if fn stopped it. */
static bool each_cgroup(int dir, unsigned depth, bool (*fn)(int dir, void *arg), void *arg, struct err *e)
{
    struct dirent *d;

    if (!fn(dir, arg))
        return false;
    if (depth >= CG_DEPTH_MAX)
        return true;
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    bool go_on = true;
    if (list == NULL) {
        note_unread(e, errno, "the children");
        scope_close_p(&copy);
        return true;
    }
    while (go_on && (errno = 0, d = readdir(list)) != NULL) {
        if (d->d_type != DT_DIR || strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        fd_auto child = openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (child >= 0)
            go_on = each_cgroup(child, depth + 1, fn, arg, e);
        else
            note_unread(e, errno, "a child");
    }
    if (go_on && errno != 0)
        note_unread(e, errno, "the children");
    closedir(list);
    return go_on;
}

struct visit {
    pid_fn fn;
    void *arg;
    struct err *e;
};

static bool visit_pids(int dir, void *arg)
{
    const struct visit *v = arg;

    return each_pid_in(dir, v->fn, v->arg, v->e);
}

bool cg_each_pid(int dir, pid_fn fn, void *arg, struct err *e)
{
    struct visit v = { .fn = fn, .arg = arg, .e = e };

    return each_cgroup(dir, 0, visit_pids, &v, e);
}

static bool kill_collect(pid_t pid, void *arg)
{
    pids_add(arg, pid);
    return true;
}

static bool stop_at_once(pid_t pid, void *arg)
{
    (void)pid;
    (void)arg;
    return false;
}

struct presence cg_any_process(int dir, struct err *e)
{
    struct err unread = { 0 };

    if (!cg_each_pid(dir, stop_at_once, NULL, &unread))
        return presence_present(); /* even if something else could not be read */
    if (unread.code == ERR_OK)
        return presence_absent();
    *e = unread;
    return presence_unknown(e);
}

struct strike {
    const struct pids *dying; /* processes that the kernel has killed */
    size_t hits;
};

static bool strike_one(pid_t pid, void *arg)
{
    struct strike *s = arg;

    if (pids_have(s->dying, pid))
        return true;
    kill(pid, SIGKILL); /* ESRCH: already gone */
    s->hits++;
    return true;
}

struct opened {
    const struct cg_backend *backend;
    int dir;
    bool freezer; /* this hierarchy can freeze */
};

static size_t strike_all(const struct opened *o, size_t n, const struct pids *dying, struct err *e)
{
    struct strike s = { .dying = dying };

    for (size_t i = 0; i < n; i++)
        cg_each_pid(o[i].dir, strike_one, &s, e);
    return s.hits;
}

static bool thaw_one(int dir, void *arg)
{
    const struct opened *o = arg;

    o->backend->freeze(dir, false); /* also the children: a container may have been paused */
    return true;
}

static void freeze_and_strike(const struct opened *o, size_t n, struct err *e)
{
    const struct timespec pause = { .tv_nsec = FREEZE_PAUSE_US * 1000 };
    const struct pids nobody = { 0 };
    bool was_frozen = false;

    for (size_t i = 0; i < n; i++)
        if (o[i].freezer)
            o[i].backend->freeze(o[i].dir, true);
    for (unsigned round = 0; round < FREEZE_ROUNDS; round++) {
        bool frozen = false;
        for (size_t i = 0; i < n && !frozen; i++)
            frozen = o[i].freezer && o[i].backend->frozen(o[i].dir);
        if (strike_all(o, n, &nobody, e) == 0 || was_frozen)
            break; /* everything that could fork was frozen before this round */
        was_frozen = frozen;
        if (!frozen)
            nanosleep(&pause, NULL);
    }
}

/* whole: use cgroup.kill if available. *e: the first reason why some may have been missed. */
static void kill_below(struct cg_tree *t, const char *path, bool whole, struct err *e)
{
    struct opened o[CG_HIERS_MAX];
    struct pids dying = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < t->n_hiers; i++) {
        int dir = cg_open_dir(&t->hiers[i], path);
        if (dir < 0) {
            note_unread(e, errno, "the folder");
            continue;
        }
        const struct cg_backend *b = t->hiers[i].backend;
        if (b->v2) {
            /* On a hybrid, processes listed here need no second signal, only those found in v1 alone. */
            if (t->layout == CG_HYBRID)
                cg_each_pid(dir, kill_collect, &dying, e);
            if (whole && b->kill(dir)) {
                close(dir);
                continue;
            }
            dying.n = 0;
        }
        bool freezer = b->v2 || (t->hiers[i].controllers & CG_CTL_FREEZER) != 0;
        o[n++] = (struct opened){ .backend = b, .dir = dir, .freezer = freezer };
    }
    if (dying.n > 0)
        qsort(dying.v, dying.n, sizeof(*dying.v), compare_pids);
    if (n > 0 && (strike_all(o, n, &dying, e) > 0))
        freeze_and_strike(o, n, e);
    for (size_t i = 0; i < n; i++) {
        /* Thaw even if nothing was frozen here: on v1, frozen processes of a paused container do not die. */
        if (o[i].freezer)
            each_cgroup(o[i].dir, 0, thaw_one, &o[i], e);
        close(o[i].dir);
    }
    free(dying.v);
}

void cg_kill_below(struct cg_tree *t, const char *path)
{
    kill_below(t, path, true, ERR_IGNORED); /* callers check whether the processes have ended */
}

void cg_kill_members(struct cg_tree *t, const char *path)
{
    kill_below(t, path, false, ERR_IGNORED);
}

enum err_code cg_kill(struct cg_tree *t, const char *path, struct err *e)
{
    if (!cg_path_is_ours(t, path))
        return err_set(e, ERR_INVALID, "kill cgroup \"%.200s\": not below %s/kubepods or %s/coracle", path,
                       t->root, t->root);
    struct err unread = { 0 };

    kill_below(t, path, true, &unread);
    if (unread.code == ERR_OK)
        return ERR_OK;
    *e = unread;
    return err_wrap(e, "kill cgroup %s", path);
}

struct presence cg_procs_left(struct cg_tree *t, const char *path, struct err *e)
{
    struct err unread = { 0 };

    for (size_t i = 0; i < t->n_hiers; i++) {
        struct err why = { 0 };
        fd_auto dir = cg_open_dir(&t->hiers[i], path);
        struct presence found;

        if (dir < 0) {
            err_sys(&why, errno, "open cgroup %s", path);
            found = presence_from_err(&why);
        } else {
            found = t->hiers[i].backend->populated(dir, &why);
        }
        if (presence_is_unknown(found)) {
            unread = unread.code != ERR_OK ? unread : why;
            continue; /* another hierarchy may have the answer */
        }
        if (!presence_is_absent(found))
            return found;
    }
    if (unread.code == ERR_OK)
        return presence_absent();
    *e = unread;
    return (struct presence){ 0 }; /* already counted */
}

struct presence cg_has_processes(struct cg_tree *t, const char *path, struct err *e)
{
    if (!cg_path_is_ours(t, path))
        return presence_absent();
    return cg_procs_left(t, path, e);
}

bool cg_wait_empty(struct cg_tree *t, const char *path, unsigned timeout_ms)
{
    const struct timespec pause = { .tv_nsec = 2 * 1000 * 1000 };
    uint64_t end = clock_mono_ms() + timeout_ms;

    for (;;) {
        struct err e = { 0 };

        if (presence_is_absent(cg_procs_left(t, path, &e)))
            return true;
        if (clock_mono_ms() >= end)
            return false;
        nanosleep(&pause, NULL);
    }
}
