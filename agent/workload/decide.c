/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/decide.h"

#include <stdlib.h>
#include <string.h>

struct decision {
    const struct workload_want *w;
    const struct workload_seen *seen;
    size_t n;
    struct workload_step *steps;
    size_t n_steps, max;
};

/* ---- the desired state ---- */

unsigned workload_share(const char *text, const char *otherwise, unsigned replicas, bool up)
{
    const char *from = text != NULL ? text : otherwise;
    uint64_t number = strtoul(from, NULL, 10); /* of at most nine digits, or an int32 */

    if (strchr(from, '%') != NULL)
        number = (number * replicas + (up ? 99 : 0)) / 100;
    return number > INT32_MAX ? INT32_MAX : (unsigned)number;
}

struct workload_want workload_want_of(enum api_kind kind, const struct api_workload *w)
{
    struct workload_want want = { .kind = kind,
                                  .replicas = (unsigned)w->replicas,
                                  .update = w->update,
                                  .first = (unsigned)w->first_ordinal,
                                  .partition = (unsigned)w->partition,
                                  .parallel = w->parallel,
                                  .paused = w->paused };

    if (kind == API_KIND_DAEMON_SET) {
        want.replicas = 1;
        want.surge = workload_share(w->max_surge, "0", 1, true);
        want.unavailable = want.surge > 0 ? 0 : 1;
    } else {
        want.surge = workload_share(w->max_surge, "25%", want.replicas, true);
        want.unavailable = workload_share(w->max_unavailable, "25%", want.replicas, false);
        if (want.surge == 0 && want.unavailable == 0) /* 25% of few replicas, rounded down */
            want.unavailable = 1;
    }
    return want;
}

/* ---- steps ---- */

static void create(struct decision *d, unsigned number)
{
    if (d->n_steps < d->max)
        d->steps[d->n_steps++] = (struct workload_step){ .create = true, .number = number };
}

static void remove_(struct decision *d, size_t index)
{
    if (d->n_steps < d->max)
        d->steps[d->n_steps++] = (struct workload_step){ .index = index };
}

static bool in_range(const struct workload_want *w, unsigned number)
{
    return number >= w->first && number - w->first < w->replicas;
}

/* The index of the pod with this number, or n. `current`: only a pod of the current template. */
static size_t find(const struct decision *d, unsigned number, bool current)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->seen[i].number == number && (!current || d->seen[i].current))
            return i;
    return d->n;
}

/* ---- Deployment, DaemonSet ---- */

struct tally {
    unsigned kept, available, current, current_available, old, ending;
};

static struct tally count(const struct decision *d)
{
    struct tally t = { 0 };

    for (size_t i = 0; i < d->n; i++) {
        const struct workload_seen *s = &d->seen[i];

        if (!s->kept) {
            t.ending++;
            continue;
        }
        if (s->current && !in_range(d->w, s->number)) /* being removed in this step */
            continue;
        t.kept++;
        t.available += s->available;
        t.current += s->current;
        t.current_available += s->current && s->available;
        t.old += !s->current;
    }
    return t;
}

static void remove_beyond(struct decision *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->seen[i].kept && d->seen[i].current && !in_range(d->w, d->seen[i].number))
            remove_(d, i);
}

/* Removes this many old pods, unavailable ones first. */
static void remove_old(struct decision *d, unsigned unready, unsigned ready)
{
    for (size_t i = d->n; i-- > 0;) {
        const struct workload_seen *s = &d->seen[i];

        if (!s->kept || s->current)
            continue;
        if (!s->available && unready > 0) {
            remove_(d, i);
            unready--;
        } else if (s->available && ready > 0) {
            remove_(d, i);
            ready--;
        }
    }
}

static unsigned above(unsigned a, unsigned b)
{
    return a > b ? a - b : 0;
}

static void decide_rolling(struct decision *d)
{
    const struct workload_want *w = d->w;
    const struct tally t = count(d);
    bool in_turn = w->update == API_UPDATE_RECREATE || (w->kind == API_KIND_DAEMON_SET && w->surge == 0);
    unsigned floor_ = above(w->replicas, w->unavailable);
    unsigned there = in_turn ? t.kept + t.ending : t.kept;
    unsigned room = above(in_turn ? w->replicas : w->replicas + w->surge, there);

    remove_beyond(d);
    if (t.old > 0 && (w->paused || w->update == API_UPDATE_ON_DELETE))
        return;
    if (w->update == API_UPDATE_RECREATE) {
        remove_old(d, t.old, t.old);
        if (t.old + t.ending > 0)
            return;
    } else {
        remove_old(d, above(t.kept, floor_ + (t.current - t.current_available)), above(t.available, floor_));
    }
    for (unsigned k = 0; k < w->replicas && room > 0 && t.current < w->replicas; k++)
        if (find(d, w->first + k, true) == d->n) {
            create(d, w->first + k);
            room--;
        }
}

/* ---- ReplicaSet ---- */

static void decide_set(struct decision *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->seen[i].kept && !in_range(d->w, d->seen[i].number))
            remove_(d, i);
    for (unsigned k = 0; k < d->w->replicas && d->n_steps < d->max; k++)
        if (find(d, k, false) == d->n)
            create(d, k);
}

/* ---- StatefulSet ---- */

/* Whether the pod is old and has to be replaced. */
static bool outdated(const struct decision *d, const struct workload_seen *s)
{
    return !s->current && d->w->update == API_UPDATE_ROLLING && s->number >= d->w->first + d->w->partition;
}

/* Creates the lowest missing number. True: a pod is being created, or is not ready yet. */
static bool climb(struct decision *d)
{
    bool waits = false;

    for (unsigned k = 0; k < d->w->replicas && d->n_steps < d->max; k++) {
        size_t i = find(d, d->w->first + k, false);
        bool there = i < d->n;

        if (there && d->seen[i].kept && d->seen[i].available)
            continue;
        waits = true;
        if (!there)
            create(d, d->w->first + k);
        else if (d->seen[i].kept && outdated(d, &d->seen[i]))
            remove_(d, i);
        if (!d->w->parallel)
            break;
    }
    return waits;
}

/* Removes pods beyond the range. True: one of them is ending. */
static bool descend(struct decision *d)
{
    size_t highest = d->n;
    bool ending = false;

    for (size_t i = 0; i < d->n; i++) {
        const struct workload_seen *s = &d->seen[i];

        if (in_range(d->w, s->number))
            continue;
        if (s->kept && d->w->parallel)
            remove_(d, i);
        else if (s->kept && (highest == d->n || s->number > d->seen[highest].number))
            highest = i;
        ending = ending || !s->kept;
    }
    if (highest < d->n && !ending)
        remove_(d, highest);
    return ending || highest < d->n;
}

static void decide_stateful(struct decision *d)
{
    size_t highest = d->n;

    if (climb(d) || descend(d))
        return;
    for (size_t i = 0; i < d->n; i++)
        if (outdated(d, &d->seen[i]) && (highest == d->n || d->seen[i].number > d->seen[highest].number))
            highest = i;
    if (highest < d->n)
        remove_(d, highest);
}

size_t workload_decide(const struct workload_want *w, const struct workload_seen *seen, size_t n,
                       struct workload_step *ret, size_t max)
{
    struct decision d = { .w = w, .seen = seen, .n = n, .steps = ret, .max = max };

    if (w->kind == API_KIND_STATEFUL_SET)
        decide_stateful(&d);
    else if (w->kind == API_KIND_REPLICA_SET)
        decide_set(&d);
    else
        decide_rolling(&d);
    return d.n_steps;
}
