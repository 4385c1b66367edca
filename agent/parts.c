/* SPDX-License-Identifier: Apache-2.0 */
/* parts - opens the daemon's parts in order, each with its settings, and closes them in reverse order. */
#include "agent/cluster/cluster.h"
#include "agent/handlers.h"
#include "agent/internal.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/core/node_written_file.h"
#include "agent/pod/node/node.h"

#include "agent/pod/limits/allocatable.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/process/process.h"

#include <string.h>

#define VOLUMES_TMPFS_DIVISOR 4 /* payloads of all pods together: at most a quarter of memory */

/* ---- paths ---- */

enum err_code parts_make_paths(struct agent *a, struct err *e)
{
    const struct agent_config *c = &a->config;

    a->cni_cache = str_printf("%s/cni/results", c->state_dir);
    a->cni_data = str_printf("%s/cni/networks", c->state_dir);
    a->images_dir = str_printf("%s/images", c->state_dir);
    a->cgroup_scratch = str_printf("%s/cgroup", c->run_dir);
    a->volumes_dir = str_printf("%s/volumes", c->run_dir);
    a->pods_dir = str_printf("%s/pods", c->root_dir);
    a->auth_dir = str_printf("%s/auth", c->run_dir);
    a->seccomp_dir = str_printf("%s/seccomp", c->root_dir);
    if (a->cni_cache == NULL || a->cni_data == NULL || a->images_dir == NULL || a->cgroup_scratch == NULL ||
        a->volumes_dir == NULL || a->pods_dir == NULL || a->auth_dir == NULL || a->seccomp_dir == NULL)
        return err_nomem(e);
    return ERR_OK;
}

void parts_free_paths(struct agent *a)
{
    free(a->cni_cache);
    free(a->cni_data);
    free(a->images_dir);
    free(a->cgroup_scratch);
    free(a->volumes_dir);
    free(a->pods_dir);
    free(a->auth_dir);
    free(a->seccomp_dir);
}

/* ---- the node's settings ---- */

void parts_live_options(const struct agent_config *c, struct node_options *o)
{
    o->cluster_domain = c->cluster_domain;
    o->pod_cidr = c->pod_cidr;
    o->cluster_dns = (const char *const *)c->cluster_dns.v;
    o->allowed_unsafe_sysctls = (const char *const *)c->allowed_unsafe_sysctls.v;
    o->resolv_conf = c->resolv_conf;
    o->max_pods = c->max_pods_n;
    o->pod_pids_limit = c->pod_pids_limit;
    o->cpu_cfs_quota = c->cpu_cfs_quota;
    o->cpu_cfs_period_us = c->cpu_cfs_period_us;
    o->backoff_max_ms = c->backoff_max_ms;
    o->image_gc = (struct image_gc_policy){ .high_percent = c->image_gc_high,
                                            .low_percent = c->image_gc_low,
                                            .min_age_ms = c->image_min_age_ms,
                                            .max_age_ms = c->image_max_age_ms };
    o->eviction = c->eviction;
    o->resources.evict_memory = c->resources.evict_memory;
    o->resources.evict_storage = c->resources.evict_storage;
    o->labels = &c->node_labels;
    o->taints = c->node_taints;
    o->n_taints = c->n_node_taints;
    o->seccomp_default = c->seccomp_default;
    o->device_plugin_wait_ms = c->device_wait_ms;
    o->extended_resources = &c->extended_resources;
}

static json_t *show_config(void *arg)
{
    struct agent *a = arg;

    return config_json(&a->config);
}

/* The settings of single parts are set when the parts are opened. */
static void node_settings(struct agent *a, struct node_options *ret)
{
    const struct agent_config *c = &a->config;

    *ret = (struct node_options){
        .loop = &a->loop,
        .opened_ns = clock_wall_ns(),
        .node_name = a->node_name,
        .node_ip = a->node_ip,
        .root_dir = c->root_dir,
        .volume_plugin_dir = c->volume_plugin_dir,
        .state_dir = c->state_dir,
        .run_dir = c->run_dir,
        .pod_logs_dir = c->pod_logs_dir,
        .container_logs_dir = c->container_logs_dir,
        .log_max_bytes = c->log_max_bytes,
        .log_max_files = c->log_max_files,
        .pause_path = a->pre.pause,
        .cpu_milli = a->pre.cpu_milli,
        .memory_bytes = a->pre.memory_bytes,
        .swap_bytes = a->pre.swap_bytes,
        .resources = c->resources,
        .system_cgroup = c->system_reserved_cgroup,
        .kube_cgroup = c->kube_reserved_cgroup,
        .device_dir = c->device_dir,
        .cdi_dirs = (const char *const *)c->cdi_dirs.v,
        .sample_network = a->pre.sample_network,
        .probe_helper = a->pre.probe,
        .config = show_config,
        .config_arg = a,
        .kubeconfig = local_api_kubeconfig,
        .local_limits = a->config.local_limits,
        .storage_enforced = str_eq(a->config.storage_limits, "enforce"),
        .shutdown_groups = a->shutdown_groups,
        .n_shutdown_groups = a->n_shutdown_groups,
    };
    parts_live_options(c, ret);
}

