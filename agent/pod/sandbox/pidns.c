/* SPDX-License-Identifier: Apache-2.0 */
/* shareProcessNamespace: the pod's own PID namespace, whose first process is coracle-pause. When that ends,
 * all of the pod's processes end with it; a new one is made and the containers restart by their policy.
 * (kubelet recreates the whole sandbox then; here the network is independent of it and stays.) */
#include "agent/runtime/pidns.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/sandbox/userns.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <string.h>
#include <unistd.h>

#define RETRY_NS (2 * INT64_C(1000000000))

static const char *pidns_state_name(enum pidns_state s)
{
    switch (s) {
    case PIDNS_NONE:
        return "none";
    case PIDNS_MAKING:
        return "making";
    case PIDNS_READY:
        return "ready";
    }
    return "?";
}

void sandbox_set_pidns(struct pod *p, enum pidns_state s)
{
    struct sandbox *box = sandbox_of(p);

    if (box->pidns == s)
        return;
    log_debug("pod PID namespace state", F_STR("pod", p->key), F_STR("from", pidns_state_name(box->pidns)),
              F_STR("to", pidns_state_name(s)));
    box->pidns = s;
}

struct pidns_watch { /* lives until its handle has closed, perhaps longer than the pod */
    uv_poll_t poll;
    int pidfd;
    struct pod *pod; /* NULL: the pod is gone */
};

static const char *pod_pidns_pin(const struct pod *p, const char *which, bool own, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", sandbox_of(p)->netns_dir, which);
    return own ? path : NULL;
}

bool pidns_ready(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct err e = { 0 };
    fd_auto pidfd = -1;

    if (!p->api->spec.share_process_namespace)
        return true;
    if (box->pidns != PIDNS_READY)
        return false;
    /* Handle the ends of its containers before its own, so that no new one starts in between. */
    switch (presence_of(rt_pidns_find(box->netns_dir, &pidfd, &e))) {
    case PRESENCE_PRESENT:
        return true;
    case PRESENCE_UNKNOWN:
        pod_look_again(p, &e);
        return false;
    case PRESENCE_ABSENT:
        break;
    }
    return false; /* its end wakes the pod */
}

/* ---- noticing its end ---- */

static void pod_pidns_on_closed(uv_handle_t *handle)
{
    struct pidns_watch *w = handle->data;

    close(w->pidfd);
    free(w);
}

void pidns_forget(struct pod *p)
{
    struct pidns_watch *w = take_ptr(&sandbox_of(p)->pidns_watch);

    if (w == NULL)
        return;
    w->pod = NULL;
    uv_close((uv_handle_t *)&w->poll, pod_pidns_on_closed);
}

