/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room - the order of things. Memory and process ids are measured, decided and acted on in one turn of the
 * loop. Disks take several (disks.c), with measurements of memory in between.
 */
#include "agent/pod/eviction/eviction.h"

#include "agent/pod/eviction/internal.h"
#include "agent/pod/image/images.h"
#include "agent/pod/usage/usage.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

static void room_plan(struct eviction *r);

/* ---- the timer ---- */

static void room_on_timer(uv_timer_t *timer)
{
    struct eviction *r = timer->data;
    uint64_t now = clock_boot_ms();
    unsigned due = 0;

    if (r->again_ms[LOOKS_QUICK] != 0 && r->again_ms[LOOKS_QUICK] <= now)
        due |= SIGNALS_MEMORY | SIGNALS_PID;
    if (r->again_ms[LOOKS_DISKS] != 0 && r->again_ms[LOOKS_DISKS] <= now)
        due |= SIGNALS_DISK;
    for (size_t i = 0; i < ARRAY_LEN(r->again_ms); i++)
        if (r->again_ms[i] <= now)
            r->again_ms[i] = 0;
    room_plan(r);
    if (due != 0)
        eviction_check(r->node, due, "a period of a threshold or condition is over");
}

static void room_plan(struct eviction *r)
{
    uint64_t now = clock_boot_ms(), at = 0;

    for (size_t i = 0; i < ARRAY_LEN(r->again_ms); i++)
        if (r->again_ms[i] != 0 && (at == 0 || r->again_ms[i] < at))
            at = r->again_ms[i];
    uv_timer_stop(&r->timer);
    if (at != 0 && !r->node->closing)
        uv_timer_start(&r->timer, room_on_timer, at > now ? at - now : 1, 0);
}

/* ---- a round ---- */

void eviction_noted(struct eviction *r, const struct ev_observation *seen, const struct ev_check *look,
                    enum eviction_looks which)
{
    for (size_t i = 0; i < EV_SIGNALS; i++)
        if (seen->v[i].known) {
            r->last[i] = seen->v[i];
            r->last_ns[i] = clock_wall_ns();
        }
    r->again_ms[which] = look->again_ms;
    conditions_changed(r, look->changed);
    decisions_seen(r);
}

void eviction_watched(struct eviction *r, const struct ev_observation *seen)
{
    room_plan(r);
    eviction_watch_seen(eviction_node(r->node)->watch, r->manager, seen, clock_boot_ms());
}

/* Always both: they cost little, and the manager's next round needs both. */
static void look_quick(struct eviction *r)
{
    struct ev_observation seen;
    struct ev_check look;

    observe_quick(eviction_node(r->node)->observe, SIGNALS_MEMORY | SIGNALS_PID, &seen);
    ev_manager_check(r->manager, &seen, clock_boot_ms(), &look);
    eviction_noted(r, &seen, &look, LOOKS_QUICK);
    if (look.todo != EV_DO_NOTHING)
        act_evict(r, &look);
    eviction_watched(r, &seen);
}

/* ---- settings ---- */

struct ev_settings eviction_completed(const struct node *n, enum ev_layout layout)
{
    struct ev_settings s = n->o.eviction;

    ev_settings_complete(&s, layout, (n->o.resources.enforce & API_ENFORCE_PODS) != 0);
    return s;
}

/* ---- asked by others ---- */

void eviction_check(struct node *n, unsigned signals, const char *why)
{
    struct eviction *r = eviction_of(n);

    if (r == NULL || n->closing)
        return;
    if (decisions_wait(r)) { /* another check would only delay the kill */
        r->put_off |= signals;
        return;
    }
    log_debug("looking at the node's resources", F_STR("why", why), F_U64("signals", signals));
    if (signals & (SIGNALS_MEMORY | SIGNALS_PID))
        look_quick(r);
    if (signals & SIGNALS_DISK)
        disks_begin(r);
}

void eviction_checks_go_on(struct eviction *r)
{
    unsigned signals = r->put_off;

    r->put_off = 0;
    if (signals != 0)
        eviction_check(r->node, signals, "the decision is carried out");
}

void eviction_wake(struct node *n, enum ev_condition what, const char *why)
{
    if (eviction_of(n) == NULL || n->closing)
        return;
    log_debug("the node's resources may change", F_STR("why", why));
    eviction_watch_woken(eviction_node(n)->watch, what, clock_boot_ms());
}

static unsigned awaited(const struct eviction *r)
{
    unsigned signals = 0;
    const struct decision *d;

    TAILQ_FOREACH (d, &r->decisions, link)
        signals |= SIGNAL_BIT(d->signal);
    return signals;
}

void eviction_pod_ended(struct pod *p)
{
    struct eviction *r = eviction_of(p->node);
    unsigned signals;

    if (r == NULL)
        return;
    signals = awaited(r);        /* before the decision forgets it */
    if (releasing_of(p) != NULL) /* an earlier agent's, whose decision was not saved */
        signals |= SIGNAL_BIT(releasing_of(p)->signal);
    r->pod_ended = true;
    decision_pod_ended(r, p->uid);
    if (p->evicted_ns != 0 && !p->disrupted)
        decision_local(r, p);
    if (signals & SIGNALS_DISK)
        signals |= SIGNALS_DISK;
    eviction_check(p->node, signals, "a pod ended");
}

