/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/paths.h"

#include "base/files/fs.h"
#include "volumes/csi/volume.h"

#include <string.h>

struct making {
    struct arena *memory;
    struct err *e;
};

enum err_code csi_path_check(const char *what, const char *name, struct err *e)
{
    if (fs_path_is_safe(name) && strchr(name, '/') == NULL)
        return ERR_OK;
    return err_set(e, ERR_INVALID, "%s \"%.100s\" cannot be the name of a folder", what, name);
}

/* Remembers the first error. */
static const char *checked(const struct making *m, const char *path)
{
    if (path == NULL)
        err_nomem(m->e);
    else if (strlen(path) >= CSI_PATH_SIZE)
        err_set(m->e, ERR_INVALID, "the path of a CSI volume is longer than %d bytes", CSI_PATH_SIZE - 1);
    return path;
}

#define MAKE(m, ...) checked((m), arena_printf((m)->memory, __VA_ARGS__))

static void make_block(const struct making *m, const char *root, const struct csi_id *id, const char *uid,
                       struct csi_paths *p)
{
    if (id->spec_name == NULL)
        return;
    p->device = MAKE(m, "%s/" CSI_PLUGIN "/volumeDevices/%s/data", root, id->spec_name);
    p->staging = MAKE(m, "%s/" CSI_PLUGIN "/volumeDevices/staging/%s", root, id->spec_name);
    p->publish = MAKE(m, "%s/" CSI_PLUGIN "/volumeDevices/publish/%s", root, id->spec_name);
    p->maps = MAKE(m, "%s/" CSI_PLUGIN "/volumeDevices/%s/dev", root, id->spec_name);
    if (uid == NULL || m->e->code != ERR_OK)
        return;
    p->folder = p->publish;
    p->target = MAKE(m, "%s/%s", p->publish, uid);
    p->map = MAKE(m, "%s/%s", p->maps, uid);
    p->link = MAKE(m, "%s/pods/%s/" CSI_DEVICES "/%s", root, uid, id->spec_name);
}

static void make_mount(const struct making *m, const char *root, const struct csi_id *id, const char *uid,
                       struct csi_paths *p)
{
    char hashed[CSI_HASHED_SIZE];

    if (!id->ephemeral && id->driver != NULL && id->handle != NULL) {
        csi_handle_hash(id->handle, hashed);
        p->device = MAKE(m, "%s/" CSI_PLUGIN "/%s/%s", root, id->driver, hashed);
        p->staging = MAKE(m, "%s/" CSI_PLUGIN "/%s/%s/" CSI_GLOBAL_MOUNT, root, id->driver, hashed);
    }
    if (uid == NULL || id->spec_name == NULL)
        return;
    p->folder = MAKE(m, "%s/pods/%s/" CSI_VOLUMES "/%s", root, uid, id->spec_name);
    p->target = MAKE(m, "%s/pods/%s/" CSI_VOLUMES "/%s/mount", root, uid, id->spec_name);
}

enum err_code csi_paths_make(struct csi_paths *ret, const char *root, const struct csi_id *id,
                             const char *pod_uid, struct arena *memory, struct err *e)
{
    const struct making m = { memory, e };
    struct csi_paths p = { 0 };

    if ((pod_uid != NULL && csi_path_check("pod uid", pod_uid, e) != ERR_OK) ||
        (id->spec_name != NULL && csi_path_check("volume", id->spec_name, e) != ERR_OK) ||
        (id->driver != NULL && csi_path_check("driver", id->driver, e) != ERR_OK))
        return e->code;
    if (id->block)
        make_block(&m, root, id, pod_uid, &p);
    else
        make_mount(&m, root, id, pod_uid, &p);
    if (e->code == ERR_OK)
        *ret = p;
    return e->code;
}
