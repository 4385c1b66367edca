/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroups/partition.h"

#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EXCLUSIVE "cpuset.cpus.exclusive"
#define PARTITION "cpuset.cpus.partition"
#define LIST_MAX 8192 /* as CPUS_TEXT_MAX in agent/placement/cpus.h */
#define NOT_V2 "it needs cgroup v2 with its cpuset controller"
#define NOT_NEW                                                                                              \
    "it needs Linux 6.7 (cpuset.cpus.exclusive): an older kernel cannot isolate below systemd's cgroups"

/* NULL: processors are controlled by v1, or by nothing. */
static const struct cg_hier *cpuset_hier(const struct cg_tree *t)
{
    for (size_t i = 0; i < t->n_hiers; i++)
        if (t->hiers[i].backend->v2 && (t->hiers[i].controllers & CG_CTL_CPUSET) != 0)
            return &t->hiers[i];
    return NULL;
}

static int open_in(const struct cg_tree *t, const char *path, struct err *e)
{
    const struct cg_hier *h = cpuset_hier(t);
    int dir = -1;

    if (h == NULL)
        err_set(e, ERR_NOT_FOUND, "no cgroup of v2 controls processors");
    else if ((dir = cg_open_dir(h, path)) < 0)
        err_sys(e, errno, "cgroup %s%s", h->point, path);
    return dir;
}

enum err_code cg_all_pods_path(const struct cg_tree *t, char *ret, size_t size, struct err *e)
{
    int n = snprintf(ret, size, "%s/kubepods", t->root);

    return n >= 0 && (size_t)n < size ? ERR_OK : err_set(e, ERR_INVALID, "path of a cgroup is too long");
}

bool cg_partition_possible(const struct cg_tree *t, const char **ret_why)
{
    char path[CG_PATH_MAX];

    *ret_why = NOT_V2;
    if (cpuset_hier(t) == NULL || cg_all_pods_path(t, path, sizeof(path), ERR_IGNORED) != ERR_OK)
        return false;
    fd_auto dir = open_in(t, path, ERR_IGNORED);
    *ret_why = dir >= 0 && faccessat(dir, EXCLUSIVE, F_OK, 0) == 0 ? NULL : NOT_NEW;
    return *ret_why == NULL;
}

/* ---- which cgroups ---- */

enum err_code cg_above_pods(const struct cg_tree *t, struct strs *ret, struct err *e)
{
    char path[CG_PATH_MAX], why[CG_PARTITION_WHY];
    enum cg_partition state = CG_PARTITION_MEMBER;

    for (size_t n = 1; n <= strlen(t->root); n++) {
        if (t->root[n] != '/' && t->root[n] != '\0')
            continue;
        snprintf(path, sizeof(path), "%.*s", (int)n, t->root);
        if (cg_partition_read(t, path, &state, why, e) != ERR_OK)
            return e->code;
        if (state != CG_PARTITION_MEMBER)
            strs_done(ret);
        else if (!strs_add(ret, path))
            return err_nomem(e);
    }
    return ERR_OK;
}

enum err_code cg_list_in(const struct cg_tree *t, const char *path, struct strs *ret, struct err *e)
{
    int dir = open_in(t, path, e);
    DIR *list = dir >= 0 ? fdopendir(dir) : NULL;
    bool ok = true;

    if (list == NULL) {
        scope_close_p(&dir);
        if (e->code == ERR_NOT_FOUND)
            *e = (struct err){ 0 };
        return e->code;
    }
    for (struct dirent *d; ok && (d = readdir(list)) != NULL;)
        if (d->d_type == DT_DIR && strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            ok = strs_take(ret, str_printf("%s/%s", path, d->d_name));
    closedir(list);
    return ok ? ERR_OK : err_nomem(e);
}

/* A cgroup whose files may be written here. */
static enum err_code check_path(const struct cg_tree *t, const char *path, struct err *e)
{
    size_t n = strlen(path);

    if (cg_path_is_ours(t, path) ||
        (n > 1 && strncmp(t->root, path, n) == 0 && (t->root[n] == '/' || t->root[n] == '\0')))
        return ERR_OK;
    return err_set(e, ERR_INVALID, "cgroup \"%.200s\" is neither a pod's nor above one", path);
}

/* ---- files ---- */

static enum err_code read_file(const struct cg_tree *t, const char *path, const char *file, char **ret,
                               struct err *e)
{
    fd_auto dir = open_in(t, path, e);

    if (dir < 0)
        return e->code;
    if (fs_read_at(dir, file, LIST_MAX, ret, NULL, e) == ERR_OK)
        return ERR_OK;
    if (e->sys == ENODEV) /* the cgroup was removed meanwhile */
        err_set(e, ERR_NOT_FOUND, "it no longer exists");
    return err_wrap(e, "cgroup %.200s", path);
}

static enum err_code write_file(const struct cg_tree *t, const char *path, const char *file, const char *text,
                                struct err *e)
{
    if (check_path(t, path, e) != ERR_OK)
        return e->code;
    fd_auto dir = open_in(t, path, e);
    if (dir < 0)
        return e->code;
    if (fs_write_control(dir, file, text, e) == ERR_OK)
        return ERR_OK;
    if (e->sys == ENODEV)
        err_set(e, ERR_NOT_FOUND, "it no longer exists");
    return err_wrap(e, "cgroup %.200s", path);
}

enum err_code cg_exclusive_read(const struct cg_tree *t, const char *path, char **ret, struct err *e)
{
    return read_file(t, path, EXCLUSIVE, ret, e);
}

enum err_code cg_exclusive_write(const struct cg_tree *t, const char *path, const char *cpus, struct err *e)
{
    /* An empty write(2) would not reach the kernel. */
    return write_file(t, path, EXCLUSIVE, cpus[0] != '\0' ? cpus : "\n", e);
}

/* "isolated invalid (Cpu list in cpuset.cpus not exclusive)" */
enum cg_partition cg_partition_parse(const char *text, char why[CG_PARTITION_WHY])
{
    const char *invalid = strstr(text, " invalid");
    const char *open = invalid != NULL ? strchr(invalid, '(') : NULL;
    const char *close = open != NULL ? strrchr(open, ')') : NULL;

    why[0] = '\0';
    if (close != NULL)
        snprintf(why, CG_PARTITION_WHY, "%.*s", (int)(close - open - 1), open + 1);
    else if (invalid != NULL)
        snprintf(why, CG_PARTITION_WHY, "the kernel names no reason");
    if (invalid != NULL)
        return CG_PARTITION_INVALID;
    if (strncmp(text, "isolated", 8) == 0)
        return CG_PARTITION_ISOLATED;
    return strncmp(text, "root", 4) == 0 ? CG_PARTITION_ROOT : CG_PARTITION_MEMBER;
}

enum err_code cg_partition_read(const struct cg_tree *t, const char *path, enum cg_partition *ret,
                                char why[CG_PARTITION_WHY], struct err *e)
{
    str_auto text = NULL;

    if (read_file(t, path, PARTITION, &text, e) != ERR_OK)
        return e->code;
    *ret = cg_partition_parse(text, why);
    return ERR_OK;
}

enum err_code cg_partition_write(const struct cg_tree *t, const char *path, bool isolated, struct err *e)
{
    return write_file(t, path, PARTITION, isolated ? "isolated" : "member", e);
}
