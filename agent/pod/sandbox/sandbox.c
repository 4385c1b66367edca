/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's sandbox without a pause process: pinned namespaces, the network attachment, hosts and
 * resolv.conf. Everything needed to undo it is in the kernel and in the CNI cache: a restart reads both
 * again. */
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/sandbox/files.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/net_attach.h"
#include "agent/pod/sandbox/net_heal.h"
#include "agent/pod/sandbox/node_users.h"
#include "agent/pod/sandbox/userns.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "cni/host/netns.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_MS 500 /* after a failed ADD; doubled */
#define RETRY_MAX_MS 30000
#define FILES_RETRY_MS 5000
#define MS INT64_C(1000000)

const char *net_state_name(enum net_state s)
{
    switch (s) {
    case NET_NONE:
        return "none";
    case NET_CREATING:
        return "creating namespaces";
    case NET_PINNED:
        return "namespaces ready";
    case NET_ADDING:
        return "attaching";
    case NET_READY:
        return "ready";
    case NET_DELETING:
        return "detaching";
    case NET_DELETED:
        return "deleted";
    }
    return "?";
}

void sandbox_set_net(struct pod *p, enum net_state s)
{
    struct sandbox *box = sandbox_of(p);

    if (box->net == s)
        return;
    log_debug("pod network state", F_STR("pod", p->key), F_STR("from", net_state_name(box->net)),
              F_STR("to", net_state_name(s)));
    box->net = s;
    box->net_since_ns = clock_wall_ns();
    if (s == NET_CREATING)
        start_times_begin(p, START_NAMESPACES);
    else if (s == NET_PINNED)
        start_times_end(p, START_NAMESPACES);
    else if (s == NET_ADDING)
        start_times_begin(p, START_NETWORK);
    else if (s == NET_READY)
        start_times_end(p, START_NETWORK);
}

bool sandbox_pinned(const struct pod *p)
{
    const struct sandbox *box = sandbox_of(p);

    return box->net >= NET_PINNED && box->net <= NET_READY;
}

bool sandbox_has_netns(const struct pod *p)
{
    return !p->api->spec.host_network;
}

