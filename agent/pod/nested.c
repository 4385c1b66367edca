#include "agent/pod/nested.h"

#include "base/fs.h"

#include <limits.h>
#include <string.h>

/* "//a/./b/" -> "a/b"; false: "..", or too long. */
static bool clean(const char *path, char *ret, size_t size)
{
    size_t n = 0;

    ret[0] = '\0';
    while (*path != '\0') {
        size_t k = strcspn(path, "/");
        if (k == 2 && strncmp(path, "..", 2) == 0)
            return false;
        if (k > 0 && !(k == 1 && path[0] == '.')) {
            int written = snprintf(ret + n, size - n, "%s%.*s", n > 0 ? "/" : "", (int)k, path);
            if (written < 0 || (size_t)written >= size - n)
                return false;
            n += (size_t)written;
        }
        path += k + (path[k] == '/');
    }
    return true;
}

bool nested_rest(const char *outer, const char *inner, char *ret, size_t size)
{
    char a[PATH_MAX], b[PATH_MAX];
    size_t n;

    if (!clean(outer, a, sizeof(a)) || !clean(inner, b, sizeof(b)))
        return false;
    n = strlen(a);
    if (n == 0 || strncmp(a, b, n) != 0 || b[n] != '/' || strlen(b + n + 1) >= size)
        return false;
    snprintf(ret, size, "%s", b + n + 1);
    return true;
}

enum err_code nested_make(const struct pod *p, const struct api_volume *v, struct err *e)
{
    char rest[PATH_MAX];

    for (size_t c = 0; c < p->n_ctrs; c++) {
        const struct api_container *s = p->ctrs[c].spec;
        for (size_t i = 0; i < s->n_mounts; i++) {
            const struct api_volume_mount *outer = &s->mounts[i];
            if (strcmp(outer->name, v->name) != 0 || api_mount_has_sub_path(outer))
                continue; /* what that shows is a part of the volume, or a file: nothing is made in it */
            for (size_t k = 0; k < s->n_mounts; k++)
                if (nested_rest(outer->mount_path, s->mounts[k].mount_path, rest, sizeof(rest)) &&
                    vol_payload_mount_point(p->node->o.volumes, p->uid, v->name, rest, e) != ERR_OK)
                    return e->code;
        }
    }
    return ERR_OK;
}
