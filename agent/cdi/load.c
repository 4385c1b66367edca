/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads all folders, on the pool. Files are checked by their descriptors: a link may lead anywhere, but only
 * root may own and write the file at its end.
 */
#include "agent/cdi/internal.h"

#include "base/array.h"
#include "base/files/fs.h"
#include "base/siphash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROBLEMS_OF_FILE_MAX = 10 };

struct load {
    struct cdi_content *content;
    size_t folder;
    const char *dir;
    int dir_fd;
    size_t total; /* bytes read */
    struct err *e;
};

static void problem(struct load *l, const char *path, const char *text)
{
    api_problems_add(&l->content->problems, path, "%s", text);
    l->content->hash = siphash_part(l->content->hash, path, strlen(path) + 1);
    l->content->hash = siphash_part(l->content->hash, text, strlen(text) + 1);
}

bool cdi_is_spec_file(const char *name)
{
    return str_ends(name, ".json") || str_ends(name, ".yaml");
}

/* Checks that only root can change the file. In tests without root, the current user is accepted instead. */
static const char *trust_problem(const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "is not owned by root";
    if ((st->st_mode & S_IWOTH) != 0)
        return "can be written by everyone; chmod o-w";
    if ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0 && st->st_gid != getegid())
        return "can be written by a group that is not root's; chmod g-w";
    return NULL;
}

/* These errors are properties of the path; any other error is a failed read. */
static bool is_about_the_path(int sys)
{
    return sys == ELOOP || sys == ENOTDIR || sys == ENAMETOOLONG || sys == EACCES || sys == EPERM;
}

/* ---- a file ---- */

static void keep_problems(struct load *l, const char *path, const struct api_problems *of_file)
{
    for (size_t i = 0; i < of_file->n && i < PROBLEMS_OF_FILE_MAX; i++)
        api_problems_add_at(&l->content->problems, &of_file->v[i], "%s", of_file->v[i].message);
    if (of_file->n + of_file->dropped > PROBLEMS_OF_FILE_MAX)
        api_problems_add(&l->content->problems, path, "has %zu more problems",
                         of_file->n + of_file->dropped - PROBLEMS_OF_FILE_MAX);
}

static bool take_spec(struct load *l, const char *path, const char *text, size_t n)
{
    struct cdi_content *c = l->content;
    struct api_problems of_file = { 0 };
    struct cdi_spec spec = { 0 };
    struct err e = { 0 };
    bool good = cdi_decode(path, text, n, &c->arena, &of_file, &spec, &e);

    c->hash = siphash_part(c->hash, path, strlen(path) + 1);
    c->hash = siphash_part(c->hash, text, n);
    keep_problems(l, path, &of_file);
    api_problems_done(&of_file);
    if (e.code != ERR_OK) {
        *l->e = e;
        return false;
    }
    if (!good)
        return true;
    if (c->n_devices + spec.n_devices > CDI_DEVICES_MAX) {
        problem(l, path, "there are too many devices, allowed are 65536 in all files");
        return true;
    }
    if (!array_room(c->specs, c->n_specs)) {
        err_nomem(l->e);
        return false;
    }
    spec.folder = l->folder;
    c->specs[c->n_specs++] = spec;
    c->n_devices += spec.n_devices;
    return true;
}

