/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* ---- whole files ---- */

enum err_code fs_read_fd(int fd, size_t max, char **ret, size_t *ret_n, struct err *e)
{
    buf_auto b = BUF_INIT(max);
    char beyond = 0, *text, *tight;
    ssize_t n;

    for (;;) {
        /* Read at least a page: many kernel files are consistent only within one read(). */
        size_t left = max - b.n, want = b.n < 4096 ? 4096 : b.n;
        char *room;

        if (want > left)
            want = left;
        room = want == 0 ? &beyond : buf_room(&b, want);
        if (room == NULL)
            return err_nomem(e);
        n = read(fd, room, want == 0 ? 1 : want);
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "read");
        if (want == 0)
            return err_set(e, ERR_EXHAUSTED, "read: more than %zu bytes", max);
        b.n += (size_t)n;
        b.p[b.n] = '\0';
    }
    n = (ssize_t)b.n;
    text = buf_detach(&b);
    if (text == NULL)
        return err_nomem(e);
    tight = realloc(text, (size_t)n + 1); /* most files are far smaller than a page, and some are kept */
    *ret = tight != NULL ? tight : text;
    if (ret_n != NULL)
        *ret_n = (size_t)n;
    return ERR_OK;
}

enum err_code fs_read_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_n, struct err *e)
{
    /* O_NONBLOCK: opening a FIFO would block otherwise. */
    fd_auto fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0)
        return err_sys(e, errno, "open %s", path);
    if (fstat(fd, &st) != 0)
        return err_sys(e, errno, "stat %s", path);
    if (S_ISDIR(st.st_mode))
        return err_sys(e, EISDIR, "read %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_PRECONDITION, "read %s: not a regular file", path);
    if (fs_read_fd(fd, max, ret, ret_n, e) != ERR_OK) {
        if (e->sys != 0 && e->sys != ENOMEM)
            return err_sys(e, e->sys, "read %s", path);
        if (e->sys == 0)
            return err_set(e, ERR_EXHAUSTED, "read %s: more than %zu bytes", path, max);
        return err_wrap(e, "read %s", path);
    }
    return ERR_OK;
}

enum err_code fs_write_control(int dirfd, const char *path, const char *text, struct err *e)
{
    fd_auto fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    size_t n = strlen(text);
    ssize_t done;

    if (fd < 0)
        return err_sys(e, errno, "write %s", path);
    done = write(fd, text, n);
    if (done < 0)
        return err_sys(e, errno, "write %s", path);
    if ((size_t)done != n)
        return err_set(e, ERR_DATA_LOSS, "write %s: %zd of %zu bytes written", path, done, n);
    return ERR_OK;
}

int fs_write_all(int fd, const void *data, size_t n)
{
    const char *p = data;

    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno != EINTR)
            return errno;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

enum replace { REPLACE_PLAIN, REPLACE_SYNC, REPLACE_LAZILY };

/* An exchange of two names is as atomic as a rename, but ext4 does not write the data for it. False: the name
 * is new or not that of a file, or the file system cannot do it. */
static bool fs_exchange(int folder, const char *tmp, const char *name)
{
    struct stat st;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        renameat2(folder, tmp, folder, name, RENAME_EXCHANGE) != 0)
        return false;
    unlinkat(folder, tmp, 0); /* the old file; a rest is as harmless as that of a killed write */
    return true;
}

/* Fills the new file; returns an errno, with the failed step in *ret_step. */
static int fs_fill(int folder, const char *tmp, const char *name, const void *data, size_t n, mode_t mode,
                   enum replace how, const char **ret_step)
{
    fd_auto fd = openat(folder, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int sys;

    *ret_step = "create";
    if (fd < 0)
        return errno;
    *ret_step = "write";
    sys = fs_write_all(fd, data, n);
    if (sys == 0 && fchmod(fd, mode) != 0)
        sys = errno;
    if (sys == 0 && how == REPLACE_SYNC && fsync(fd) != 0)
        sys = errno;
    /* On file systems that write late (NFS, FUSE), only close() reports a full disk. */
    if (close(take_fd(&fd)) != 0 && sys == 0 && errno != EINTR)
        sys = errno;
    if (sys == 0) {
        *ret_step = "rename";
        if (!(how == REPLACE_LAZILY && fs_exchange(folder, tmp, name)) &&
            renameat(folder, tmp, folder, name) != 0)
            sys = errno;
    }
    if (sys != 0)
        unlinkat(folder, tmp, 0);
    return sys;
}

static enum err_code fs_replace(int dirfd, const char *path, const void *data, size_t n, mode_t mode,
                                enum replace how, struct err *e)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1, *step;
    char parent[4096] = ".", tmp[256], random[9];
    fd_auto folder = -1;
    int sys;

    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_sys(e, EISDIR, "write %s", path);
    if (slash != NULL && (size_t)(slash - path) + 2 > sizeof(parent))
        return err_sys(e, ENAMETOOLONG, "write %s", path);
    if (slash != NULL) {
        size_t len = slash == path ? 1 : (size_t)(slash - path);

        memcpy(parent, path, len);
        parent[len] = '\0';
    }
    folder = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return err_sys(e, errno, "open folder of %s", path);

