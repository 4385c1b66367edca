/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/net_heal.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/leases.h"
#include "agent/pod/sandbox/net_attach.h"
#include "agent/pod/sandbox/net_watch.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "cni/host/netns.h"
#include "cni/links.h"

#include <string.h>

#define SIDE_BY_SIDE 1 /* checks: each runs three plugins, and nothing waits for them */
/* After an ADD: not during the start of this and other pods. */
#define FIRST_CHECK_MS 10000
#define TOLD_FIRST_MS 2000
#define TOLD_MAX_MS 600000
#define LEASES_FIRST_MS 50 /* between two sweeps of the leases, doubled */
#define LEASES_MAX_MS 10000
#define MS INT64_C(1000000)

/* ---- one after the other ---- */

static bool is_attached(const struct pod *p)
{
    return sandbox_of(p)->net == NET_READY && !p->api->spec.host_network &&
           (p->state == POD_STARTING || p->state == POD_RUNNING);
}

/* Wakes the next pod that waits for its check. */
static void net_heal_next(struct node *n)
{
    if (n->closing || sandbox_node(n)->heal.running >= SIDE_BY_SIDE)
        return;
    pods_each (n, p)
        if (sandbox_of(p)->net_check && is_attached(p) && !sandbox_of(p)->net_checking &&
            clock_boot_is_due(sandbox_of(p)->net_check_at)) {
            pod_wake(p, "network check is next");
            return;
        }
}

static void net_heal_over(struct pod *p)
{
    sandbox_of(p)->net_check = false;
    net_heal_next(p->node);
}

/* ---- findings ---- */

static void net_heal_tell(struct pod *p, const struct err *e)
{
    struct sandbox *box = sandbox_of(p);

    if (str_keep(&box->net_error, e->text)) {
        log_warn("a pod's network differs from the configuration by its plugins", F_STR("pod", p->key),
                 F_ERR(e));
        pod_event(p, NULL, true, "NetworkCheckFailed", "the pod's network was changed: %s", e->text);
    }
    box->net_told = true;
}

/* DEL and ADD follow, in sandbox_step(). */
static void attach_again(struct pod *p, const struct err *e)
{
    struct sandbox *box = sandbox_of(p);

    log_warn("pod lost its network; attaching it again", F_STR("pod", p->key), F_ERR(e));
    pod_event(p, NULL, true, "NetworkLost", "pod lost its network, attaching it again: %s", e->text);
    if (box->net_result.n_ips > 0)
        snprintf(box->net_again_ip, sizeof(box->net_again_ip), "%s", box->net_result.ips[0]);
    sandbox_node(p->node)->heal.again++;
    box->net_again_at = clock_boot();
    box->net_healing = true;
    box->net_check = false;
    box->net_undo = true;
    p->record_dirty = true;
    box->net_sysctls_set = false;
    sandbox_set_net(p, NET_PINNED);
    pod_wake(p, "network was lost");
}

/* There is no event when a pod has repaired it, for example by replacing its own interface. */
static void look_later(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    box->net_told_ms = backoff_next_ms(box->net_told_ms, TOLD_FIRST_MS, TOLD_MAX_MS);
    box->net_look_at = clock_boot_in_ms(box->net_told_ms);
    pod_wake_at(p, box->net_look_at, "network is checked again");
}

static void is_well(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    str_keep(&box->net_error, "");
    box->net_told = false;
    box->net_told_ms = 0;
}

static void net_heal_on_checked(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct sandbox *box = sandbox_of(p);

    net_attach_free(p);
    box->net_checking = false;
    box->net_told = false;
    sandbox_node(p->node)->heal.running--;
    if (p->state != POD_TERMINATING && result->code == ERR_OK)
        is_well(p);
    else if (p->state != POD_TERMINATING && result->code == ERR_UNKNOWN && result->sys == 0 &&
             !box->net_changed && !box->cni_op.inside)
        attach_again(p, result);
    else if (p->state != POD_TERMINATING && result->code != ERR_CANCELLED)
        net_heal_tell(p, result);
    if (box->net_told && box->net_changed)
        look_later(p);
    net_heal_over(p);
    if (box->net_told &&
        (result->code != ERR_UNKNOWN || result->sys != 0)) { /* a CHECK that could not be run */
        look_later(p);
        box->net_check = true;
        box->net_check_at = box->net_look_at;
    }
    pod_wake(p, "network was checked");
}

