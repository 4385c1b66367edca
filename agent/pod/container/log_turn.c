/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/container/log_turn.h"

#include "agent/status/log_files.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_TRIED = 100 };

/* A name of the log and its file. */
struct named {
    char name[LOG_NAME_SIZE];
    bool there;   /* a regular file */
    bool unknown; /* whether it is there */
    struct stat st;
};

static struct named log_turn_name_of(const struct log_turn *t, int dir, enum log_role role)
{
    struct named n = { .there = false };
    struct presence found;
    struct err e = { 0 };

    log_file_name(role, t->base, n.name);
    found = fs_look_at(dir, n.name, &n.st, &e);
    n.unknown = presence_is_unknown(found);
    n.there = !n.unknown && !presence_is_absent(found) && S_ISREG(n.st.st_mode);
    if (n.unknown)
        log_debug("cannot look at a name of a log; it stays as it is", F_STR("path", t->path), F_ERR(&e));
    return n;
}

static bool log_turn_same(const struct named *a, const struct named *b)
{
    return a->there && b->there && a->st.st_ino == b->st.st_ino && a->st.st_dev == b->st.st_dev;
}

static int64_t written_ns(const struct named *n)
{
    return n->st.st_mtim.tv_sec * 1000000000 + n->st.st_mtim.tv_nsec;
}

enum err_code log_turn_init(struct log_turn *t, const char *path, unsigned max_files, struct err *e)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL || slash == path || strlen(slash + 1) > 200)
        return err_set(e, ERR_INVALID, "log path %s: no folder, or too long a name", path);
    *t = (struct log_turn){ .path = strdup(path),
                            .folder = strndup(path, (size_t)(slash - path)),
                            .base = strdup(slash + 1),
                            .max_files = max_files,
                            .lease = -1 };
    if (t->path != NULL && t->folder != NULL && t->base != NULL)
        return ERR_OK;
    log_turn_done(t);
    return err_nomem(e);
}

void log_turn_done(struct log_turn *t)
{
    scope_close_p(&t->lease);
    free(t->path);
    free(t->folder);
    free(t->base);
}

