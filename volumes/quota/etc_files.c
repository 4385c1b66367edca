/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/quota/etc_files.h"

#include "base/files/fs.h"
#include "volumes/quota/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#define LOCK_TRIES 200
#define LOCK_PAUSE_US 10000 /* two seconds in all; a holder needs milliseconds */

/* Opens the file, a new one if there is none. */
static int open_or_create(const char *path, struct err *e)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = open(path, flags);

    if (fd < 0 && errno == ENOENT) {
        fd = open(path, flags | O_CREAT | O_EXCL, 0644);
        if (fd >= 0 && fchmod(fd, 0644) != 0) { /* regardless of the umask */
            (void)err_sys(e, errno, "set the mode of %s", path);
            close(fd);
            return -1;
        }
        if (fd < 0 && errno == EEXIST) /* of another program, just now */
            fd = open(path, flags);
    }
    if (fd < 0 && errno == ELOOP)
        (void)err_set(e, ERR_PRECONDITION, "%s is a symbolic link; only a regular file is used", path);
    else if (fd < 0)
        (void)err_sys(e, errno, "open %s", path);
    return fd;
}

/* A waiter may get the lock of a file that was replaced meanwhile: that is not the lock. */
static enum err_code is_current(int fd, const char *path, struct etc_file *ret, bool *ret_current,
                                struct err *e)
{
    struct stat open_one, there;

    if (fstat(fd, &open_one) != 0)
        return err_sys(e, errno, "stat %s", path);
    if (!S_ISREG(open_one.st_mode))
        return err_set(e, ERR_PRECONDITION, "%s is not a regular file", path);
    *ret_current =
        lstat(path, &there) == 0 && there.st_dev == open_one.st_dev && there.st_ino == open_one.st_ino;
    ret->mode = open_one.st_mode & 07777;
    return ERR_OK;
}

static enum err_code lock_one(struct etc_file *f, struct err *e)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        fd_auto fd = open_or_create(f->path, e);
        bool current = false;

        if (fd < 0 || is_current(fd, f->path, f, &current, e) != ERR_OK)
            return e->code;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            if (is_current(fd, f->path, f, &current, e) != ERR_OK)
                return e->code;
            if (current) {
                f->fd = take_fd(&fd);
                return ERR_OK;
            }
        } else if (errno != EWOULDBLOCK && errno != EINTR) {
            return err_sys(e, errno, "lock %s", f->path);
        }
        usleep(LOCK_PAUSE_US);
    }
    return err_set(e, ERR_UNAVAILABLE, "%s is locked by another program", f->path);
}

static enum err_code lock_and_read(struct etc_file *f, struct err *e)
{
    if (lock_one(f, e) != ERR_OK)
        return e->code;
    quota_replace_clean(f->path);
    if (fs_read_fd(f->fd, ETC_FILE_MAX, &f->text, &f->n, e) != ERR_OK)
        return err_wrap(e, "%s", f->path);
    return ERR_OK;
}

enum err_code etc_files_lock(struct etc_files **ret, const char *projects_file, const char *projid_file,
                             struct err *e)
{
    scoped(etc_files_unlock) struct etc_files *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return err_nomem(e);
    f->file[ETC_PROJECTS] = (struct etc_file){ .path = projects_file, .fd = -1 };
    f->file[ETC_PROJID] = (struct etc_file){ .path = projid_file, .fd = -1 };
    if (lock_and_read(&f->file[ETC_PROJECTS], e) != ERR_OK ||
        lock_and_read(&f->file[ETC_PROJID], e) != ERR_OK)
        return e->code;
    *ret = take_ptr(&f);
    return ERR_OK;
}

struct str etc_files_text(const struct etc_files *f, enum etc_kind kind)
{
    return (struct str){ f->file[kind].text, f->file[kind].n };
}

static enum err_code edit_one(struct etc_file *f, const struct etc_lines *drop, const struct etc_lines *keep,
                              struct err *e)
{
    buf_auto b = BUF_INIT(2 * ETC_FILE_MAX);
    enum err_code code;
    bool replaced;

    if (etc_edit(&b, (struct str){ f->text, f->n }, drop, keep, e) != ERR_OK)
        return err_wrap(e, "%s", f->path);
    if (b.n > ETC_FILE_MAX)
        return err_set(e, ERR_EXHAUSTED, "%s would be longer than %d bytes", f->path, ETC_FILE_MAX);
    if (b.n == f->n && memcmp(b.p, f->text, b.n) == 0)
        return ERR_OK;
    /* Not the folder: after a loss of power, projects_open() has the files written again. */
    code = quota_replace_file(f->path, b.p, b.n, f->mode, false, &replaced, e);
    if (replaced) { /* the next edit begins with this */
        free(f->text);
        f->n = b.n;
        f->text = buf_detach(&b);
    }
    return code;
}

enum err_code etc_files_edit(struct etc_files *f, const struct etc_lines drop[2],
                             const struct etc_lines keep[2], struct err *e)
{
    if (edit_one(&f->file[ETC_PROJID], &drop[ETC_PROJID], &keep[ETC_PROJID], e) != ERR_OK)
        return e->code;
    return edit_one(&f->file[ETC_PROJECTS], &drop[ETC_PROJECTS], &keep[ETC_PROJECTS], e);
}

void etc_files_unlock(struct etc_files *f)
{
    if (f == NULL)
        return;
    for (int i = 1; i >= 0; i--) {
        if (f->file[i].fd >= 0) {
            (void)!flock(f->file[i].fd, LOCK_UN); /* a child between fork and exec may hold a copy */
            close(f->file[i].fd);
        }
        free(f->file[i].text);
    }
    free(f);
}
