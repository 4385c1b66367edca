/* SPDX-License-Identifier: Apache-2.0 */
/* look - the lookups of fs.h: each proves presence or absence, or returns "unknown". */
#include "base/files/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* 1000 pods, 64 containers each, and their files; a larger folder has other problems. */
enum { LOOK_LIST_MAX = 64 << 20 };

struct presence fs_look_at(int dirfd, const char *path, struct stat *ret, struct err *e)
{
    struct stat st;

    if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        err_sys(e, errno, "stat %s", path);
        return presence_from_err(e);
    }
    if (ret != NULL)
        *ret = st;
    return presence_present();
}

struct presence fs_read_if_there(int dirfd, const char *path, size_t max, char **ret, size_t *ret_n,
                                 struct err *e)
{
    if (fs_read_at(dirfd, path, max, ret, ret_n, e) != ERR_OK)
        return presence_from_err(e);
    return presence_present();
}

/* The names in a folder, each with its NUL; all of them or an error. */
static enum err_code look_names(DIR *folder, const char *path, struct buf *names, struct err *e)
{
    struct dirent *entry;

    for (;;) {
        errno = 0;
        entry = readdir(folder);
        if (entry == NULL)
            return errno == 0 ? ERR_OK : err_sys(e, errno, "list %s", path);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        buf_add(names, entry->d_name, strlen(entry->d_name) + 1);
        if (names->failed)
            return err_set(e, ERR_EXHAUSTED, "list %s: too many entries, or out of memory", path);
    }
}

struct presence fs_list(int dirfd, const char *path, bool (*fn)(const char *name, void *arg), void *arg,
                        struct err *e)
{
    buf_auto names = BUF_INIT(LOOK_LIST_MAX);
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    DIR *folder;
    enum err_code code;

    if (fd < 0) {
        err_sys(e, errno, "list %s", path);
        return presence_from_err(e);
    }
    folder = fdopendir(fd);
    if (folder == NULL) {
        err_sys(e, errno, "list %s", path);
        close(fd);
        return presence_unknown(e);
    }
    code = look_names(folder, path, &names, e);
    closedir(folder);
    if (code != ERR_OK)
        return presence_unknown(e);
    for (const char *name = names.p; name < names.p + names.n; name += strlen(name) + 1)
        if (!fn(name, arg))
            break;
    return presence_present();
}
