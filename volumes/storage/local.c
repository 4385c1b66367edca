/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/storage/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

static enum err_code bind_folder(const struct storage_spec *s, struct err *e)
{
    str_auto options = storage_join_options(s, "bind");
    const char *const args[] = { "-o", options, s->path, s->target, NULL };
    bool mounted = false;

    if (s->n_options == 0)
        return storage_bind(s, s->path, e);
    if (options == NULL)
        return err_nomem(e);
    if (storage_make_folder(s->target, e) != ERR_OK || storage_is_mounted(s->target, &mounted, e) != ERR_OK)
        return e->code;
    if (!mounted && storage_run(&(struct storage_run){ .program = "mount", .package = "mount", .args = args },
                                e) != ERR_OK)
        return e->code;
    return storage_bind(s, s->path, e);
}

enum err_code storage_local_mount(const struct storage_spec *s, struct err *e)
{
    char global[STORAGE_PATH_MAX];
    struct stat st;

    if (s->path == NULL || s->path[0] != '/')
        return err_set(e, ERR_INVALID, "a local volume needs an absolute path");
    if (stat(s->path, &st) != 0)
        return err_sys(e, errno, "path \"%.300s\"", s->path);
    if (S_ISBLK(st.st_mode)) {
        snprintf(global, sizeof(global), "%.600s/plugins/kubernetes.io/local-volume/mounts/%.253s", s->root,
                 s->name);
        return storage_mount_device(s, s->path, global, e);
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_PRECONDITION, "path \"%.300s\" is neither a folder nor a disk", s->path);
    if (bind_folder(s, e) != ERR_OK)
        return e->code;
    return storage_set_group(s, e);
}