static void pause_ended(struct pod *p)
{
    sandbox_of(p)->pidns = PIDNS_NONE;
    if (p->state == POD_STARTING || p->state == POD_RUNNING) {
        log_warn("the first process of a shared PID namespace ended, and with it the pod's containers; "
                 "making a new "
                 "one",
                 F_STR("pod", p->key));
        pod_event(p, NULL, false, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
    }
}

static void on_pause(uv_poll_t *poll, int status, int events)
{
    struct pidns_watch *w = poll->data;
    struct pod *p = w->pod;
    struct err e = { 0 };

    (void)events;
    pidns_forget(p);
    if (status < 0) { /* an error of the watch, not of the process: pidns_step() checks and watches again */
        err_sys(&e, -status, "watch coracle-pause");
        pod_look_again(p, &e);
        return;
    }
    pause_ended(p); /* a pidfd is readable only then */
    pod_wake(p, "shared PID namespace ended");
}

/* Adopts the process found. Unknown also if it cannot be watched. */
static struct presence pod_pidns_watch(struct pod *p, struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    struct pidns_watch *w;
    fd_auto pidfd = -1;
    struct presence found = rt_pidns_find(box->netns_dir, &pidfd, e);
    int failed;

    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    w = calloc(1, sizeof(*w));
    failed = w == NULL ? UV_ENOMEM : uv_poll_init(p->node->o.loop, &w->poll, pidfd);
    if (failed != 0) {
        free(w);
        err_sys(e, -failed, "watch coracle-pause");
        return presence_unknown(e);
    }
    w->pidfd = take_fd(&pidfd);
    w->poll.data = w;
    w->pod = p;
    box->pidns_watch = w;
    failed = uv_poll_start(&w->poll, UV_READABLE, on_pause);
    if (failed == 0)
        return found;
    pidns_forget(p);
    err_sys(e, -failed, "watch coracle-pause");
    return presence_unknown(e);
}

/* One that exists but is not watched, because that failed. */
static void watch_again(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct err e = { 0 };

    if (box->pidns != PIDNS_READY || box->pidns_watch != NULL)
        return;
    switch (presence_of(pod_pidns_watch(p, &e))) {
    case PRESENCE_UNKNOWN:
        pod_look_again(p, &e);
        break;
    case PRESENCE_ABSENT:
        pause_ended(p);
        break;
    case PRESENCE_PRESENT:
        break;
    }
}

/* ---- making it ---- */

static enum err_code pod_pidns_clean(struct pod *p, struct err *e)
{
    char cgroup[512];

    if (resources_cgroup_path(p, cgroup, sizeof(cgroup), e) != ERR_OK)
        return e->code;
    return rt_pidns_remove(sandbox_of(p)->netns_dir, p->node->o.cgroups, cgroup, e);
}

static enum err_code pod_pidns_place(struct pod *p, struct err *e)
{
    char cgroup[512];

    if (resources_cgroup_path(p, cgroup, sizeof(cgroup), e) != ERR_OK)
        return e->code;
    return rt_pidns_place(&sandbox_of(p)->pidns_call, p->node->o.cgroups, cgroup, e);
}

static void on_made(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct sandbox *box = sandbox_of(p);
    struct err e = *result, unseen = { 0 }, ignored = { 0 };

    free(take_ptr(&box->pidns_spec));
    sandbox_set_pidns(p, PIDNS_NONE);
    if (e.code == ERR_OK && pod_pidns_place(p, &e) == ERR_OK) {
        switch (presence_of(pod_pidns_watch(p, &unseen))) {
        case PRESENCE_UNKNOWN:
            pod_look_again(p, &unseen);
            sandbox_set_pidns(p, PIDNS_READY);
            break;
        case PRESENCE_PRESENT:
            sandbox_set_pidns(p, PIDNS_READY);
            break;
        case PRESENCE_ABSENT:
            err_set(&e, ERR_UNAVAILABLE, "coracle-pause ended at once");
            break;
        }
    }
    if (e.code != ERR_OK) {
        ERR_IGNORE(pod_pidns_clean(p, &ignored));
        box->pidns_retry_at = clock_boot_in_ns(RETRY_NS);
        if (e.code != ERR_CANCELLED) {
            if (str_keep(&box->net_error, e.text))
                log_warn("cannot create a shared PID namespace; will retry", F_STR("pod", p->key), F_ERR(&e));
            pod_event(p, NULL, true, "FailedCreatePodSandBox", "Failed to create pod sandbox: %s", e.text);
        }
    } else if (box->net == NET_READY) {
        str_keep(&box->net_error, "");
    }
    pod_wake(p, "shared PID namespace is made");
}

void pidns_step(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct rt_pidns_spec *s;
    struct err e = { 0 };
    char *paths;
    size_t size = sizeof(box->netns_path);

    watch_again(p);
    if (!p->api->spec.share_process_namespace || box->pidns != PIDNS_NONE || !sandbox_pinned(p))
        return;
    if (!clock_boot_is_due(box->pidns_retry_at)) {
        pod_wake_at(p, box->pidns_retry_at, "shared PID namespace is tried again");
        return;
    }
    s = calloc(1, sizeof(*s) + 4 * size);
    if (s == NULL || fs_mkdirs(box->netns_dir, 0700, &e) != ERR_OK || pod_pidns_clean(p, &e) != ERR_OK) {
        free(s);
        log_warn("cannot create a shared PID namespace; will retry", F_STR("pod", p->key), F_ERR(&e));
        box->pidns_retry_at = clock_boot_in_ns(RETRY_NS);
        pod_wake_at(p, box->pidns_retry_at, "shared PID namespace is tried again");
        return;
    }
    paths = (char *)(s + 1);
    *s = (struct rt_pidns_spec){
        .dir = box->netns_dir,
        .program = p->node->o.pause_path,
        .netns = pod_pidns_pin(p, "net", !p->api->spec.host_network, paths, size),
        .ipcns = pod_pidns_pin(p, "ipc", !p->api->spec.host_ipc, paths + size, size),
        .utsns = pod_pidns_pin(p, "uts", !p->api->spec.host_network, paths + 2 * size, size),
        .userns = pod_pidns_pin(p, "user", userns_wanted(p), paths + 3 * size, size),
    };
    box->pidns_spec = s;
    sandbox_set_pidns(p, PIDNS_MAKING);
    rt_pidns_start(&box->pidns_call, s, cg_leaf_fd(p->node->o.cgroups, CG_LEAF_OPS),
                   cg_leaf_procs(p->node->o.cgroups, CG_LEAF_OPS), p->node->o.loop, on_made, p);
}

bool pidns_teardown_step(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct err e = { 0 };

    if (!p->api->spec.share_process_namespace || box->net == NET_DELETED)
        return true;
    if (box->pidns == PIDNS_MAKING) {
        op_cancel(&box->pidns_call.op);
        return false;
    }
    pidns_forget(p);
    sandbox_set_pidns(p, PIDNS_NONE);
    if (pod_pidns_clean(p, &e) != ERR_OK) {
        log_warn("cannot remove a shared PID namespace; will retry", F_STR("pod", p->key), F_ERR(&e));
        pod_wake_at(p, clock_boot_in_ns(RETRY_NS), "removal of the shared PID namespace is tried again");
        return false;
    }
    return true;
}

enum err_code pidns_recover(struct pod *p, struct err *e)
{
    if (!p->api->spec.share_process_namespace || !sandbox_pinned(p))
        return ERR_OK;
    switch (presence_of(pod_pidns_watch(p, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_PRESENT:
        sandbox_of(p)->pidns = PIDNS_READY;
        break;
    case PRESENCE_ABSENT:
        break;
    }
    return ERR_OK;
}
