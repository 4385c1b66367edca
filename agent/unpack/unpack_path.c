/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"
#include "agent/unpack/unpack_node.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum {
    ELEMENT_MAX = NAME_MAX,
    WHOLE_MAX = 4096,
    LINKS_MAX = 40, /* on one path, as in the kernel: no container could follow more either */
};

void unpack_path_init(struct unpack_path *p, int root)
{
    *p = (struct unpack_path){ .root = root, .dir = root };
}

void unpack_path_forget(struct unpack_path *p)
{
    if (p->dir != p->root)
        close(p->dir);
    p->dir = p->root;
    p->parent[0] = '\0';
}

enum err_code unpack_path_clean(const char *name, char *ret, struct err *e)
{
    char clean[WHOLE_MAX + 1];
    size_t out = 0;

    for (const char *at = name; *at != '\0';) {
        size_t n = strcspn(at, "/");

        if (n == 2 && memcmp(at, "..", 2) == 0)
            return err_set(e, ERR_INVALID, "path \"%.200s\" contains \"..\"", name);
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
    clean[out] = '\0';
    memcpy(ret, clean, out + 1);
    return ERR_OK;
}

/* ---- the way to a folder ----------------------------------------------------------------------- */

struct walk {
    struct unpack_path *p;
    const char *path;            /* for messages */
    struct unpack_budget *spend; /* NULL: nothing is created */
    int at;                      /* the current folder; p->root is borrowed, any other is ours */
    char done[WHOLE_MAX + 1];    /* the path of `at`, without links */
    char rest[WHOLE_MAX + 1];    /* the elements still to resolve */
    unsigned links;
};

enum { FOLDER = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static void unpack_path_move(struct walk *w, int fd)
{
    if (w->at != w->p->root)
        close(w->at);
    w->at = fd;
}

static enum err_code too_long(const struct walk *w, struct err *e)
{
    return err_set(e, ERR_INVALID, "path \"%.200s\" is longer than %d bytes after its links are resolved",
                   w->path, WHOLE_MAX);
}

/* Moves up as in a chroot: ".." of the root is the root itself. */
static enum err_code unpack_path_go_up(struct walk *w, struct err *e)
{
    char *slash = strrchr(w->done, '/');
    int fd = w->p->root;

    if (slash != NULL && (fd = openat(w->at, "..", FOLDER)) < 0)
        return err_sys(e, errno, "open the folder above \"%.200s\"", w->done);
    unpack_path_move(w, fd);
    *(slash != NULL ? slash : w->done) = '\0';
    return ERR_OK;
}

/* Puts the link's target in front of the rest. */
static enum err_code unpack_path_follow(struct walk *w, const char *target, struct err *e)
{
    const size_t n = strlen(target), left = strlen(w->rest);

    if (++w->links > LINKS_MAX)
        return err_set(e, ERR_INVALID, "path \"%.200s\" goes through more than %d symbolic links", w->path,
                       LINKS_MAX);
    if (n + 1 + left > WHOLE_MAX)
        return too_long(w, e);
    memmove(w->rest + n + 1, w->rest, left + 1);
    memcpy(w->rest, target, n);
    w->rest[n] = '/';
    if (target[0] == '/') {
        unpack_path_move(w, w->p->root);
        w->done[0] = '\0';
    }
    return ERR_OK;
}

/*
 * Creates a folder that the tar does not contain, or not yet.  `covers`: it replaces a whiteout of this
 * layer.
 */
static enum err_code unpack_path_make_folder(struct walk *w, const char *element, bool covers, int *ret,
                                             struct err *e)
{
    struct unpack_path *p = w->p;
    fd_auto fd = -1;