/* ---- steps ---- */

/* Whether everything is present; absent: *ret_missing. Only a missing interface is a loss: the pod may change
 * the part inside the namespace. */
static struct presence look_among(struct pod *p, const struct cni_links *links, struct err *ret_missing,
                                  struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    struct presence lives;

    if (cni_links_check(links, POD_IFNAME, &box->net_result, ret_missing) == ERR_OK)
        return presence_present();
    if (cni_links_find(links, POD_IFNAME) != NULL) {
        box->net_changed = true;
        return presence_absent();
    }
    lives = cni_look_interface(p->node->o.cni, p->sandbox_id, POD_IFNAME, links, e);
    if (presence_is_unknown(lives))
        return lives;
    if (!presence_is_absent(lives)) {
        box->net_changed = true;
        err_set(ret_missing, ERR_NOT_FOUND, "interface " POD_IFNAME " was renamed or moved away");
    }
    return presence_absent();
}

/* Its interface and addresses. If the kernel cannot list them (before 4.20), only the plugins check. */
static struct presence look_at_links(struct pod *p, struct err *ret_missing, struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    str_auto path = str_printf("%s/net", box->netns_dir);
    struct cni_links *links = calloc(1, sizeof(*links));
    struct presence found;

    box->net_changed = false;
    if (path == NULL || links == NULL) {
        err_nomem(e);
        found = presence_unknown(e);
    } else if (cni_links_read(path, links, e) == ERR_OK) {
        found = look_among(p, links, ret_missing, e);
    } else if (e->sys == ENOPROTOOPT) {
        *e = (struct err){ 0 };
        found = presence_present();
    } else {
        found = presence_unknown(e);
    }
    free(links);
    return found;
}

/* Something was removed in its namespace: does the pod need it? */
static void net_heal_look(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct err found = { 0 }, e = { 0 };

    switch (presence_of(look_at_links(p, &found, &e))) {
    case PRESENCE_UNKNOWN:
        pod_look_again(p, &e);
        box->net_look_at = p->look.retry_at;
        return;
    case PRESENCE_PRESENT:
        if (box->net_told && box->net_told_ms > 0)
            is_well(p);
        return;
    case PRESENCE_ABSENT:
        break;
    }
    log_debug("pod lost a part of its network", F_STR("pod", p->key), F_ERR(&found));
    box->net_check = true;
    box->net_check_at = clock_boot_is_set(box->net_again_at)
                            ? clock_boot_after(box->net_again_at, NET_AGAIN_MS * MS)
                            : CLOCK_BOOT_NONE;
    box->net_fresh = false; /* it had it: this is not the state left by its plugins */
}

void net_heal_step(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    struct node *n = p->node;
    struct sandbox_node *part = sandbox_node(n);
    struct err e = { 0 }, found = { 0 };
    struct presence pinned, links;

    if (is_attached(p) && net_watch_due(p))
        net_heal_look(p);
    if (!box->net_check || !is_attached(p) || op_live(&box->cni_op.op) || n->closing)
        return;
    if (!clock_boot_is_due(box->net_check_at)) {
        pod_wake_at(p, box->net_check_at, "network check is due");
        return;
    }
    if (part->heal.running >= SIDE_BY_SIDE)
        return; /* woken by the running one */
    pinned = netns_look_pinned(box->netns_dir, "net", &e);
    if (presence_is_unknown(pinned)) {
        pod_look_again(p, &e);
        return;
    }
    part->heal.checked++;
    if (presence_is_absent(pinned)) {
        err_set(&e, ERR_UNAVAILABLE, "network namespace %s/net is gone", box->netns_dir);
        net_heal_tell(p, &e);
        net_heal_over(p);
        return;
    }
    links = look_at_links(p, &found, &e);
    if (presence_is_unknown(links)) {
        part->heal.checked--;
        pod_look_again(p, &e);
        return;
    }
    if (net_attach_fill(p, false, true, &e) != ERR_OK) {
        net_heal_tell(p, &e);
        net_heal_over(p);
        return;
    }
    box->net_checking = true;
    part->heal.running++;
    cni_check_start(&box->cni_op, n->o.cni, &box->cni_att, presence_is_absent(links) ? found.text : NULL,
                    box->net_fresh, net_heal_on_checked, p);
    box->net_fresh = false;
}

