/* SPDX-License-Identifier: Apache-2.0 */
/* act - evicts the pods that were chosen. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/evict.h"
#include "agent/pod/eviction/internal.h"
#include "base/log.h"

#include <inttypes.h>

#define MESSAGE_MAX (64 * 1024)

void act_report(struct eviction *r, const struct ev_crossing *c)
{
    uint64_t *told_ms = &r->told_ms[c->threshold.signal], now = clock_boot_ms();
    buf_auto text = BUF_INIT(256);

    if (*told_ms != 0 && now - *told_ms < EV_ROUND_MS)
        return;
    *told_ms = now;
    ev_attempt_message(c, &text);
    node_event(r->node, true, "EvictionThresholdMet", text.p);
    log_warn("the node is low on a resource", F_STR("signal", ev_signal_name(c->threshold.signal)),
             F_U64("available", c->value.available), F_U64("threshold", c->line));
}

/* "memory.available: 200 MiB used, 10 MiB requested" */
static char *measured(const struct ev_crossing *c, enum ev_layout layout, const struct ev_pod *v)
{
    const enum ev_signal s = c->threshold.signal;
    uint64_t usage = 0, request = 0;

    if (!ev_usage(s, layout, v, &usage, &request))
        return str_printf("%s: usage not known", ev_signal_name(s));
    if (ev_signal_unit(s) != EV_BYTES)
        return str_printf("%s: %" PRIu64 " in use", ev_signal_name(s), usage);
    return str_printf("%s: %" PRIu64 " KiB used, %" PRIu64 " KiB requested", ev_signal_name(s), usage / 1024,
                      request / 1024);
}

static void evict_one(struct eviction *r, const struct ev_check *look, struct figures *f,
                      const struct ev_pod *v, int64_t grace_s)
{
    const struct ev_crossing *c = &look->crossing;
    struct pod *p = pods_by_uid(r->node, v->uid);
    int64_t own = grace_s < 0 || v->grace_s < grace_s ? v->grace_s : grace_s;
    json_auto_t *annotations = NULL;
    buf_auto message = BUF_INIT(MESSAGE_MAX);

    if (p == NULL)
        return;
    releasing_note(p, c);
    if (v->ending) {
        if (grace_s == 0)
            pod_evict_faster(p);
        else
            pod_ask_end(p, own, "the node is low on a resource that it uses");
        pod_wake(p, "its end cannot wait");
        return;
    }
    if (ev_signal_condition(c->threshold.signal) == EV_MEMORY_PRESSURE)
        figures_containers(r->node, f, v);
    ev_message(c, v, &message);
    annotations = ev_annotations(c, v);
    struct pod_eviction e = { .message = buf_detach(&message),
                              .measured = measured(c, look->layout, v),
                              /* 0 is only for urgent cases: other pods get SIGTERM first */
                              .grace_s = grace_s == 0 ? 0
                                         : own > 0    ? own
                                                      : EV_HARD_GRACE_S,
                              .disruption = true,
                              .annotations = annotations };
    if (pod_evict(p, &e))
        r->n_evicted[c->threshold.signal]++;
}

static void note_helpless(struct eviction *r, const struct ev_crossing *c)
{
    const enum ev_signal s = c->threshold.signal;

    if (!r->helpless[s])
        log_warn("unable to evict any pods from the node", F_STR("signal", ev_signal_name(s)));
    r->helpless[s] = true;
    if (ev_signal_condition(s) == EV_MEMORY_PRESSURE)
        eviction_watch_helpless(eviction_node(r->node)->watch);
}

/* True: pods were evicted. */
static bool act_on(struct eviction *r, const struct ev_check *look, struct figures *f)
{
    const struct ev_crossing *c = &look->crossing;
    struct ev_choice choice = { 0 };
    struct err e = { 0 };
    bool any;

    if (ev_manager_choose(r->manager, look, f->pods, f->n, &choice, &e) != ERR_OK) {
        log_error("cannot choose a pod to evict", F_ERR(&e));
        return false;
    }
    any = choice.n_victims > 0;
    if (any) {
        uint64_t number = decision_begin(r, c);

        r->helpless[c->threshold.signal] = false;
        decision_ranked(r, number, c, look->layout, &choice);
        for (size_t i = 0; i < choice.n_victims; i++)
            evict_one(r, look, f, choice.ranked[choice.victims[i]], choice.grace_s);
    } else if (!choice.enough) {
        note_helpless(r, c);
    }
    ev_choice_done(&choice);
    return any;
}

/* Those that it may be about. */
static unsigned signals_of(const struct ev_check *look)
{
    unsigned signals = 0;

    for (size_t i = look->at; i < look->n_all; i++)
        signals |= SIGNAL_BIT(look->all[i].threshold.signal);
    return signals;
}

void act_evict(struct eviction *r, struct ev_check *look)
{
    const unsigned signals = signals_of(look);
    struct ev_observation seen;
    struct figures f = { 0 };
    struct err e = { 0 };

    if (figures_read(r->node, signals, &f, &e) != ERR_OK) {
        log_error("cannot read the usage of pods", F_ERR(&e));
        return;
    }
    observe_quick(eviction_node(r->node)->observe, signals & (SIGNALS_MEMORY | SIGNALS_PID), &seen);
    ev_check_renew(look, &seen);
    for (; look->todo != EV_DO_NOTHING; ev_check_next(look)) {
        act_report(r, &look->crossing);
        if (look->todo == EV_DO_EVICT && act_on(r, look, &f))
            break;
    }
    figures_done(&f);
}