    id_random_hex(random, sizeof(random) - 1);
    snprintf(tmp, sizeof(tmp), ".%.*s.%s", (int)(sizeof(tmp) - sizeof(random) - 2), name, random);
    sys = fs_fill(folder, tmp, name, data, n, mode, how, &step);
    if (sys != 0)
        return err_sys(e, sys, "%s %s", step, path);
    if (how == REPLACE_SYNC && fsync(folder) != 0)
        return err_sys(e, errno, "sync folder of %s", path);
    return ERR_OK;
}

enum err_code fs_replace_at(int dirfd, const char *path, const void *data, size_t n, mode_t mode, bool sync,
                            struct err *e)
{
    return fs_replace(dirfd, path, data, n, mode, sync ? REPLACE_SYNC : REPLACE_PLAIN, e);
}

enum err_code fs_replace_lazily_at(int dirfd, const char *path, const void *data, size_t n, mode_t mode,
                                   struct err *e)
{
    return fs_replace(dirfd, path, data, n, mode, REPLACE_LAZILY, e);
}

/* ---- folders ---- */

/* Takes the next element off *path into `ret`; "" at the end. False if it is too long for a name. */
static bool fs_next_element(const char **path, char ret[256])
{
    const char *p = *path, *end;

    while (*p == '/')
        p++;
    end = strchrnul(p, '/');
    *path = end;
    if (end - p > 255)
        return false;
    memcpy(ret, p, (size_t)(end - p));
    ret[end - p] = '\0';
    return true;
}

/* Sets the exact mode of a folder we just made, through a descriptor that no symlink can divert. */
static int open_made(int parent, const char *name, mode_t mode)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && fchmod(fd, mode) != 0) {
        int saved = errno;

        close(fd);
        errno = saved;
        fd = -1;
    }
    return fd;
}

/* Opens the deepest existing folder of `path`, usually all but the last element; *ret_rest is the missing
 * part. */
static int open_deepest(const char *path, const char **ret_rest)
{
    char above[PATH_MAX];
    size_t n = strlen(path);
    int fd;

    if (n >= sizeof(above))
        return errno = ENAMETOOLONG, -1;
    memcpy(above, path, n + 1);
    for (;;) {
        above[n] = '\0';
        *ret_rest = path + n;
        fd = open(n > 0 ? above : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR) || n == 0)
            return fd;
        while (n > 0 && above[n - 1] == '/')
            n--;
        while (n > 0 && above[n - 1] != '/')
            n--;
    }
}

enum err_code fs_mkdirs(const char *path, mode_t mode, struct err *e)
{
    const char *rest = path;
    fd_auto at = *path != '\0' ? open_deepest(path, &rest) : -1;
    char name[256];

    if (*path == '\0')
        return err_sys(e, ENOENT, "mkdir %s", path);
    if (at < 0)
        return err_sys(e, errno, "mkdir %.*s", rest > path ? (int)(rest - path) : (int)strlen(path), path);
    for (;;) {
        int next;

        if (!fs_next_element(&rest, name))
            return err_sys(e, ENAMETOOLONG, "mkdir %s", path);
        if (*name == '\0')
            return ERR_OK;
        if (mkdirat(at, name, mode | 0700) == 0)
            next = open_made(at, name, mode);
        else if (errno == EEXIST) /* created by another process meanwhile, or a dangling symlink */
            next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        else
            next = -1;
        if (next < 0)
            return err_sys(e, errno, "mkdir %.*s", (int)(rest - path), path);
        close(at);
        at = next;
    }
}

