/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon.h"

#include "agent/cluster/cluster.h"
#include "agent/internal.h"
#include "agent/pod/show/provider.h"
#include "agent/priority.h"
#include "agent/settings.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- stopping ---- */

static void daemon_on_idle_again(void *arg)
{
    parts_close(arg);
}

static void daemon_on_kube_timer(uv_timer_t *timer)
{
    struct agent *a = timer->data;

    if (cluster_busy(a->cluster))
        return;
    uv_close((uv_handle_t *)timer, NULL);
    /* Leaving the cluster has changed pods, whose records may still be being written. */
    node_close(a->node, daemon_on_idle_again, a);
}

/* coracle-kube has been requested to end, which may take a moment. */
static void daemon_close_parts(struct agent *a)
{
    if (a->cluster == NULL) {
        parts_close(a);
        return;
    }
    join_close(a);
    uv_timer_init(&a->loop, &a->kube_timer);
    a->kube_timer.data = a;
    uv_timer_start(&a->kube_timer, daemon_on_kube_timer, 1, 5); /* only while closing */
}

static void on_undone(struct op *op, const struct err *result)
{
    if (result->code != ERR_OK)
        log_warn("cannot undo all changes of network plugins to the host", F_ERR(result));
    daemon_close_parts(op->owner);
}

static void daemon_on_idle(void *arg) /* no operation is in progress any more */
{
    struct agent *a = arg;

    a->idle = true;
    if (op_live(&a->undo.op))
        return; /* the host's state is still being recorded: on_recorded() continues */
    if (!a->config.ephemeral || a->failed) {
        daemon_close_parts(a);
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
    node_close(a->node, daemon_on_idle, a);
}

static void daemon_stop(struct agent *a, const char *why)
{
    if (a->stopping) {
        if (a->config.ephemeral && a->server != NULL) { /* second request: no more grace */
            log_info("ending pods at once", F_STR("why", why));
            node_drain(a->node, on_drained, a);
        }
        return;
    }
    a->stopping = true;
    notify_send(&a->notify, "STOPPING=1");
    if (a->workloads != NULL)
        workloads_stop(a->workloads);
    if (a->claims != NULL)
        claims_stop(a->claims);
    if (a->folder != NULL) {
        node_set_folder(a->node, NULL);
        src_folder_close(a->folder);
        a->folder = NULL;
    }
    if (a->config.ephemeral && !a->failed) {
        log_info("stopping; ending all pods", F_STR("why", why));
        node_drain(a->node, on_drained, a);
        return;
    }
    log_info("stopping; pods continue to run", F_STR("why", why));
    if (a->server != NULL) {
        status_server_close(a->server);
        node_set_server(a->node, NULL);
        a->server = NULL;
    }
    node_close(a->node, daemon_on_idle, a);
}

static void daemon_on_signal(uv_signal_t *handle, int signo)
{
    daemon_stop(handle->data, signo == SIGINT ? "SIGINT" : "SIGTERM");
}

/* ---- starting ---- */

static void on_first_set(void *arg)
{
    struct agent *a = arg;

    workloads_begin(a->workloads);
    claims_begin(a->claims);
    node_sources_ready(a->node);
    notify_send(&a->notify, "READY=1");
    log_info("ready");
    trimmer_later(&a->trimmer);
}

static void daemon_open_folder(struct agent *a)
{
    struct err e = { 0 };

    /* on_file gets the folder's arg, the agent; node_on_manifest only logs. */
    if (src_folder_open(&a->folder, &a->loop, a->config.manifests, a->store, node_on_manifest, on_first_set,
                        a, join_wanted(a) ? a->node_name : NULL, &e) != ERR_OK) {
        log_error("cannot watch the manifest folder", F_STR("folder", a->config.manifests), F_ERR(&e));
        a->failed = true;
        daemon_stop(a, "manifest folder");
        return;
    }
    node_set_folder(a->node, a->folder);
}

static void on_recorded(struct op *op, const struct err *result)
{
    struct agent *a = op->owner;

    if (result->code != ERR_OK)
        log_warn("cannot record the host's network state; not all of it will be restored at the end",
                 F_ERR(result));
    if (!a->stopping)
        daemon_open_folder(a);
    else if (a->idle)
        daemon_on_idle(a);
}

static enum err_code daemon_start(struct agent *a, struct err *e)
{
    struct status_options status = { .loop = &a->loop,
                                     .path = a->config.socket,
                                     .group =
                                         a->config.socket_group[0] != '\0' ? a->config.socket_group : NULL };

    if (parts_open(a, e) != ERR_OK || work_open(a, e) != ERR_OK || join_open(a, e) != ERR_OK ||
        local_api_open(a, e) != ERR_OK)
        return e->code;
    status.provider = node_provider(a->node);
    if (status_server_open(&a->server, &status, e) != ERR_OK)
        return err_wrap(e, "status socket");
    node_set_server(a->node, a->server);
    start_report(a);
    machine_open(a);
    notify_start(&a->notify, &a->loop);
    if (a->config.ephemeral)
        cni_undo_record_start(&a->undo, a->cni, on_recorded, a);
    else
        daemon_open_folder(a);
    return ERR_OK;
}

/* ---- reloading ---- */

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
        parts_live_options(&a->config, &o);
        node_set_options(a->node, &o);
    }
    notify_send(&a->notify, "READY=1");
}