/* -1: the folder was removed, with the pod. */
static int log_turn_open_folder(const struct log_turn *t)
{
    return open(t->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void trouble(const struct log_turn *t, const char *what)
{
    int sys = errno;

    if (sys != ENOENT) /* conmon was faster, and its rename is reported next; or the pod is gone */
        log_warn(what, F_STR("path", t->path), F_STR("err", strerror(sys)));
}

/* ---- rotated files ---- */

static void rotated_name(const struct log_turn *t, int dir, int64_t wall_ns, char ret[LOG_NAME_SIZE])
{
    struct log_files files;
    struct err e = { 0 };
    char newest[LOG_NAME_SIZE];
    bool any = log_files_rotated(dir, t->base, &files, &e) == ERR_OK && files.n > 0;

    log_file_rotated_name(t->base, wall_ns, any ? files.v[files.n - 1].name : NULL, ret);
    for (int i = 0; i < NAMES_TRIED && faccessat(dir, ret, F_OK, AT_SYMLINK_NOFOLLOW) == 0; i++) {
        snprintf(newest, sizeof(newest), "%s", ret);
        log_file_rotated_name(t->base, wall_ns, newest, ret);
    }
    log_files_done(&files);
}

/* The file of that name is full. */
static void retire(const struct log_turn *t, int dir, const struct named *n, int64_t wall_ns)
{
    char to[LOG_NAME_SIZE];

    rotated_name(t, dir, wall_ns, to);
    if (renameat2(dir, n->name, dir, to, RENAME_NOREPLACE) != 0) /* whether it is taken may not be known */
        trouble(t, "cannot rename a rotated log");
}

static void log_turn_prune(const struct log_turn *t, int dir)
{
    struct log_files files;
    struct err e = { 0 };

    if (log_files_rotated(dir, t->base, &files, &e) != ERR_OK)
        return;
    for (size_t i = 0; i + t->max_files - 1 < files.n; i++)
        if (unlinkat(dir, files.v[i].name, 0) != 0)
            trouble(t, "cannot remove a rotated log");
    log_files_done(&files);
}

/* ---- correcting names ---- */

static void log_turn_drop(int dir, struct named *n)
{
    if (n->there)
        fs_remove_quietly(dir, n->name);
    n->there = false;
}

/* By inode: finds which file has which name after conmon rotated on its own, perhaps repeatedly, or after
 * files were moved. *ret_late: files may have been lost. False: a name could not be looked at, and all stay:
 * a second name may be a file's only one. */
static bool put_in_order(struct log_turn *t, int dir, bool *ret_turned, bool *ret_late)
{
    struct named current = log_turn_name_of(t, dir, LOG_CURRENT), kept = log_turn_name_of(t, dir, LOG_KEPT),
                 next = log_turn_name_of(t, dir, LOG_NEXT), tmp = log_turn_name_of(t, dir, LOG_TMP);

    *ret_turned = *ret_late = false;
    if (current.unknown || kept.unknown || next.unknown || tmp.unknown)
        return false;
    if (log_turn_same(&kept, &tmp)) /* interrupted between the two renames of log_turn_held() and conmon's */
        log_turn_drop(dir, &kept);
    if (kept.there && current.there && !log_turn_same(&kept, &current)) {
        retire(t, dir, &kept, written_ns(&kept));
        kept.there = false;
        *ret_turned = true;
    }
    if (next.there && !log_turn_same(&next, &tmp)) {
        if (log_turn_same(&next, &current) && !kept.there && renameat(dir, next.name, dir, kept.name) == 0) {
            kept.there = true;
        } else if (next.st.st_size > 0 && current.there && !log_turn_same(&next, &current)) {
            retire(t, dir, &next, written_ns(&next));
            *ret_turned = true;
        } else {
            log_turn_drop(dir, &next);
        }
    }
    if (current.there && !kept.there) {
        *ret_late = *ret_turned;
        if (linkat(dir, current.name, dir, kept.name, 0) != 0)
            trouble(t, "cannot give a log a second name; it may be lost when it is rotated");
    }
    return true;
}

/* ---- the next file ---- */

/* A second name for an open file, regardless of its present first name. */
static bool link_fd(int fd, int dir, const char *name)
{
    char self[64];

    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) == 0;
}

static bool is_open_as(int fd, const struct named *n)
{
    struct stat st;

    return n->there && fstat(fd, &st) == 0 && st.st_ino == n->st.st_ino && st.st_dev == n->st.st_dev;
}

static void log_turn_let_go(struct log_turn *t)
{
    if (t->lease < 0)
        return;
    fcntl(t->lease, F_SETLEASE, F_UNLCK); /* not only closed: a child being forked may have it, too */
    close(take_fd(&t->lease));
}

/* A read lease: reading the file does not break it, opening it for writing does. */
static bool take_lease(int fd)
{
    const struct f_owner_ex here = { F_OWNER_TID, gettid() };

    return fcntl(fd, F_SETSIG, LOG_LEASE_SIGNAL) == 0 && fcntl(fd, F_SETOWN_EX, &here) == 0 &&
           fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
}

static void make_ready(struct log_turn *t, int dir)
{
    struct named current = log_turn_name_of(t, dir, LOG_CURRENT), next = log_turn_name_of(t, dir, LOG_NEXT),
                 tmp = log_turn_name_of(t, dir, LOG_TMP);
    fd_auto fd = -1;
    struct stat st;

    if (current.unknown || next.unknown || tmp.unknown || (t->lease >= 0 && is_open_as(t->lease, &tmp)))
        return;
    log_turn_let_go(t);
    if (!current.there)
        return; /* conmon has not started */
    fd = openat(dir, tmp.name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                current.st.st_mode & 0777);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        trouble(t, "cannot make the next file of a log");
        return;
    }
    if (!is_open_as(fd, &next)) {
        log_turn_drop(dir, &next);
        if (!link_fd(fd, dir, next.name))
            trouble(t, "cannot give the next file of a log a second name");
    }
    if (take_lease(fd)) {
        t->leased = true;
        t->lease = take_fd(&fd);
    } else if (errno != EAGAIN && !t->leased) { /* EAGAIN: conmon has it open, and its rename follows */
        t->leased = true;
        log_warn("cannot take a lease on a log; if a container fills files too fast, some will be lost",
                 F_STR("path", t->path), F_STR("err", strerror(errno)));
    }
}

