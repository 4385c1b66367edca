/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the node; adopting the pods of an earlier run; events of the store and the runtime. */
#include "agent/pod/node/node.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/core/node_written.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/image/images.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/limits/isolation.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/node/record_load.h"
#include "agent/pod/placement/placement.h"
#include "agent/pod/project/project.h"
#include "agent/pod/record/record.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/show/provider.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/volume/volumes.h"
#include "agent/pod/worker/pods.h"
#include "agent/pod/worker/shutdown.h"
#include "agent/pod/worker/worker.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

static void on_store(enum src_change change, const struct api_object *o, void *arg)
{
    struct node *n = arg;

    switch (o->kind) {
    case API_KIND_POD:
        if (change == SRC_REMOVED)
            pods_lost(n, o->pod);
        else
            pods_want(n, o->pod);
        return;
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        pods_config_changed(n, o->config->origin, o->config->kind, o->config->meta.namespace,
                            o->config->meta.name);
        return;
    case API_KIND_PRIORITY_CLASS: /* applies to pods not admitted yet, because the API decides it once */
        pods_wake_pending(n, "priority classes changed");
        return;
    case API_KIND_RUNTIME_CLASS:
        sandbox_runtime_classes_changed(n, o->runtime_class->meta.name);
        return;
    case API_KIND_CSI_DRIVER:
        volumes_drivers_changed(n);
        return;
    default:
        return;
    }
}

static void on_image(const char *name, void *arg)
{
    (void)name;
    image_gc_wake(arg);
    eviction_wake(arg, EV_DISK_PRESSURE, "a new image");
    images_added(arg);
}

/* Reports ignored network lists with the reason, after each load. */
static void tell_lists(struct node *n)
{
    const char *problem;

    for (size_t i = 0; (problem = cni_problem(n->o.cni, i)) != NULL; i++)
        log_warn("ignoring invalid network list", F_STR("why", problem));
}

static void pod_node_on_network(void *arg)
{
    struct node *n = arg;

    sandbox_networks_changed(n);
    tell_lists(n);
    if (!n->sources_ready)
        return;
    net_heal_start(n, true);
    node_events_ready(n);
}

void node_set_options(struct node *n, const struct node_options *o)
{
    n->o.max_pods = o->max_pods;
    n->o.pod_pids_limit = o->pod_pids_limit;
    n->o.cpu_cfs_quota = o->cpu_cfs_quota;
    n->o.cpu_cfs_period_us = o->cpu_cfs_period_us;
    n->o.backoff_max_ms = o->backoff_max_ms;
    n->o.image_gc = o->image_gc;
    n->o.eviction = o->eviction;
    n->o.resources.evict_memory = o->resources.evict_memory;
    n->o.resources.evict_storage = o->resources.evict_storage;
    n->o.labels = o->labels;
    n->o.taints = o->taints;
    n->o.n_taints = o->n_taints;
    node_written_refresh(n);
    n->o.cluster_domain = o->cluster_domain;
    n->o.pod_cidr = o->pod_cidr;
    n->o.cluster_dns = o->cluster_dns;
    n->o.resolv_conf = o->resolv_conf;
    n->o.allowed_unsafe_sysctls = o->allowed_unsafe_sysctls;
    n->o.seccomp_default = o->seccomp_default;
    n->o.device_plugin_wait_ms = o->device_plugin_wait_ms;
    n->o.extended_resources = o->extended_resources;
    eviction_settings(n);
    devices_options(n);
    pods_wake_pending(n, "settings changed"); /* some may fit now */
}

/* The folders that contain a folder per pod; errors are reported by the first pod. */
static void pod_node_open_folders(struct node *n)
{
    str_auto pods = n->o.root_dir != NULL ? str_printf("%s/pods", n->o.root_dir) : NULL;

    if (pods != NULL && fs_mkdirs(n->o.root_dir, 0755, ERR_IGNORED) == ERR_OK &&
        fs_mkdirs(pods, 0750, ERR_IGNORED) == ERR_OK)
        fs_spread_below(pods);
    if (n->o.pod_logs_dir != NULL && fs_mkdirs(n->o.pod_logs_dir, 0755, ERR_IGNORED) == ERR_OK)
        fs_spread_below(n->o.pod_logs_dir);
}

enum err_code node_open(struct node **ret, const struct node_options *o, struct err *e)
{
    struct node *n = calloc(1, sizeof(*n));