void net_heal_attached(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    net_watch_pod(p);
    box->net_fresh = true;
    is_well(p);
    box->net_check = !box->cni_op.checked;
    box->net_check_at = clock_boot_in_ms(FIRST_CHECK_MS);
    if (!box->net_healing)
        return;
    box->net_healing = false;
    if (strcmp(box->net_again_ip, box->net_result.ips[0]) == 0)
        pod_event(p, NULL, false, "NetworkRestored", "attached the pod to the network again");
    else
        pod_event(p, NULL, true, "NetworkRestored",
                  "attached the pod to the network again, with another address: %s", box->net_result.ips[0]);
    log_info("attached the pod again", F_STR("pod", p->key), F_STR("podIP", box->net_result.ips[0]));
    box->net_again_ip[0] = '\0';
}

bool net_heal_end(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    box->net_check = box->net_healing = false;
    if (box->net_checking)
        op_cancel(&box->cni_op.op);
    return !box->net_checking;
}

/* ---- the node ---- */

static void on_strays(struct op *op, const struct err *result)
{
    struct node *n = op->owner;
    struct sandbox_node *part = sandbox_node(n);

    part->heal.adopted += part->heal.strays.n_adopted;
    if (result->code != ERR_OK && result->code != ERR_CANCELLED)
        log_warn("cannot look for leftovers of lost network attachments", F_ERR(result));
    if (part->heal.strays.n_adopted > 0 && !n->closing)
        sweep_network(n);
}

static void on_collected(struct op *op, const struct err *result);

static void net_heal_collect(struct node *n)
{
    struct sandbox_node *part = sandbox_node(n);
    const char **living = calloc(HASH_COUNT(n->pods) + 1, sizeof(*living));
    size_t k = 0;

    if (living == NULL) {
        snprintf(part->heal.gc_error, sizeof(part->heal.gc_error), "no memory");
        return;
    }
    pods_each (n, p)
        if (p->sandbox_id[0] != '\0')
            living[k++] = p->sandbox_id;
    cni_gc_start(&part->heal.gc, n->o.cni, living, POD_IFNAME, on_collected, n);
    free(living);
}

static void on_collected(struct op *op, const struct err *result)
{
    struct node *n = op->owner;
    struct sandbox_node *part = sandbox_node(n);

    part->heal.networks = part->heal.gc.n_networks;
    snprintf(part->heal.gc_error, sizeof(part->heal.gc_error), "%s", result->text);
    if (result->code == ERR_CANCELLED)
        return;
    if (result->code != ERR_OK)
        log_warn("network plugins could not collect all their garbage", F_ERR(result));
    if (part->heal.gc_again && !n->closing) {
        part->heal.gc_again = false;
        net_heal_collect(n);
    }
}

static void on_leases_again(uv_timer_t *timer);

/* `e`: why it will be tried again; `stays`: the error that a retry would not change. */
static void leases_report(struct net_heal *h, const struct err *e, const struct err *stays)
{
    const struct err *shown = e->code != ERR_OK ? e : stays;

    if (shown->text[0] != '\0' && strcmp(h->leases_error, shown->text) != 0 && shown == e)
        log_warn("addresses could not all be compared with the pods; will retry", F_ERR(e));
    else if (shown->text[0] != '\0' && strcmp(h->leases_error, shown->text) != 0)
        log_warn("an address without use stays reserved", F_ERR(stays));
    snprintf(h->leases_error, sizeof(h->leases_error), "%s", shown->text);
}