/* ---- opening ---- */

static enum err_code open_cgroups(struct agent *a, struct err *e)
{
    const struct agent_config *c = &a->config;
    const struct cg_options o = { .root = c->cgroup_root, .scratch_dir = a->cgroup_scratch };
    struct err stuck = { 0 };

    if (cg_open(&a->cgroups, &o, e) != ERR_OK)
        return err_wrap(e, "cgroups");
    if (c->fail_cgroup_v1 && cg_layout(a->cgroups) != CG_V2)
        return err_set(e, ERR_PRECONDITION, "failCgroupV1: true, and this node uses cgroup v1");
    if (cg_ops_sweep(a->cgroups, &stuck) !=
        ERR_OK) /* they were killed and will not execute another instruction */
        log_warn("children of an earlier run are stuck in the kernel; ignoring them", F_ERR(&stuck));
    if (cg_layout(a->cgroups) != CG_V2 && json_is_false(config_value(c, "singleProcessOOMKill")))
        return err_set(e, ERR_PRECONDITION, "singleProcessOOMKill: false needs cgroup v2");
    return ERR_OK;
}

static enum err_code open_volumes(struct agent *a, struct err *e)
{
    const struct vol_node_options o = { .tmpfs_dir = a->volumes_dir,
                                        .pods_dir = a->pods_dir,
                                        .tmpfs_bytes = a->pre.memory_bytes / VOLUMES_TMPFS_DIVISOR };
    bool swap_warning = false;

    if (vol_node_open(&a->volumes, &o, &swap_warning, e) != ERR_OK)
        return err_wrap(e, "volumes");
    if (swap_warning)
        log_warn(
            "swap is on and this kernel's tmpfs does not support noswap: Secrets may be written to swap");
    return ERR_OK;
}

static enum err_code open_network(struct agent *a, struct err *e)
{
    const struct agent_config *c = &a->config;
    const struct cni_options o = { .loop = &a->loop,
                                   .conf_dir = c->cni_conf_dir,
                                   .bin_dirs = (const char *const *)c->cni_bin_dirs.v,
                                   .cache_dir = a->cni_cache,
                                   .data_dir = a->cni_data,
                                   .ops_cgroup_fd = cg_leaf_fd(a->cgroups, CG_LEAF_OPS),
                                   .ops_cgroup_procs = cg_leaf_procs(a->cgroups, CG_LEAF_OPS) };

    if (fs_mkdirs(a->cni_cache, 0700, e) != ERR_OK || cni_open(&a->cni, &o, e) != ERR_OK)
        return err_wrap(e, "network");
    return ERR_OK;
}

static enum img_verify image_verify(const char *policy)
{
    if (strcmp(policy, "NeverVerify") == 0)
        return IMG_VERIFY_NEVER;
    if (strcmp(policy, "NeverVerifyAllowlistedImages") == 0)
        return IMG_VERIFY_LISTED;
    return strcmp(policy, "AlwaysVerify") == 0 ? IMG_VERIFY_ALWAYS : IMG_VERIFY_PULLED;
}

static enum err_code open_providers(const struct agent *a, struct provider_set **ret, struct err *e)
{
    const char *file = a->config.provider_config, *folder = a->config.provider_bin_dir;

    *ret = NULL;
    if (*file == '\0' && *folder == '\0')
        return ERR_OK;
    if (*file == '\0' || *folder == '\0')
        return err_set(e, ERR_INVALID, "%s is set, but %s is not: image credential providers need both",
                       *file != '\0' ? "imageCredentialProviderConfig" : "imageCredentialProviderBinDir",
                       *file != '\0' ? "imageCredentialProviderBinDir" : "imageCredentialProviderConfig");
    if (provider_set_open(ret, file, folder, (const char *const *)environ, e) != ERR_OK)
        return err_wrap(e, "imageCredentialProviderConfig");
    return ERR_OK;
}

