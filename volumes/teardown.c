/* SPDX-License-Identifier: Apache-2.0 */
/*
 * teardown - removes everything of one pod: first its mounts, as found in mountinfo, then its folders. Uses
 * paths because the forked child that runs this has none of the node's descriptors.
 *
 * Only our own mounts are unmounted. If someone else (root of the host, or a container with Bidirectional
 * propagation) mounted something below a volume, that volume is kept until the mount is gone; the other
 * volumes are removed.
 */
#include "base/array.h"
#include "base/files/fs.h"
#include "volumes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#define PASSES 16 /* mounts may be hidden by others, or appear meanwhile */
#define EMPTY_DIRS "volumes/kubernetes.io~empty-dir/"
#define IMAGES "volumes/kubernetes.io~image/"
#define SUB_PATHS "volume-subpaths/"

struct point {
    char *path;
    char what[300]; /* describes a foreign mount: "ext4 /dev/sda1[/folder]" */
    enum {
        OURS,
        FOREIGN,
        /* a propagated copy of a mount on the volume, visible below a sub path: removed with the sub path */
        COPY,
    } kind;
};

struct survey { /* the mounts below one folder of the pod, in mountinfo's order: lower ones first */
    const char *base;
    bool payloads; /* the folder on our tmpfs; otherwise the one below pods_dir */
    struct point *v;
    size_t n;
    bool no_memory;
};

static void survey_done(struct survey *s)
{
    while (s->n > 0)
        free(s->v[--s->n].path);
    free(s->v);
}

static size_t elements(const char *path)
{
    size_t n = *path != '\0';

    for (; *path != '\0'; path++)
        n += *path == '/';
    return n;
}

static const struct point *already_at(const struct survey *s, const char *path)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].path, path) == 0)
            return &s->v[i];
    return NULL;
}

/* By location and file system: each of ours has its own. */
static bool is_volume(const struct survey *s, const struct fs_mount *m, const char *rest)
{
    if (already_at(s, m->point) != NULL)
        return false;
    if (s->payloads)
        return strcmp(rest, ".shm") == 0 && strcmp(m->fstype, "tmpfs") == 0;
    if (elements(rest) != 3)
        return false;
    if (str_starts(rest, EMPTY_DIRS))
        return strcmp(m->fstype, "tmpfs") == 0 || strcmp(m->fstype, "hugetlbfs") == 0;
    return str_starts(rest, IMAGES) && strcmp(m->fstype, "overlay") == 0 && str_starts(m->source, "sha256:");
}

static int teardown_kind_of(const struct survey *s, const struct fs_mount *m)
{
    const char *rest = m->point + strlen(s->base);
    const struct point *under;

    if (*rest++ != '/')
        return FOREIGN;
    if (s->payloads || !str_starts(rest, SUB_PATHS))
        return is_volume(s, m, rest) ? OURS : FOREIGN;
    under = already_at(s, m->point);
    if (elements(rest) > 4)
        return COPY;
    /* A second, shared mount at the same point must not be unmounted here: it would vanish from the volume,
     * too. */
    return elements(rest) == 4 && (under == NULL || !m->shared) ? OURS : FOREIGN;
}

static bool teardown_note(const struct fs_mount *m, void *arg)
{
    struct survey *s = arg;
    size_t n = strlen(m->point), k = strlen("//deleted");
    struct point *p;

    if (n >= k && strcmp(m->point + n - k, "//deleted") == 0)
        return true; /* its folder was deleted: no path leads there */
    if (!array_room(s->v, s->n)) {
        s->no_memory = true;
        return false;
    }
    p = &s->v[s->n];
    *p = (struct point){ .path = strdup(m->point), .kind = teardown_kind_of(s, m) };
    if (p->path == NULL) {
        s->no_memory = true;
        return false;
    }
    if (strcmp(m->root, "/") == 0)
        snprintf(p->what, sizeof(p->what), "%.40s %.200s", m->fstype, m->source);
    else
        snprintf(p->what, sizeof(p->what), "%.40s %.100s[%.140s]", m->fstype, m->source, m->root);
    s->n++;
    return true;
}

static enum err_code survey_make(struct survey *s, const char *base, bool payloads, struct err *e)
{
    *s = (struct survey){ .base = base, .payloads = payloads };
    if (fs_each_mount(base, teardown_note, s, e) != ERR_OK)
        return e->code;
    return s->no_memory ? err_nomem(e) : ERR_OK;
}

/* The foreign mount at or below a path, or NULL. */
static const struct point *held_by(const struct survey *s, const char *path)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].kind == FOREIGN && fs_path_is_at_or_below(s->v[i].path, path))
            return &s->v[i];
    return NULL;
}

/* Covered by a foreign mount over an ancestor: unreachable until that is gone. */
static bool teardown_is_hidden(const struct survey *s, const char *path)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].kind == FOREIGN && fs_path_is_at_or_below(path, s->v[i].path))
            return true;
    return false;
}

/* ---- mounts ---- */

/* The pod's mounts that are given up. */
enum extent { ALL_MOUNTS, SUB_PATH_MOUNTS };

static bool is_within(enum extent extent, const char *base, const char *path)
{
    const char *rest = path + strlen(base);

    return extent == ALL_MOUNTS || (*rest == '/' && str_starts(rest + 1, SUB_PATHS));
}

