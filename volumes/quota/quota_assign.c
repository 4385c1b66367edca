/* SPDX-License-Identifier: Apache-2.0 */
/* The project of a folder and of everything below it. The tree may belong to others and change meanwhile:
 * every entry is opened once, as a path only, and exactly the file of that descriptor is changed. */
#include "base/files/fs.h"
#include "volumes/quota/quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

static enum err_code failed(const char *doing, struct err *e)
{
    if (errno == EOPNOTSUPP || errno == ENOTTY)
        return err_set(e, ERR_PRECONDITION, "%s: the file system does not support projects", doing);
    return err_sys(e, errno, "%s", doing);
}

/* Read, changed and written, for the other attributes are written as well. */
static enum err_code set_project(int fd, uint32_t project, bool inherit, struct err *e)
{
    struct fsxattr a = { 0 };

    if (ioctl(fd, FS_IOC_FSGETXATTR, &a) != 0)
        return failed("read the project", e);
    if (a.fsx_projid == project && (!inherit || (a.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0))
        return ERR_OK;
    a.fsx_projid = project;
    if (inherit)
        a.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    return ioctl(fd, FS_IOC_FSSETXATTR, &a) == 0 ? ERR_OK : failed("set the project", e);
}

struct presence quota_project_of(const char *dir, uint32_t *ret_project, struct err *e)
{
    fd_auto fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct fsxattr a = { 0 };

    if (fd < 0) {
        (void)err_sys(e, errno, "open %s", dir);
        return presence_from_err(e);
    }
    if (ioctl(fd, FS_IOC_FSGETXATTR, &a) != 0) {
        (void)err_sys(e, errno, "read the project of %s", dir);
        return presence_unknown(e);
    }
    *ret_project = a.fsx_projid;
    return presence_present();
}

static enum err_code assign_folder(int fd, uint32_t project, unsigned depth, struct err *e);

static enum err_code assign_file(int path_fd, uint32_t project, struct err *e)
{
    char name[40];
    fd_auto fd = -1;

    snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
    fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "open");
    return set_project(fd, project, false, e);
}

static enum err_code assign_entry(int folder, const char *name, uint32_t project, unsigned depth,
                                  struct err *e)
{
    struct err why = { 0 };
    struct stat st;
    fd_auto fd = fs_open_on_mount(folder, name, O_PATH | O_NOFOLLOW, 0, &why);

    if (fd < 0 && (why.sys == ENOENT || why.sys == EXDEV)) /* removed meanwhile; another mount */
        return ERR_OK;
    if (fd < 0) {
        *e = why;
        return e->code;
    }
    if (fstat(fd, &st) != 0)
        return err_sys(e, errno, "stat %s", name);
    if (S_ISREG(st.st_mode) && assign_file(fd, project, e) != ERR_OK)
        return err_wrap(e, "%s", name);
    if (S_ISDIR(st.st_mode) && assign_folder(fd, project, depth + 1, e) != ERR_OK)
        return err_wrap(e, "%s", name);
    return ERR_OK;
}

/* The folder before its entries: files created in it from now on have the project. `fd` may be a path only.
 */
static enum err_code assign_folder(int fd, uint32_t project, unsigned depth, struct err *e)
{
    int readable;
    DIR *list;
    struct dirent *d;
    enum err_code code;

    if (depth > QUOTA_DEPTH_MAX)
        return err_set(e, ERR_EXHAUSTED, "folders are nested more than %d deep", QUOTA_DEPTH_MAX);
    readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (readable < 0)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "open");
    code = set_project(readable, project, true, e);
    list = code == ERR_OK ? fdopendir(readable) : NULL;
    if (list == NULL) {
        int sys = errno;

        close(readable);
        return code != ERR_OK ? code : err_sys(e, sys, "list");
    }
    while (code == ERR_OK) {
        errno = 0;
        d = readdir(list);
        if (d == NULL) {
            code = errno == 0 ? ERR_OK : err_sys(e, errno, "list");
            break;
        }
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            code = assign_entry(readable, d->d_name, project, depth, e);
    }
    closedir(list);
    return code;
}

enum err_code quota_assign(int dir_fd, uint32_t project, struct err *e)
{
    return assign_folder(dir_fd, project, 1, e);
}
