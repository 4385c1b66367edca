/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_v2 - the unified hierarchy. A controller works in a cgroup only if every ancestor lists it in
 * cgroup.subtree_control, and a cgroup that lists any (except the root) must not contain processes itself. */
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* kubelet's controllers for a pod's cgroup, plus io. */
#define WANTED (CG_CTL_CPU | CG_CTL_CPUSET | CG_CTL_MEMORY | CG_CTL_PIDS | CG_CTL_HUGETLB | CG_CTL_IO)

static enum err_code read_controllers(int dir, const char *file, unsigned *ret, struct err *e)
{
    str_auto text = NULL;

    if (fs_read_at(dir, file, FS_SMALL_MAX, &text, NULL, e) != ERR_OK)
        return e->code;
    *ret = cg_controllers_parse(text);
    return ERR_OK;
}

enum err_code cg_controllers_of(int dir, unsigned *ret, struct err *e)
{
    return read_controllers(dir, "cgroup.controllers", ret, e);
}

/* Enables `wanted` for the children of dir, with one write; if the kernel rejects that, one by one, so that
 * an unavailable controller (cpu while realtime processes exist) does not prevent the others. */
static enum err_code enable(int dir, unsigned wanted, unsigned required, struct err *e)
{
    unsigned available = 0, enabled = 0;
    char text[128];

    if (read_controllers(dir, "cgroup.controllers", &available, e) != ERR_OK ||
        read_controllers(dir, "cgroup.subtree_control", &enabled, e) != ERR_OK)
        return e->code;
    wanted &= available & ~enabled;
    if (wanted == 0)
        return ERR_OK;
    cg_controllers_format(wanted, '+', text, sizeof(text));
    if (fs_write_control(dir, "cgroup.subtree_control", text, e) == ERR_OK)
        return ERR_OK;
    *e = (struct err){ 0 };
    for (unsigned bit = 1; bit <= CG_CTL_IO; bit <<= 1) {
        if ((wanted & bit) == 0)
            continue;
        cg_controllers_format(bit, '+', text, sizeof(text));
        if (fs_write_control(dir, "cgroup.subtree_control", text, e) != ERR_OK) {
            if ((required & bit) && e->sys == EBUSY)
                return err_set(
                    e, ERR_PRECONDITION,
                    "controllers cannot be handed to children while processes are in the cgroup itself: move "
                    "them into a child of it");
            if (required & bit)
                return e->code;
            *e = (struct err){ 0 };
        }
    }
    return ERR_OK;
}

/* Best effort, on cgroups that are not ours: missing controllers show in <root>'s cgroup.controllers. */
static void enable_quietly(int dir, unsigned wanted)
{
    if (enable(dir, wanted, 0, ERR_IGNORED) != ERR_OK)
        return;
}

/* <root> of a unit with Delegate=yes has its controllers already. Missing ones are enabled in the ancestors,
 * as kubelet does: other cgroups lose nothing by that (systemd does not manage hugetlb, and keeps the other
 * controllers as its units configure them). */
static enum err_code v2_prepare_root(struct cg_hier *h, const char *root, struct err *e)
{
    unsigned all = 0, here = 0;
    char path[CG_PATH_MAX];
    fd_auto top = cg_open_dir(h, "/");
    fd_auto dir = cg_open_dir(h, root);

    if (top < 0 || dir < 0)
        return err_sys(e, errno, "open");
    if (read_controllers(top, "cgroup.controllers", &all, e) != ERR_OK ||
        read_controllers(dir, "cgroup.controllers", &here, e) != ERR_OK)
        return e->code;
    if ((WANTED & all & ~here) != 0) {
        size_t n = strlen(root);
        for (size_t i = 0; i < n; i++) {
            if (root[i] != '/')
                continue;
            snprintf(path, sizeof(path), "%.*s", (int)i, root);
            fd_auto above = cg_open_dir(h, path);
            if (above >= 0)
                enable_quietly(above, WANTED & all & ~here);
        }
        if (read_controllers(dir, "cgroup.controllers", &here, e) != ERR_OK)
            return e->code;
    }
    h->controllers = here;
    return enable(dir, WANTED & here, CG_REQUIRED & here, e);
}

static enum err_code v2_prepare(const struct cg_hier *h, int dir, int parent, struct err *e)
{
    (void)parent;
    return enable(dir, WANTED & h->controllers, CG_REQUIRED & h->controllers, e);
}