    if (n == NULL || (n->timers = boot_timers_new(o->loop)) == NULL ||
        rooms_make_node(n, node_rooms, e) != ERR_OK) {
        if (n != NULL)
            boot_timers_free(n->timers);
        free(n);
        return err_nomem(e);
    }
    n->o = *o;
    n->upward = worker_upward;
    n->upward.recover = node_recover_pod;
    n->upward.ready_changed = node_events_ready;
    n->opened_ns = o->opened_ns != 0 ? o->opened_ns : clock_wall_ns();
    n->opened_at = clock_boot();
    uv_timer_init(o->loop, &n->idle_timer);
    n->idle_timer.data = n;
    bool boot_known = id_boot(n->boot_id, e) == ERR_OK;
    rooms_open_node(n);
    pod_node_open_folders(n);
    project_begin(n);
    if (!boot_known || boot_timers_watch(n->timers, run_queue_clock_set, n, e) != ERR_OK ||
        devices_opened(n, e) != ERR_OK || foreign_begin(n, e) != ERR_OK || record_load_all(n, e) != ERR_OK ||
        placement_begin(n, e) != ERR_OK || devices_begin(n, e) != ERR_OK) {
        node_free(n);
        return e->code;
    }
    n->o.placement = NULL; /* the settings of the caller */
    isolation_begin(n);
    resources_qos_update(n); /* for the adopted pods: no limit is lowered temporarily */
    allocatable_update(n);
    hugepages_watch_begin(n);
    src_store_watch(o->store, on_store, n);
    src_store_watch(o->store, provider_on_store, n);
    img_on_added(o->images, on_image, n);
    image_gc_open(n);
    cni_on_change(o->cni, pod_node_on_network, n);
    podresources_begin(n);
    tell_lists(n);
    *ret = n;
    return ERR_OK;
}

void node_set_server(struct node *n, struct status_server *s)
{
    n->server = s;
}

void node_set_folder(struct node *n, struct src_folder *f)
{
    n->folder = f;
    if (f == NULL || n->sources_ready)
        return;
    pods_each (n, p) {
        struct err e = { 0 };
        /* Not a terminating one: its manifest was gone, or defined another pod. */
        if (p->recovered && p->manifest_file[0] != '\0' && p->deletion_ns == 0 &&
            src_folder_seed(f, p->manifest_file, p->api, &e) != ERR_OK)
            log_warn("the manifest of a pod is lost", F_STR("pod", p->key), F_STR("file", p->manifest_file),
                     F_ERR(&e));
    }
}

void node_on_container_event(const char *id, void *node)
{
    struct node *n = node;
    struct ctr *c = pods_by_container(n, id);

    if (c != NULL)
        pod_wake(c->pod, "container event");
}

/* ---- adopting pods ---- */

/* Compares the record with reality: examines each instance that had not ended. */
void node_recover_pod(struct pod *p)
{
    struct err unseen = { 0 };

    p->unseen = sandbox_recover(p, &unseen) != ERR_OK || pidns_recover(p, &unseen) != ERR_OK;
    if (p->unseen) {
        pod_look_again(p, &unseen);
        return;
    }
    live_sub_path_due(p); /* the pod's cgroup and volumes are set up again: existing parts are kept */
    containers_recover(p);
    /* Its namespaces are gone: running containers have no network; it starts again in a new sandbox. */
    if (sandbox_is_lost(p) && p->state != POD_TERMINATING) {
        containers_begin_anew(p);
        sandbox_begin_anew(p);
    }
    pod_wake(p, "taken over");
}

void node_set_runtime(struct node *n, struct rt *rt)
{
    n->rt = rt;
    node_users_ask(n);
    pods_each (n, p)
        node_recover_pod(p);
}

void node_sources_ready(struct node *n)
{
    n->sources_ready = true;
    pods_each (n, p) {
        /* Without its apiserver, a pod of the cluster runs on from its record. */
        if (p->recovered && !(p->api->origin == API_FROM_SERVER && n->cluster != NULL)) {
            p->recovered = false;
            p->wanted = false;
        }
        pod_wake(p, "manifests are known");
    }
    placement_sources_ready(n);
    devices_sources_ready(n);
    eviction_begin(n);
    node_events_started(n);
    if (n->cluster == NULL || n->server_ready)
        sweep_start(n);
    net_heal_start(n, false);
    quarantine_report(n, n->opened_ns);
}

void node_set_cluster(struct node *n, const struct node_cluster *c)
{
    n->cluster = c;
}

void node_set_workloads(struct node *n, const struct node_workloads *w)
{
    n->workloads = w;
}

