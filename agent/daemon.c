#include "agent/daemon.h"
#include "agent/config/config.h"
#include "agent/inhibit.h"
#include "agent/notify.h"
#include "agent/pod/allocatable.h"
#include "agent/pod/node.h"
#include "agent/pod/shutdown.h"
#include "agent/preflight.h"
#include "agent/settings.h"
#include "agent/unit_weight.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/netlink.h"
#include "base/process.h"
#include "cni/undo.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define VOLUMES_TMPFS_DIVISOR 4 /* payloads of all pods together: at most a quarter of the memory */

struct agent { /* the parts, in the order in which they are opened */
    struct agent_config config;
    int argc; /* the command line, for SIGHUP */
    char **argv;
    struct preflight pre;
    struct notify notify;
    uv_loop_t loop;
    uv_signal_t on_int, on_term, on_hup;
    struct cg_tree *cgroups;
    struct vol_node *volumes;
    struct cni *cni;
    struct img_store *images;
    struct src_store *store;
    struct node *node;
    struct rt *rt;
    struct status_server *server;
    struct src_folder *folder;
    struct cni_undo undo;
    struct inhibit inhibit;
    struct unit_weight unit_weight;
    struct node_shutdown_group shutdown_groups[CONFIG_SHUTDOWN_PRIORITIES_MAX];
    size_t n_shutdown_groups;
    char node_name[256], node_ip[46];
    char *cni_cache, *cni_data, *images_dir, *cgroup_scratch, *volumes_dir, *pods_dir, *auth_dir,
        *seccomp_dir;
    bool stopping, failed, idle;
};

/* ---- stopping --------------------------------------------------------------------------------------------
 */

static void on_closed(uv_handle_t *handle)
{
    (void)handle;
}

static void close_parts(struct agent *a)
{
    bool remove = a->config.ephemeral && !a->failed;

    inhibit_close(&a->inhibit);
    unit_weight_close(&a->unit_weight);
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
    uv_close((uv_handle_t *)&a->on_int, on_closed);
    uv_close((uv_handle_t *)&a->on_term, on_closed);
    uv_close((uv_handle_t *)&a->on_hup, on_closed);
    proc_left_behind_forget(&a->loop);
}

static void on_undone(struct op *op, const struct err *result)
{
    if (result->code != ERR_OK)
        log_warn("what network plugins left on the host cannot all be undone", F_ERR(result));
    close_parts(op->owner);
}

static void on_idle(void *arg) /* no operation is under way any more */
{
    struct agent *a = arg;

    a->idle = true;
    if (op_live(&a->undo.op))
        return; /* asked to stop while it is still recorded what the host looks like: on_recorded() goes on */
    if (!a->config.ephemeral || a->failed) {
        close_parts(a);
        return;
    }
    cni_remove_bridges(a->cni);
    cni_undo_start(&a->undo, a->cni, on_undone, a);
}

static void on_drained(void *arg)
{
    struct agent *a = arg;

    log_info("all pods are gone");
    status_server_close(a->server);
    node_set_server(a->node, NULL);
    a->server = NULL;
    node_close(a->node, on_idle, a);
}

static void stop(struct agent *a, const char *why)
{
    if (a->stopping) {
        if (a->config.ephemeral && a->server != NULL) { /* asked twice: no more grace */
            log_info("ending pods at once", F_STR("why", why));
            node_drain(a->node, on_drained, a);
        }
        return;
    }
    a->stopping = true;
    notify_send(&a->notify, "STOPPING=1");
    if (a->folder != NULL) {
        node_set_folder(a->node, NULL);
        src_folder_close(a->folder);
        a->folder = NULL;
    }
    if (a->config.ephemeral && !a->failed) {
        log_info("stopping; all pods are taken down", F_STR("why", why));
        node_drain(a->node, on_drained, a);
        return;
    }
    log_info("stopping; pods go on", F_STR("why", why));
    if (a->server != NULL) {
        status_server_close(a->server);
        node_set_server(a->node, NULL);
        a->server = NULL;
    }
    node_close(a->node, on_idle, a);
}

static void on_signal(uv_signal_t *handle, int signo)
{
    stop(handle->data, signo == SIGINT ? "SIGINT" : "SIGTERM");
}

