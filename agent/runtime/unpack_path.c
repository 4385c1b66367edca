#include "agent/runtime/unpack.h"

#include "base/fs.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { ELEMENT_MAX = NAME_MAX, WHOLE_MAX = 4096 };

void unpack_path_init(struct unpack_path *p, int root)
{
    p->root = root;
    p->dir = root;
    p->parent[0] = '\0';
}

void unpack_path_forget(struct unpack_path *p)
{
    if (p->dir != p->root)
        close(p->dir);
    unpack_path_init(p, p->root);
}

enum err_code unpack_path_clean(const char *name, char *ret, struct err *e)
{
    char clean[WHOLE_MAX + 1];
    size_t out = 0;

    for (const char *at = name; *at != '\0';) {
        size_t n = strcspn(at, "/");

        if (n == 2 && memcmp(at, "..", 2) == 0)
            return err_set(e, ERR_INVALID, "path \"%.200s\" climbs with \"..\"", name);
        if (n > ELEMENT_MAX)
            return err_set(e, ERR_INVALID, "path \"%.200s...\" has an element of over %d bytes", name,
                           ELEMENT_MAX);
        if (n > 0 && !(n == 1 && at[0] == '.')) {
            if (out + n + 1 > WHOLE_MAX)
                return err_set(e, ERR_INVALID, "path \"%.200s...\" is longer than %d bytes", name, WHOLE_MAX);
            if (out > 0)
                clean[out++] = '/';
            memcpy(clean + out, at, n);
            out += n;
        }
        at += n;
        at += *at == '/';
    }
    memcpy(ret, clean, out);
    ret[out] = '\0';
    return ERR_OK;
}

/* One step down from `at`, never through a symbolic link; a missing folder is made when wanted. */
static int step(int at, const char *element, const char *path, bool make, struct unpack_budget *spend,
                struct err *e)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, element, flags);

    if (fd < 0 && errno == ENOENT && make) {
        if (unpack_spend_entry(spend, e) != ERR_OK)
            return -1;
        if (mkdirat(at, element, 0755) != 0) {
            err_sys(e, errno, "make folder \"%s\" of \"%.200s\"", element, path);
            return -1;
        }
        fd = openat(at, element, flags);
    }
    if (fd >= 0)
        return fd;
    if (errno == ENOTDIR || errno == ELOOP)
        err_set(e, ERR_INVALID, "path \"%.200s\" goes through \"%s\", which is no folder", path, element);
    else
        err_sys(e, errno, "open folder \"%s\" of \"%.200s\"", element, path);
    return -1;
}

int unpack_path_parent(struct unpack_path *p, const char *path, bool make, struct unpack_budget *spend,
                       const char **ret_leaf, struct err *e)
{
    const char *slash = strrchr(path, '/'), *leaf = slash == NULL ? path : slash + 1;
    size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    char parent[WHOLE_MAX + 1];
    int at = p->root;

    if (strlen(p->parent) == n && memcmp(p->parent, path, n) == 0) {
        *ret_leaf = leaf;
        return p->dir;
    }
    memcpy(parent, path, n);
    parent[n] = '\0';

    for (char *element = parent, *next; n > 0 && element != NULL; element = next) {
        int fd;

        next = strchr(element, '/');
        if (next != NULL)
            *next++ = '\0';
        fd = step(at, element, path, make, spend, e);
        if (at != p->root)
            close(at);
        if (fd < 0)
            return -1;
        at = fd;
    }

    unpack_path_forget(p);
    p->dir = at;
    memcpy(p->parent, path, n);
    p->parent[n] = '\0';
    *ret_leaf = leaf;
    return at;
}
