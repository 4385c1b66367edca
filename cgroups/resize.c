/* SPDX-License-Identifier: Apache-2.0 */
/* New limits for a cgroup with running processes. */
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MEMSW "memory.memsw.limit_in_bytes"

static enum err_code cg_resize_write_number(int dir, const char *file, int64_t value, struct err *e)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    return fs_write_control(dir, file, text, e);
}

/* Memory plus swap is never below memory: the kernel accepts it before a growing memory limit or after a
 * shrinking one. */
static void try_memsw(int dir, int64_t max)
{
    if (cg_resize_write_number(dir, MEMSW, max, ERR_IGNORED) != ERR_OK)
        return;
}

static enum err_code limit_one(const struct cg_hier *h, int dir, const struct cg_limits *l,
                               int64_t memory_high, struct err *e)
{
    bool memory = (h->controllers & CG_CTL_MEMORY) != 0;
    bool counts_swap = memory && !h->backend->v2 && faccessat(dir, MEMSW, F_OK, 0) == 0;
    struct cg_limits own = *l;
    uint64_t pids = UINT64_MAX; /* also if the file has "max" or does not exist */

    /* Keep the limit on the number of processes. */
    if (presence_is_unknown(cg_read_u64(dir, "pids.max", &pids, e)))
        return e->code;
    own.pids_max = pids <= INT64_MAX ? (int64_t)pids : -1;
    if (counts_swap)
        try_memsw(dir, l->memory_max);
    if (h->backend->limit(h, dir, &own, false, e) != ERR_OK)
        return e->code;
    if (counts_swap)
        return cg_resize_write_number(dir, MEMSW, l->memory_max, e);
    if (!memory || !h->backend->v2 || memory_high < 0)
        return ERR_OK;
    return memory_high > 0 ? cg_resize_write_number(dir, "memory.high", memory_high, e)
                           : fs_write_control(dir, "memory.high", "max", e);
}

enum err_code cg_resize(struct cg_tree *t, const char *path, const struct cg_limits *l, int64_t memory_high,
                        struct err *e)
{
    if (!cg_path_is_ours(t, path))
        return err_set(e, ERR_INVALID, "cgroup \"%.200s\" does not belong to the agent", path);
    for (size_t i = 0; i < t->n_hiers; i++) {
        const struct cg_hier *h = &t->hiers[i];
        fd_auto dir = -1;
        if ((h->controllers & (CG_CTL_CPU | CG_CTL_MEMORY)) == 0)
            continue;
        dir = cg_open_dir(h, path);
        if (dir < 0)
            return err_sys(e, errno, "cgroup %s%s", h->point, path);
        if (limit_one(h, dir, l, memory_high, e) != ERR_OK)
            return err_wrap(e, "cgroup %s%s", h->point, path);
    }
    return ERR_OK;
}

enum err_code cg_set_cpuset(struct cg_tree *t, const char *path, const char *cpus, const char *mems,
                            struct err *e)
{
    const struct cg_limits l = { .cpus = cpus, .mems = mems };

    if (!cg_path_is_ours(t, path))
        return err_set(e, ERR_INVALID, "cgroup \"%.200s\" does not belong to the agent", path);
    for (size_t i = 0; i < t->n_hiers; i++) {
        const struct cg_hier *h = &t->hiers[i];
        fd_auto dir = -1;

        if ((h->controllers & CG_CTL_CPUSET) == 0)
            continue;
        dir = cg_open_dir(h, path);
        if (dir < 0)
            return err_sys(e, errno, "cgroup %s%s", h->point, path);
        return cg_cpuset_limit(dir, &l, e) == ERR_OK ? ERR_OK : err_wrap(e, "cgroup %s%s", h->point, path);
    }
    return err_set(e, ERR_NOT_FOUND, "no cgroup controls the processors of %.200s", path);
}