/* ---- starting ---------------------------------------------------------------------------------------------
 */

static enum err_code make_paths(struct agent *a, struct err *e)
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

static void free_paths(struct agent *a)
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

static void identify(struct agent *a)
{
    struct err e = { 0 };
    char ipv6[46] = "", ipv4[16] = "";
    bool prefer_v6;

    if (a->config.node_name[0] != '\0') {
        snprintf(a->node_name, sizeof(a->node_name), "%s", a->config.node_name);
    } else {
        gethostname(a->node_name, sizeof(a->node_name) - 1);
        for (char *c = a->node_name; *c != '\0'; c++) /* node names are lower case */
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    }
    prefer_v6 = strcmp(a->config.node_ip, "::") == 0; /* kubelet's --node-ip: which family to prefer */
    if (a->config.node_ip[0] != '\0' && !prefer_v6 && strcmp(a->config.node_ip, "0.0.0.0") != 0) {
        snprintf(a->node_ip, sizeof(a->node_ip), "%s", a->config.node_ip);
        return;
    }
    if (nl_default_addresses(ipv4, ipv6, &e) != ERR_OK)
        log_warn("this node's address is not known; pods show none", F_ERR(&e));
    snprintf(a->node_ip, sizeof(a->node_ip), "%s",
             ipv4[0] != '\0' && (!prefer_v6 || ipv6[0] == '\0') ? ipv4 : ipv6);
}

/* Those that a reload changes. */
static void live_options(const struct agent_config *c, struct node_options *o)
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
    o->labels = &c->node_labels;
    o->taints = c->node_taints;
    o->n_taints = c->n_node_taints;
    o->seccomp_default = c->seccomp_default;
}

static json_t *show_config(void *arg)
{
    struct agent *a = arg;

    return config_json(&a->config);
}

/* ---- shutdown of the machine ------------------------------------------------------------------ */

static void plan_shutdown(struct agent *a)
{
    const struct agent_config *c = &a->config;

    for (size_t i = 0; i < c->n_shutdown_priorities; i++)
        a->shutdown_groups[i] = (struct node_shutdown_group){ c->shutdown_priorities[i].priority,
                                                              c->shutdown_priorities[i].grace_ms };
    a->n_shutdown_groups =
        c->n_shutdown_priorities > 0
            ? c->n_shutdown_priorities
            : shutdown_plan_simple(c->shutdown_grace_ms, c->shutdown_critical_ms, a->shutdown_groups);
}

static void on_pods_over(void *arg)
{
    struct agent *a = arg;

    inhibit_release(&a->inhibit);
}

static void on_preparing(bool preparing, void *arg)
{
    struct agent *a = arg;

    if (preparing)
        node_shutdown_begin(a->node, on_pods_over, a);
    else
        node_shutdown_cancel(a->node);
}

static void on_inhibitor(bool failed, const char *text, void *arg)
{
    struct agent *a = arg;

    node_shutdown_inhibitor(a->node, failed, text);
}

static void open_inhibitor(struct agent *a)
{
    const struct inhibit_options o = { .loop = &a->loop,
                                       .program = a->pre.shutdown,
                                       .wait_ms =
                                           shutdown_plan_total_ms(a->shutdown_groups, a->n_shutdown_groups),
                                       .cgroup_fd = cg_leaf_fd(a->cgroups, CG_LEAF_OPS),
                                       .cgroup_procs = cg_leaf_procs(a->cgroups, CG_LEAF_OPS),
                                       .on_preparing = on_preparing,
                                       .on_state = on_inhibitor,
                                       .arg = a };

    if (a->n_shutdown_groups > 0)
        inhibit_open(&a->inhibit, &o);
}

static void open_unit_weight(struct agent *a)
{
    const struct unit_weight_options o = { .loop = &a->loop,
                                           .cgroup_root = a->config.cgroup_root,
                                           .weight = allocatable_unit_weight(a->node),
                                           .cgroup_fd = cg_leaf_fd(a->cgroups, CG_LEAF_OPS),
                                           .cgroup_procs = cg_leaf_procs(a->cgroups, CG_LEAF_OPS) };

    if (cg_layout(a->cgroups) == CG_V2)
        unit_weight_open(&a->unit_weight, &o);
}

