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

static struct storage_spec as_disk(const struct flex_volume *v)
{
    return (struct storage_spec){ .root = v->root,
                                  .name = v->name,
                                  .target = v->target,
                                  .fs_type = v->fs_type,
                                  .read_only = v->read_only,
                                  .fs_group = -1 };
}

static enum err_code attach(const struct flex_volume *v, const char *options, char device[FLEX_DEVICE_SIZE],
                            struct err *e)
{
    struct flex_answer answer;
    bool supported = false;

    if (FLEX_ASK(v->program, &supported, &answer, e, "getvolumename", options) != ERR_OK)
        return e->code; /* its answer is not used, as by kubelet */
    answer.device[0] = '\0';
    if (v->device == NULL &&
        FLEX_ASK(v->program, &supported, &answer, e, "attach", options, v->node) != ERR_OK)
        return e->code;
    snprintf(device, FLEX_DEVICE_SIZE, "%.255s",
             v->device != NULL ? v->device
             : supported       ? answer.device
                               : "");
    if (FLEX_ASK(v->program, &supported, &answer, e, "waitforattach", device, options) != ERR_OK)
        return e->code;
    if (supported && answer.device[0] != '\0')
        snprintf(device, FLEX_DEVICE_SIZE, "%s", answer.device);
    return ERR_OK;
}

/* What was attached is let go by whoever attached it. */
static enum err_code give_up(const struct flex_volume *v, const char *place, struct err *e)
{
    if (v->device == NULL)
        ERR_IGNORE(flex_device_detach(v, ERR_IGNORED));
    rmdir(place);
    return e->code;
}

static enum err_code mount_device(const struct flex_volume *v, const char *place, struct err *e)
{
    char device[FLEX_DEVICE_SIZE] = "";
    struct storage_spec disk = as_disk(v);
    str_auto options = flex_options(v, false);
    struct flex_answer answer;
    bool mounted = false, supported = true;

    if (options == NULL)
        return err_nomem(e);
    if (storage_is_mounted(place, &mounted, e) != ERR_OK || mounted)
        return e->code;
    if (storage_make_folder(place, e) != ERR_OK)
        return e->code;
    storage_at(v->step, STORAGE_ATTACH);
    if (attach(v, options, device, e) != ERR_OK)
        return give_up(v, place, e);
    storage_at(v->step, STORAGE_MOUNT_DEVICE);
    if (FLEX_ASK(v->program, &supported, &answer, e, "mountdevice", place, device, options) != ERR_OK)
        return give_up(v, place, e);
    if (supported)
        return ERR_OK;
    if (device[0] != '/')
        err_set(e, ERR_PRECONDITION, "the driver returned no device to mount");
    else
        ERR_IGNORE(storage_mount_disk(&disk, device, place, e));
    return e->code == ERR_OK ? ERR_OK : give_up(v, place, e);
}

static enum err_code mount_target(const struct flex_volume *v, const char *place, struct err *e)
{
    struct storage_spec disk = as_disk(v);
    char *options = flex_options(v, true);
    struct flex_answer answer;
    bool supported = true;

    if (options == NULL)
        return err_nomem(e);
    ERR_IGNORE(FLEX_ASK(v->program, &supported, &answer, e, "mount", v->target, options));
    explicit_bzero(options, strlen(options));
    free(options);
    if (e->code != ERR_OK || supported)
        return e->code;
    return v->caps.attach ? storage_bind(&disk, place, e)
                          : err_set(e, ERR_UNIMPLEMENTED, "the driver does not support mount");
}

static enum err_code mount_both(const struct flex_volume *v, struct err *e)
{
    char place[FLEX_PATH_SIZE];
    fd_auto lock = -1;

    flex_device_place(v, place);
    if (v->caps.attach &&
        (flex_device_lock(v, true, &lock, e) != ERR_OK || mount_device(v, place, e) != ERR_OK))
        return e->code;
    storage_at(v->step, STORAGE_SET_UP);
    return mount_target(v, place, e);
}

enum err_code flex_mount(const struct flex_volume *v, struct err *e)
{
    bool mounted = false;

    if (storage_is_mounted(v->target, &mounted, e) != ERR_OK || mounted)
        return e->code;
    if (storage_make_folder(v->target, e) != ERR_OK) /* first: it makes the pod a user of the device */
        return e->code;
    if (mount_both(v, e) != ERR_OK) {
        rmdir(v->target);
        return e->code;
    }
    if (v->fs_group < 0 || v->read_only || !v->caps.fs_group ||
        (v->group_if_wrong && vol_group_is(v->target, v->fs_group)))
        return ERR_OK;
    return vol_group_set(v->target, v->fs_group, e);
}
