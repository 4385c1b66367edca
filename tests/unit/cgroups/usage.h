/* SPDX-License-Identifier: Apache-2.0 */
/* usage - one look at all that the tests compare of a cgroup, by meter.h and oom_watch.h. */
#ifndef TESTS_UNIT_CGROUPS_USAGE_H
#define TESTS_UNIT_CGROUPS_USAGE_H
#include "cgroups/meter.h"
#include "cgroups/oom_watch.h"

struct cg_usage {
    uint64_t cpu_ns;
    uint64_t memory_bytes, working_set_bytes; /* working set: usage - inactive file */
    uint64_t pids;
    uint64_t oom_kills;
};

static inline enum err_code cg_usage(struct cg_tree *t, const char *path, struct cg_usage *ret, struct err *e)
{
    const struct cg_meters_options o = { .tree = t };
    struct cg_meters *set = NULL;
    struct cg_meter *m = NULL;
    struct cg_sample s;
    uint64_t kills = 0;

    if (cg_meters_open(&set, &o, e) == ERR_OK && cg_meter_new(&m, set, path, e) == ERR_OK &&
        cg_meter_read(m, CG_PART_CPU | CG_PART_MEMORY | CG_PART_PIDS, &s, e) == ERR_OK &&
        !presence_is_unknown(cg_read_oom_kills(t, path, false, &kills, e)))
        *ret = (struct cg_usage){ .cpu_ns = s.cpu.usage_ns,
                                  .memory_bytes = s.memory.usage,
                                  .working_set_bytes = s.memory.working_set,
                                  .pids = s.pids,
                                  .oom_kills = kills };
    cg_meter_free(m);
    cg_meters_close(set);
    return e->code;
}
#endif
