/* SPDX-License-Identifier: Apache-2.0 */
/* conditions - the node's pressure as others see it: conditions, taints, events, admission. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/evict.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/eviction/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

bool eviction_pressure(const struct node *n, enum ev_condition c)
{
    const struct eviction *r = eviction_of(n);

    return r != NULL && ev_manager_pressure(r->manager, c, NULL);
}

static void wake_waiting(struct node *n)
{
    pods_each (n, p)
        if (p->state == POD_PENDING || (p->state == POD_TERMINATED && pod_may_return(p)))
            pod_wake(p, "pressure of the node changed");
}

void conditions_changed(struct eviction *r, unsigned which)
{
    struct node *n = r->node;

    if (which == 0)
        return;
    for (enum ev_condition c = 0; c < EV_CONDITIONS; c++) {
        bool on = eviction_pressure(n, c);

        if (!(which & (1u << c)))
            continue;
        r->since_ns[c] = clock_wall_ns();
        node_event_status(n, ev_condition_event(c, on));
        log_info("condition of the node changed", F_STR("condition", ev_condition_name(c)),
                 F_STR("status", on ? "True" : "False"));
    }
    wake_waiting(n);
}

/* ---- admission ---- */

/* NoSchedule or all effects; a toleration without a key tolerates everything. */
static bool tolerates_memory_pressure(const struct pod *p)
{
    const struct api_taint taint = { .key = (char *)ev_condition_taint(EV_MEMORY_PRESSURE),
                                     .effect = (char *)"NoSchedule" };

    return api_pod_tolerates(&p->api->spec, &taint);
}

static bool is_admitted(const struct pod *p)
{
    const struct node *n = p->node;

    if (preempt_is_critical(p))
        return true;
    if (eviction_pressure(n, EV_DISK_PRESSURE) || eviction_pressure(n, EV_PID_PRESSURE))
        return false;
    if (!eviction_pressure(n, EV_MEMORY_PRESSURE))
        return true;
    return p->api->qos != API_QOS_BEST_EFFORT || tolerates_memory_pressure(p);
}

enum err_code eviction_admit(const struct pod *p, char reason[64], struct err *e)
{
    char list[128] = "";

    if (is_admitted(p))
        return ERR_OK;
    for (enum ev_condition c = 0; c < EV_CONDITIONS; c++)
        if (eviction_pressure(p->node, c))
            snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", list[0] != '\0' ? " " : "",
                     ev_condition_name(c));
    snprintf(reason, 64, POD_EVICTED);
    return err_set(e, ERR_PRECONDITION, "The node had condition: [%s]. ", list);
}

/* ---- the node's object ---- */

static void put_ns(json_t *o, const char *key, int64_t ns)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_format_s(ns, text);
    json_put_str(o, key, text);
}

void eviction_conditions(const struct node *n, json_t *list)
{
    const struct eviction *r = eviction_of(n);

    for (enum ev_condition c = 0; c < EV_CONDITIONS; c++) {
        bool on = eviction_pressure(n, c);
        json_t *o = json_object();

        json_put_str(o, "type", ev_condition_name(c));
        json_put_str(o, "status", on ? "True" : "False");
        put_ns(o, "lastHeartbeatTime", clock_wall_ns());
        put_ns(o, "lastTransitionTime", r != NULL && r->since_ns[c] != 0 ? r->since_ns[c] : n->opened_ns);
        json_put_str(o, "reason", ev_condition_reason(c, on));
        json_put_str(o, "message", ev_condition_message(c, on));
        json_array_append_new(list, o);
    }
}

void eviction_taints(const struct node *n, json_t *list)
{
    const struct eviction *r = eviction_of(n);

    for (enum ev_condition c = 0; c < EV_CONDITIONS; c++) {
        json_t *o;

        if (!eviction_pressure(n, c))
            continue;
        o = json_object();
        json_put_str(o, "key", ev_condition_taint(c));
        json_put_str(o, "effect", "NoSchedule");
        put_ns(o, "timeAdded", r->since_ns[c]);
        json_array_append_new(list, o);
    }
}
