/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory - the extended resources of this node and the devices of each.
 *
 * A resource has one provider at a time: a plugin (plugins.h), declarations (agent/declared), or a number
 * from the configuration, which has no devices at all. A plugin takes precedence over a declaration, and a
 * declaration over a number. dp_inventory_problems() names the unused provider, which is used once the other
 * one is forgotten. A provider passes whole lists; the inventory compares them and reports what changed.
 * holdings.h records which container holds a device.
 *
 * When its provider ends, a resource keeps its devices, all of them unhealthy, as in kubelet: capacity stays,
 * allocatable is 0. After DP_FORGET_MS the provider is forgotten: the resource has no devices and its
 * capacity is 0. Its name is kept until another resource needs the slot. One timer runs while a resource
 * waits to be forgotten. Loop thread only.
 */
#ifndef DEVICEPLUGIN_INVENTORY_H
#define DEVICEPLUGIN_INVENTORY_H
#include "base/boot_timer.h"
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
    const int64_t
        *numa; /* NUMA nodes as the provider lists them, including nodes that this machine does not have */
    size_t n_numa; /* 0: no topology */
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

/* The settings that a container gets with its devices: ContainerAllocateResponse, checked and bounded. One
 * block of memory: free() it. */
struct dp_answer {
    struct dp_kv *envs, *annotations;
    struct dp_mount *mounts;
    struct dp_node *nodes;
    const char **cdi; /* "vendor/class=name" */
    size_t n_envs, n_annotations, n_mounts, n_nodes, n_cdi;
};

struct dp_options {
    bool pre_start, preferred;
}; /* the optional calls that the provider requested */

/* One question to a provider, an operation: done is called on a later turn. ids are copied. */
struct dp_ask {
    struct op op;
    /* allocate: valid in done if the result is OK; the callee takes or frees it. pre_start: NULL, or an
     * answer that replaces the earlier one from this start on. */
    struct dp_answer *answer;
    uint8_t *raw; /* the packed form of `answer`, for the checkpoint; owned like `answer` */
    size_t n_raw;
    char **preferred; /* preferred: the ids, NULL-terminated, one block of memory; owned like `answer` */
    void *run;        /* private to the provider */
};
enum dp_rank { DP_RANK_DECLARATION, DP_RANK_PLUGIN, DP_RANKS }; /* the highest one is used */
struct dp_provider {
    enum dp_rank rank;
    const char *kind; /* for messages: "plugin", "declaration" */
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
    bool listed;              /* the provider has sent a list since it registered */
    bool forgotten;           /* without a provider for DP_FORGET_MS; capacity is 0 */
    struct boot_time gone_at; /* when its last provider ended, or its name was remembered; CLOCK_BOOT_NONE: it
                                 has a provider, is forgotten, or was always a number */
    const struct dp_device *devices; /* in the order of dp_id_compare() */
    size_t n_devices, n_healthy;
    int64_t count; /* a number from the configuration; -1: none */
};

enum dp_change {
    DP_CHANGE_LIST,      /* ids or NUMA nodes, and possibly health; or a provider's first list */
    DP_CHANGE_HEALTH,    /* only the health of devices */
    DP_CHANGE_PROVIDER,  /* a provider was added, removed or replaced */
    DP_CHANGE_COUNT,     /* the number from the configuration */
    DP_CHANGE_FORGOTTEN, /* DP_FORGET_MS have passed */
};
struct dp_inventory;
/* fn must not change the inventory. */
typedef void (*dp_change_fn)(const struct dp_resource *r, enum dp_change what, void *arg);

enum err_code dp_inventory_new(struct dp_inventory **ret, struct boot_timers *timers, dp_change_fn changed,
                               void *arg, struct err *e) MUST_CHECK;
/* There must be no provider left; the timer closes on a later turn. NULL is fine. */
void dp_inventory_free(struct dp_inventory *v);

/* ---- for providers ---- */
/*
 * A provider of the same rank replaces the earlier one, and the devices stay until its first list. A provider
 * of lower rank is used once the other one is forgotten. The caller checks the name (resource_name.h).
 * ERR_EXHAUSTED: DP_RESOURCES_MAX.
 */
enum err_code dp_inventory_provide(struct dp_inventory *v, const char *name, struct dp_provider *p,
                                   struct dp_options o, struct err *e) MUST_CHECK;
/* Copies the list; of two devices with one id the later is ignored. ERR_PRECONDITION: p does not provide the
 * resource (any more). ERR_EXHAUSTED: DP_DEVICES_MAX; the earlier list stays. */
enum err_code dp_inventory_list(struct dp_inventory *v, struct dp_provider *p, const char *name,
                                const struct dp_device *devices, size_t n, struct err *e) MUST_CHECK;
/* No effect if another provider has replaced p. */
void dp_inventory_withdraw(struct dp_inventory *v, struct dp_provider *p, const char *name);
/* Sets the number from the configuration; -1 removes it. */
enum err_code dp_inventory_count(struct dp_inventory *v, const char *name, int64_t count,
                                 struct err *e) MUST_CHECK;
/* Adds a resource from a checkpoint or a record that has no provider yet. No effect if the inventory has it
 * already. */
enum err_code dp_inventory_remember(struct dp_inventory *v, const char *name, struct err *e) MUST_CHECK;

/* ---- for the agent ---- */
/* Pointers to resources and devices are valid until the inventory changes. */
const struct dp_resource *dp_inventory_find(const struct dp_inventory *v, const char *name); /* NULL: none */
const struct dp_resource *dp_inventory_next(const struct dp_inventory *v,
                                            const struct dp_resource *after); /* by name; NULL: first, end */
const struct dp_device *dp_resource_device(const struct dp_resource *r, const char *id); /* NULL */
/* As in kubelet: all devices, healthy or not; without any provider the number of the configuration, or 0. */
int64_t dp_resource_capacity(const struct dp_resource *r);
int64_t dp_resource_allocatable(const struct dp_resource *r); /* the healthy devices among these */
/* Resources that have several providers. */
void dp_inventory_problems(const struct dp_inventory *v,
                           void (*fn)(const char *resource, const char *text, void *arg), void *arg);
#endif