void node_set_tokens(struct node *n, const struct pod_tokens *t)
{
    n->o.tokens = t;
}

void node_set_served(struct node *n, const struct api_kvs *labels, const struct api_taint *taints,
                     size_t n_taints)
{
    n->served_labels = labels;
    n->served_taints = taints;
    n->n_served_taints = n_taints;
    if (labels != NULL)
        pods_wake_pending(n, "labels or taints of the node changed");
}

void node_served_unknown(struct node *n)
{
    pods_wake_pending(n, "labels and taints of the node are not known");
}

void node_server_ready(struct node *n)
{
    if (n->server_ready)
        return;
    n->server_ready = true;
    pods_each (n, p) {
        if (!p->recovered || p->api->origin != API_FROM_SERVER)
            continue;
        log_info("the apiserver does not have the pod any more", F_STR("pod", p->key),
                 F_STR("podUID", p->uid));
        p->recovered = p->wanted = false;
        pod_wake(p, "the apiserver does not have it");
    }
    if (n->sources_ready && !n->closing)
        sweep_start(n);
}

void node_config_lacking(struct node *n, bool secret, const char *namespace_, const char *name)
{
    pods_config_changed(n, API_FROM_SERVER, secret ? API_SECRET : API_CONFIG_MAP, namespace_, name);
}

void node_runtime_classes_known(struct node *n)
{
    sandbox_runtime_classes_changed(n, NULL);
}

void node_services_known(struct node *n)
{
    pods_each (n, p) {
        containers_services_known(p);
        pod_wake(p, "Services are known");
    }
}

void node_trust_changed(struct node *n)
{
    pods_each (n, p)
        if (volumes_trust_changed(p))
            pod_wake(p, "ClusterTrustBundles changed");
}

static void log_problem(const struct src_file *f, const struct api_problem *p)
{
    char where[NAME_MAX + 32];

    snprintf(where, sizeof(where), p->place.line > 0 ? "%s:%u:%u" : "%s", f->name, (unsigned)p->place.line,
             (unsigned)p->place.column);
    log_error(f->stale ? "manifest rejected; its previous content stays in effect" : "manifest rejected",
              F_STR("file", f->name), F_STR("where", where), F_STR("field", p->field),
              F_STR("err", p->message));
}

void node_on_manifest(const struct src_file *f, void *node)
{
    (void)node;
    if (f->ok) {
        log_info("manifest read", F_STR("file", f->name), F_U64("objects", f->n_objects));
        return;
    }
    for (size_t i = 0; i < f->n_problems; i++)
        log_problem(f, &f->problems[i]);
}

/* ---- ending ---- */

void node_drain(struct node *n, void (*done)(void *arg), void *arg)
{
    bool again = n->draining;

    n->draining = true;
    n->forced = again;
    n->sources_ready = true;
    n->drained = done;
    n->drained_arg = arg;
    pods_each (n, p) {
        p->wanted = false;
        api_pod_unref(take_ptr(&p->successor));
        if (again)
            pod_begin_termination(p, 0, false, "asked again to end immediately");
        pod_wake(p, "all pods end");
    }
    if (again)
        sweep_cancel(n);
    else
        sweep_hurry(n);
    node_check_idle(n);
}

static bool operations_live(const struct node *n)
{
    pods_each (n, p)
        if (!pod_idle(p))
            return true;
    return rooms_node_busy(n);
}

static void on_idle_timer(uv_timer_t *timer)
{
    struct node *n = timer->data;

    if (n->closing && n->idle != NULL && !operations_live(n)) {
        void (*idle)(void *) = n->idle;
        n->idle = NULL;
        uv_timer_stop(timer);
        idle(n->idle_arg);
    }
}

void node_close(struct node *n, void (*idle)(void *arg), void *arg)
{
    n->closing = true;
    n->idle = idle;
    n->idle_arg = arg;
    pods_each (n, p)
        rooms_cancel_pod(p);
    rooms_cancel_node(n);
    if (idle != NULL)
        uv_timer_start(&n->idle_timer, on_idle_timer, 1,
                       5); /* only while closing: until the last operation is finished */
}

static void node_on_closed(struct node *n)
{
    free(n);
}

void node_free(struct node *n)
{
    struct boot_timers *timers = n->timers;

    pods_each (n, p)
        pods_free(p);
    node_written_free(n);
    rooms_close_handle(n, (uv_handle_t *)&n->idle_timer);
    rooms_free_node(n, node_on_closed); /* may free n; rooms close timers */
    boot_timers_free(timers);
}
