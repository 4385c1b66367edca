/* SPDX-License-Identifier: Apache-2.0 */
/* disks - one step at a time: measure the disk, reclaim files that no pod needs, measure again, measure pods,
 * evict. */
#include "agent/pod/eviction/internal.h"
#include "agent/pod/image/images.h"
#include "agent/pod/usage/usage.h"
#include "base/clock.h"
#include "base/log.h"

/* Older figures of pods' disk usage are measured again. After that time a measurement of the disk determines
 * whether to wait for unknown figures (patience.c). */
#define MEASURE_AGE_MS 2000
#define MEASURE_MAX_MS 5000

static void disks_rest(struct eviction *r)
{
    r->disks = DISKS_REST;
    r->reclaimed = 0;
    r->images_stopped = false;
    r->patience = (struct patience){ 0 };
    if (r->disks_wanted && !r->node->closing)
        disks_begin(r);
}

static void on_disks(const struct ev_observation *seen, void *arg);

static void look_again(struct eviction *r, bool settled)
{
    r->disks = DISKS_LOOK;
    r->pod_ended = false;
    if (r->node->closing)
        disks_rest(r);
    else
        observe_start(eviction_node(r->node)->observe, SIGNALS_DISK, settled, on_disks, r);
}

/* A pod that ended since the measurement is no longer among the pods, and its released amount is not in the
 * values: the next in order would go with it. The logs that it left can be removed now. */
static void evict_measured(struct eviction *r)
{
    if (r->pod_ended && !r->node->closing) {
        r->reclaimed = 0;
        look_again(r, true);
        return;
    }
    if (!r->node->closing)
        act_evict(r, &r->disks_look);
    disks_rest(r);
}

static void on_measured(struct node *n, bool complete)
{
    struct eviction *r = eviction_of(n);

    if (r == NULL || r->disks != DISKS_MEASURE)
        return;
    if (complete)
        evict_measured(r);
    else
        look_again(r, false);
}

static void disks_measure(struct eviction *r)
{
    const uint64_t now_ms = clock_boot_ms();
    uint64_t passed_ms;

    if (!patience_lasts(&r->patience, &r->disks_look.crossing, now_ms)) {
        log_info("the disk usage of some pods is not known in time");
        evict_measured(r);
        return;
    }
    passed_ms = patience_go_on(&r->patience, &r->disks_look.crossing, now_ms);
    r->disks = DISKS_MEASURE;
    if (!storage_usage_measure(r->node, MEASURE_AGE_MS + passed_ms, MEASURE_MAX_MS, on_measured))
        evict_measured(r);
}

/* Images are written where that signal is measured. */
static bool is_of_images(enum ev_signal s, enum ev_layout layout)
{
    switch (s) {
    case EV_IMAGEFS:
    case EV_IMAGEFS_INODES:
        return true;
    case EV_CONTAINERFS:
    case EV_CONTAINERFS_INODES:
        return layout != EV_LAYOUT_SPLIT;
    case EV_NODEFS:
    case EV_NODEFS_INODES:
        return layout == EV_LAYOUT_ONE;
    case EV_MEMORY:
    case EV_ALLOCATABLE_MEMORY:
    case EV_PID:
    case EV_SIGNALS:
        break;
    }
    return false;
}

/* The most that a hard threshold keeps free where images are. */
static void keep_space(const struct eviction *r, const struct ev_observation *seen)
{
    const struct ev_settings *s = ev_manager_settings(r->manager);
    uint64_t most = 0;

    if (r->node->o.images == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        const struct ev_threshold *t = &s->v[i];
        const struct ev_value *v = &seen->v[t->signal];
        const uint64_t line = v->known ? ev_amount_of(&t->value, v->capacity) : 0;

        if (!t->soft && ev_signal_unit(t->signal) == EV_BYTES && line > most &&
            is_of_images(t->signal, ev_manager_layout(r->manager)))
            most = line;
    }
    img_keep_free(r->node->o.images, most);
}

static void on_images_stopped(struct eviction *r)
{
    look_again(r, true);
}

static void on_reclaimed(struct eviction *r)
{
    r->reclaimed |= r->disks_look.reclaim;
    look_again(r, true);
}

static void disks_decide(struct eviction *r)
{
    if (r->reclaim_number != 0 && r->disks_look.todo != EV_DO_RECLAIM)
        decision_sufficed(r, r->reclaim_number, r->disks_look.todo == EV_DO_NOTHING);
    if (r->disks_look.todo != EV_DO_RECLAIM)
        r->reclaim_number = 0;
    switch (r->disks_look.todo) {
    case EV_DO_NOTHING:
        disks_rest(r);
        return;
    case EV_DO_RECLAIM:
        act_report(r, &r->disks_look.crossing);
        r->disks = DISKS_RECLAIM;
        reclaim_start(r, r->disks_look.reclaim, &r->disks_look.crossing, on_reclaimed);
        return;
    case EV_DO_EVICT:
        if (!r->images_stopped &&
            is_of_images(r->disks_look.crossing.threshold.signal, r->disks_look.layout) &&
            reclaim_stop_images(r, &r->disks_look.crossing, on_images_stopped)) {
            r->disks = DISKS_RECLAIM;
            r->images_stopped = true;
            return;
        }
        disks_measure(r);
        return;
    }
}

static void take_layout(struct eviction *r)
{
    enum ev_layout layout = observe_layout(eviction_node(r->node)->observe);
    struct ev_settings s = eviction_completed(r->node, layout);

    if (layout != ev_manager_layout(r->manager))
        ev_manager_change(r->manager, &s, layout);
}

static void on_disks(const struct ev_observation *seen, void *arg)
{
    struct eviction *r = arg;

    if (r->node->closing) {
        disks_rest(r);
        return;
    }
    take_layout(r);
    keep_space(r, seen);
    ev_manager_reclaimed(r->manager, r->reclaimed, seen, clock_boot_ms(), &r->disks_look);
    eviction_noted(r, seen, &r->disks_look, LOOKS_DISKS);
    eviction_watched(r, seen);
    disks_decide(r);
}

void disks_begin(struct eviction *r)
{
    if (r->disks != DISKS_REST) {
        r->disks_wanted = true;
        return;
    }
    r->disks_wanted = false;
    r->disks = DISKS_LOOK;
    r->pod_ended = false;
    /* The first time an earlier agent may have removed something just before. */
    observe_start(eviction_node(r->node)->observe, SIGNALS_DISK,
                  !r->disks_seen || eviction_pressure(r->node, EV_DISK_PRESSURE), on_disks, r);
    r->disks_seen = true;
}
