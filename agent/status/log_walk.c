/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/log_walk.h"

#include "agent/status/cri_log.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void log_walk_init(struct log_walk *w, const char *path)
{
    w->fd = -1;
    w->offset = 0;
    snprintf(w->path, sizeof(w->path), "%s", path);
}

void log_walk_done(struct log_walk *w)
{
    if (w->fd >= 0)
        close(take_fd(&w->fd));
}

static int open_log(int dirfd, const char *path, struct stat *st, struct err *e)
{
    int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);

    if (fd < 0) {
        err_sys(e, errno, "open log %s", path);
    } else if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
        close(fd);
        fd = -1;
        err_set(e, ERR_INVALID, "log %s is not a regular file", path);
    }
    return fd;
}

/* Opens the log's folder and lists its files; -1 with ERR_OK if there is none. */
static int log_walk_open_folder(const struct log_walk *w, struct log_files *ret, struct err *e)
{
    const char *slash = strrchr(w->path, '/');
    char folder[PATH_MAX];
    fd_auto dir = -1;

    *ret = (struct log_files){ 0 };
    if (slash == NULL || slash == w->path)
        return -1;
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - w->path), w->path);
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno != ENOENT)
        err_sys(e, errno, "open the folder of log %s", w->path);
    if (dir < 0 || log_files_list(dir, slash + 1, ret, e) != ERR_OK)
        return -1;
    return take_fd(&dir);
}

/* ---- where to begin ---- */

/* The first file that may have newer lines; otherwise the last one. */
static size_t first_since(const struct log_files *f, int64_t since_ns)
{
    size_t i = 0;

    while (i + 1 < f->n && since_ns > 0 && f->v[i].mtime_ns < since_ns)
        i++;
    return i;
}

/* Goes backwards through the files, down to `first`, until there are enough lines. */
static enum err_code seek_tail(struct log_walk *w, int dir, const struct log_files *f, size_t first,
                               uint64_t lines, struct err *e)
{
    struct cri_log_tail tail = { .lines = lines };

    for (size_t i = f->n; i > first && !tail.enough; i--) {
        struct err missing = { 0 };
        uint64_t offset = 0;
        struct stat st;
        fd_auto fd = open_log(dir, f->v[i - 1].name, &st, &missing);

        if (fd < 0 || cri_log_tail_find(fd, &tail, &offset, &missing) != ERR_OK) {
            if (missing.code == ERR_NOT_FOUND || missing.code == ERR_ABORTED)
                continue; /* the file was just removed or emptied */
            *e = missing;
            return e->code;
        }
        log_walk_done(w);
        w->fd = take_fd(&fd);
        w->offset = offset;
    }
    return ERR_OK;
}

static enum err_code seek_first(struct log_walk *w, int dir, const struct log_files *f, size_t first,
                                struct err *e)
{
    for (size_t i = first; i < f->n && w->fd < 0; i++) {
        struct err missing = { 0 };
        struct stat st;

        w->fd = open_log(dir, f->v[i].name, &st, &missing);
        if (w->fd < 0 && missing.code != ERR_NOT_FOUND) {
            *e = missing;
            return e->code;
        }
    }
    return ERR_OK;
}

enum err_code log_walk_seek(struct log_walk *w, uint64_t tail_lines, int64_t since_ns, struct err *e)
{
    struct log_files files;
    struct err current = { 0 };
    struct stat st;
    fd_auto dir = -1;
    fd_auto fd = open_log(AT_FDCWD, w->path, &st, &current);
    size_t first;

    if (fd < 0 && current.code != ERR_NOT_FOUND) {
        *e = current;
        return e->code;
    }
    dir = log_walk_open_folder(w, &files, e);
    if (dir < 0)
        return e->code;
    first = first_since(&files, since_ns);
    if (tail_lines == UINT64_MAX)
        seek_first(w, dir, &files, first, e);
    else
        seek_tail(w, dir, &files, first, tail_lines, e);
    log_files_done(&files);
    return e->code;
}

/* ---- from file to file ---- */

/* The file after ours; if ours was removed, the oldest newer file; n: none. */
static size_t successor(const struct log_files *f, const struct stat *ours)
{
    int64_t mtime_ns = ours->st_mtim.tv_sec * 1000000000 + ours->st_mtim.tv_nsec;

    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].ino == ours->st_ino && f->v[i].dev == ours->st_dev)
            return i + 1;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].mtime_ns >= mtime_ns)
            return i;
    return f->n;
}

static int open_successor(struct log_walk *w, const struct stat *ours, struct err *e)
{
    struct log_files files;
    fd_auto dir = log_walk_open_folder(w, &files, e);
    struct stat st;
    int fd = -1;

    if (dir < 0)
        return -1;
    for (size_t i = w->fd >= 0 ? successor(&files, ours) : 0; i < files.n && fd < 0; i++) {
        struct err missing = { 0 };

        fd = open_log(dir, files.v[i].name, &st, &missing);
    }
    log_files_done(&files);
    return fd;
}

/* -1: no further file so far. */
static int next_file(struct log_walk *w, struct err *e)
{
    struct stat now = { 0 }, ours = { 0 };
    fd_auto fd = open_log(AT_FDCWD, w->path, &now, ERR_IGNORED);

    if (w->fd >= 0 && fstat(w->fd, &ours) != 0)
        return -1;
    if (fd >= 0 && w->fd >= 0 && now.st_ino == ours.st_ino && now.st_dev == ours.st_dev)
        return (uint64_t)now.st_size < w->offset ? take_fd(&fd) : -1; /* truncated in place */
    return open_successor(w, &ours, e);
}

static ssize_t log_walk_read_some(const struct log_walk *w, void *bytes, size_t n)
{
    ssize_t got;

    do
        got = w->fd >= 0 ? pread(w->fd, bytes, n, (off_t)w->offset) : 0;
    while (got < 0 && errno == EINTR);
    return got;
}

enum err_code log_walk_read(struct log_walk *w, void *bytes, size_t n, size_t *ret, struct err *e)
{
    fd_auto next = -1;
    ssize_t got;

    /* The second read returns data that was written to the old file before the new one was started. */
    while ((got = log_walk_read_some(w, bytes, n)) == 0) {
        if (next >= 0) {
            log_walk_done(w);
            w->fd = take_fd(&next);
            w->offset = 0;
        } else if ((next = next_file(w, e)) < 0) {
            break;
        }
    }
    if (got < 0)
        return err_sys(e, errno, "read log %s", w->path);
    w->offset += (uint64_t)got;
    *ret = (size_t)got;
    return e->code;
}