static bool same_content(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* False: the read failed. */
static bool read_spec(struct load *l, const char *path, int fd)
{
    struct stat before, after;
    str_auto text = NULL;
    const char *why;
    size_t n;

    if (fstat(fd, &before) != 0) {
        err_sys(l->e, errno, "stat %s", path);
        return false;
    }
    why = !S_ISREG(before.st_mode) ? "is not a file" : trust_problem(&before);
    if (why == NULL && before.st_size > CDI_FILE_MAX)
        why = "is too large, allowed are 4 MiB";
    if (why == NULL && l->total + (size_t)before.st_size > CDI_TOTAL_MAX)
        why = "is ignored: all files together have more than 32 MiB";
    if (why != NULL) {
        problem(l, path, why);
        return true;
    }
    if (fs_read_fd(fd, CDI_FILE_MAX, &text, &n, l->e) != ERR_OK) {
        err_wrap(l->e, "%s", path);
        return false;
    }
    l->total += n;
    if (fstat(fd, &after) != 0 || !same_content(&before, &after) || n != (size_t)before.st_size) {
        err_set(l->e, ERR_UNAVAILABLE, "%s is being written to", path);
        return false;
    }
    return take_spec(l, path, text, n);
}

/* Calls stat first, so that no FIFO or device is opened. */
static bool open_spec(struct load *l, const char *name)
{
    const char *path = arena_printf(&l->content->arena, "%s/%s", l->dir, name);
    struct stat st;
    fd_auto fd = -1;
    bool seen;

    if (path == NULL) {
        err_nomem(l->e);
        return false;
    }
    seen = fstatat(l->dir_fd, name, &st, 0) == 0;
    if (seen && S_ISDIR(st.st_mode))
        return true;
    if (seen && !S_ISREG(st.st_mode)) {
        problem(l, path, "is not a file");
        return true;
    }
    if (seen)
        fd = openat(l->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0)
        return read_spec(l, path, fd);
    if (errno == ENOENT) {
        struct presence link = fs_look_at(l->dir_fd, name, NULL, l->e);

        if (presence_is_unknown(link))
            return false;
        if (!presence_is_absent(link))
            problem(l, path, "is a symbolic link that leads nowhere");
        return true;
    }
    if (is_about_the_path(errno)) {
        problem(l, path, strerror(errno));
        return true;
    }
    err_sys(l->e, errno, "open %s", path);
    return false;
}

/* ---- a folder ---- */

struct names {
    struct strs list;
    bool no_memory;
    size_t left_out;
};

static bool note_name(const char *name, void *arg)
{
    struct names *names = arg;

    if (!cdi_is_spec_file(name))
        return true;
    if (names->list.n >= CDI_FILES_MAX)
        names->left_out++;
    else if (!strs_add(&names->list, name))
        names->no_memory = true;
    return !names->no_memory;
}

static bool read_names(struct load *l)
{
    struct names names = { 0 };
    struct presence listed = fs_list(l->dir_fd, ".", note_name, &names, l->e);
    bool ok = !presence_is_unknown(listed);

    if (names.no_memory) {
        err_nomem(l->e);
        ok = false;
    }
    if (names.left_out > 0)
        problem(l, l->dir, "has more than 1000 spec files; the others are ignored");
    strs_sort(&names.list);
    for (size_t i = 0; ok && i < names.list.n; i++)
        ok = open_spec(l, names.list.v[i]);
    strs_done(&names.list);
    return ok;
}

static bool read_folder(struct load *l)
{
    fd_auto fd = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    const char *why;

    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0 && is_about_the_path(errno)) {
        problem(l, l->dir, strerror(errno));
        return true;
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        err_sys(l->e, errno, "open %s", l->dir);
        return false;
    }
    why = trust_problem(&st);
    if (why != NULL) {
        problem(l, l->dir, why);
        return true;
    }
    l->dir_fd = fd;
    return read_names(l);
}

enum err_code cdi_content_read(const char *const *dirs, struct cdi_content **ret, struct err *e)
{
    struct load l = { .content = calloc(1, sizeof(*l.content)), .e = e };
    bool ok = true;

    if (l.content == NULL)
        return err_nomem(e);
    l.content->refs = 1;
    for (; ok && dirs != NULL && dirs[l.folder] != NULL; l.folder++) {
        l.dir = dirs[l.folder];
        ok = read_folder(&l);
    }
    if (ok && cdi_index(l.content, e) == ERR_OK) {
        *ret = l.content;
        return ERR_OK;
    }
    cdi_content_unref(l.content);
    return e->code;
}
