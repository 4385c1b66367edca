/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit - a pod and its devices until it may start: it waits for providers that are away, then allocates.
 *
 *     UNASKED ---> WAITING <--> ASKING ---> HELD ---> RELEASED, when it has ended
 *        |            |            |
 *        +------------+------------+------> REFUSED
 *
 * Where kubelet rejects a pod for good, the pod waits here: after a restart of the agent, no plugin has
 * registered again yet. A pod that waits holds nothing, so it delays no other pod. When its providers are
 * there, it allocates from the beginning.
 */
#include "agent/pod/core/events.h"
#include "agent/pod/device/internal.h"
#include "agent/pod/placement/placement.h"
#include "base/log.h"
#include "deviceplugin/resource_name.h"

#include <stdlib.h>
#include <string.h>

/* How long a pod waits for a resource that no provider has offered; then the resource is ignored, as in
 * kubelet. Long enough for plugins that start together with the agent. */
#define UNKNOWN_WAIT_MS 10000
#define SHORTAGE_MS 1000

static const char *device_state_name(enum device_state s)
{
    switch (s) {
    case DEVICES_UNASKED:
        return "unasked";
    case DEVICES_WAITING:
        return "waiting";
    case DEVICES_ASKING:
        return "asking";
    case DEVICES_HELD:
        return "held";
    case DEVICES_REFUSED:
        return "refused";
    case DEVICES_RELEASED:
        return "released";
    }
    return "?";
}

void device_set_state(struct pod *p, enum device_state s)
{
    struct device_pod *part = device_of(p);

    if (part->state == s)
        return;
    log_debug("pod's devices", F_STR("pod", p->key), F_STR("from", device_state_name(part->state)),
              F_STR("to", device_state_name(s)));
    part->state = s;
}

static void begin_anew(struct pod *p)
{
    struct device_pod *part = device_of(p);

    part->began_ns = uv_hrtime();
    part->at = part->hint_of = part->placed = 0;
    part->has_hint = part->answered = false;
}

static void count_admission(struct pod *p, bool by_topology)
{
    admissions_add(&device_node(p->node)->admissions, uv_hrtime() - device_of(p)->began_ns, by_topology);
}

/* ---- waiting for providers ---- */

static uint64_t wait_ms(const struct node *n, enum device_offer offer)
{
    uint64_t all = n->o.device_plugin_wait_ms;

    switch (offer) {
    case OFFER_UNKNOWN:
        return all < UNKNOWN_WAIT_MS ? all : UNKNOWN_WAIT_MS;
    case OFFER_AWAY:
        return all;
    case OFFER_NUMBER:
    case OFFER_HERE:
        break;
    }
    return 0;
}

static struct boot_time wait_ends(const struct pod *p, uint64_t ms)
{
    struct boot_time began = device_of(p)->wait_began;

    if (!clock_boot_is_set(began))
        began = clock_boot();
    return clock_boot_after(began, (int64_t)ms * 1000000);
}

/* The first want whose provider is awaited; NULL: none (any more). */
static const struct device_want *awaited(const struct pod *p, const struct device_want *v, size_t n,
                                         enum device_offer *ret)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t ms;
        *ret = device_offer(dp_inventory_find(devices_inventory(p->node), v[i].resource));
        if (*ret == OFFER_UNKNOWN && (v[i].count == 0 || !dp_resource_name_ok(v[i].resource)))
            continue; /* nothing is missing, or no provider may have this name */
        ms = device_has_answer(p, &v[i]) ? 0 : wait_ms(p->node, *ret);
        if (ms > 0 && !clock_boot_is_due(wait_ends(p, ms)))
            return &v[i];
    }
    return NULL;
}

static void describe_absence(const struct dp_resource *r, char *ret, size_t size)
{
    char when[CLOCK_RFC3339_SIZE];

    if (r != NULL && r->provider != NULL) {
        snprintf(ret, size, "its provider has not listed its devices yet");
    } else if (r != NULL && clock_boot_is_set(r->gone_at)) {
        clock_format_s(clock_boot_to_wall_ns(r->gone_at), when);
        snprintf(ret, size, "its device plugin is gone, or has not registered again, since %s", when);
    } else if (r != NULL) {
        snprintf(ret, size, "its device plugin has been gone for more than %d minutes", DP_FORGET_MS / 60000);
    } else {
        snprintf(ret, size, "nothing has offered it since the agent started");
    }
}

/* The pod waits until `until`; `then` describes the next step. The text is for the status; the first one of
 * each wait is an event, too. */
