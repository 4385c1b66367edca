/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit - limits with the same files on v1 and v2.  Huge pages are limited both in use and reserved by a
 * mapping before its first fault.
 */
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum err_code write_one(int dir, const char *file, int64_t bytes, struct err *e)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, bytes);
    if (fs_write_control(dir, file, text, e) != ERR_NOT_FOUND)
        return e->code;
    *e = (struct err){ 0 }; /* reservations are counted since 5.7 */
    return ERR_OK;
}

enum err_code cg_cpuset_limit(int dir, const struct cg_limits *l, struct err *e)
{
    if (l->mems != NULL && fs_write_control(dir, "cpuset.mems", l->mems, e) != ERR_OK)
        return e->code;
    return l->cpus != NULL ? fs_write_control(dir, "cpuset.cpus", l->cpus, e) : ERR_OK;
}

enum err_code cg_quota(int dir, const char *file, const char *text, struct err *e)
{
    str_auto now = NULL;
    size_t n = strlen(text);

    if (fs_read_at(dir, file, FS_SMALL_MAX, &now, NULL, ERR_IGNORED) == ERR_OK &&
        strncmp(now, text, n) == 0 && strcmp(now + n, "\n") == 0)
        return ERR_OK;
    return fs_write_control(dir, file, text, e);
}

enum err_code cg_hugetlb_limit(int dir, const struct cg_limits *l, const char *last, struct err *e)
{
    for (size_t i = 0; i < l->n_hugetlb; i++) {
        static const char *const kinds[] = { "", "rsvd." };
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            char file[64];
            snprintf(file, sizeof(file), "hugetlb.%s.%s%s", l->hugetlb[i].size, kinds[k], last);
            if (write_one(dir, file, l->hugetlb[i].bytes, e) != ERR_OK)
                return e->code;
        }
    }
    return ERR_OK;
}

bool cg_has_hugetlb_reserved(const struct cg_tree *t, const char *size)
{
    char path[CG_PATH_MAX], file[64];

    snprintf(path, sizeof(path), "%s/kubepods", t->root);
    snprintf(file, sizeof(file), "hugetlb.%s.rsvd.max", size);
    for (size_t i = 0; i < t->n_hiers; i++) {
        const struct cg_hier *h = &t->hiers[i];
        if (!h->backend->v2 || (h->controllers & CG_CTL_HUGETLB) == 0)
            continue;
        fd_auto dir = cg_open_dir(h, path);
        return dir >= 0 && faccessat(dir, file, F_OK, 0) == 0;
    }
    return false;
}

bool cg_has_hugetlb(const struct cg_tree *t)
{
    for (size_t i = 0; i < t->n_hiers; i++)
        if (t->hiers[i].controllers & CG_CTL_HUGETLB)
            return true;
    return false;
}
