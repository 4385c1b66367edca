/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/limits/hugepages.h"
#include "agent/pod/limits/internal.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

#define AGAIN_MS 60000 /* kubelet's interval */

/* ---- capacity ---- */

static int64_t read_number(const char *path)
{
    str_auto text = NULL;
    int64_t n;

    if (fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, ERR_IGNORED) != ERR_OK ||
        sscanf(text, "%" SCNd64, &n) != 1)
        return -1;
    return n;
}

/* Process ids: the lower of two kernel limits, like kubelet's pkg/kubelet/stats/pidlimit. */
static int64_t pids(void)
{
    int64_t ids = read_number("/proc/sys/kernel/pid_max"),
            threads = read_number("/proc/sys/kernel/threads-max");

    return ids < 0 || (threads >= 0 && threads < ids) ? threads : ids;
}

static int64_t storage(const struct node_options *o)
{
    struct statvfs s;

    return o->root_dir != NULL && statvfs(o->root_dir, &s) == 0 ? (int64_t)(s.f_blocks * s.f_frsize) : -1;
}

static int64_t of_devices(const struct node *n, const char *resource,
                          int64_t (*of)(const struct dp_resource *r))
{
    const struct dp_inventory *all = devices_inventory(n);
    const struct dp_resource *r = all != NULL ? dp_inventory_find(all, resource) : NULL;

    return r != NULL ? of(r) : -1;
}

int64_t node_capacity(const struct node *n, const char *resource)
{
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX];

    if (strcmp(resource, "cpu") == 0)
        return (int64_t)n->o.cpu_milli;
    if (strcmp(resource, "memory") == 0)
        return (int64_t)n->o.memory_bytes;
    if (strcmp(resource, "pods") == 0)
        return n->o.max_pods;
    if (strcmp(resource, "pid") == 0)
        return pids();
    if (strcmp(resource, "ephemeral-storage") == 0)
        return storage(&n->o);
    if (strchr(resource, '/') != NULL)
        return of_devices(n, resource, dp_resource_capacity);
    if (!str_starts(resource, "hugepages-"))
        return -1;
    for (size_t i = hugepages_sizes(n, sizes); i-- > 0;)
        if (strcmp(sizes[i].resource, resource) == 0)
            return (int64_t)sizes[i].total_bytes;
    return -1;
}

/* ---- allocatable ---- */

static int64_t kept_free(const struct api_threshold *t, int64_t capacity)
{
    return t->bytes > 0 ? t->bytes : (int64_t)((double)capacity * t->share);
}

static int64_t allocatable_less(int64_t from, int64_t a)
{
    return a >= from ? 0 : from - a;
}

/* The capacity without reservations. */
static int64_t unreserved(int64_t capacity, int64_t system, int64_t kube)
{
    return allocatable_less(allocatable_less(capacity, system), kube);
}

int64_t node_allocatable(const struct node *n, const char *resource)
{
    const struct api_node_resources *r = &n->o.resources;
    int64_t capacity = node_capacity(n, resource);

    if (capacity < 0)
        return -1;
    if (strchr(resource, '/') != NULL)
        return of_devices(n, resource, dp_resource_allocatable);
    if (strcmp(resource, "cpu") == 0)
        return unreserved(capacity, r->system.cpu_milli, r->kube.cpu_milli);
    if (strcmp(resource, "pid") == 0)
        return unreserved(capacity, r->system.pids, r->kube.pids);
    if (strcmp(resource, "ephemeral-storage") == 0)
        return allocatable_less(unreserved(capacity, r->system.storage_bytes, r->kube.storage_bytes),
                                kept_free(&r->evict_storage, capacity));
    if (strcmp(resource, "memory") == 0)
        return allocatable_less(
            allocatable_less(unreserved(capacity, r->system.memory_bytes, r->kube.memory_bytes),
                             kept_free(&r->evict_memory, capacity)),
            (int64_t)hugepages_bytes(n));
    return capacity;
}

/* Settings must not withhold more than there is. */
static enum err_code allocatable_check_one(const char *resource, int64_t capacity, int64_t system,
                                           int64_t kube, int64_t evict, struct err *e)
{
    const char *unit = strcmp(resource, "cpu") == 0 ? "m" : "";
    int64_t kept;

    if (__builtin_add_overflow(system, kube, &kept) || __builtin_add_overflow(kept, evict, &kept))
        kept = INT64_MAX;
    if (capacity < 0 || kept <= capacity)
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "invalid Node Allocatable configuration: resource \"%s\" has a reservation of %" PRId64
                   "%s (systemReserved, kubeReserved and evictionHard) but a capacity of %" PRId64 "%s",
                   resource, kept, unit, capacity, unit);
}

enum err_code allocatable_check(const struct node_options *o, struct err *e)
{
    const struct api_reserved *system = &o->resources.system, *kube = &o->resources.kube;
    int64_t memory = (int64_t)o->memory_bytes, disk = storage(o);