static enum err_code wait_for(struct pod *p, struct boot_time until, const char *then, struct err *e,
                              const char *resource, const char *why)
{
    struct device_pod *part = device_of(p);
    char when[CLOCK_RFC3339_SIZE];

    device_set_state(p, DEVICES_WAITING);
    if (!clock_boot_is_set(part->wait_began))
        part->wait_began = clock_boot();
    clock_format_s(clock_boot_to_wall_ns(until), when);
    err_set(e, ERR_UNAVAILABLE, "waits for %.317s: %.100s; %s at %s", resource, why, then, when);
    pod_wake_at(p, until, "the wait for a provider of devices is over");
    if (!part->wait_reported) {
        log_info("pod waits for a provider of devices", F_STR("pod", p->key), F_STR("resource", resource),
                 F_STR("why", why));
        pod_event(p, NULL, false, "WaitingForDevices", "%s", e->text);
    }
    part->wait_reported = true;
    return e->code;
}

static enum err_code await(struct pod *p, const struct device_want *w, enum device_offer offer, struct err *e)
{
    struct boot_time until = wait_ends(p, wait_ms(p->node, offer));
    char why[160];

    describe_absence(dp_inventory_find(devices_inventory(p->node), w->resource), why, sizeof(why));
    return wait_for(p, until, offer == OFFER_UNKNOWN ? "the pod starts without it" : "the pod is rejected", e,
                    w->resource, why);
}

/* ---- failures ---- */

static uint64_t news(const struct node *n)
{
    return device_node(n)->changes + device_node(n)->freed;
}

static bool wait_is_over(const struct pod *p)
{
    uint64_t ms = p->node->o.device_plugin_wait_ms;

    return ms == 0 || clock_boot_is_due(wait_ends(p, ms));
}

/* The provider died, hung or was replaced during the call, so it made no decision about the pod. */
static bool is_away(const struct err *e)
{
    return e->code == ERR_UNAVAILABLE || e->code == ERR_DEADLINE || e->code == ERR_CANCELLED;
}

/* Waits, with the last outcome of the provider as the reason. */
static enum err_code wait_on(struct pod *p, const char *resource, struct err *e)
{
    struct device_pod *part = device_of(p);
    char why[101];

    snprintf(why, sizeof(why), "%.100s", part->outcome.text);
    return wait_for(p, wait_ends(p, p->node->o.device_plugin_wait_ms), "the pod is rejected", e, resource,
                    why);
}

/* The provider hung, and asking it again takes time. A plugin that itself answers DEADLINE_EXCEEDED at once
 * would be asked in a loop. */
static bool took_its_time(const struct pod *p, const struct err *e)
{
    return e->code == ERR_DEADLINE &&
           clock_boot_since_ns(device_of(p)->asked_at) >= (int64_t)DP_CALL_MS * 1000000 / 2;
}

/* Waits until the inventory changes; after a call that reached its deadline, retries at once. */
static enum err_code wait_after(struct pod *p, const struct device_want *v, const struct device_want *w,
                                struct err *e)
{
    struct device_pod *part = device_of(p);

    part->stalled_by = (size_t)(w - v);
    part->stalled = !took_its_time(p, e) && part->changes == device_node(p->node)->changes;
    if (!part->stalled)
        pod_wake(p, "the provider of devices is asked again");
    return wait_on(p, w->resource, e);
}

static enum err_code wait_for_memory(struct pod *p, struct err *e)
{
    device_set_state(p, DEVICES_UNASKED);
    pod_wake_at(p, clock_boot_in_ms(SHORTAGE_MS), "allocation is tried again");
    return e->code = ERR_UNAVAILABLE;
}

static enum err_code refuse(struct pod *p, const struct device_failure *f, char reason[64], struct err *e)
{
    struct device_pod *part = device_of(p);
    struct err why = *e;

    snprintf(reason, 64, "%s", f->reason);
    if (strcmp(f->reason, "UnexpectedAdmissionError") == 0)
        err_set(e, ERR_PRECONDITION, "Allocate failed due to %.440s, which is unexpected", why.text);
    part->refused_for_good = f->by_provider;
    count_admission(p, strcmp(f->reason, "TopologyAffinityError") == 0);
    device_set_state(p, DEVICES_REFUSED);
    part->refused_at = news(p->node);
    return e->code = ERR_PRECONDITION;
}

