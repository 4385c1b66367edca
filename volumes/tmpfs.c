/* SPDX-License-Identifier: Apache-2.0 */
/* tmpfs - mounts a tmpfs, without swap if the kernel supports that. */
#include "base/files/fs.h"
#include "volumes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

enum err_code vol_tmpfs_mount(const char *path, const struct vol_tmpfs *t, bool *ret_noswap, struct err *e)
{
    char options[128];
    int n = snprintf(options, sizeof(options), "mode=%o", t->mode);

    if (t->size_bytes > 0)
        n += snprintf(options + n, sizeof(options) - (size_t)n, ",size=%" PRIu64, t->size_bytes);
    if (t->gid >= 0)
        n += snprintf(options + n, sizeof(options) - (size_t)n, ",gid=%" PRId64, t->gid);
    if (!t->may_swap)
        snprintf(options + n, sizeof(options) - (size_t)n, ",noswap"); /* since 6.4; EINVAL before */
    bool mounted = mount("tmpfs", path, "tmpfs", t->flags, options) == 0, noswap = mounted && !t->may_swap;
    if (!mounted) {
        options[n] = '\0';
        if (t->may_swap || errno != EINVAL || mount("tmpfs", path, "tmpfs", t->flags, options) != 0)
            return err_sys(e, errno, "mount tmpfs on %s (%s)", path, options);
    }
    if (ret_noswap != NULL)
        *ret_noswap = noswap;
    return ERR_OK;
}

struct look {
    const char *path, *fstype;
    bool seen, found, noswap;
};

static bool tmpfs_is_it(const struct fs_mount *m, void *arg)
{
    struct look *l = arg;

    if (strcmp(m->point, l->path) == 0) { /* the last line is the topmost */
        l->seen = true;
        l->found = strcmp(m->fstype, l->fstype) == 0;
        l->noswap = l->found && strstr(m->super_options, "noswap") != NULL;
    }
    return true;
}

struct presence vol_is_mounted(const char *path, const char *fstype, bool *ret_noswap, struct err *e)
{
    struct look l = { .path = path, .fstype = fstype };
    struct presence any = fs_look_mountpoint(path, e);

    if (presence_is_unknown(any) || presence_is_absent(any))
        return any;
    if (fs_each_mount(path, tmpfs_is_it, &l, e) != ERR_OK)
        return presence_unknown(e);
    if (!l.seen) { /* unmounted meanwhile, or listed under another path */
        err_set(e, ERR_ABORTED, "%s is a mount point that mountinfo does not list", path);
        return presence_unknown(e);
    }
    if (!l.found)
        return presence_absent();
    if (ret_noswap != NULL)
        *ret_noswap = l.noswap;
    return presence_present();
}

bool vol_swap_is_on(void)
{
    struct err e = { 0 };
    str_auto text = NULL;

    if (fs_read_at(AT_FDCWD, "/proc/swaps", FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return false;
    const char *second = strchr(text, '\n'); /* the first line is a heading */
    return second != NULL && second[1] != '\0';
}
