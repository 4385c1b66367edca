/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_v1 - a v1 hierarchy: one or several controllers, each with its own files. */
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum err_code copy_from_parent(int dir, int parent, const char *file, struct err *e)
{
    str_auto own = NULL;
    str_auto above = NULL;

    if (fs_read_at(dir, file, FS_SMALL_MAX, &own, NULL, e) != ERR_OK)
        return e->code;
    if (own[strspn(own, " \n")] != '\0')
        return ERR_OK;
    if (fs_read_at(parent, file, FS_SMALL_MAX, &above, NULL, e) != ERR_OK)
        return e->code;
    return fs_write_control(dir, file, above, e);
}

/* A new cpuset is empty and accepts no process until it has CPUs and memory nodes (cpusets(7)). */
static enum err_code v1_prepare(const struct cg_hier *h, int dir, int parent, struct err *e)
{
    if (h->controllers & CG_CTL_CPUSET) {
        if (copy_from_parent(dir, parent, "cpuset.cpus", e) != ERR_OK ||
            copy_from_parent(dir, parent, "cpuset.mems", e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code v1_prepare_root(struct cg_hier *h, const char *root, struct err *e)
{
    (void)h;
    (void)root;
    (void)e;
    return ERR_OK;
}

static enum err_code cgroup_v1_write_number(int dir, const char *file, int64_t value, struct err *e)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    return fs_write_control(dir, file, text, e);
}

static enum err_code cgroup_v1_quota(int dir, const char *file, int64_t us, struct err *e)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, us);
    return cg_quota(dir, file, text, e);
}

static enum err_code v1_limit(const struct cg_hier *h, int dir, const struct cg_limits *l, bool fresh,
                              struct err *e)
{
    int64_t period = l->cpu_period_us > 0 ? l->cpu_period_us : CG_CPU_PERIOD_US;

    if (h->controllers & CG_CTL_CPU) {
        if (l->cpu_shares >= 0 && cgroup_v1_write_number(dir, "cpu.shares", l->cpu_shares, e) != ERR_OK)
            return e->code;
        if (l->cpu_quota_us >= 0 && (cgroup_v1_quota(dir, "cpu.cfs_period_us", period, e) != ERR_OK ||
                                     cgroup_v1_quota(dir, "cpu.cfs_quota_us", l->cpu_quota_us, e) != ERR_OK))
            return e->code;
        /* Kernels without CFS bandwidth lack the file; then there is no limit to remove. */
        if (l->cpu_quota_us < 0 && !fresh && cgroup_v1_quota(dir, "cpu.cfs_quota_us", -1, e) != ERR_OK) {
            if (e->code != ERR_NOT_FOUND)
                return e->code;
            *e = (struct err){ 0 };
        }
    }
    if ((h->controllers & CG_CTL_MEMORY) && (l->memory_max >= 0 || !fresh) &&
        cgroup_v1_write_number(dir, "memory.limit_in_bytes", l->memory_max >= 0 ? l->memory_max : -1, e) !=
            ERR_OK)
        return e->code;
    if ((h->controllers & CG_CTL_CPUSET) && cg_cpuset_limit(dir, l, e) != ERR_OK)
        return e->code;
    if ((h->controllers & CG_CTL_HUGETLB) && cg_hugetlb_limit(dir, l, "limit_in_bytes", e) != ERR_OK)
        return e->code;
    if ((h->controllers & CG_CTL_PIDS) && l->pids_max >= 0)
        return cgroup_v1_write_number(dir, "pids.max", l->pids_max, e);
    if ((h->controllers & CG_CTL_PIDS) && !fresh)
        return fs_write_control(dir, "pids.max", "max", e);
    return ERR_OK;
}

static bool v1_kill(int dir)
{
    (void)dir;
    return false;
}

/*
 * Errors are ignored: v1_frozen() and the remaining processes show a failure.  Only the freezer's hierarchy
 * has this file.
 */
static void v1_freeze(int dir, bool on)
{
    if (fs_write_control(dir, "freezer.state", on ? "FROZEN" : "THAWED", ERR_IGNORED) != ERR_OK)
        return;
}

static bool v1_frozen(int dir)
{
    struct err e = { 0 };
    str_auto state = NULL;

    return fs_read_at(dir, "freezer.state", FS_SMALL_MAX, &state, NULL, &e) == ERR_OK &&
           str_starts(state, "FROZEN");
}

const struct cg_backend cg_backend_v1 = {
    .v2 = false,
    .prepare_root = v1_prepare_root,
    .prepare = v1_prepare,
    .limit = v1_limit,
    .kill = v1_kill,
    .freeze = v1_freeze,
    .frozen = v1_frozen,
    .populated = cg_any_process,
};
