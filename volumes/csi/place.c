/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/place.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

enum err_code csi_place_all(const char *root, const char *uid, char *ret, size_t size, struct err *e)
{
    if (csi_path_check("pod uid", uid, e) != ERR_OK)
        return e->code;
    return place(ret, size, e, "%s/pods/%s/" CSI_VOLUMES, root, uid);
}

enum err_code csi_place_folder(const char *root, const char *uid, const char *volume, char *ret, size_t size,
                               struct err *e)
{
    if (csi_path_check("pod uid", uid, e) != ERR_OK || csi_path_check("volume", volume, e) != ERR_OK)
        return e->code;
    return place(ret, size, e, "%s/pods/%s/" CSI_VOLUMES "/%s", root, uid, volume);
}

enum err_code csi_place_target(const char *root, const char *uid, const char *volume, char *ret, size_t size,
                               struct err *e)
{
    if (csi_path_check("pod uid", uid, e) != ERR_OK || csi_path_check("volume", volume, e) != ERR_OK)
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

enum err_code csi_place_remove_folder(const char *path, struct err *e)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return ERR_OK;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "%s contains files and is kept", path);
    if (errno == EBUSY)
        return err_set(e, ERR_PRECONDITION, "%s is still mounted", path);
    return err_sys(e, errno, "remove %s", path);
}

/* Of a block volume it is a file. */
static enum err_code remove_empty_file(const char *path, const struct stat *st, struct err *e)
{
    if (S_ISREG(st->st_mode) && st->st_size > 0)
        return err_set(e, ERR_UNAVAILABLE, "%s contains data and is kept", path);
    if (unlink(path) == 0 || errno == ENOENT)
        return ERR_OK;
    return errno == EBUSY ? err_set(e, ERR_PRECONDITION, "%s is still mounted", path)
                          : err_sys(e, errno, "remove %s", path);
}

enum err_code csi_place_remove_target(const char *path, struct err *e)
{
    struct stat st;

