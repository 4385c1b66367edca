/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls themselves: by a descriptor on the file system, or by its block device. */
#include "base/files/fs.h"
#include "volumes/quota/internal.h"

#include <errno.h>
#include <linux/quota.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

bool quota_is_off(int sys)
{
    /* ESRCH: switched off. ENOSYS: none of users, groups and projects, or not in this kernel. The others:
     * the file system does not know projects. */
    return sys == ESRCH || sys == ENOSYS || sys == EINVAL || sys == EOPNOTSUPP || sys == ENOTTY;
}

/* Unsigned, because the highest bit may be set. */
static unsigned of_projects(unsigned command)
{
    return QCMD(command, (unsigned)PRJQUOTA);
}

int quota_call_fd(const struct quota_fs *f, int command, uint32_t id, void *data)
{
    return syscall(SYS_quotactl_fd, f->fd, of_projects((unsigned)command), id, data) == 0 ? 0 : errno;
}

int quota_call_device(const struct quota_fs *f, int command, uint32_t id, void *data)
{
    return syscall(SYS_quotactl, of_projects((unsigned)command), f->source, id, data) == 0 ? 0 : errno;
}

bool quota_call_fd_exists(void)
{
    return syscall(SYS_quotactl_fd, -1, of_projects(Q_SYNC), 0, NULL) == 0 || errno != ENOSYS;
}

struct device_search {
    dev_t device;
    char *source;
    bool no_memory;
};

static bool is_device(const char *path, dev_t device)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == device;
}

static bool on_mount(const struct fs_mount *m, void *arg)
{
    struct device_search *s = arg;

    if (m->source[0] != '/' || !is_device(m->source, s->device))
        return true;
    s->source = strdup(m->source);
    s->no_memory = s->source == NULL;
    return false;
}

enum err_code quota_find_device(struct quota_fs *f, struct err *e)
{
    struct device_search s = { .device = f->device };
    char path[64];

    if (fs_each_mount(NULL, on_mount, &s, e) != ERR_OK)
        return e->code;
    if (s.no_memory)
        return err_nomem(e);
    snprintf(path, sizeof(path), "/dev/block/%u:%u", major(f->device), minor(f->device));
    if (s.source == NULL && is_device(path, f->device) && (s.source = strdup(path)) == NULL)
        return err_nomem(e);
    if (s.source == NULL)
        return err_set(e, ERR_NOT_FOUND, "no path of block device %u:%u, which quotactl(2) needs",
                       major(f->device), minor(f->device));
    f->source = s.source;
    return ERR_OK;
}
