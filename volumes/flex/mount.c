/* SPDX-License-Identifier: Apache-2.0 */
/* mount - the calls for one volume, in kubelet's order. What a driver does not support, the agent does. */
#include "base/buf.h"
#include "base/files/fs.h"
#include "base/scope.h"
#include "volumes/flex/internal.h"
#include "volumes/storage/run.h"
#include "volumes/volumes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 1200

/* A failure that the driver named is one; "Not supported" is told apart. */
static enum err_code ask(const char *program, const char *const *args, bool *ret_supported,
                         struct flex_answer *answer, struct err *e)
{
    if (flex_call(program, args, answer, e) != ERR_OK)
        return e->code;
    *ret_supported = answer->status != FLEX_NOT_SUPPORTED;
    return answer->status == FLEX_FAILED ? err_set(e, ERR_UNKNOWN, "%s", answer->message) : ERR_OK;
}

#define ASK(program, supported, answer, e, ...)                                                              \
    ask(program, (const char *const[]){ __VA_ARGS__, NULL }, supported, answer, e)

/* "<root>/plugins/kubernetes.io/flexvolume/VENDOR/DRIVER/mounts/NAME" */
static void device_place(const struct flex_volume *v, char ret[PATH_SIZE])
{
    const char *tilde = strchr(v->dir_name, '~');

    if (tilde != NULL)
        snprintf(ret, PATH_SIZE, "%.500s/plugins/kubernetes.io/flexvolume/%.*s/%.200s/mounts/%.253s", v->root,
                 (int)(tilde - v->dir_name), v->dir_name, tilde + 1, v->name);
    else
        snprintf(ret, PATH_SIZE, "%.500s/plugins/kubernetes.io/flexvolume/%.200s/mounts/%.253s", v->root,
                 v->dir_name, v->name);
}

static struct storage_spec as_disk(const struct flex_volume *v)
{
    return (struct storage_spec){ .root = v->root,
                                  .name = v->name,
                                  .target = v->target,
                                  .fs_type = v->fs_type,
                                  .read_only = v->read_only,
                                  .fs_group = -1 };
}

static enum err_code attach(const struct flex_volume *v, const char *options, char device[256], struct err *e)
{
    struct flex_answer answer;
    bool supported;

    if (ASK(v->program, &supported, &answer, e, "getvolumename", options) != ERR_OK) /* no answer is used */
        return e->code;
    if (ASK(v->program, &supported, &answer, e, "attach", options, v->node) != ERR_OK)
        return e->code;
    snprintf(device, 256, "%s", supported ? answer.device : "");
    if (ASK(v->program, &supported, &answer, e, "waitforattach", device, options) != ERR_OK)
        return e->code;
    if (supported && answer.device[0] != '\0')
        snprintf(device, 256, "%s", answer.device);
    return ERR_OK;
}

static enum err_code mount_device(const struct flex_volume *v, struct err *e)
{
    char place[PATH_SIZE], device[256] = "";
    struct storage_spec disk = as_disk(v);
    str_auto options = flex_options(v, false);
    struct flex_answer answer;
    bool mounted = false, supported = true;

    device_place(v, place);
    if (options == NULL)
        return err_nomem(e);
    if (storage_is_mounted(place, &mounted, e) != ERR_OK || mounted)
        return e->code;
    if (attach(v, options, device, e) != ERR_OK || storage_make_folder(place, e) != ERR_OK)
        return e->code;
    if (ASK(v->program, &supported, &answer, e, "mountdevice", place, device, options) != ERR_OK) {
        rmdir(place);
        return e->code;
    }
    if (supported)
        return ERR_OK;
    if (device[0] == '\0')
        return err_set(e, ERR_PRECONDITION, "the driver names no device to mount");
    return storage_mount_device(&disk, device, place, e);
}

static enum err_code mount_target(const struct flex_volume *v, struct err *e)
{
    char place[PATH_SIZE];
    struct storage_spec disk = as_disk(v);
    char *options = flex_options(v, true);
    struct flex_answer answer;
    bool supported = true;

    device_place(v, place);
    if (options == NULL)
        return err_nomem(e);
    ERR_IGNORE(ASK(v->program, &supported, &answer, e, "mount", v->target, options));
    explicit_bzero(options, strlen(options));
    free(options);
    if (e->code != ERR_OK || supported)
        return e->code;
    return v->caps.attach ? storage_bind(&disk, place, e)
                          : err_set(e, ERR_UNIMPLEMENTED, "the driver does not support mount");
}

enum err_code flex_mount(const struct flex_volume *v, struct err *e)
{
    bool mounted = false;

    if (storage_is_mounted(v->target, &mounted, e) != ERR_OK || mounted)
        return e->code;
    if (v->caps.attach && mount_device(v, e) != ERR_OK)
        return e->code;
    if (storage_make_folder(v->target, e) != ERR_OK)
        return e->code;
    if (mount_target(v, e) != ERR_OK) {
        rmdir(v->target);
        return e->code;
    }
    if (v->fs_group < 0 || v->read_only || !v->caps.fs_group ||
        (v->group_if_wrong && vol_group_is(v->target, v->fs_group)))
        return ERR_OK;
    return vol_group_set(v->target, v->fs_group, e);
}

/* ---- the end ---- */

struct users {
    const char *end; /* "/volumes/VENDOR~DRIVER/NAME" */
    bool some;
};

static bool note_user(const struct fs_mount *m, void *arg)
{
    struct users *u = arg;
    size_t n = strlen(m->point), k = strlen(u->end);

    u->some = u->some || (n > k && strcmp(m->point + n - k, u->end) == 0);
    return !u->some;
}

static enum err_code is_used(const struct flex_volume *v, bool *ret, struct err *e)
{
    char pods[600], end[600];
    struct users u = { .end = end };

    snprintf(pods, sizeof(pods), "%.500s/pods", v->root);
    snprintf(end, sizeof(end), "/volumes/%.250s/%.253s", v->dir_name, v->name);
    if (fs_each_mount(pods, note_user, &u, e) != ERR_OK)
        return e->code;
    *ret = u.some;
    return ERR_OK;
}

static enum err_code unmount_device(const struct flex_volume *v, unsigned patience_ms, struct err *e)
{
    char place[PATH_SIZE];
    struct flex_answer answer;
    bool supported = true, used = true;

    device_place(v, place);
    if (access(place, F_OK) != 0)
        return ERR_OK;
    if (is_used(v, &used, e) != ERR_OK || used)
        return e->code;
    if (ASK(v->program, &supported, &answer, e, "unmountdevice", place) != ERR_OK)
        return e->code;
    if (!supported && storage_unmount(place, patience_ms, e) != ERR_OK)
        return e->code;
    rmdir(place);
    return ASK(v->program, &supported, &answer, e, "detach", v->name, v->node);
}

enum err_code flex_unmount(const struct flex_volume *v, unsigned patience_ms, struct err *e)
{
    struct flex_answer answer;
    bool supported = true;

    if (storage_unmount_sub_paths(v->root, v->pod_uid, v->target, patience_ms, e) != ERR_OK)
        return e->code;
    if (ASK(v->program, &supported, &answer, e, "unmount", v->target) != ERR_OK)
        return e->code;
    if (!supported && storage_unmount(v->target, patience_ms, e) != ERR_OK)
        return e->code;
    if (rmdir(v->target) != 0 && errno != ENOENT && errno != ENOTEMPTY)
        return err_sys(e, errno, "remove %s", v->target);
    return unmount_device(v, patience_ms, e);
}
