/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/device_place.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define MODE_FOLDER 0750 /* kubelet's */

enum err_code csi_device_make(const struct csi_paths *p, const struct csi_vol_data *d, bool stages,
                              struct err *e)
{
    if (csi_place_make(p->device, d, e) != ERR_OK)
        return e->code;
    return stages ? fs_mkdirs(p->staging, MODE_FOLDER, e) : ERR_OK;
}

/* "<...>/volumeDevices/<volume>" */
static enum err_code remove_volume_folder(const char *device, struct err *e)
{
    str_auto folder = strndup(device, strlen(device) - strlen("/data"));

    return folder != NULL ? csi_place_remove_folder(folder, e) : err_nomem(e);
}

enum err_code csi_device_remove(const struct csi_paths *p, struct err *e)
{
    if (csi_place_remove_target(p->staging, e) != ERR_OK)
        return e->code;
    if (p->publish != NULL &&
        (csi_place_remove_folder(p->publish, e) != ERR_OK || csi_place_remove_folder(p->maps, e) != ERR_OK))
        return e->code;
    if (csi_place_remove_file(p->device, e) != ERR_OK || csi_place_remove_folder(p->device, e) != ERR_OK)
        return e->code;
    return p->publish != NULL ? remove_volume_folder(p->device, e) : ERR_OK;
}

/* ---- users ---- */

struct looking {
    const char *root, *uid;
    const struct csi_id *id;
    const struct csi_paths *paths;
    bool used;
    struct err e;
};

/* Whether a pod's volume folder belongs to the device. An unreadable one counts if its mount shows the same
 * device. */
static bool is_of(const struct looking *l, const char *folder)
{
    struct csi_vol_data d = { 0 };
    bool of;

    if (csi_place_read(folder, &d, ERR_IGNORED) == ERR_OK) {
        of = !d.ephemeral && strcmp(d.driver, l->id->driver) == 0 && strcmp(d.handle, l->id->handle) == 0;
    } else {
        str_auto target = str_printf("%s/mount", folder);
        str_auto device = target != NULL ? csi_place_staged_at(l->root, target) : NULL;

        of = device != NULL && strcmp(device, l->paths->device) == 0;
    }
    csi_vol_data_done(&d);
    return of;
}

static bool look_at_volume(const char *name, void *arg)
{
    struct looking *l = arg;
    str_auto folder = str_printf("%s/pods/%s/" CSI_VOLUMES "/%s", l->root, l->uid, name);

    if (folder == NULL)
        err_nomem(&l->e);
    else
        l->used = is_of(l, folder);
    return !l->used && l->e.code == ERR_OK;
}

static void look_at_link(struct looking *l, const char *link)
{
    switch (presence_of(fs_look_at(AT_FDCWD, link, NULL, &l->e))) {
    case PRESENCE_PRESENT:
        l->used = true;
        break;
    case PRESENCE_ABSENT:
    case PRESENCE_UNKNOWN:
        break;
    }
}

static bool look_at_pod(const char *uid, void *arg)
{
    struct looking *l = arg;
    str_auto all = l->id->block ? str_printf("%s/pods/%s/" CSI_DEVICES "/%s", l->root, uid, l->id->spec_name)
                                : str_printf("%s/pods/%s/" CSI_VOLUMES, l->root, uid);
    struct err e = { 0 };

    l->uid = uid;
    if (all == NULL)
        err_nomem(&l->e);
    else if (l->id->block)
        look_at_link(l, all);
    else if (presence_is_unknown(fs_list(AT_FDCWD, all, look_at_volume, l, &e)) && l->e.code == ERR_OK)
        l->e = e;
    return !l->used && l->e.code == ERR_OK;
}

enum err_code csi_device_state(const char *root, const struct csi_id *id, const struct csi_paths *p,
                               struct buf *out, struct err *e)
{
    struct looking l = { .root = root, .id = id, .paths = p };
    str_auto pods = str_printf("%s/pods", root);
    struct presence there = fs_look_at(AT_FDCWD, p->device, NULL, e);

    if (presence_is_unknown(there))
        return e->code;
    if (pods == NULL)
        return err_nomem(e);
    if (presence_is_unknown(fs_list(AT_FDCWD, pods, look_at_pod, &l, e)))
        return e->code;
    if (l.e.code != ERR_OK) {
        *e = l.e;
        return e->code;
    }
    buf_adds(out, l.used ? "used" : presence_is_absent(there) ? "" : "there");
    return buf_check(out, e);
}

/* ---- all of them ---- */

struct devices {
    const char *folder; /* <plugins>, or that of a driver */
    json_t *list;
    struct err e;
};

static bool add_device(struct devices *d, const char *folder, const char *block)
{
    struct csi_vol_data data = { 0 };
    struct err e = { 0 };
    json_t *o =
        csi_place_read(folder, &data, &e) == ERR_OK
            ? json_pack("{s:s, s:s, s:s*}", "driver", data.driver, "handle", data.handle, "name", block)
            : json_pack("{s:s, s:o*, s:s*}", "folder", folder, "error", json_string_of(e.text), "name",
                        block);

    csi_vol_data_done(&data);
    if (json_array_append_new(d->list, o) != 0)
        err_nomem(&d->e);
    return d->e.code == ERR_OK;
}

static bool add_hash(const char *name, void *arg)
{
    struct devices *d = arg;
    str_auto folder = str_printf("%s/%s", d->folder, name);

    return folder == NULL ? (err_nomem(&d->e), false) : add_device(d, folder, NULL);
}

static bool add_block(const char *name, void *arg)
{
    struct devices *d = arg;
    str_auto folder = str_printf("%s/%s/data", d->folder, name);

    if (strcmp(name, "staging") == 0 || strcmp(name, "publish") == 0)
        return true;
    return folder == NULL ? (err_nomem(&d->e), false) : add_device(d, folder, name);
}

static bool add_driver(const char *name, void *arg)
{
    const char *all = ((struct devices *)arg)->folder;
    struct devices *d = arg;
    str_auto folder = str_printf("%s/%s", all, name);
    struct err e = { 0 };

    if (folder == NULL) {
        err_nomem(&d->e);
        return false;
    }
    d->folder = folder;
    if (presence_is_unknown(
            fs_list(AT_FDCWD, folder, strcmp(name, "volumeDevices") == 0 ? add_block : add_hash, d, &e)))
        d->e = e;
    d->folder = all;
    return d->e.code == ERR_OK;
}

enum err_code csi_devices_list(const char *root, struct buf *out, struct err *e)
{
    str_auto all = str_printf("%s/" CSI_PLUGIN, root);
    struct devices d = { .folder = all, .list = json_array() };

    if (all == NULL || d.list == NULL)
        err_nomem(e);
    else if (!presence_is_unknown(fs_list(AT_FDCWD, all, add_driver, &d, e))) {
        if (d.e.code != ERR_OK)
            *e = d.e;
        else
            json_add_text(out, d.list, false, 0);
    }
    json_decref(d.list);
    return e->code == ERR_OK ? buf_check(out, e) : e->code;
}