    if (unpack_spend_entry(w->spend, e) != ERR_OK)
        return e->code;
    if ((covers && unlinkat(w->at, element, 0) != 0) || mkdirat(w->at, element, 0755) != 0)
        return err_sys(e, errno, "create folder \"%s\" of \"%.200s\"", element, w->path);
    if (covers) {
        fd_auto opaque = openat(w->at, element, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (opaque < 0)
            return err_sys(e, errno, "open folder \"%s\" of \"%.200s\"", element, w->path);
        if (unpack_set_opaque(opaque, w->path, e) != ERR_OK)
            return e->code;
    } else if (p->on_made != NULL && p->on_made(p->arg, w->at, element, w->done, e) != ERR_OK) {
        return e->code;
    }
    fd = openat(w->at, element, FOLDER);
    if (fd < 0)
        return err_sys(e, errno, "open folder \"%s\" of \"%.200s\"", element, w->path);
    *ret = take_fd(&fd);
    return ERR_OK;
}

static enum err_code unpack_path_go_down(struct walk *w, const char *element, struct err *e)
{
    const size_t n = strlen(w->done);
    char target[WHOLE_MAX + 1];
    struct stat st;
    int fd = openat(w->at, element, FOLDER), why = errno;
    ssize_t length;

    if (fd < 0 && (why == ENOTDIR || why == ELOOP)) {
        length = readlinkat(w->at, element, target, sizeof(target) - 1);
        if (length >= 0) {
            target[length] = '\0';
            return unpack_path_follow(w, target, e);
        }
    }
    if (n + 1 + strlen(element) > WHOLE_MAX) {
        if (fd >= 0)
            close(fd);
        return too_long(w, e);
    }
    if (n > 0)
        w->done[n] = '/';
    strcpy(w->done + n + (n > 0), element);
    if (fd < 0 && w->spend != NULL && why == ENOENT) {
        if (unpack_path_make_folder(w, element, false, &fd, e) != ERR_OK)
            return e->code;
    } else if (fd < 0 && w->spend != NULL && fstatat(w->at, element, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               unpack_is_whiteout(&st)) {
        if (unpack_path_make_folder(w, element, true, &fd, e) != ERR_OK)
            return e->code;
    } else if (fd < 0 && why == ENOTDIR) {
        return err_set(e, ERR_INVALID, "path \"%.200s\" goes through \"%s\", which is not a folder", w->path,
                       element);
    } else if (fd < 0) {
        return err_sys(e, why, "open folder \"%s\" of \"%.200s\"", element, w->path);
    }
    unpack_path_move(w, fd);
    return ERR_OK;
}

static enum err_code unpack_path_walk(struct walk *w, struct err *e)
{
    char element[ELEMENT_MAX + 1];

    for (;;) {
        const size_t from = strspn(w->rest, "/"), n = strcspn(w->rest + from, "/");

        if (n == 0)
            return ERR_OK;
        if (n > ELEMENT_MAX) /* possible in a link's target only */
            return err_set(e, ERR_INVALID,
                           "path \"%.200s\": a link on its way has an element of over %d bytes", w->path,
                           ELEMENT_MAX);
        memcpy(element, w->rest + from, n);
        element[n] = '\0';
        memmove(w->rest, w->rest + from + n, strlen(w->rest + from + n) + 1);
        if (strcmp(element, ".") == 0)
            continue;
        if ((strcmp(element, "..") == 0 ? unpack_path_go_up(w, e) : unpack_path_go_down(w, element, e)) !=
            ERR_OK)
            return e->code;
    }
}

int unpack_path_parent(struct unpack_path *p, const char *path, struct unpack_budget *make,
                       const char **ret_leaf, struct err *e)
{
    const char *slash = strrchr(path, '/'), *leaf = slash == NULL ? path : slash + 1;
    size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    struct walk w = { .p = p, .path = path, .spend = make, .at = p->root };

    if (strlen(p->parent) == n && memcmp(p->parent, path, n) == 0) {
        *ret_leaf = leaf;
        return p->dir;
    }
    memcpy(w.rest, path, n);
    if (unpack_path_walk(&w, e) != ERR_OK) {
        unpack_path_move(&w, p->root);
        return -1;
    }
    unpack_path_forget(p);
    p->dir = w.at;
    memcpy(p->parent, path, n);
    p->parent[n] = '\0';
    *ret_leaf = leaf;
    return p->dir;
}