static enum err_code open_parts(struct agent *a, struct err *e)
{
    const struct agent_config *c = &a->config;
    struct cg_options cg = { .root = c->cgroup_root, .scratch_dir = a->cgroup_scratch };
    struct vol_node_options vol = { .tmpfs_dir = a->volumes_dir, .pods_dir = a->pods_dir };
    struct cni_options cni = { .loop = &a->loop,
                               .conf_dir = c->cni_conf_dir,
                               .bin_dirs = (const char *const *)c->cni_bin_dirs.v,
                               .cache_dir = a->cni_cache,
                               .data_dir = a->cni_data };
    struct img_store_options img = { .loop = &a->loop,
                                     .dir = a->images_dir,
                                     .unpack_path = a->pre.unpack,
                                     .skopeo_path = a->pre.skopeo[0] != '\0' ? a->pre.skopeo : NULL,
                                     .tmpfs_dir = a->auth_dir,
                                     .auth_file = c->registry_auth_file,
                                     .registries_conf =
                                         c->registries_conf[0] != '\0' ? c->registries_conf : NULL,
                                     .max_bytes = c->image_max_bytes,
                                     .stall_ms = c->pull_stall_ms,
                                     .max_parallel = c->pulls_max,
                                     .max_per_registry = c->pulls_per_registry_max };
    struct rt_options rt = { .loop = &a->loop,
                             .run_dir = c->run_dir,
                             .state_dir = c->state_dir,
                             .conmon_path = a->pre.conmon,
                             .runtime_path = a->pre.runtime,
                             .exec_path = a->pre.exec,
                             .seccomp_profile = a->pre.seccomp_profile,
                             .localhost_seccomp_dir = a->seccomp_dir,
                             .on_event = node_on_container_event };
    struct node_options node = {
        .loop = &a->loop,
        .opened_ns = clock_wall_ns(),
        .node_name = a->node_name,
        .node_ip = a->node_ip,
        .root_dir = c->root_dir,
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
        .probe_helper = a->pre.probe,
        .config = show_config,
        .config_arg = a,
        .local_limits = a->config.local_limits,
        .shutdown_groups = a->shutdown_groups,
        .n_shutdown_groups = a->n_shutdown_groups,
    };
    bool swap_warning = false;
    struct err stuck = { 0 };

    live_options(c, &node);
    if (cg_open(&a->cgroups, &cg, e) != ERR_OK)
        return err_wrap(e, "cgroups");
    if (c->fail_cgroup_v1 && cg_layout(a->cgroups) != CG_V2)
        return err_set(e, ERR_PRECONDITION, "failCgroupV1: true, and this node uses cgroup v1");
    if (cg_ops_sweep(a->cgroups, &stuck) !=
        ERR_OK) /* they were killed: not one more instruction of theirs is run */
        log_warn("children of an earlier run are stuck in the kernel; going on without them", F_ERR(&stuck));
    node.cgroups = rt.cgroups = a->cgroups;
    if (cg_layout(a->cgroups) != CG_V2 && json_is_false(config_value(c, "singleProcessOOMKill")))
        return err_set(e, ERR_PRECONDITION, "singleProcessOOMKill: false needs cgroup v2");
    if (allocatable_enforce_reserved(&node, e) != ERR_OK)
        return e->code;
    vol.tmpfs_bytes = a->pre.memory_bytes / VOLUMES_TMPFS_DIVISOR;
    if (vol_node_open(&a->volumes, &vol, &swap_warning, e) != ERR_OK)
        return err_wrap(e, "volumes");
    if (swap_warning)
        log_warn("swap is on and this kernel's tmpfs knows no noswap: Secrets may be written to swap");
    cni.ops_cgroup_fd = img.ops_cgroup_fd = cg_leaf_fd(a->cgroups, CG_LEAF_OPS);
    cni.ops_cgroup_procs = img.ops_cgroup_procs = cg_leaf_procs(a->cgroups, CG_LEAF_OPS);
    if (fs_mkdirs(a->cni_cache, 0700, e) != ERR_OK || cni_open(&a->cni, &cni, e) != ERR_OK)
        return err_wrap(e, "network");
    if (fs_mkdirs(a->images_dir, 0700, e) != ERR_OK || img_store_open(&a->images, &img, e) != ERR_OK)
        return err_wrap(e, "images");
    a->store = src_store_new();
    if (a->store == NULL)
        return err_nomem(e);
    node.store = a->store;
    node.cni = a->cni;
    node.volumes = a->volumes;
    node.images = a->images;
    if (node_open(&a->node, &node, e) != ERR_OK)
        return err_wrap(e, "pods");
    rt.arg = a->node;
    if (rt_open(&a->rt, &rt, e) != ERR_OK)
        return err_wrap(e, "runtime");
    node_set_runtime(a->node, a->rt);
    return ERR_OK;
}

