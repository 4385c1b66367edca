/* SPDX-License-Identifier: Apache-2.0 */
/* Finds mounted images that the store does not know: no record refers to their layers, but they are in use.
 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#define META_MAX (1u << 20)

struct looking {
    struct img_store *store;
    struct err *e;
};

static bool image_mounted_is_known(struct looking *l, const char *user, const char *id)
{
    if (id != NULL && img_find(l->store, id) != NULL)
        return true;
    err_set(l->e, ERR_PRECONDITION, "layers that no image names are kept: %.200s has image %.80s mounted",
            user, id != NULL ? id : "(unknown which)");
    return false;
}

/* A bundle whose root file system is mounted. */
static bool check_bundle(struct looking *l, const char *container)
{
    const char *run_dir = l->store->run_dir;
    str_auto rootfs = str_printf("%s/containers/%s/rootfs", run_dir, container);
    str_auto meta = str_printf("%s/containers/%s/meta.json", run_dir, container);
    json_auto_t *record = NULL;
    str_auto text = NULL;
    struct err damage = { 0 };
    struct presence mounted, found;
    size_t n = 0;

    if (rootfs == NULL || meta == NULL)
        return err_nomem(l->e), false;
    mounted = fs_look_mountpoint(rootfs, l->e);
    if (presence_is_unknown(mounted))
        return false;
    if (presence_is_absent(mounted))
        return true;
    found = fs_read_if_there(AT_FDCWD, meta, META_MAX, &text, &n, l->e);
    if (presence_is_unknown(found))
        return false;
    if (!presence_is_absent(found))
        ERR_IGNORE(json_parse(text, n, META_MAX, &record, meta, &damage));
    return image_mounted_is_known(l, container, json_str(record, "imageID"));
}

static bool image_mounted_on_bundle(const char *name, void *arg)
{
    return check_bundle(arg, name);
}

static bool on_mount(const struct fs_mount *m, void *arg)
{
    if (strcmp(m->fstype, "overlay") != 0 || !str_starts(m->source, "sha256:"))
        return true;
    return image_mounted_is_known(arg, m->point, m->source);
}

static enum err_code check_volumes(struct looking *l)
{
    str_auto real = realpath(l->store->pods_dir, NULL); /* as in mountinfo */

    if (real == NULL) {
        err_sys(l->e, errno, "stat %s", l->store->pods_dir);
        return presence_is_absent(presence_from_err(l->e)) ? ERR_OK : l->e->code;
    }
    ERR_IGNORE(fs_each_mount(real, on_mount, l, l->e));
    return l->e->code;
}

enum err_code img_check_mounted(struct img_store *s, struct err *e)
{
    struct looking l = { s, e };

    if (s->run_dir != NULL) {
        str_auto folder = str_printf("%s/containers", s->run_dir);

        if (folder == NULL)
            return err_nomem(e);
        if (presence_is_unknown(fs_list(AT_FDCWD, folder, image_mounted_on_bundle, &l, e)) ||
            e->code != ERR_OK)
            return e->code;
    }
    return s->pods_dir != NULL ? check_volumes(&l) : ERR_OK;
}