/* `retry`: repeats a failed sweep. Only the first sweep also searches for strays. */
static void heal_leases(struct node *n, bool alone, bool retry)
{
    struct net_heal *h = &sandbox_node(n)->heal;
    struct cni_stray_list lost = { 0 };
    struct err e = { 0 }, stays = { 0 };
    const bool busy = op_live(&h->strays.op);

    uv_timer_stop(&h->leases_timer);
    if (leases_sweep(n, alone, &lost, &stays, &e) == ERR_OK && (lost.n == 0 || !busy)) {
        h->leases_wait_ms = 0;
    } else {
        h->leases_wait_ms = backoff_next_ms(h->leases_wait_ms, LEASES_FIRST_MS, LEASES_MAX_MS);
        uv_timer_start(&h->leases_timer, on_leases_again, h->leases_wait_ms, 0);
    }
    leases_report(h, &e, &stays);
    if (!busy && (!retry || lost.n > 0))
        cni_strays_start(&h->strays, n->o.cni, sandbox_node(n)->tag, POD_IFNAME, &lost, on_strays, n);
    cni_strays_done(&lost);
}

static void on_leases_again(uv_timer_t *timer)
{
    struct node *n = timer->data;

    if (!n->closing && !n->draining)
        heal_leases(n, false, true);
}

void net_heal_open(struct node *n)
{
    struct net_heal *h = &sandbox_node(n)->heal;

    uv_timer_init(n->o.loop, &h->leases_timer);
    h->leases_timer.data = n;
}

void net_heal_free(struct node *n)
{
    rooms_close_handle(n, (uv_handle_t *)&sandbox_node(n)->heal.leases_timer);
}

void net_heal_start(struct node *n, bool again)
{
    struct sandbox_node *part = sandbox_node(n);

    if (n->closing || n->draining)
        return;
    net_watch_start(n);
    part->heal.checked = part->heal.again = 0;
    pods_each (n, p)
        if (is_attached(p)) {
            sandbox_of(p)->net_check = true;
            sandbox_of(p)->net_check_at = CLOCK_BOOT_NONE;
            if (!sandbox_of(p)->net_watched)
                net_watch_pod(p);
        }
    if (again)
        sweep_network(n);
    heal_leases(n, !again, false);
    if (op_live(&part->heal.gc.op))
        part->heal.gc_again = true;
    else
        net_heal_collect(n);
    net_heal_next(n);
}

bool net_heal_live(const struct node *n)
{
    const struct sandbox_node *part = sandbox_node(n);

    return op_live(&part->heal.gc.op) || op_live(&part->heal.strays.op); /* checks are operations of pods */
}

void net_heal_cancel(struct node *n)
{
    struct sandbox_node *part = sandbox_node(n);

    net_watch_end(n);
    uv_timer_stop(&part->heal.leases_timer);
    if (op_live(&part->heal.gc.op))
        op_cancel(&part->heal.gc.op);
    if (op_live(&part->heal.strays.op))
        op_cancel(&part->heal.strays.op);
}

void net_heal_explain(const struct node *n, json_t *steps)
{
    const struct net_heal *h = &sandbox_node(n)->heal;
    unsigned told = 0;
    char text[1024];
    int k;

    pods_each (n, p)
        told += is_attached(p) && sandbox_of(p)->net_told;
    k = snprintf(text, sizeof(text), "%u attachments checked, %u attached again, %u with problems",
                 h->checked, h->again, told);

    if (h->networks > 0 || h->gc_error[0] != '\0')
        k += snprintf(text + k, sizeof(text) - (size_t)k, "; garbage collection of %zu networks%s%.400s",
                      h->networks, h->gc_error[0] != '\0' ? ": " : "", h->gc_error);
    if (h->leases_error[0] != '\0')
        k += snprintf(text + k, sizeof(text) - (size_t)k, "; addresses: %.200s", h->leases_error);
    if (h->adopted > 0)
        k += snprintf(text + k, sizeof(text) - (size_t)k,
                      "; %zu attachments were found only by their leftovers", h->adopted);
    if (h->strays.links[0] != '\0')
        snprintf(text + k, sizeof(text) - (size_t)k, "; left alone, of no attachment of this agent: %s",
                 h->strays.links);
    explain_step(steps, "network healing",
                 h->running > 0 || op_live(&h->gc.op)                               ? "running"
                 : told > 0 || h->gc_error[0] != '\0' || h->leases_error[0] != '\0' ? "failed"
                                                                                    : "done",
                 0, text, 0);
}
