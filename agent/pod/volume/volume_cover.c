/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/volume_cover.h"

#include "base/files/fs.h"

#include <limits.h>
#include <string.h>

/* Returns false if the path leads out by ".." or is too long. */
static bool volume_cover_clean(const char *path, char *ret, size_t size)
{
    int n = snprintf(ret, size, "%s", path);

    return n >= 0 && (size_t)n < size && (fs_path_clean(ret)[0] == '\0' || fs_path_is_safe(ret));
}

bool volume_cover_rest(const char *outer, const char *inner, char *ret, size_t size)
{
    char a[PATH_MAX], b[PATH_MAX];
    size_t n;

    if (!volume_cover_clean(outer, a, sizeof(a)) || !volume_cover_clean(inner, b, sizeof(b)))
        return false;
    n = strlen(a);
    if (n == 0 || strncmp(a, b, n) != 0 || b[n] != '/' || strlen(b + n + 1) >= size)
        return false;
    snprintf(ret, size, "%s", b + n + 1);
    return true;
}

enum err_code volume_cover_make(const struct pod *p, const struct api_volume *v, struct err *e)
{
    char rest[PATH_MAX];

    for (size_t c = 0; c < p->n_ctrs; c++) {
        const struct api_container *s = p->ctrs[c]->spec;
        for (size_t i = 0; i < s->n_mounts; i++) {
            const struct api_volume_mount *outer = &s->mounts[i];
            if (strcmp(outer->name, v->name) != 0 || api_mount_has_sub_path(outer))
                continue; /* a subPath shows only a part of the volume or a file, so nothing is made in it */
            for (size_t k = 0; k < s->n_mounts; k++)
                if (volume_cover_rest(outer->mount_path, s->mounts[k].mount_path, rest, sizeof(rest)) &&
                    vol_payload_mount_point(p->node->o.volumes, p->uid, v->name, rest, e) != ERR_OK)
                    return e->code;
        }
    }
    return ERR_OK;
}