/* ---- rotation ---- */

/* False: nothing was decided. */
static bool log_turn_tidy(struct log_turn *t, int dir)
{
    bool turned, late, known = put_in_order(t, dir, &turned, &late);

    if (late)
        log_warn("a log was rotated too fast to keep all files; lines may be missing",
                 F_STR("path", t->path));
    if (turned)
        log_turn_prune(t, dir);
    return known;
}

void log_turn_look(struct log_turn *t)
{
    fd_auto dir = log_turn_open_folder(t);

    if (dir < 0)
        return;
    if (t->let_go) {
        const struct named tmp = log_turn_name_of(t, dir, LOG_TMP);

        if (tmp.there || tmp.unknown)
            return;
    }
    t->let_go = false;
    if (log_turn_tidy(t, dir))
        make_ready(t, dir);
}

bool log_turn_awaits(const struct log_turn *t)
{
    return t->let_go || t->lease < 0;
}

void log_turn_held(struct log_turn *t)
{
    struct named current, kept, next;
    fd_auto dir = -1;

    if (t->lease < 0 || fcntl(t->lease, F_GETLEASE) == F_RDLCK)
        return;
    dir = log_turn_open_folder(t);
    if (dir >= 0) {
        current = log_turn_name_of(t, dir, LOG_CURRENT);
        kept = log_turn_name_of(t, dir, LOG_KEPT);
        next = log_turn_name_of(t, dir, LOG_NEXT);
        if (kept.there && current.there && !log_turn_same(&kept, &current)) {
            retire(t, dir, &kept, written_ns(&kept));
            kept.there = false;
        }
        /* Possible names are tried: linking and renaming need no check beforehand, and replace nothing. */
        if (!kept.there && (current.there || current.unknown))
            kept.there = linkat(dir, current.name, dir, kept.name, 0) == 0;
        if (kept.there || kept.unknown)
            retire(t, dir, &kept, clock_wall_ns());
        if ((!is_open_as(t->lease, &next) || renameat(dir, next.name, dir, kept.name) != 0) &&
            !link_fd(t->lease, dir, kept.name))
            trouble(t, "cannot give a log a second name; it may be lost when it is rotated");
        log_turn_prune(t, dir);
        t->let_go = true;
    }
    log_turn_let_go(t);
}

void log_turn_end(struct log_turn *t)
{
    fd_auto dir = log_turn_open_folder(t);
    struct named n;

    log_turn_let_go(t);
    t->let_go = false;
    if (dir < 0)
        return;
    n = log_turn_name_of(t, dir, LOG_TMP);
    log_turn_drop(dir, &n);
    if (!log_turn_tidy(t, dir))
        return;
    n = log_turn_name_of(t, dir, LOG_KEPT);
    log_turn_drop(dir, &n);
}

void log_turn_remove(const char *path)
{
    struct log_turn t;
    struct err e = { 0 };
    int dir;

    if (log_turn_init(&t, path, 2, &e) != ERR_OK)
        return;
    dir = log_turn_open_folder(&t);
    if (dir >= 0) {
        log_files_remove(dir, t.base);
        close(dir);
    }
    log_turn_done(&t);
}