static void say_missing(const char *controller, const char *disables, void *arg)
{
    (void)arg;
    log_warn("cgroup controller is missing", F_STR("controller", controller), F_STR("so", disables));
}

/* Protection counts only as far as every cgroup above has it, too. */
static void say_unprotected(const struct agent *a)
{
    char where[512] = "";

    if (a->config.resources.memory_qos && a->config.resources.memory_tiers &&
        cg_protected_above(a->cgroups, where, sizeof(where)) == 0)
        log_warn("memory requests of pods are protected among themselves only: a cgroup above them has no "
                 "memory.min (MemoryMin= of its unit)",
                 F_STR("cgroup", where));
}

static void report_start(struct agent *a)
{
    const struct rt_features *f = rt_features(a->rt);
    static const char *const layouts[] = { "v2", "v1", "hybrid" };
    const char *why = NULL, *network = cni_default_network(a->cni, &why);

    log_info("coracle starts", F_STR("version", CORACLE_VERSION), F_STR("node", a->node_name),
             F_STR("runtime", f->runtime_name), F_STR("runtimeVersion", f->runtime_version),
             F_STR("cgroups", layouts[cg_layout(a->cgroups)]), F_STR("manifests", a->config.manifests),
             F_STR("socket", a->config.socket));
    cg_missing(a->cgroups, say_missing, NULL);
    say_unprotected(a);
    if (a->config.resources.memory_qos && cg_layout(a->cgroups) != CG_V2)
        log_warn("feature gate MemoryQoS has no effect on cgroup v1");
    if (a->config.resources.limited_swap && cg_layout(a->cgroups) != CG_V2)
        log_warn("swapBehavior LimitedSwap has no effect on cgroup v1: no container gets swap");
    if (!f->lower_oom_score)
        log_warn("oom_score_adj cannot be lowered here (no CAP_SYS_RESOURCE): containers keep at least the "
                 "agent's own value",
                 F_I64("own", f->own_oom_score_adj));
    for (const char *const *m = cni_missing_plugins(a->cni); *m != NULL; m++)
        log_error("network plugin is missing: install Debian's package containernetworking-plugins, or the "
                  "network's own",
                  F_STR("plugin", *m), F_STR("package", "containernetworking-plugins"));
    if (network == NULL)
        log_warn("no network yet: pods without hostNetwork wait for it", F_STR("why", why));
    if (rt_seccomp_problem(a->rt) != NULL)
        log_warn("seccomp RuntimeDefault is not available", F_STR("why", rt_seccomp_problem(a->rt)));
}

static void on_first_set(void *arg)
{
    struct agent *a = arg;

    node_sources_ready(a->node);
    notify_send(&a->notify, "READY=1");
    log_info("ready");
}

static void open_folder(struct agent *a)
{
    struct err e = { 0 };

    /* on_file's argument is the folder's arg: the agent; node_on_manifest only logs. */
    if (src_folder_open(&a->folder, &a->loop, a->config.manifests, a->store, node_on_manifest, on_first_set,
                        a, &e) != ERR_OK) {
        log_error("manifest folder cannot be watched", F_STR("folder", a->config.manifests), F_ERR(&e));
        a->failed = true;
        stop(a, "manifest folder");
        return;
    }
    node_set_folder(a->node, a->folder);
}

static void on_recorded(struct op *op, const struct err *result)
{
    struct agent *a = op->owner;

    if (result->code != ERR_OK)
        log_warn("the host's network state cannot be recorded; less of it will be put back at the end",
                 F_ERR(result));
    if (!a->stopping)
        open_folder(a);
    else if (a->idle)
        on_idle(a);
}

