/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/mount/image_mount.h"

#include "agent/runtime/mount/idmap.h"
#include "agent/runtime/mount/overlay.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

/* Held until the descriptor is closed: containers of a pod that start together mount its volumes together. */
static int lock_folder_of(const char *target, struct err *e)
{
    str_auto folder = strdup(target);
    char *slash = folder != NULL ? strrchr(folder, '/') : NULL;

    if (slash == NULL || slash == folder) {
        err_set(e, ERR_INTERNAL, "no folder of %s", target);
        return -1;
    }
    *slash = '\0';
    fd_auto fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        err_sys(e, errno, "lock %s", folder);
        return -1;
    }
    return take_fd(&fd);
}

enum err_code img_mount(const struct img_image *image, const char *userns, const char *target, struct err *e)
{
    fd_auto users = userns != NULL ? idmap_open(userns, e) : -1;
    const struct overlay o = { .dirs = &image->layer_dirs, .source = image->id, .userns_fd = users };

    if (userns != NULL && users < 0)
        return e->code;
    if (fs_mkdirs(target, 0755, e) != ERR_OK)
        return e->code;
    fd_auto lock = lock_folder_of(target, e);
    if (lock < 0)
        return e->code;
    switch (presence_of(fs_look_mountpoint(target, e))) {
    case PRESENCE_UNKNOWN: /* never mount a second one over the first */
    case PRESENCE_PRESENT:
        return e->code;
    case PRESENCE_ABSENT:
        break;
    }
    return overlay_mount(&o, target, e);
}

struct look {
    const char *path;
    char *id;
    bool found;
};

static bool image_mount_is_it(const struct fs_mount *m, void *arg)
{
    struct look *l = arg;

    if (strcmp(m->point, l->path) == 0) { /* the last line is the topmost */
        l->found = strcmp(m->fstype, "overlay") == 0 && str_starts(m->source, "sha256:");
        snprintf(l->id, IMG_ID_SIZE, "%s", m->source);
    }
    return true;
}

struct presence img_mounted(const char *target, char ret_id[IMG_ID_SIZE], struct err *e)
{
    str_auto real = realpath(target, NULL); /* as in mountinfo */
    struct look l = { .path = real, .id = ret_id };
    struct presence mounted;

    ret_id[0] = '\0';
    if (real == NULL) {
        err_sys(e, errno, "stat %s", target);
        return presence_from_err(e);
    }
    mounted = fs_look_mountpoint(real, e);
    if (presence_is_unknown(mounted) || presence_is_absent(mounted))
        return mounted;
    if (fs_each_mount(real, image_mount_is_it, &l, e) != ERR_OK)
        return presence_unknown(e);
    return l.found ? presence_present() : presence_absent();
}
