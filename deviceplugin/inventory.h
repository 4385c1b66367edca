/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory - the extended resources of this node and the devices of each.
 *
 * A resource has one provider at a time: a plugin (plugin.h), declarations (declared/), or a number from the
 * configuration, which has no devices at all. A plugin wins over a declaration, that over a number; what lost
 * is named (dp_inventory_problems()). A provider hands over whole lists; the inventory compares, and says
 * what changed. It does not know who holds a device: holdings.h does.
 *
 * Resources that were once registered stay known without a provider, as in kubelet: capacity and allocatable
 * are 0 until it is back, and it is forgotten after DP_FORGET_MS. Loop thread only.
 */
#ifndef DEVICEPLUGIN_INVENTORY_H
#define DEVICEPLUGIN_INVENTORY_H
#include "base/clock.h"
#include "base/error.h"
#include "base/op.h"
#include "deviceplugin/device_id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_RESOURCE_NAME_MAX 317     /* a DNS name, a slash, 63 characters */
#define DP_DEVICES_MAX 65536         /* of one resource */
#define DP_RESOURCES_MAX 256         /* of the node */
#define DP_FORGET_MS (5 * 60 * 1000) /* pkg/kubelet/cm/devicemanager: endpointStopGracePeriod */

enum dp_health { DP_HEALTHY, DP_UNHEALTHY, DP_HEALTH_UNKNOWN };
const char *dp_health_name(enum dp_health h); /* "Healthy" */

struct dp_device {
    const char *id;
    bool healthy;
    const int64_t *numa; /* NUMA nodes as the provider says, also those that this machine has not */
    size_t n_numa;       /* 0: no topology */
};

struct dp_kv {
    const char *name, *value;
};
struct dp_mount {
    const char *container_path, *host_path;
    bool read_only;
};
struct dp_node {
    const char *container_path, *host_path, *permissions;
};

/* What a container gets with its devices: ContainerAllocateResponse, checked and bounded. One block of
 * memory: free() it. */
struct dp_answer {
    struct dp_kv *envs, *annotations;
    struct dp_mount *mounts;
    struct dp_node *nodes;
    const char **cdi; /* "vendor/class=name" */
    size_t n_envs, n_annotations, n_mounts, n_nodes, n_cdi;
};

struct dp_options {
    bool pre_start, preferred;
}; /* what the provider wants to be asked */

/* How a provider is asked; all of them are operations, done is called on a later turn. ids are copied. */
struct dp_ask {
    struct op op;
    struct dp_answer *answer; /* allocate: valid in done if OK; the callee takes it, or frees it */
    uint8_t *raw;             /* and its packed form, for the checkpoint; likewise */
    size_t n_raw;
    char **preferred; /* preferred: the ids, NULL-terminated, one block of memory; likewise */
    void *run;        /* private to the provider */
};
struct dp_provider {
    const char *kind; /* "plugin", "declaration", "configuration" */
    void (*allocate)(struct dp_provider *p, struct dp_ask *a, const char *const *ids, size_t n,
                     op_done_fn done, void *owner);
    void (*preferred)(struct dp_provider *p, struct dp_ask *a, const char *const *available,
                      size_t n_available, const char *const *must, size_t n_must, int32_t size,
                      op_done_fn done, void *owner);
    void (*pre_start)(struct dp_provider *p, struct dp_ask *a, const char *const *ids, size_t n,
                      op_done_fn done, void *owner);
    /* For `explain` and `get devices`: "unix socket nvidia.sock, pid 812". */
    void (*describe)(const struct dp_provider *p, char *ret, size_t size);
};

struct dp_resource {
    char name[DP_RESOURCE_NAME_MAX + 1];
    struct dp_provider *provider; /* NULL: none now */
    struct dp_options options;
    bool listed; /* the provider has sent a list since it came */
    struct boot_time
        gone_at; /* when its last provider went; none: it has one, or only the checkpoint named it */
    const struct dp_device
        *devices; /* sorted by dp_id_compare(); kept, all unhealthy, while the provider is gone */
    size_t n_devices, n_healthy;
    int64_t count; /* a number from the configuration; -1: none */
};

enum dp_change { DP_CHANGE_LIST, DP_CHANGE_HEALTH, DP_CHANGE_PROVIDER, DP_CHANGE_FORGOTTEN };
struct dp_inventory;
/* `r` is gone after DP_CHANGE_FORGOTTEN. */
typedef void (*dp_change_fn)(const struct dp_resource *r, enum dp_change what, void *arg);

enum err_code dp_inventory_new(struct dp_inventory **ret, uv_loop_t *loop, dp_change_fn changed, void *arg,
                               struct err *e) MUST_CHECK;
void dp_inventory_free(struct dp_inventory *v); /* no provider is left; handles close on later turns */

/* ---- for providers ---- */
/* ERR_EXISTS: one of higher rank has the name; the text names it. An equal one replaces it. */
enum err_code dp_inventory_provide(struct dp_inventory *v, const char *name, struct dp_provider *p,
                                   struct dp_options o, struct err *e) MUST_CHECK;
/* Copies the list; ids are unique (the later of two is ignored). */
enum err_code dp_inventory_list(struct dp_inventory *v, struct dp_provider *p, const char *name,
                                const struct dp_device *devices, size_t n, struct err *e) MUST_CHECK;
void dp_inventory_withdraw(struct dp_inventory *v, struct dp_provider *p,
                           const char *name); /* ignored if it has another */
enum err_code dp_inventory_count(struct dp_inventory *v, const char *name, int64_t count,
                                 struct err *e) MUST_CHECK; /* configuration; -1 removes it */
/* Known from a checkpoint or a record, without a provider so far. */
enum err_code dp_inventory_remember(struct dp_inventory *v, const char *name, struct err *e) MUST_CHECK;

/* ---- for the agent ---- */
const struct dp_resource *dp_inventory_find(const struct dp_inventory *v,
                                            const char *name); /* NULL: never heard of */
const struct dp_resource *dp_inventory_next(const struct dp_inventory *v,
                                            const struct dp_resource *after); /* by name; NULL: first, end */
const struct dp_device *dp_resource_device(const struct dp_resource *r, const char *id); /* NULL */
int64_t dp_resource_capacity(
    const struct dp_resource *r); /* kubelet: healthy and unhealthy; 0 without a provider for long */
int64_t dp_resource_allocatable(const struct dp_resource *r); /* healthy; 0 without a provider */
#endif