/* One pass; *ret_left counts our mounts that remain. */
static enum err_code teardown_unmount_pass(const char *base, bool payloads, enum extent extent,
                                           size_t *ret_gone, size_t *ret_left, struct err *e)
{
    struct survey s;
    enum err_code code = survey_make(&s, base, payloads, e);

    *ret_gone = *ret_left = 0;
    for (size_t i = s.n; code == ERR_OK && i-- > 0;) {
        const struct point *p = &s.v[i];
        if (p->kind != OURS || !is_within(extent, base, p->path) || held_by(&s, p->path) != NULL ||
            teardown_is_hidden(&s, p->path))
            continue;
        ++*ret_left;
        /* Make it private first, so that the unmount does not propagate. */
        if (mount(NULL, p->path, NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            umount2(p->path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
            ++*ret_gone;
        else if (e->code == ERR_OK) /* EINVAL, ENOENT: already unmounted with its parent */
            err_sys(e, errno, "unmount %s", p->path);
    }
    survey_done(&s);
    return code;
}

static enum err_code unmount_ours(const char *base, bool payloads, enum extent extent, struct err *e)
{
    for (int pass = 0; pass < PASSES; pass++) {
        size_t gone, left;

        *e = (struct err){ 0 };
        if (teardown_unmount_pass(base, payloads, extent, &gone, &left, e) != ERR_OK)
            return e->code;
        if (left == 0)
            return ERR_OK;
        if (gone == 0)
            return e->code;
    }
    return err_set(e, ERR_ABORTED, "unmount below %s: new mounts keep coming", base);
}

/* ---- folders ---- */

struct removal {
    const struct survey *s;
    size_t volume_depth; /* number of elements below the base that name a volume, which is kept as a whole */
};

static enum err_code remove_free(const struct removal *r, const char *path, size_t deep, struct err *e);

struct children {
    const struct removal *r;
    const char *path;
    size_t deep;
    struct err failed;
};

static bool remove_child(const char *name, void *arg)
{
    struct children *c = arg;
    char child[VOL_PATH_MAX];

    return vol_join(child, sizeof(child), &c->failed, "%s/%s", c->path, name) == ERR_OK &&
           remove_free(c->r, child, c->deep + 1, &c->failed) == ERR_OK;
}

static enum err_code remove_children(const struct removal *r, const char *path, size_t deep, struct err *e)
{
    struct children c = { .r = r, .path = path, .deep = deep };
    fd_auto fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "list %s", path);
    if (presence_is_unknown(fs_list(fd, ".", remove_child, &c, e)))
        return err_wrap(e, "list %s", path);
    if (c.failed.code != ERR_OK)
        *e = c.failed;
    return e->code;
}

static enum err_code remove_free(const struct removal *r, const char *path, size_t deep, struct err *e)
{
    const struct point *p = held_by(r->s, path);

    if (p == NULL)
        return fs_remove_tree(AT_FDCWD, path, e);
    if (deep == r->volume_depth || strcmp(p->path, path) == 0)
        return ERR_OK;
    return remove_children(r, path, deep, e);
}

static void say_held(const struct survey *s, const struct point *p, struct err *e)
{
    const char *rest = p->path + strlen(s->base);
    char volume[256] = "";

    if (s->payloads)
        snprintf(volume, sizeof(volume), "%s", rest + (*rest == '/'));
    else if (str_starts(rest, "/volumes/") && strchr(rest + 9, '/') != NULL)
        snprintf(volume, sizeof(volume), "%s", strchr(rest + 9, '/') + 1);
    volume[strcspn(volume, "/")] = '\0';
    err_set(e, ERR_PRECONDITION, "%s%s%s is in use by a mount that is not ours: %s (%s)",
            volume[0] != '\0' ? "volume \"" : "its folder", volume, volume[0] != '\0' ? "\"" : "", p->path,
            p->what);
}

static enum err_code teardown_take_down(const char *base, bool payloads, struct err *e)
{
    struct survey s;

    if (unmount_ours(base, payloads, ALL_MOUNTS, e) != ERR_OK)
        return e->code;
    if (survey_make(&s, base, payloads, e) == ERR_OK) {
        const struct removal r = { .s = &s, .volume_depth = payloads ? 1 : 3 };
        const struct point *held = held_by(&s, base);

        if (remove_free(&r, base, 0, e) == ERR_OK && held != NULL)
            say_held(&s, held, e);
    }
    survey_done(&s);
    return e->code;
}

enum err_code vol_pod_teardown(struct vol_node *n, const char *uid, struct err *e)
{
    char payloads[VOL_PATH_MAX], pod[VOL_PATH_MAX];
    struct err second = { 0 };

    if (vol_check_name("pod uid", uid, e) != ERR_OK)
        return e->code;
    if (vol_join(payloads, sizeof(payloads), e, "%s/%s", n->tmpfs, uid) != ERR_OK ||
        vol_join(pod, sizeof(pod), e, "%s/%s", n->pods, uid) != ERR_OK)
        return err_wrap(e, "remove volumes of %s", uid);
    /* Both, even if the first fails: they are independent. */
    ERR_IGNORE(teardown_take_down(pod, false, e));
    if (teardown_take_down(payloads, true, &second) != ERR_OK && e->code == ERR_OK)
        *e = second;
    return e->code == ERR_OK ? ERR_OK : err_wrap(e, "remove volumes of %s", uid);
}

enum err_code vol_sub_paths_unmount(const struct vol_node *n, const char *uid, struct err *e)
{
    char pod[VOL_PATH_MAX];

    if (vol_check_name("pod uid", uid, e) != ERR_OK ||
        vol_join(pod, sizeof(pod), e, "%s/%s", n->pods, uid) != ERR_OK)
        return e->code;
    return unmount_ours(pod, false, SUB_PATH_MOUNTS, e);
}