/* Schedules the next try; true when this error occurs first, so that it is logged. */
static bool back_off(struct pod *p, const struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    bool first = str_keep(&box->net_error, e->text);

    box->net_backoff_ms = backoff_next_ms(box->net_backoff_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    box->net_retry_at = clock_boot_in_ms(box->net_backoff_ms);
    return first;
}

static void sandbox_failed(struct pod *p, const struct err *e, const char *what)
{
    if (back_off(p, e))
        log_warn(what, F_STR("pod", p->key), F_U64("retryMs", sandbox_of(p)->net_backoff_ms), F_ERR(e));
    pod_event(p, NULL, true, "FailedCreatePodSandBox", "Failed to create pod sandbox: %s", e->text);
}

/* ---- files ---- */

enum err_code sandbox_write_files(struct pod *p, struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    const char *ips[CNI_IPS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < box->net_result.n_ips; i++)
        ips[n++] = box->net_result.ips[i];
    return files_write_hosts(p, ips, n, e);
}

/* ---- namespaces ---- */

static void on_namespaces(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct sandbox *box = sandbox_of(p);

    free(take_ptr(&box->netns_spec));
    if (result->code == ERR_OK) {
        sandbox_set_net(p, NET_PINNED);
    } else {
        struct err e = { 0 };
        sandbox_set_net(p, NET_NONE);
        if (netns_remove(box->netns_dir, &e) != ERR_OK) /* an interrupted call may have pinned some */
            log_warn("cannot unpin a pod's namespaces", F_STR("pod", p->key), F_ERR(&e));
        if (result->code != ERR_CANCELLED)
            sandbox_failed(p, result, "cannot make a pod's namespaces");
    }
    pod_wake(p, "namespaces are made");
}

/* The spec of the pod's namespaces, in one allocation with its texts: p->netns_spec is kept until the call
 * that uses it, in a thread, is over, because the pod may be edited meanwhile. */
static enum err_code describe_namespaces(struct pod *p, struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    const struct api_pod_spec *spec = &p->api->spec;
    struct netns_sysctl *sysctls;
    size_t n = spec->security.n_sysctls, bytes = strlen(files_hostname(p)) + 1;
    struct netns_spec *s;
    char *text;

    for (size_t i = 0; i < n; i++)
        bytes += strlen(spec->security.sysctls[i].name) + strlen(spec->security.sysctls[i].value) + 2;
    s = calloc(1, sizeof(*s) + n * sizeof(*sysctls) + bytes);
    if (s == NULL)
        return err_nomem(e);
    sysctls = (struct netns_sysctl *)(s + 1);
    text = (char *)(sysctls + n);
    for (size_t i = 0; i < n; i++) {
        sysctls[i].name = str_pack(&text, spec->security.sysctls[i].name);
        sysctls[i].value = str_pack(&text, spec->security.sysctls[i].value);
    }
    *s = (struct netns_spec){
        .dir = box->netns_dir,
        .net = sandbox_has_netns(p),
        .ipc = !spec->host_ipc,
        .uts = sandbox_has_netns(p),
        .hostname = str_pack(&text, files_hostname(p)),
        .first_id = userns_wanted(p) ? box->first_id : 0,
        .n_ids = USERNS_IDS,
        .sysctls = sysctls,
        .n_sysctls = spec->security.n_sysctls,
    };
    free(box->netns_spec);
    box->netns_spec = s;
    return ERR_OK;
}

/* An unsupported feature will not be supported later either: it is reported once, without retry. */
static bool users_possible(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct err e = { 0 };

    switch (node_users_check(p, &e)) {
    case ERR_OK:
        return true;
    case ERR_UNAVAILABLE: /* woken when that is known */
        return false;
    default:
        if (!str_eq(box->net_error, e.text))
            sandbox_failed(p, &e, "cannot make a pod's namespaces");
        box->net_retry_at = CLOCK_BOOT_NONE;
        return false;
    }
}

static bool runtime_possible(struct pod *p)
{
    struct err e = { 0 };

    switch (sandbox_choose_runtime(p, &e)) {
    case ERR_OK:
        return true;
    case ERR_UNAVAILABLE: /* woken when the cluster's are known; the folder may still be read */
        if (pod_is_new(p))
            pod_wake_at(p, pod_new_until(p), "RuntimeClass may be in a file that is being read");
        return false;
    default:
        sandbox_failed(p, &e, "cannot choose a pod's runtime");
        return false;
    }
}

static void create_namespaces(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    const struct api_pod_spec *spec = &p->api->spec;
    struct err e = { 0 };

    if (!runtime_possible(p))
        return;
    if (p->sandbox_id[0] == '\0') {
        net_sandbox_id(p->node, p->sandbox_id);
        p->record_dirty = true;
    }
    /* A cached attachment does not belong to these namespaces: the record must say so before they exist. */
    if (box->net_undo && pod_record_awaited(p)) {
        pod_wake(p, "record is written before the namespaces");
        return;
    }
    if (userns_wanted(p) && !users_possible(p))
        return;
    if (userns_wanted(p) && box->first_id == 0) {
        if (userns_allocate(p, &e) != ERR_OK)
            sandbox_failed(p, &e, "cannot make a pod's namespaces");
        else
            /* The record first: the owner of the ids must be recorded before anything uses them. */
            pod_wake(p, "record is written before the namespaces");
        return;
    }
    if (files_write_static(p, &e) != ERR_OK) {
        sandbox_failed(p, &e, "cannot write a pod's files");
        return;
    }
    if (!sandbox_has_netns(p) && spec->host_ipc) {
        sandbox_set_net(p, NET_PINNED);
        return;
    }
    if (fs_mkdirs(box->netns_dir, 0700, &e) != ERR_OK) {
        sandbox_failed(p, &e, "cannot make a pod's namespaces");
        return;
    }
    if (describe_namespaces(p, &e) != ERR_OK) {
        sandbox_failed(p, &e, "cannot make a pod's namespaces");
        return;
    }
    sandbox_set_net(p, NET_CREATING);
    netns_create_start(&box->netns_call, box->netns_spec, cg_leaf_fd(p->node->o.cgroups, CG_LEAF_OPS),
                       cg_leaf_procs(p->node->o.cgroups, CG_LEAF_OPS), p->node->o.loop, on_namespaces, p);
}

/* ---- network ---- */

static void on_deleted_for_retry(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct sandbox *box = sandbox_of(p);

    net_attach_free(p);
    sandbox_set_net(p, NET_PINNED);
    if (result->code == ERR_OK) {
        box->net_undo = false;
        p->record_dirty = true;
    } else if (result->code != ERR_CANCELLED) {
        sandbox_failed(p, result, "cannot undo a failed network attachment; will retry");
    }
    pod_wake(p, "network detached for a new attachment");
}

/* A failed ADD must be followed by DEL before the next one. */
static void undo_add(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    sandbox_set_net(p, NET_DELETING);
    cni_del_start(&box->cni_op, p->node->o.cni, &box->cni_att, on_deleted_for_retry, p);
}

static void note_times(struct sandbox *box)
{
    struct buf text = BUF_INIT(1024);

    cni_timed_text(&box->cni_op.timed, &text);
    free(box->net_timed);
    box->net_timed = text.n > 0 ? strdup(text.p) : NULL;
    buf_done(&text);
}

static void on_added(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct sandbox *box = sandbox_of(p);
    struct err e = *result;

    net_attach_free(p);
    if (e.code == ERR_OK) {
        box->net_result = box->cni_op.result;
        note_times(box);
        if (box->net_result.n_ips == 0)
            err_set(&e, ERR_INTERNAL, "the network plugin did not assign an IP address");
        else if (sandbox_write_files(p, &e) == ERR_OK)
            box->files_written = true;
    }
    if (e.code == ERR_OK) {
        str_keep(&box->net_error, "");
        box->net_backoff_ms = 0;
        sandbox_set_net(p, NET_READY);
        net_heal_attached(p);
        pod_wake(p, "network attached");
        return;
    }
    sandbox_set_net(p, NET_PINNED);
    box->net_undo = true;
    box->net_again_ip[0] = '\0'; /* perhaps it cannot have that address again */
    box->net_sysctls_set = false;
    box->net_result.n_ips = 0;
    if (e.code != ERR_CANCELLED)
        sandbox_failed(p, &e, "cannot attach pod to the network");
    pod_wake(p, "network could not be attached");
}

static void sandbox_add_network(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    const char *why = NULL;
    struct err e = { 0 };

    if (!sandbox_has_netns(p)) {
        if (sandbox_write_files(p, &e) != ERR_OK) {
            sandbox_failed(p, &e, "cannot write a pod's files");
            return;
        }
        box->files_written = true;
        sandbox_set_net(p, NET_READY);
        return;
    }
    if (cni_default_network(p->node->o.cni, &why) == NULL) {
        if (str_keep(&box->net_error, why)) {
            pod_event(p, NULL, true, "NetworkNotReady",
                      "network is not ready: container runtime network not ready: NetworkReady=false "
                      "reason:NetworkPluginNotReady message:Network plugin returns error: %s",
                      why);
            log_warn("network is not ready; pod is waiting for it", F_STR("pod", p->key), F_STR("why", why));
        }
        return; /* woken when the configuration folder changes */
    }
    if (net_attach_fill(p, true, true, &e) != ERR_OK) {
        sandbox_failed(p, &e, "cannot attach pod to the network");
        return;
    }
    if (box->net_undo) {
        undo_add(p);
        return;
    }
    sandbox_set_net(p, NET_ADDING);
    cni_add_start(&box->cni_op, p->node->o.cni, &box->cni_att, on_added, p);
}

/* ---- sysctls of interfaces ---- */

static void on_interface_sysctls(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct sandbox *box = sandbox_of(p);

    free(take_ptr(&box->netns_spec));
    if (result->code == ERR_OK) {
        box->net_sysctls_set = true;
        str_keep(&box->net_error, "");
        box->net_backoff_ms = 0;
    } else if (result->code != ERR_CANCELLED) {
        sandbox_failed(p, result, "cannot set sysctls of a pod's interface");
    }
    pod_wake(p, "interface sysctls are set");
}

/* They exist once the interface does; no container starts before they are set. */
static void set_interface_sysctls(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct err e = { 0 };

    if (box->net_sysctls_set || op_live(&box->netns_call.op))
        return;
    if (!clock_boot_is_due(box->net_retry_at)) {
        pod_wake_at(p, box->net_retry_at, "interface sysctls are tried again");
        return;
    }
    if (describe_namespaces(p, &e) != ERR_OK) {
        sandbox_failed(p, &e, "cannot set sysctls of a pod's interface");
        pod_wake_at(p, box->net_retry_at, "interface sysctls are tried again");
        return;
    }
    if (!sandbox_has_netns(p) || !netns_has_interface_sysctls(box->netns_spec)) {
        free(take_ptr(&box->netns_spec));
        box->net_sysctls_set = true;
        return;
    }
    netns_interface_sysctls_start(&box->netns_call, box->netns_spec, p->node->o.loop, on_interface_sysctls,
                                  p);
}

bool sandbox_ready(const struct pod *p)
{
    const struct sandbox *box = sandbox_of(p);

    return box->net == NET_READY && box->files_written && box->net_sysctls_set;
}

void sandbox_step(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    if ((box->net == NET_NONE || box->net == NET_PINNED) && !clock_boot_is_due(box->net_retry_at)) {
        pod_wake_at(p, box->net_retry_at, "sandbox is tried again");
        return;
    }
    if (box->net == NET_READY && !box->files_written) { /* adopted, and the disk was full */
        struct err e = { 0 };
        box->files_written = sandbox_write_files(p, &e) == ERR_OK;
        if (!box->files_written)
            pod_wake_at(p, clock_boot_in_ms(FILES_RETRY_MS), "hosts file is tried again");
    }
    if (box->net == NET_NONE)
        create_namespaces(p);
    if (box->net == NET_PINNED)
        sandbox_add_network(p);
    if (box->net == NET_READY) {
        set_interface_sysctls(p);
        net_heal_step(p);
    }
    if ((box->net == NET_NONE || box->net == NET_PINNED) && !clock_boot_is_due(box->net_retry_at))
        pod_wake_at(p, box->net_retry_at, "sandbox is tried again");
}

/* ---- teardown ---- */

static void on_detached(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct sandbox *box = sandbox_of(p);

    net_attach_free(p);
    if (result->code == ERR_OK) {
        box->net_detached = true;
        str_keep(&box->net_error, "");
    } else if (result->code != ERR_CANCELLED) {
        if (back_off(p, result))
            log_warn("cannot detach pod from the network; will retry", F_STR("pod", p->key), F_ERR(result));
        pod_event(p, NULL, true, "FailedKillPod", "error killing pod: failed to detach from network: %s",
                  result->text);
    }
    sandbox_set_net(p, NET_PINNED);
    pod_wake(p, "network detached");
}

bool sandbox_teardown_step(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct err e = { 0 };

    switch (box->net) {
    case NET_DELETED:
        return true;
    case NET_CREATING:
        op_cancel(&box->netns_call.op);
        return false;
    case NET_ADDING:
        op_cancel(&box->cni_op.op);
        return false;
    case NET_DELETING:
        return false;
    case NET_NONE:
    case NET_PINNED:
    case NET_READY:
        break;
    }
    if (!net_heal_end(p))
        return false;
    if (op_live(&box->netns_call.op)) { /* the sysctls of its interface */
        op_cancel(&box->netns_call.op);
        return false;
    }
    if (p->node->forced && box->net_error != NULL)
        box->net_detached =
            true; /* asked to end immediately: parts that a plugin cannot undo stay, which was logged */
    if (!clock_boot_is_due(box->net_retry_at) && !box->net_detached && box->net_error != NULL) {
        pod_wake_at(p, box->net_retry_at, "sandbox removal is tried again");
        return false;
    }
    if (sandbox_has_netns(p) && !box->net_detached && p->sandbox_id[0] != '\0') {
        struct presence pinned = netns_look_pinned(box->netns_dir, "net", &e);
        if (presence_is_unknown(pinned)) {
            pod_look_again(p, &e);
            return false;
        }
        /* Gone after a reboot: DEL without it releases the address. */
        if (net_attach_fill(p, false, !presence_is_absent(pinned), &e) != ERR_OK) {
            log_warn("cannot detach pod from the network; will retry", F_STR("pod", p->key), F_ERR(&e));
            pod_wake_at(p, clock_boot_in_ms(1000), "sandbox removal is tried again");
            return false;
        }
        sandbox_set_net(p, NET_DELETING);
        cni_del_start(&box->cni_op, p->node->o.cni, &box->cni_att, on_detached, p);
        return false;
    }
    if (netns_remove(box->netns_dir, &e) != ERR_OK) {
        log_warn("cannot unpin a pod's namespaces; will retry", F_STR("pod", p->key), F_ERR(&e));
        pod_wake_at(p, clock_boot_in_ms(1000), "sandbox removal is tried again");
        return false;
    }
    p->sandbox_id[0] = '\0';
    box->first_id = 0; /* nothing uses them any more: its volumes belong to the host's users */
    p->record_dirty = true;
    box->files_written = false; /* its last addresses stay in the status, as in kubelet */
    sandbox_set_net(p, NET_DELETED);
    return true;
}

/* ---- changes from outside ---- */

void sandbox_begin_anew(struct pod *p)
{
    sandbox_of(p)->net_undo = true; /* DEL of the old attachment frees its address */
}

void sandbox_networks_changed(struct node *n)
{
    pods_each (n, p)
        if (sandbox_of(p)->net == NET_PINNED || sandbox_of(p)->net == NET_NONE)
            pod_wake(p, "network lists changed");
}