static enum err_code open_images(struct agent *a, struct err *e)
{
    const struct agent_config *c = &a->config;
    scoped(provider_set_free) struct provider_set *providers = NULL;
    struct img_store_options o = { .loop = &a->loop,
                                   .dir = a->images_dir,
                                   .unpack_path = a->pre.unpack,
                                   .skopeo_path = a->pre.skopeo[0] != '\0' ? a->pre.skopeo : NULL,
                                   .tmpfs_dir = a->auth_dir,
                                   .confine = true,
                                   .auth_file = c->registry_auth_file,
                                   .run_dir = c->run_dir,
                                   .pods_dir = a->pods_dir,
                                   .registries_conf =
                                       c->registries_conf[0] != '\0' ? c->registries_conf : NULL,
                                   .max_bytes = c->image_max_bytes,
                                   .verify = image_verify(c->image_verify),
                                   .verify_not = (const char *const *)c->image_verify_not.v,
                                   .stall_ms = c->pull_stall_ms,
                                   .max_parallel = c->pulls_max,
                                   .max_per_registry = c->pulls_per_registry_max,
                                   .ops_cgroup_fd = cg_leaf_fd(a->cgroups, CG_LEAF_OPS),
                                   .ops_cgroup_procs = cg_leaf_procs(a->cgroups, CG_LEAF_OPS) };

    if (open_providers(a, &providers, e) != ERR_OK)
        return e->code;
    o.providers = providers;
    if (fs_mkdirs(a->images_dir, 0700, e) != ERR_OK || img_store_open(&a->images, &o, e) != ERR_OK)
        return err_wrap(e, "images");
    providers = NULL; /* owned by the store */
    return ERR_OK;
}

static enum err_code open_node(struct agent *a, struct node_options *o, struct err *e)
{
    a->store = src_store_new();
    if (a->store == NULL)
        return err_nomem(e);
    o->store = a->store;
    o->trimmer = &a->trimmer;
    o->cni = a->cni;
    o->volumes = a->volumes;
    o->images = a->images;
    if (node_open(&a->node, o, e) != ERR_OK)
        return err_wrap(e, "pods");
    return ERR_OK;
}

static enum err_code open_runtime(struct agent *a, struct err *e)
{
    const struct agent_config *c = &a->config;
    struct handlers handlers;

    handlers_find(&handlers, c);
    const struct rt_options o = { .loop = &a->loop,
                                  .run_dir = c->run_dir,
                                  .state_dir = c->state_dir,
                                  .conmon_path = a->pre.conmon,
                                  .runtime_path = a->pre.runtime,
                                  .handlers = handlers.v,
                                  .n_handlers = handlers.n,
                                  .exec_path = a->pre.exec,
                                  .unpack_path = a->pre.unpack,
                                  .seccomp_profile = a->pre.seccomp_profile,
                                  .localhost_seccomp_dir = a->seccomp_dir,
                                  .on_event = node_on_container_event,
                                  .arg = a->node,
                                  .cgroups = a->cgroups };

    if (rt_open(&a->rt, &o, e) != ERR_OK)
        return err_wrap(e, "runtime");
    node_set_runtime(a->node, a->rt);
    return ERR_OK;
}

enum err_code parts_open(struct agent *a, struct err *e)
{
    struct node_options node;
    struct pl_settings placement;

    node_settings(a, &node);
    if (config_placement(&a->config, &placement, e) != ERR_OK)
        return e->code;
    node.placement = &placement; /* read while the node opens */
    if (allocatable_check(&node, e) != ERR_OK || open_cgroups(a, e) != ERR_OK)
        return e->code;
    node.cgroups = a->cgroups;
    if (allocatable_enforce_reserved(&node, e) != ERR_OK || open_volumes(a, e) != ERR_OK ||
        open_network(a, e) != ERR_OK || open_images(a, e) != ERR_OK || open_node(a, &node, e) != ERR_OK)
        return e->code;
    return open_runtime(a, e);
}

/* ---- closing ---- */

static void agent_parts_on_closed(uv_handle_t *handle)
{
    (void)handle;
}

void parts_close(struct agent *a)
{
    bool remove = a->config.ephemeral && !a->failed;

    inhibit_close(&a->inhibit);
    unit_weight_close(&a->unit_weight);
    cluster_free(a->cluster);
    workloads_free(a->workloads);
    claims_free(a->claims);
    local_api_done(a);
    if (a->node != NULL && remove)
        node_written_remove(a->node);
    if (a->node != NULL)
        node_free(a->node);
    rt_close(a->rt);
    img_store_close(a->images);
    if (a->cni != NULL)
        cni_close(a->cni);
    src_store_free(a->store);
    if (a->volumes != NULL)
        vol_node_close(a->volumes, remove);
    if (a->cgroups != NULL)
        cg_close(a->cgroups, remove);
    notify_close(&a->notify);
    trimmer_close(&a->trimmer);
    uv_close((uv_handle_t *)&a->on_int, agent_parts_on_closed);
    uv_close((uv_handle_t *)&a->on_term, agent_parts_on_closed);
    uv_close((uv_handle_t *)&a->on_hup, agent_parts_on_closed);
    proc_forget(&a->loop);
}
