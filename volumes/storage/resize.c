/* SPDX-License-Identifier: Apache-2.0 */
/* resize - file systems whose disk has grown. Rules of ResizeFs (k8s.io/mount-utils/resizefs_linux.go). */
#include "volumes/storage/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum err_code storage_resize(const char *device, const char *path, struct err *e)
{
    const char *const ext[] = { device, NULL }, *const xfs[] = { "-d", path, NULL },
                      *const btrfs[] = { "filesystem", "resize", "max", path, NULL };
    struct storage_run run = { 0 };
    char type[64];

    if (storage_find_type(device, type, sizeof(type), e) != ERR_OK)
        return e->code;
    if (strcmp(type, "ext3") == 0 || strcmp(type, "ext4") == 0)
        run = (struct storage_run){ .program = "resize2fs", .package = "e2fsprogs", .args = ext };
    else if (strcmp(type, "xfs") == 0)
        run = (struct storage_run){ .program = "xfs_growfs", .package = "xfsprogs", .args = xfs };
    else if (strcmp(type, "btrfs") == 0)
        run = (struct storage_run){ .program = "btrfs", .package = "btrfs-progs", .args = btrfs };
    if (type[0] == '\0')
        return ERR_OK;
    if (run.program != NULL)
        return storage_run(&run, e);
    return err_set(e, ERR_UNIMPLEMENTED,
                   "ResizeFS.Resize - resize of format %.40s is not supported for device %.100s mounted at "
                   "%.200s",
                   type, device, path);
}

enum err_code storage_expand(const struct storage_spec *s, struct err *e)
{
    struct stat st;

    if (s->kind != STORAGE_LOCAL || s->path == NULL)
        return err_set(e, ERR_UNIMPLEMENTED, "volumes of this kind cannot be expanded");
    if (stat(s->path, &st) != 0)
        return err_sys(e, errno, "path \"%.300s\"", s->path);
    return S_ISBLK(st.st_mode) ? storage_resize(s->path, s->target, e) : ERR_OK;
}
