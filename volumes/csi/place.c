/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/place.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODE_FOLDER 0750 /* kubelet's */
#define MODE_FILE 0644

static enum err_code place(char *ret, size_t size, struct err *e, const char *fmt, ...)
    PRINTF_LIKE(4, 5) MUST_CHECK;

static enum err_code place(char *ret, size_t size, struct err *e, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(ret, size, fmt, ap);
    va_end(ap);
    return n > 0 && (size_t)n < size
               ? ERR_OK
               : err_set(e, ERR_INVALID, "the path of a CSI volume is longer than %zu bytes", size - 1);
}

static enum err_code check(const char *what, const char *name, struct err *e)
{
    if (fs_path_is_safe(name) && strchr(name, '/') == NULL)
        return ERR_OK;
    return err_set(e, ERR_INVALID, "%s \"%.100s\" cannot be the name of a folder", what, name);
}

enum err_code csi_place_all(const char *root, const char *uid, char *ret, size_t size, struct err *e)
{
    if (check("pod uid", uid, e) != ERR_OK)
        return e->code;
    return place(ret, size, e, "%s/pods/%s/" CSI_VOLUMES, root, uid);
}

enum err_code csi_place_folder(const char *root, const char *uid, const char *volume, char *ret, size_t size,
                               struct err *e)
{
    if (check("pod uid", uid, e) != ERR_OK || check("volume", volume, e) != ERR_OK)
        return e->code;
    return place(ret, size, e, "%s/pods/%s/" CSI_VOLUMES "/%s", root, uid, volume);
}

enum err_code csi_place_target(const char *root, const char *uid, const char *volume, char *ret, size_t size,
                               struct err *e)
{
    if (check("pod uid", uid, e) != ERR_OK || check("volume", volume, e) != ERR_OK)
        return e->code;
    return place(ret, size, e, "%s/pods/%s/" CSI_VOLUMES "/%s/mount", root, uid, volume);
}

/* ---- in a child ---- */

enum err_code csi_place_make(const char *folder, const struct csi_vol_data *d, struct err *e)
{
    str_auto text = csi_vol_data_text(d);
    str_auto path = str_printf("%s/" CSI_VOL_DATA, folder);

    if (text == NULL || path == NULL)
        return err_nomem(e);
    if (fs_mkdirs(folder, MODE_FOLDER, e) != ERR_OK ||
        fs_replace_at(AT_FDCWD, path, text, strlen(text), MODE_FILE, true, e) != ERR_OK)
        return e->code;
    return ERR_OK;
}

static enum err_code remove_folder(const char *path, struct err *e)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return ERR_OK;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "%s holds files: it is kept", path);
    if (errno == EBUSY)
        return err_set(e, ERR_PRECONDITION, "%s is still mounted", path);
    return err_sys(e, errno, "remove %s", path);
}

static enum err_code remove_target(const char *path, struct err *e)
{
    switch (presence_of(fs_look_mountpoint(path, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_PRESENT:
        return err_set(e, ERR_PRECONDITION, "%s is still mounted", path);
    case PRESENCE_ABSENT:
        break;
    }
    return remove_folder(path, e);
}

enum err_code csi_place_remove(const char *folder, struct err *e)
{
    str_auto target = str_printf("%s/mount", folder);
    str_auto file = str_printf("%s/" CSI_VOL_DATA, folder);

    if (target == NULL || file == NULL)
        return err_nomem(e);
    if (remove_target(target, e) != ERR_OK)
        return e->code;
    if (unlink(file) != 0 && errno != ENOENT)
        return err_sys(e, errno, "remove %s", file);
    return remove_folder(folder, e);
}

struct listing {
    const char *all;
    json_t *list;
};

static json_t *list_one(const char *all, const char *name)
{
    str_auto path = str_printf("%s/%s/" CSI_VOL_DATA, all, name);
    struct csi_vol_data d = { 0 };
    struct err e = { 0 };
    str_auto text = NULL;
    json_t *o = NULL;
    size_t n = 0;

    if (path == NULL)
        return NULL;
    if (fs_read_at(AT_FDCWD, path, CSI_VOL_DATA_MAX, &text, &n, &e) == ERR_OK &&
        csi_vol_data_read(&d, text, n, &e) == ERR_OK)
        o = json_pack("{s:s, s:s, s:s}", "name", name, "driver", d.driver, "handle", d.handle);
    else
        o = json_pack("{s:s, s:o*}", "name", name, "error", json_string_of(e.text));
    csi_vol_data_done(&d);
    return o;
}

static bool add_one(const char *name, void *arg)
{
    struct listing *l = arg;

    if (json_array_append_new(l->list, list_one(l->all, name)) == 0)
        return true;
    json_decref(l->list);
    l->list = NULL;
    return false;
}

enum err_code csi_place_list(const char *all, struct buf *out, struct err *e)
{
    struct listing l = { all, json_array() };

    if (l.list == NULL)
        return err_nomem(e);
    if (presence_is_unknown(fs_list(AT_FDCWD, all, add_one, &l, e))) {
        json_decref(l.list);
        return e->code;
    }
    json_add_text(out, l.list, false, 0); /* NULL, without memory: fails */
    json_decref(l.list);
    return buf_check(out, e);
}