/* ---- main ---- */

/* This memory contains Secrets. A soft limit of 1 byte prevents a core dump both to a file and to the program
 * of kernel.core_pattern; a limit of 0 only prevents the former (core(5)). The process stays dumpable:
 * otherwise /proc/self would have another owner, and user namespaces could not be mapped. */
static void leave_no_core(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_CORE, &l) != 0)
        return;
    l.rlim_cur = 1;
    if (l.rlim_max < l.rlim_cur)
        l.rlim_max = l.rlim_cur;
    if (setrlimit(RLIMIT_CORE, &l) != 0)
        log_debug("cannot prevent core dumps of the agent", F_STR("err", strerror(errno)));
}

static void raise_file_limit(void)
{
    struct rlimit l;

    /* Each container needs a pidfd and an inotify watch; children get the old limit back. */
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

/* libuv aborts if it cannot create the pipe of its signals, its third descriptor, so this function detects
 * the error first. */
static int daemon_make_loop(uv_loop_t *loop)
{
    int fds[3] = { -1, -1, epoll_create1(EPOLL_CLOEXEC) };
    int failed = fds[2] < 0 || pipe2(fds, O_CLOEXEC) != 0 ? -errno : 0;

    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return failed != 0 ? failed : uv_loop_init(loop);
}

static int daemon_run(struct agent *a)
{
    struct err e = { 0 };
    int status;

    if (settings_check_swap(&a->config, &e) != ERR_OK ||
        preflight_programs(&a->pre, &a->config, &e) != ERR_OK ||
        preflight_folders(&a->pre, &a->config, &e) != ERR_OK || parts_make_paths(a, &e) != ERR_OK) {
        log_error("coracle cannot start", F_ERR(&e));
        preflight_take_back(&a->pre, &a->config);
        return 1;
    }
    priority_raise();
    machine_identify(a);
    machine_plan_shutdown(a);
    status = daemon_make_loop(&a->loop); /* the signals use its descriptors and cannot fail afterwards */
    if (status != 0) {
        err_sys(&e, -status, "create the event loop");
        log_error("coracle cannot start", F_ERR(&e));
        preflight_take_back(&a->pre, &a->config);
        return 1;
    }
    uv_signal_init(&a->loop, &a->on_int);
    uv_signal_init(&a->loop, &a->on_term);
    uv_signal_init(&a->loop, &a->on_hup);
    a->on_int.data = a->on_term.data = a->on_hup.data = a;
    uv_signal_start(&a->on_int, daemon_on_signal, SIGINT);
    uv_signal_start(&a->on_term, daemon_on_signal, SIGTERM);
    uv_signal_start(&a->on_hup, on_hup, SIGHUP);
    trimmer_open(&a->trimmer, &a->loop);
    if (daemon_start(a, &e) != ERR_OK) {
        log_error("coracle cannot start", F_ERR(&e));
        a->failed = true;
        if (a->node != NULL)
            daemon_stop(a, "it cannot start");
        else
            parts_close(a);
    }
    uv_run(&a->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&a->loop) != 0)
        log_error("the loop ended with open handles: a bug in the agent");
    if (a->failed && a->cgroups == NULL)
        preflight_take_back(&a->pre, &a->config);
    else if (a->config.ephemeral && !a->failed)
        preflight_undo(&a->pre, &a->config);
    log_info("coracle ended");
    return a->failed ? 1 : 0;
}

int daemon_main(int argc, char **argv)
{
    struct agent a = { .pre.state_lock = -1, .pre.run_lock = -1, .argc = argc, .argv = argv };
    struct err e = { 0 };
    bool help = false;
    int code;

    mallopt(M_ARENA_MAX,
            2); /* one for the loop, and one for all short-lived threads, instead of eight per CPU */
    /* glibc raises both thresholds to 32 MiB and more after one large block, and the memory of sent lists
     * would never be returned. */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    json_wipe_freed();
    rt_limits_own(); /* first: children start with the limits captured next */
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
    leave_no_core(); /* children get the old limit back */
    code = daemon_run(&a);
    preflight_done(&a.pre);
    parts_free_paths(&a);
    config_done(&a.config);
    return code;
}