    switch (presence_of(fs_look_mountpoint(path, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_PRESENT:
        return err_set(e, ERR_PRECONDITION, "%s is still mounted", path);
    case PRESENCE_ABSENT:
        break;
    }
    if (lstat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return remove_empty_file(path, &st, e);
    return csi_place_remove_folder(path, e);
}

struct leavings {
    const char *folder;
    struct err e;
};

static bool remove_leaving(const char *name, void *arg)
{
    struct leavings *l = arg;
    str_auto path = str_printf("%s/%s", l->folder, name);

    if (!str_starts(name, "." CSI_VOL_DATA "."))
        return true;
    if (path == NULL)
        err_nomem(&l->e);
    else if (unlink(path) != 0 && errno != ENOENT)
        err_sys(&l->e, errno, "remove %s", path);
    return l->e.code == ERR_OK;
}

/* A leftover of a killed fs_replace_at(). */
static enum err_code remove_leavings(const char *folder, struct err *e)
{
    struct leavings l = { .folder = folder };

    if (presence_is_unknown(fs_list(AT_FDCWD, folder, remove_leaving, &l, e)))
        return e->code;
    if (l.e.code != ERR_OK)
        *e = l.e;
    return e->code;
}

enum err_code csi_place_remove_file(const char *folder, struct err *e)
{
    str_auto file = str_printf("%s/" CSI_VOL_DATA, folder);

    if (file == NULL)
        return err_nomem(e);
    if (remove_leavings(folder, e) != ERR_OK)
        return e->code;
    return unlink(file) == 0 || errno == ENOENT ? ERR_OK : err_sys(e, errno, "remove %s", file);
}

enum err_code csi_place_remove(const char *folder, struct err *e)
{
    str_auto target = str_printf("%s/mount", folder);

    if (target == NULL)
        return err_nomem(e);
    if (csi_place_remove_target(target, e) != ERR_OK || csi_place_remove_file(folder, e) != ERR_OK)
        return e->code;
    return csi_place_remove_folder(folder, e);
}

enum err_code csi_place_read(const char *folder, struct csi_vol_data *ret, struct err *e)
{
    str_auto path = str_printf("%s/" CSI_VOL_DATA, folder);
    str_auto text = NULL;
    size_t n = 0;

    if (path == NULL)
        return err_nomem(e);
    if (fs_read_at(AT_FDCWD, path, CSI_VOL_DATA_MAX, &text, &n, e) != ERR_OK)
        return e->code;
    return csi_vol_data_read(ret, text, n, e);
}

/* ---- mounts that show the same ---- */

struct twin {
    const char *of; /* a target */
    char *root, *source, *fstype;
    char *found;
};

static bool see_target(const struct fs_mount *m, void *arg)
{
    struct twin *t = arg;

    if (strcmp(m->point, t->of) != 0)
        return true;
    free(t->root);
    free(t->source);
    free(t->fstype);
    t->root = strdup(m->root);
    t->source = strdup(m->source);
    t->fstype = strdup(m->fstype);
    return true; /* the last one is on top */
}

static bool see_staged(const struct fs_mount *m, void *arg)
{
    struct twin *t = arg;

    if (!str_ends(m->point, "/" CSI_GLOBAL_MOUNT) || strcmp(m->root, t->root) != 0 ||
        strcmp(m->source, t->source) != 0 || strcmp(m->fstype, t->fstype) != 0)
        return true;
    t->found = strndup(m->point, strlen(m->point) - strlen("/" CSI_GLOBAL_MOUNT));
    return false;
}

char *csi_place_staged_at(const char *root, const char *target)
{
    str_auto all = str_printf("%s/" CSI_PLUGIN, root);
    struct twin t = { .of = target };

    if (all != NULL && fs_each_mount(target, see_target, &t, ERR_IGNORED) == ERR_OK && t.root != NULL &&
        t.source != NULL && t.fstype != NULL)
        ERR_IGNORE(fs_each_mount(all, see_staged, &t, ERR_IGNORED));
    free(t.root);
    free(t.source);
    free(t.fstype);
    return t.found;
}

/* ---- the list ---- */

struct listing {
    const char *root, *uid;
    char *all;
    bool block;
    json_t *list;
};

/* One whose file is lost, by its staged mount. */
static bool find_twin(const char *root, const char *folder, struct csi_vol_data *ret)
{
    str_auto target = str_printf("%s/mount", folder);
    str_auto device = target != NULL ? csi_place_staged_at(root, target) : NULL;

    csi_vol_data_done(ret);
    return device != NULL && csi_place_read(device, ret, ERR_IGNORED) == ERR_OK;
}

static json_t *list_one(const struct listing *l, const char *name)
{
    str_auto folder = l->block ? str_printf("%s/" CSI_PLUGIN "/volumeDevices/%s/data", l->root, name)
                               : str_printf("%s/%s", l->all, name);
    struct csi_vol_data d = { 0 };
    struct err e = { 0 };
    json_t *o;

    if (folder == NULL)
        return NULL;
    if (csi_place_read(folder, &d, &e) == ERR_OK || (!l->block && find_twin(l->root, folder, &d)))
        o = json_pack("{s:s, s:b, s:b, s:s, s:s}", "name", name, "block", l->block, "ephemeral", d.ephemeral,
                      "driver", d.driver, "handle", d.handle);
    else
        o = json_pack("{s:s, s:b, s:o*}", "name", name, "block", l->block, "error", json_string_of(e.text));
    csi_vol_data_done(&d);
    return o;
}

static bool add_one(const char *name, void *arg)
{
    struct listing *l = arg;

    if (json_array_append_new(l->list, list_one(l, name)) == 0)
        return true;
    json_decref(l->list);
    l->list = NULL;
    return false;
}

static enum err_code list_all(struct listing *l, const char *kind, bool block, struct err *e)
{
    str_auto all = str_printf("%s/pods/%s/%s", l->root, l->uid, kind);

    if (all == NULL)
        return err_nomem(e);
    l->all = all;
    l->block = block;
    if (presence_is_unknown(fs_list(AT_FDCWD, all, add_one, l, e)))
        return e->code;
    return l->list != NULL ? ERR_OK : err_nomem(e);
}

enum err_code csi_place_list(const char *root, const char *uid, struct buf *out, struct err *e)
{
    struct listing l = { .root = root, .uid = uid, .list = json_array() };

    if (csi_path_check("pod uid", uid, e) != ERR_OK) {
        json_decref(l.list);
        return e->code;
    }
    if (l.list == NULL)
        return err_nomem(e);
    if (list_all(&l, CSI_VOLUMES, false, e) == ERR_OK && list_all(&l, CSI_DEVICES, true, e) == ERR_OK)
        json_add_text(out, l.list, false, 0);
    json_decref(l.list);
    return e->code == ERR_OK ? buf_check(out, e) : e->code;
}