static enum err_code start(struct agent *a, struct err *e)
{
    struct status_options status = { .loop = &a->loop,
                                     .path = a->config.socket,
                                     .group =
                                         a->config.socket_group[0] != '\0' ? a->config.socket_group : NULL };

    if (open_parts(a, e) != ERR_OK)
        return e->code;
    status.provider = node_provider(a->node);
    if (status_server_open(&a->server, &status, e) != ERR_OK)
        return err_wrap(e, "status socket");
    node_set_server(a->node, a->server);
    report_start(a);
    open_inhibitor(a);
    open_unit_weight(a);
    notify_watchdog_start(&a->notify, &a->loop);
    if (a->config.ephemeral)
        cni_undo_record_start(&a->undo, a->cni, on_recorded, a);
    else
        open_folder(a);
    return ERR_OK;
}

/* ---- reloading --------------------------------------------------------------------------------------------
 */

static void on_hup(uv_signal_t *handle, int signo)
{
    struct agent *a = handle->data;
    struct node_options o = { 0 };
    char reloading[64];

    (void)signo;
    if (a->stopping || a->node == NULL)
        return;
    snprintf(reloading, sizeof(reloading), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, uv_hrtime() / 1000);
    notify_send(&a->notify, reloading);
    unit_weight_look(&a->unit_weight);
    if (settings_reload(&a->config, a->argc, a->argv)) {
        live_options(&a->config, &o);
        node_set_options(a->node, &o);
    }
    notify_send(&a->notify, "READY=1");
}

/* ---- main
 * --------------------------------------------------------------------------------------------------- */

static void raise_file_limit(void)
{
    struct rlimit l;

    /* A pidfd and an inotify watch for each container; children get the old limit back. */
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int run(struct agent *a)
{
    struct err e = { 0 };

    if (settings_check_swap(&a->config, &e) != ERR_OK ||
        preflight_programs(&a->pre, &a->config, &e) != ERR_OK ||
        preflight_folders(&a->pre, &a->config, &e) != ERR_OK || make_paths(a, &e) != ERR_OK) {
        log_error("coracle cannot start", F_ERR(&e));
        return 1;
    }
    identify(a);
    plan_shutdown(a);
    uv_loop_init(&a->loop);
    uv_signal_init(&a->loop, &a->on_int);
    uv_signal_init(&a->loop, &a->on_term);
    uv_signal_init(&a->loop, &a->on_hup);
    a->on_int.data = a->on_term.data = a->on_hup.data = a;
    uv_signal_start(&a->on_int, on_signal, SIGINT);
    uv_signal_start(&a->on_term, on_signal, SIGTERM);
    uv_signal_start(&a->on_hup, on_hup, SIGHUP);
    if (start(a, &e) != ERR_OK) {
        log_error("coracle cannot start", F_ERR(&e));
        a->failed = true;
        if (a->node != NULL)
            stop(a, "it cannot start");
        else
            close_parts(a);
    }
    uv_run(&a->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&a->loop) != 0)
        log_error("the loop ended with handles open: a mistake in the agent");
    if (a->config.ephemeral && !a->failed)
        preflight_undo(&a->pre, &a->config);
    log_info("coracle ended");
    return a->failed ? 1 : 0;
}

int daemon_main(int argc, char **argv)
{
    struct agent a = { .pre.lock_fd = -1, .argc = argc, .argv = argv };
    struct err e = { 0 };
    bool help = false;
    int code;

    signal(SIGPIPE, SIG_IGN);
    umask(022);
    rt_limits_own(); /* first: children begin with what is captured next */
    proc_defaults_capture();
    notify_open(&a.notify);
    if (config_parse(&a.config, argc, argv, &help, &e) != ERR_OK) {
        fprintf(stderr, "coracle run: %s\n", e.text);
        config_done(&a.config);
        return 2;
    }
    if (help) {
        config_help();
        config_done(&a.config);
        return 0;
    }
    settings_init_log(&a.config);
    settings_warn(&a.config);
    if (geteuid() != 0) {
        log_error("coracle cannot start", F_STR("err", "it must run as root"));
        config_done(&a.config);
        return 1;
    }
    raise_file_limit();
    code = run(&a);
    if (a.pre.lock_fd >= 0)
        close(a.pre.lock_fd);
    free_paths(&a);
    config_done(&a.config);
    return code;
}