static enum err_code write_limit(int dir, const char *file, int64_t value, struct err *e)
{
    char text[24] = "max";

    if (value >= 0)
        snprintf(text, sizeof(text), "%" PRId64, value);
    return fs_write_control(dir, file, text, e);
}

/* Settings that are written only on request and removed again later; a kernel without them is no error. */
static enum err_code write_extra(int dir, const char *file, int64_t value, bool fresh, struct err *e)
{
    if ((value <= 0 && fresh) || write_limit(dir, file, value > 0 ? value : 0, e) == ERR_OK)
        return ERR_OK;
    if (value > 0 || e->code != ERR_NOT_FOUND)
        return e->code;
    *e = (struct err){ 0 };
    return ERR_OK;
}

static enum err_code limit_memory(int dir, const struct cg_limits *l, bool fresh, struct err *e)
{
    if (write_extra(dir, "memory.min", l->memory_min, fresh, e) != ERR_OK ||
        write_extra(dir, "memory.low", l->memory_low, fresh, e) != ERR_OK ||
        write_extra(dir, "memory.oom.group", l->oom_group ? 1 : 0, fresh, e) != ERR_OK)
        return e->code;
    return l->memory_max >= 0 || !fresh ? write_limit(dir, "memory.max", l->memory_max, e) : ERR_OK;
}

static enum err_code v2_limit(const struct cg_hier *h, int dir, const struct cg_limits *l, bool fresh,
                              struct err *e)
{
    int64_t period = l->cpu_period_us > 0 ? l->cpu_period_us : CG_CPU_PERIOD_US;
    char text[64];

    if (h->controllers & CG_CTL_CPU) {
        if (l->cpu_shares >= 0 &&
            write_limit(dir, "cpu.weight", (int64_t)cg_weight_from_shares((uint64_t)l->cpu_shares), e) !=
                ERR_OK)
            return e->code;
        if (l->cpu_quota_us >= 0)
            snprintf(text, sizeof(text), "%" PRId64 " %" PRId64, l->cpu_quota_us, period);
        else
            snprintf(text, sizeof(text), "max %" PRId64, period);
        if ((l->cpu_quota_us >= 0 || !fresh) && cg_quota(dir, "cpu.max", text, e) != ERR_OK)
            return e->code;
    }
    if ((h->controllers & CG_CTL_MEMORY) && limit_memory(dir, l, fresh, e) != ERR_OK)
        return e->code;
    if ((h->controllers & CG_CTL_CPUSET) && cg_cpuset_limit(dir, l, e) != ERR_OK)
        return e->code;
    if ((h->controllers & CG_CTL_PIDS) && (l->pids_max >= 0 || !fresh) &&
        write_limit(dir, "pids.max", l->pids_max, e) != ERR_OK)
        return e->code;
    return h->controllers & CG_CTL_HUGETLB ? cg_hugetlb_limit(dir, l, "max", e) : ERR_OK;
}

static bool v2_kill(int dir)
{
    struct err e = { 0 };

    return fs_write_control(dir, "cgroup.kill", "1", &e) == ERR_OK; /* since 5.14 */
}

static void v2_freeze(int dir, bool on)
{
    if (fs_write_control(dir, "cgroup.freeze", on ? "1" : "0", ERR_IGNORED) != ERR_OK)
        return;
}

static bool v2_frozen(int dir)
{
    struct err e = { 0 };
    uint64_t frozen = 0;

    return !presence_is_unknown(cg_read_key(dir, "cgroup.events", "frozen", &frozen, &e)) && frozen != 0;
}

static struct presence v2_populated(int dir, struct err *e)
{
    uint64_t populated = 0;
    /* The root has no cgroup.events, but we never ask about it. */
    struct presence found = cg_read_key(dir, "cgroup.events", "populated", &populated, e);

    if (presence_is_unknown(found) || populated != 0)
        return found;
    return presence_absent();
}

const struct cg_backend cg_backend_v2 = {
    .v2 = true,
    .prepare_root = v2_prepare_root,
    .prepare = v2_prepare,
    .limit = v2_limit,
    .kill = v2_kill,
    .freeze = v2_freeze,
    .frozen = v2_frozen,
    .populated = v2_populated,
};
