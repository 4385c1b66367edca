/* SPDX-License-Identifier: Apache-2.0 */
/* missing - limitations of this host: missing controllers, and memory protection without any in the
 * ancestors. */
#include "base/scope.h"
#include "cgroups/internal.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bit;
    bool v1_only; /* v2 can do it without a controller */
    const char *disables;
} controllers[] = {
    { "cpu", CG_CTL_CPU, false, "CPU requests and limits are not enforced" },
    { "memory", CG_CTL_MEMORY, false, "memory is neither limited nor counted" },
    { "pids", CG_CTL_PIDS, false, "processes are neither limited nor counted" },
    { "cpuacct", CG_CTL_CPUACCT, true, "CPU time is not counted" },
    { "freezer", CG_CTL_FREEZER, true,
      "processes are not frozen before they are killed: a fast-forking one may take several rounds" },
    { "cpuset", CG_CTL_CPUSET, false, "containers cannot be assigned CPUs and memory nodes" },
    { "hugetlb", CG_CTL_HUGETLB, false,
      "huge pages are not limited: a container may use more than it requested" },
    { "io", CG_CTL_IO, false, "disk I/O is not counted" },
};

void cg_missing(const struct cg_tree *t, void (*fn)(const char *controller, const char *disables, void *arg),
                void *arg)
{
    unsigned have = 0;

    for (size_t i = 0; i < t->n_hiers; i++)
        have |= t->hiers[i].controllers;
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
        if ((have & controllers[i].bit) == 0 && !(controllers[i].v1_only && t->layout == CG_V2))
            fn(controllers[i].name, controllers[i].disables, arg);
}

void cg_held(const struct cg_tree *t, void (*fn)(const char *controller, void *arg), void *arg)
{
    for (size_t i = 0; i < t->n_pinned; i++)
        fn(t->pinned[i], arg);
}

int64_t cg_protected_above(const struct cg_tree *t, char *ret_where, size_t size)
{
    int64_t least = INT64_MAX;
    char path[CG_PATH_MAX];

    if (t->layout != CG_V2)
        return least;
    for (snprintf(path, sizeof(path), "%s", t->root); path[0] != '\0'; *strrchr(path, '/') = '\0') {
        fd_auto dir = cg_open_dir(&t->hiers[0], path);
        uint64_t own = UINT64_MAX; /* "max" */
        struct err e = { 0 };
        if (dir < 0 || presence_is_unknown(cg_read_u64(dir, "memory.min", &own, &e)) ||
            own >= (uint64_t)least)
            continue; /* this is only a hint for the user, so an unknown value is skipped */
        least = (int64_t)own;
        snprintf(ret_where, size, "%s", path);
    }
    return least;
}