void fs_spread_below(const char *path)
{
    fd_auto fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0; /* the kernel's type, regardless of the size in _IOR */

    if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_TOPDIR_FL) == 0) {
        flags |= FS_TOPDIR_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

enum err_code fs_mkdirs_beneath(int root, const char *path, mode_t mode, struct err *e)
{
    buf_auto prefix = BUF_INIT(4096);
    fd_auto at = -1;
    const char *rest = path;
    char name[256];

    if (*path == '/')
        return err_set(e, ERR_INVALID, "mkdir %s: not a relative path", path);
    at = fs_open_beneath(root, ".", O_PATH | O_DIRECTORY, 0, e);
    if (at < 0)
        return e->code;
    for (;;) {
        int next;

        if (!fs_next_element(&rest, name))
            return err_sys(e, ENAMETOOLONG, "mkdir %s", path);
        if (*name == '\0')
            return ERR_OK;
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0)
            return err_set(e, ERR_INVALID, "mkdir %s: \"..\" is not allowed", path);
        if (prefix.n > 0)
            buf_addc(&prefix, '/');
        buf_adds(&prefix, name);
        if (prefix.failed)
            return err_sys(e, ENAMETOOLONG, "mkdir %s", path);

        if (mkdirat(at, name, mode | 0700) == 0) {
            next = open_made(at, name, mode);
            if (next < 0)
                return err_sys(e, errno, "mkdir %s", prefix.p);
        } else if (errno == EEXIST) { /* may be a symlink: its target must be beneath the root as well */
            next = fs_open_beneath(root, prefix.p, O_PATH | O_DIRECTORY, 0, e);
            if (next < 0)
                return e->code;
        } else {
            return err_sys(e, errno, "mkdir %s", prefix.p);
        }
        close(at);
        at = next;
    }
}

/* ---- beneath a root ---- */

static int fs_open_resolved(int root, const char *path, int flags, mode_t mode, uint64_t resolve,
                            struct err *e)
{
    bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .mode = creates ? mode : 0, /* anything else is rejected */
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };
    int fd, tries = 0;

    if (*path == '\0') {
        err_sys(e, ENOENT, "open \"\"");
        return -1;
    }
    do /* EAGAIN: a rename or mount happened while ".." was resolved */
        fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    while (fd < 0 && (errno == EAGAIN || errno == EINTR) && ++tries < 100);
    if (fd < 0 && errno == EXDEV) {
        err_set(e, ERR_PERMISSION, "open %s: path leaves its root", path);
        e->sys = EXDEV;
    } else if (fd < 0) {
        err_sys(e, errno, "open %s", path);
    }
    return fd;
}

int fs_open_beneath(int root, const char *path, int flags, mode_t mode, struct err *e)
{
    return fs_open_resolved(root, path, flags, mode, RESOLVE_BENEATH, e);
}

int fs_open_on_mount(int root, const char *path, int flags, mode_t mode, struct err *e)
{
    return fs_open_resolved(root, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_XDEV, e);
}

int fs_open_in_root(int root, const char *path, int flags, mode_t mode, struct err *e)
{
    return fs_open_resolved(root, path, flags, mode, RESOLVE_IN_ROOT, e);
}

int fs_open_in_root_plain(int root, const char *path, int flags, mode_t mode, struct err *e)
{
    return fs_open_resolved(root, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS, e);
}

char *fs_path_clean(char *path)
{
    size_t n = 0;

    for (const char *p = path; *p != '\0'; p += strspn(p, "/")) {
        size_t k = strcspn(p, "/");
        bool drop = k == 0 || (k == 1 && p[0] == '.');
        if (!drop && n > 0)
            path[n++] = '/';
        if (!drop)
            memmove(path + n, p, k);
        n += drop ? 0 : k;
        p += k;
    }
    path[n] = '\0';
    return path;
}

void fs_base_name(const char *path, char ret[256])
{
    size_t n = strlen(path), from;

    while (n > 0 && path[n - 1] == '/')
        n--;
    for (from = n; from > 0 && path[from - 1] != '/';)
        from--;
    snprintf(ret, 256, "%.*s", (int)(n - from), path + from);
    if (strcmp(ret, ".") == 0 || strcmp(ret, "..") == 0)
        ret[0] = '\0';
}

bool fs_path_is_at_or_below(const char *path, const char *above)
{
    size_t n = strlen(above);

    return strncmp(path, above, n) == 0 && (n == 0 || path[n] == '/' || path[n] == '\0');
}

bool fs_path_is_safe(const char *path)
{
    const char *p = path, *end;

    if (strnlen(path, 4097) > 4096)
        return false;
    for (;; p = end + 1) {
        end = strchrnul(p, '/');
        if (end == p || end - p > 255 || (p[0] == '.' && (end - p == 1 || (end - p == 2 && p[1] == '.'))))
            return false;
        if (*end == '\0')
            return true;
    }
}
