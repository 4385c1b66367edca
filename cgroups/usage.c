/* SPDX-License-Identifier: Apache-2.0 */
/* usage - one look at what a cgroup uses (meter.h is for many), and single numbers out of files of cgroupfs.
 */
#include "base/fs.h"
#include "cgroups/internal.h"
#include "cgroups/oom_watch.h"

#include <errno.h>
#include <string.h>

bool cg_read_u64(int dir, const char *file, uint64_t *ret)
{
    struct err e = { 0 };
    str_auto text = NULL;
    size_t n = 0;

    return fs_read_at(dir, file, FS_SMALL_MAX, &text, &n, &e) == ERR_OK && cg_take_u64(text, n, ret);
}

/* Flat keyed files: "key value" on each line. */
bool cg_read_key(int dir, const char *file, const char *key, uint64_t *ret)
{
    struct err ignored = { 0 };

    switch (presence_of(cg_look_key(dir, file, key, ret, &ignored))) {
    case PRESENCE_PRESENT:
        return true;
    case PRESENCE_ABSENT:
    case PRESENCE_UNKNOWN:
        break;
    }
    return false;
}

struct presence cg_look_key(int dir, const char *file, const char *key, uint64_t *ret, struct err *e)
{
    str_auto text = NULL;
    size_t n = strlen(key);

    if (fs_read_at(dir, file, FS_SMALL_MAX, &text, NULL, e) != ERR_OK) {
        if (e->sys == ENODEV) { /* the cgroup went meanwhile */
            *e = (struct err){ 0 };
            return presence_absent();
        }
        return presence_from_err(e);
    }
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return cg_take_u64(line + n + 1, strlen(line + n + 1), ret) ? presence_present()
                                                                        : presence_absent();
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return presence_absent();
}

SCOPE_DEFINE(struct cg_meters, cg_meters_close)

enum err_code cg_usage(struct cg_tree *t, const char *path, struct cg_usage *ret, struct err *e)
{
    const struct cg_meters_options o = { .tree = t };
    scoped(cg_meters_close) struct cg_meters *set = NULL;
    scoped(cg_meter_free) struct cg_meter *m = NULL; /* goes first */
    struct cg_sample s;
    uint64_t kills = 0;

    if (cg_meters_open(&set, &o, e) != ERR_OK || cg_meter_new(&m, set, path, e) != ERR_OK ||
        cg_meter_read(m, CG_PART_CPU | CG_PART_MEMORY | CG_PART_PIDS, &s, e) != ERR_OK)
        return e->code;
    cg_oom_kills(t, path, false, &kills);
    *ret = (struct cg_usage){ .cpu_ns = s.cpu.usage_ns,
                              .memory_bytes = s.memory.usage,
                              .working_set_bytes = s.memory.working_set,
                              .pids = s.pids,
                              .oom_kills = kills };
    return ERR_OK;
}