static enum err_code failed(struct pod *p, const struct device_want *v, const struct device_failure *f,
                            char reason[64], struct err *e)
{
    const struct device_want *w = &v[device_of(p)->at];
    const struct dp_resource *r =
        f->by_placement ? NULL : dp_inventory_find(devices_inventory(p->node), w->resource);
    uint64_t before = dp_holdings_generation(devices_holdings(p->node));

    dp_holdings_drop(device_node(p->node)->holdings, p->uid, NULL, NULL);
    (void)placement_release(p);
    begin_anew(p);
    if (dp_holdings_generation(devices_holdings(p->node)) != before)
        checkpoint_changed(p->node);
    if (err_is_shortage(e))
        return wait_for_memory(p, e);
    /* Other pods may have been refused because of what this one held for a moment. Not after a refusal by
     * topology, or for lack of processors or memory: two such pods would wake each other for ever. */
    if (strcmp(f->reason, "TopologyAffinityError") != 0 && !f->by_placement)
        device_came_free(p->node);
    if (f->by_provider && is_away(e) && !wait_is_over(p))
        return wait_after(p, v, w, e);
    if (!f->by_provider && !f->by_placement && device_offer(r) == OFFER_AWAY && !wait_is_over(p))
        return await(p, w, OFFER_AWAY, e);
    return refuse(p, f, reason, e);
}

/* ---- the whole ---- */

static void report_ignored(struct pod *p, const struct device_want *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].count > 0 &&
            device_offer(dp_inventory_find(devices_inventory(p->node), v[i].resource)) == OFFER_UNKNOWN)
            pod_event(p, p->ctrs[v[i].ctr], true, "DeviceIgnored",
                      "no device plugin on this node provides %s: like kubelet, the pod runs without it",
                      v[i].resource);
}

static void note_held(struct pod *p, const struct device_want *v, size_t n)
{
    struct device_pod *part = device_of(p);

    report_ignored(p, v, n);
    count_admission(p, false);
    device_set_state(p, DEVICES_HELD);
    part->wait_began = CLOCK_BOOT_NONE;
    part->generation = dp_holdings_generation(devices_holdings(p->node));
    p->record_dirty = true;
    checkpoint_changed(p->node);
}

static enum err_code admit(struct pod *p, const struct device_want *v, size_t n, char reason[64],
                           struct err *e)
{
    struct device_pod *part = device_of(p);
    struct device_failure failure = { 0 };
    const struct device_want *missing;
    enum device_offer offer;
    bool asking = false;

    if (part->state != DEVICES_ASKING) {
        missing = awaited(p, v, n, &offer);
        if (missing != NULL)
            return await(p, missing, offer, e);
        if (part->stalled && part->changes == device_node(p->node)->changes && !wait_is_over(p))
            return wait_on(p, v[part->stalled_by < n ? part->stalled_by : 0].resource, e);
        begin_anew(p);
    }
    part->stalled = false;
    if (device_allocate(p, v, n, &asking, &failure, e) != ERR_OK)
        return failed(p, v, &failure, reason, e);
    if (asking)
        return err_set(e, ERR_UNAVAILABLE, "waits for the provider of %.317s to %s", v[part->at].resource,
                       part->question == ASK_ALLOCATE ? "allocate" : "choose");
    note_held(p, v, n);
    return ERR_OK;
}

enum err_code devices_admit(struct pod *p, char reason[64], struct err *e)
{
    struct device_pod *part = device_of(p);
    mem_auto struct device_want *v = NULL;
    size_t n;

    if (part->state == DEVICES_HELD)
        return ERR_OK;
    if (device_wants(p, &v, &n, e) != ERR_OK)
        return wait_for_memory(p, e);
    if (n == 0 && !placement_wants(p)) {
        part->began_ns = uv_hrtime();
        count_admission(p, false);
        device_set_state(p, DEVICES_HELD);
        return ERR_OK;
    }
    if (n > 0 && !sources_known(p->node)) /* for some ms after a start; on_ready() wakes the pod */
        return err_set(e, ERR_UNAVAILABLE, "waits for the first scan of declared devices");
    if (op_live(&part->ask.op))
        return err_set(e, ERR_UNAVAILABLE, "%s", p->message != NULL ? p->message : "waits for devices");
    return admit(p, v, n, reason, e);
}

/* ---- a refused pod is judged again ---- */

bool devices_can_admit(const struct pod *p)
{
    const struct device_pod *part = device_of(p);
    mem_auto struct device_want *v = NULL;
    size_t n;

    if (part->state == DEVICES_REFUSED && (part->refused_for_good || part->refused_at == news(p->node) ||
                                           p->node->o.device_plugin_wait_ms == 0))
        return false;
    if (device_wants(p, &v, &n, ERR_IGNORED) != ERR_OK)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct dp_resource *r = dp_inventory_find(devices_inventory(p->node), v[i].resource);
        enum device_offer offer = device_offer(r);
        if (offer == OFFER_AWAY)
            return false;
        if (offer == OFFER_HERE &&
            (r->n_healthy == 0 ||
             (int64_t)dp_free_count(r, devices_holdings(p->node)) < device_wants_sum(p, v, n, v[i].resource)))
            return false;
    }
    return true;
}

/* ---- for the other rooms ---- */

bool devices_under_way(const struct pod *p)
{
    return device_of(p)->state == DEVICES_ASKING || device_of(p)->state == DEVICES_HELD;
}
