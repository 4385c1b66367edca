/* SPDX-License-Identifier: Apache-2.0 */
/* wait - timers of the parts: a list in order of time, on one handle of the boot clock. */
#include "agent/kube/sync/internal.h"

#include "base/scope.h"

#include <sys/random.h>

static void sync_timers_arm(struct kube_sync *s);

static void sync_timers_run(struct boot_timer *timer)
{
    struct kube_sync *s = container_of(timer, struct kube_sync, timer);
    struct sync_timer *t;

    while (!s->closing && (t = TAILQ_FIRST(&s->waiting)) != NULL && clock_boot_is_due(t->at)) {
        sync_timer_stop(s, t);
        t->fn(t->owner);
    }
    sync_timers_arm(s);
}

static void sync_timers_arm(struct kube_sync *s)
{
    struct sync_timer *first = TAILQ_FIRST(&s->waiting);

    if (s->closing)
        return;
    if (first != NULL)
        boot_timer_start(&s->timer, first->at, sync_timers_run);
    else
        boot_timer_stop(&s->timer);
}

void sync_timer_start(struct kube_sync *s, struct sync_timer *t, uint64_t in_ms, void (*fn)(void *owner),
                      void *owner)
{
    struct sync_timer *after;

    sync_timer_stop(s, t);
    t->at = clock_boot_in_ms(in_ms);
    t->fn = fn;
    t->owner = owner;
    t->runs = true;
    TAILQ_FOREACH (after, &s->waiting, link)
        if (clock_boot_is_before(t->at, after->at))
            break;
    if (after != NULL)
        TAILQ_INSERT_BEFORE(after, t, link);
    else
        TAILQ_INSERT_TAIL(&s->waiting, t, link);
    sync_timers_arm(s);
}

void sync_timer_stop(struct kube_sync *s, struct sync_timer *t)
{
    if (!t->runs)
        return;
    TAILQ_REMOVE(&s->waiting, t, link);
    t->runs = false;
}

double sync_random(void)
{
    uint32_t bits = 0;

    if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != (ssize_t)sizeof(bits))
        bits = (uint32_t)clock_boot().ns;
    return bits / 4294967296.0;
}

uint64_t sync_jitter_ms(uint64_t ms, double factor)
{
    return ms + (uint64_t)((double)ms * factor * sync_random());
}

/* Timers were adjusted already. */
static void sync_timers_on_set(void *arg)
{
    (void)arg;
}

enum err_code sync_timers_open(struct kube_sync *s, struct err *e)
{
    struct err ignored = { 0 };

    s->timers = boot_timers_new(s->o.loop);
    if (s->timers == NULL)
        return err_nomem(e);
    /* Where the kernel does not report it, timers go on after a sleep of the machine as if it had not slept.
     */
    ERR_IGNORE(boot_timers_watch(s->timers, sync_timers_on_set, NULL, &ignored));
    boot_timer_init(s->timers, &s->timer);
    return ERR_OK;
}

static void sync_timers_closed(struct boot_timer *timer)
{
    struct kube_sync *s = container_of(timer, struct kube_sync, timer);

    boot_timers_free(s->timers);
    s->timers = NULL;
    s->on_over(s);
}

void sync_timers_close(struct kube_sync *s)
{
    boot_timer_close(&s->timer, sync_timers_closed);
}