void eviction_settings(struct node *n)
{
    struct eviction *r = eviction_of(n);
    struct ev_settings s;

    if (r == NULL)
        return;
    s = eviction_completed(n, observe_layout(eviction_node(n)->observe));
    ev_manager_change(r->manager, &s, observe_layout(eviction_node(n)->observe));
    eviction_check(n, SIGNALS_ALL, "settings changed");
}

/* ---- life ---- */

static struct eviction *made(struct node *n)
{
    struct eviction *r = calloc(1, sizeof(*r));
    struct ev_settings s = eviction_completed(n, EV_LAYOUT_ONE);

    if (r == NULL)
        return NULL;
    r->node = n;
    TAILQ_INIT(&r->decisions);
    r->manager = ev_manager_new(&s, EV_LAYOUT_ONE);
    r->records = ev_records_new();
    if (r->manager != NULL && r->records != NULL)
        return r;
    ev_manager_free(r->manager);
    ev_records_free(r->records);
    free(r);
    return NULL;
}

static void on_growth(struct node *n, const char *path)
{
    (void)path;
    eviction_wake(n, EV_DISK_PRESSURE, "a quota warning");
}

static void on_writing(void *arg)
{
    eviction_wake(arg, EV_DISK_PRESSURE, "an image is brought");
}

/* An import needs space: unused images go, as for pods. */
static void on_short(uint64_t wanted, void *arg)
{
    struct node *n = arg;
    uint64_t bytes = 0;

    if (n->closing || image_gc_reclaim(n, wanted, &bytes) == 0)
        return;
    log_info("unused images removed, as an import needs space", F_U64("bytes", bytes));
}

void eviction_begin(struct node *n)
{
    struct eviction_node *part = eviction_node(n);
    struct eviction *r = made(n);

    if (r != NULL) {
        part->observe = observe_open(n);
        part->watch = part->observe != NULL ? eviction_watch_open(n) : NULL;
    }
    if (r == NULL || part->watch == NULL) {
        log_error("evictions are disabled: out of memory");
        observe_close(take_ptr(&part->observe));
        if (r != NULL) {
            ev_manager_free(r->manager);
            ev_records_free(r->records);
            free(r);
        }
        return;
    }
    uv_timer_init(n->o.loop, &r->timer);
    r->timer.data = r;
    uv_prepare_init(n->o.loop, &r->save_soon);
    r->save_soon.data = r;
    part->room = r;
    part->forks = forks_open(n);
    decisions_open(r);
    storage_usage_on_growth(n, on_growth);
    if (n->o.images != NULL) {
        img_on_short(n->o.images, on_short, n);
        img_on_writing(n->o.images, on_writing, n);
    }
    eviction_check(n, SIGNALS_ALL, "the agent started");
}

static bool eviction_busy(const struct node *n)
{
    const struct eviction *r = eviction_of(n);

    return r != NULL && (observe_busy(eviction_node(n)->observe) || reclaim_busy(r) || decisions_busy(r));
}

/* The alarm slows pods down: it must not outlive the agent, which would act on it. */
static void eviction_cancel(struct node *n)
{
    struct eviction_node *part = eviction_node(n);

    if (part->room == NULL)
        return;
    uv_timer_stop(&part->room->timer);
    storage_usage_on_growth(n, NULL);
    if (n->o.images != NULL) {
        img_on_short(n->o.images, NULL, NULL);
        img_on_writing(n->o.images, NULL, NULL);
    }
    reclaim_close(part->room);
    forks_close(take_ptr(&part->forks));
    eviction_watch_close(take_ptr(&part->watch));
}

static void room_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void room_on_prepare_closed(uv_handle_t *handle)
{
    const struct eviction *r = handle->data;

    uv_close((uv_handle_t *)&r->timer, room_on_closed);
}

static void eviction_free(struct node *n)
{
    struct eviction_node *part = eviction_node(n);
    struct eviction *r = take_ptr(&part->room);

    if (r == NULL)
        return;
    reclaim_close(r);
    forks_close(take_ptr(&part->forks));
    eviction_watch_close(take_ptr(&part->watch));
    observe_close(take_ptr(&part->observe));
    decisions_close(r);
    ev_manager_free(r->manager);
    ev_records_free(r->records);
    uv_close((uv_handle_t *)&r->save_soon, room_on_prepare_closed);
}

const struct room eviction_room = {
    .id = ROOM_EVICTION,
    .name = "eviction",
    .node = { .size = sizeof(struct eviction_node),
              .busy = eviction_busy,
              .cancel = eviction_cancel,
              .free = eviction_free },
    .pod = { .size = sizeof(struct eviction_pod),
             .ctr_size = sizeof(struct eviction_ctr),
             .step = forks_step,
             .end = forks_rest,
             .reset = releasing_reset,
             .free = forks_rest,
             .save = releasing_save,
             .load = releasing_load },
};
