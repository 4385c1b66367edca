/*
 * shareProcessNamespace: the pod's own PID namespace, whose first process is coracle-pause.  When that ends,
 * all of the pod's processes end with it; a new one is made and the containers restart by their policy.
 * (kubelet makes the whole sandbox anew then; here the network has no part in it and stays.)
 */
#include "agent/runtime/pidns.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/sandbox/userns.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#include <string.h>
#include <unistd.h>

#define RETRY_NS (2 * INT64_C(1000000000))

struct pidns_watch { /* lives until its handle has closed, maybe longer than the pod */
    uv_poll_t poll;
    int pidfd;
    struct pod *pod; /* NULL: nobody asks any more */
};

static const char *pin(const struct pod *p, const char *which, bool own, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", p->netns_dir, which);
    return own ? path : NULL;
}

bool pidns_ready(const struct pod *p)
{
    fd_auto pidfd = -1;

    if (!p->api->spec.share_process_namespace)
        return true;
    if (p->pidns != PIDNS_READY)
        return false;
    /* The ends of its containers are known before its own is: no new one must begin between the two. */
    pidfd = rt_pidns_open(p->netns_dir);
    return pidfd >= 0;
}

/* ---- noticing its end --------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct pidns_watch *w = handle->data;

    close(w->pidfd);
    free(w);
}

void pidns_forget(struct pod *p)
{
    struct pidns_watch *w = take_ptr(&p->pidns_watch);

    if (w == NULL)
        return;
    w->pod = NULL;
    uv_close((uv_handle_t *)&w->poll, on_closed);
}

static void on_pause_ended(uv_poll_t *poll, int status, int events)
{
    struct pidns_watch *w = poll->data;
    struct pod *p = w->pod;

    (void)status;
    (void)events;
    pidns_forget(p);
    p->pidns = PIDNS_NONE;
    if (p->state == POD_STARTING || p->state == POD_RUNNING) {
        log_warn("the first process of a shared PID namespace ended, and with it the pod's containers; a new "
                 "one is made",
                 F_STR("pod", p->key));
        pod_event(p, NULL, false, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
    }
    pod_wake(p);
}

/* Takes over the process that the facts name; false when there is none. */
static bool watch(struct pod *p)
{
    fd_auto pidfd = rt_pidns_open(p->netns_dir);
    struct pidns_watch *w = pidfd >= 0 ? calloc(1, sizeof(*w)) : NULL;

    if (w == NULL || uv_poll_init(p->node->o.loop, &w->poll, pidfd) != 0) {
        free(w);
        return false;
    }
    w->pidfd = take_fd(&pidfd);
    w->poll.data = w;
    w->pod = p;
    uv_poll_start(&w->poll, UV_READABLE, on_pause_ended);
    p->pidns_watch = w;
    return true;
}

/* ---- making it --------------------------------------------------------------------------------- */

static enum err_code clean(struct pod *p, struct err *e)
{
    char cgroup[512];

    if (resources_cgroup_path(p, cgroup, sizeof(cgroup), e) != ERR_OK)
        return e->code;
    return rt_pidns_remove(p->netns_dir, p->node->o.cgroups, cgroup, e);
}

static enum err_code place(struct pod *p, struct err *e)
{
    char cgroup[512];

    if (resources_cgroup_path(p, cgroup, sizeof(cgroup), e) != ERR_OK)
        return e->code;
    return rt_pidns_place(&p->pidns_call, p->netns_dir, p->node->o.cgroups, cgroup, e);
}

static void on_made(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct err e = *result, ignored = { 0 };

    free(take_ptr(&p->pidns_spec));
    p->pidns = PIDNS_NONE;
    if (e.code == ERR_OK && place(p, &e) == ERR_OK) {
        if (watch(p))
            p->pidns = PIDNS_READY;
        else
            err_set(&e, ERR_UNAVAILABLE, "coracle-pause ended at once");
    }
    if (e.code != ERR_OK) {
        (void)!clean(p, &ignored);
        p->pidns_retry_ns = clock_wall_ns() + RETRY_NS;
        if (e.code != ERR_CANCELLED) {
            if (strncmp(p->net_error, e.text, sizeof(p->net_error) - 1) != 0)
                log_warn("shared PID namespace of a pod cannot be made; trying again", F_STR("pod", p->key),
                         F_ERR(&e));
            snprintf(p->net_error, sizeof(p->net_error), "%s", e.text);
            pod_event(p, NULL, true, "FailedCreatePodSandBox", "Failed to create pod sandbox: %s", e.text);
        }
    } else if (p->net == NET_READY) {
        p->net_error[0] = '\0';
    }
    pod_wake(p);
}

void pidns_step(struct pod *p)
{
    struct rt_pidns_spec *s;
    struct err e = { 0 };
    char *paths;
    size_t size = sizeof(p->netns_path);

    if (!p->api->spec.share_process_namespace || p->pidns != PIDNS_NONE || !sandbox_pinned(p))
        return;
    if (p->pidns_retry_ns > clock_wall_ns()) {
        pod_wake_at(p, p->pidns_retry_ns);
        return;
    }
    s = calloc(1, sizeof(*s) + 4 * size);
    if (s == NULL || fs_mkdirs(p->netns_dir, 0700, &e) != ERR_OK || clean(p, &e) != ERR_OK) {
        free(s);
        log_warn("shared PID namespace of a pod cannot be made; trying again", F_STR("pod", p->key),
                 F_ERR(&e));
        p->pidns_retry_ns = clock_wall_ns() + RETRY_NS;
        pod_wake_at(p, p->pidns_retry_ns);
        return;
    }
    paths = (char *)(s + 1);
    *s = (struct rt_pidns_spec){
        .dir = p->netns_dir,
        .program = p->node->o.pause_path,
        .netns = pin(p, "net", !p->api->spec.host_network, paths, size),
        .ipcns = pin(p, "ipc", !p->api->spec.host_ipc, paths + size, size),
        .utsns = pin(p, "uts", !p->api->spec.host_network, paths + 2 * size, size),
        .userns = pin(p, "user", userns_wanted(p), paths + 3 * size, size),
    };
    p->pidns_spec = s;
    p->pidns = PIDNS_MAKING;
    rt_pidns_start(&p->pidns_call, s, cg_leaf_fd(p->node->o.cgroups, CG_LEAF_OPS),
                   cg_leaf_procs(p->node->o.cgroups, CG_LEAF_OPS), p->node->o.loop, on_made, p);
}

bool pidns_teardown_step(struct pod *p)
{
    struct err e = { 0 };

    if (!p->api->spec.share_process_namespace || p->net == NET_DELETED)
        return true;
    if (p->pidns == PIDNS_MAKING) {
        op_cancel(&p->pidns_call.op);
        return false;
    }
    pidns_forget(p);
    p->pidns = PIDNS_NONE;
    if (clean(p, &e) != ERR_OK) {
        log_warn("shared PID namespace of a pod cannot be removed; trying again", F_STR("pod", p->key),
                 F_ERR(&e));
        pod_wake_at(p, clock_wall_ns() + RETRY_NS);
        return false;
    }
    return true;
}

void pidns_recover(struct pod *p)
{
    if (p->api->spec.share_process_namespace && sandbox_pinned(p) && watch(p))
        p->pidns = PIDNS_READY;
}