    if (allocatable_check_one("cpu", (int64_t)o->cpu_milli, system->cpu_milli, kube->cpu_milli, 0, e) !=
            ERR_OK ||
        allocatable_check_one("memory", memory, system->memory_bytes, kube->memory_bytes,
                              kept_free(&o->resources.evict_memory, memory), e) != ERR_OK ||
        allocatable_check_one("ephemeral-storage", disk, system->storage_bytes, kube->storage_bytes,
                              kept_free(&o->resources.evict_storage, disk), e) != ERR_OK)
        return e->code;
    return allocatable_check_one("pid", pids(), system->pids, kube->pids, 0, e);
}

/* ---- limits of all pods together ---- */

/* The remainder for pods, including the eviction threshold, which a pod about to be evicted uses. */
static struct cg_limits pods_limits(const struct node *n)
{
    const struct node_options *o = &n->o;
    const struct api_node_resources *r = &o->resources;
    struct api_reserved none = { 0 };
    bool enforced = (r->enforce & API_ENFORCE_PODS) != 0;
    const struct api_reserved *system = enforced ? &r->system : &none, *kube = enforced ? &r->kube : &none;
    struct cg_limits l = CG_LIMITS_NONE;
    int64_t ids = pids();

    l.cpu_shares =
        (int64_t)cg_shares_from_milli(unreserved((int64_t)o->cpu_milli, system->cpu_milli, kube->cpu_milli));
    l.memory_max = unreserved((int64_t)o->memory_bytes, system->memory_bytes, kube->memory_bytes);
    l.memory_min = limits_node(n)->protected_bytes;
    l.pids_max = ids >= 0 ? unreserved(ids, system->pids, kube->pids) : -1;
    return l;
}

uint64_t allocatable_unit_weight(const struct node *n)
{
    return cg_weight_from_shares((uint64_t)pods_limits(n).cpu_shares);
}

static void allocatable_on_again(uv_timer_t *timer)
{
    allocatable_update(timer->data);
}

void allocatable_update(struct node *n)
{
    struct limits_node *part = limits_node(n);
    bool failed = uv_is_active((uv_handle_t *)&part->timer);
    struct cg_limits l = pods_limits(n);
    struct err e = { 0 };
    char text[600];

    if (cg_node_apply(n->o.cgroups, &l, &e) == ERR_OK) {
        uv_timer_stop(&part->timer);
        if (failed)
            node_event(n, false, "NodeAllocatableEnforced", ALLOCATABLE_ENFORCED_TEXT);
        return;
    }
    uv_timer_start(&part->timer, allocatable_on_again, AGAIN_MS, 0);
    if (failed)
        return;
    log_warn("cannot write the limits of all pods together; will retry", F_ERR(&e));
    snprintf(text, sizeof(text), "Failed to update Node Allocatable Limits: %s", e.text);
    node_event(n, true, "FailedNodeAllocatableEnforcement", text);
}

bool allocatable_is_enforced(const struct node *n)
{
    return (n->o.resources.enforce & API_ENFORCE_PODS) != 0 &&
           !uv_is_active((const uv_handle_t *)&limits_node(n)->timer);
}

/* ---- limits of the reserved cgroups ---- */

static enum err_code limit_reserved(const struct node_options *o, const char *key, const char *cgroup,
                                    const struct api_reserved *r, bool cpu_only, struct err *e)
{
    struct cg_limits l = CG_LIMITS_NONE;

    if (r->cpu_milli > 0)
        l.cpu_shares = (int64_t)cg_shares_from_milli(r->cpu_milli);
    if (!cpu_only) {
        l.memory_max = r->memory_bytes > 0 ? r->memory_bytes : -1;
        l.pids_max = r->pids > 0 ? r->pids : -1;
        if (o->resources.memory_qos && o->resources.memory_tiers)
            l.memory_min = r->memory_bytes;
    }
    if (cg_foreign_apply(o->cgroups, cgroup, &l, e) != ERR_OK)
        return err_wrap(e, "%s", key);
    return ERR_OK;
}

enum err_code allocatable_enforce_reserved(const struct node_options *o, struct err *e)
{
    const struct api_node_resources *r = &o->resources;
    unsigned system = r->enforce & (API_ENFORCE_SYSTEM | API_ENFORCE_SYSTEM_CPU),
             kube = r->enforce & (API_ENFORCE_KUBE | API_ENFORCE_KUBE_CPU);

    if (system != 0 && limit_reserved(o, "systemReservedCgroup", o->system_cgroup, &r->system,
                                      (system & API_ENFORCE_SYSTEM) == 0, e) != ERR_OK)
        return e->code;
    return kube != 0 ? limit_reserved(o, "kubeReservedCgroup", o->kube_cgroup, &r->kube,
                                      (kube & API_ENFORCE_KUBE) == 0, e)
                     : ERR_OK;
}
