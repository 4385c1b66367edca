/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/container/probes.h"

#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/probe_check.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/probe/text.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 3 /* kubelet's maxProbeRetries, for checks that could not be carried out */
/* how long a check that needs a process occupies a slot */
#define PLACE_NS INT64_C(1000000000)
#define PLACES_MIN 4 /* minimum number of slots; otherwise as many as for creating containers */
#define EARLY_MS 100 /* between tries during a container's first second */
#define EARLY_PROCESS_MS 1000
#define SECOND INT64_C(1000000000)

struct prober { /* one probe of a container */
    struct ctr *c;
    enum probe_type type;
    enum probe_result result;
    struct probe_count count;
    bool active; /* it checks periodically */
    bool held;   /* paused until there is a new container */
    struct boot_time epoch, due_at, begun_at;
    unsigned tries;
    bool running, queued, place_held;
    TAILQ_ENTRY(prober) link;
    struct probe_attempt attempt;
    int64_t last_ns; /* wall clock */
    bool last_failed, last_errored;
    char last_text[256];
    struct probe_tally tally;
};

struct ctr_probes {
    struct ctr *c; /* NULL: freed once the timer is closed */
    char id[65];   /* of the instance the results belong to */
    struct boot_timer timer;
    struct prober v[PROBE_TYPES];
};

const char *probe_type_name(enum probe_type t)
{
    switch (t) {
    case PROBE_STARTUP:
        return "Startup";
    case PROBE_LIVENESS:
        return "Liveness";
    case PROBE_READINESS:
        return "Readiness";
    }
    return "?";
}

const struct api_probe *probes_spec(const struct ctr *c, enum probe_type t)
{
    return t == PROBE_STARTUP    ? c->spec->startup
           : t == PROBE_LIVENESS ? c->spec->liveness
                                 : c->spec->readiness;
}

/* ---- pure ---- */

struct boot_time probes_tick(struct boot_time epoch, int64_t period_ns, struct boot_time at)
{
    if (!clock_boot_is_before(epoch, at))
        return epoch;
    return clock_boot_after(epoch, (at.ns - epoch.ns + period_ns - 1) / period_ns * period_ns);
}

bool probes_count(struct probe_count *c, bool success, int32_t success_threshold, int32_t failure_threshold)
{
    unsigned threshold = (unsigned)(success ? success_threshold : failure_threshold);

    if (!c->known || c->success != success)
        *c = (struct probe_count){ true, success, 0 };
    if (c->run < UINT32_MAX)
        c->run++;
    return c->run >= threshold;
}

/* ---- the probe's settings ---- */

static enum probe_result initial_result(const struct ctr *c, enum probe_type t)
{
    const struct ctr_own *own = own_of(c);

    switch (t) {
    case PROBE_STARTUP:
        return own->recovered && own->was_started ? RESULT_SUCCESS : RESULT_UNKNOWN;
    case PROBE_LIVENESS:
        return RESULT_SUCCESS;
    case PROBE_READINESS:
        return own->recovered && own->was_ready ? RESULT_SUCCESS : RESULT_FAILURE;
    }
    return RESULT_UNKNOWN;
}

enum probe_result probes_result(const struct ctr *c, enum probe_type t)
{
    const struct ctr_own *own = own_of(c);

    if (probes_spec(c, t) == NULL)
        return RESULT_UNKNOWN;
    if (own->probes == NULL || strcmp(own->probes->id, c->cur.id) != 0)
        return initial_result(c, t);
    return own->probes->v[t].result;
}

bool probes_live(const struct ctr *c)
{
    const struct ctr_own *own = own_of(c);

    if (own->probes == NULL)
        return false;
    for (size_t t = 0; t < PROBE_TYPES; t++)
        if (own->probes->v[t].running)
            return true;
    return false;
}

bool probes_view(const struct ctr *c, enum probe_type t, struct probe_view *ret)
{
    const struct ctr_own *own = own_of(c);
    const struct prober *b;

    if (probes_spec(c, t) == NULL)
        return false;
    *ret = (struct probe_view){ .result = probes_result(c, t), .last_text = "" };
    if (own->probes == NULL || strcmp(own->probes->id, c->cur.id) != 0)
        return true;
    b = &own->probes->v[t];
    ret->running = b->running;
    ret->waiting = b->queued;
    ret->held = b->held;
    ret->last_ns = b->last_ns;
    ret->run = b->count.run;
    ret->last_failed = b->last_failed;
    ret->last_errored = b->last_errored;
    ret->last_text = b->last_text;
    if (b->active && !b->running && !b->queued)
        ret->due_ns = clock_boot_to_wall_ns(b->due_at);
    return true;
}

const struct probe_tally *probes_tally_of(const struct ctr *c, enum probe_type t)
{
    const struct ctr_own *own = own_of(c);

    return own->probes != NULL && probes_spec(c, t) != NULL ? &own->probes->v[t].tally : NULL;
}

/* ---- slots ---- */

static unsigned places(const struct node *n)
{
    const struct container_node *part = container_node(n);

    return part->create_max > PLACES_MIN ? part->create_max : PLACES_MIN;
}

static void check_now(struct prober *b);
static void probes_arm(struct ctr_probes *s);

static void place_release(struct prober *b)
{
    struct node *n = b->c->pod->node;
    struct container_node *part = container_node(n);
    struct prober *next;

    if (!b->place_held)
        return;
    b->place_held = false;
    part->probes_used--;
    while (part->probes_used < places(n) && (next = TAILQ_FIRST(&part->probes_queue)) != NULL) {
        TAILQ_REMOVE(&part->probes_queue, next, link);
        next->queued = false;
        check_now(next);
        probes_arm(own_of(next->c)->probes);
    }
}

static bool place_take(struct prober *b)
{
    struct node *n = b->c->pod->node;
    struct container_node *part = container_node(n);

    if (b->place_held || !probe_needs_process(b->c, probes_spec(b->c, b->type)))
        return true;
    if (part->probes_used < places(n)) {
        part->probes_used++;
        b->place_held = true;
        return true;
    }
    b->queued = true;
    TAILQ_INSERT_TAIL(&part->probes_queue, b, link);
    return false;
}

static void leave_queue(struct prober *b)
{
    if (!b->queued)
        return;
    b->queued = false;
    TAILQ_REMOVE(&container_node(b->c->pod->node)->probes_queue, b, link);
}

/* ---- the timer ---- */

static void probes_on_timer(struct boot_timer *timer);

static void probes_arm(struct ctr_probes *s)
{
    struct boot_time at = CLOCK_BOOT_NONE;

    for (size_t t = 0; t < PROBE_TYPES; t++) {
        const struct prober *b = &s->v[t];
        struct boot_time due = CLOCK_BOOT_NONE;

        if (b->active && !b->running && !b->queued)
            due = b->due_at;
        else if (b->running && b->place_held)
            due = clock_boot_after(b->begun_at, PLACE_NS);
        if (clock_boot_is_set(due) && (!clock_boot_is_set(at) || clock_boot_is_before(due, at)))
            at = due;
    }
    if (clock_boot_is_set(at))
        boot_timer_start(&s->timer, at, probes_on_timer);
    else
        boot_timer_stop(&s->timer);
}

static int64_t period_ns(const struct prober *b)
{
    return (int64_t)probes_spec(b->c, b->type)->period_seconds * SECOND;
}

/* When initialDelaySeconds have passed since the start as shown to people, i.e. truncated to seconds.
 * Liveness omits the first second. */
static struct boot_time delay_over_at(const struct prober *b)
{
    const struct instance *cur = &b->c->cur;
    struct boot_time over = clock_boot_after(
        cur->started_at,
        (int64_t)probes_spec(b->c, b->type)->initial_delay_seconds * SECOND - cur->started_ns % SECOND);
    struct boot_time second = clock_boot_after(cur->started_at, SECOND);

    return b->type == PROBE_LIVENESS && clock_boot_is_before(over, second) ? second : over;
}

static void probes_on_timer(struct boot_timer *timer)
{
    struct ctr_probes *s = container_of(timer, struct ctr_probes, timer);

    for (size_t t = 0; t < PROBE_TYPES; t++) {
        struct prober *b = &s->v[t];
        if (b->running && b->place_held && clock_boot_since_ns(b->begun_at) >= PLACE_NS)
            place_release(b);
        if (b->active && !b->running && !b->queued && clock_boot_is_due(b->due_at)) {
            b->tries = 0;
            check_now(b);
        }
    }
    probes_arm(s);
}

/* ---- verdicts ---- */

static const char *probe_result_name(enum probe_result r)
{
    switch (r) {
    case RESULT_UNKNOWN:
        return "unknown";
    case RESULT_SUCCESS:
        return "success";
    case RESULT_FAILURE:
        return "failure";
    }
    return "?";
}

static void set_result(struct prober *b, enum probe_result r)
{
    struct ctr *c = b->c;

    if (b->result == r)
        return;
    log_debug("probe result", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
              F_STR("probeType", probe_type_name(b->type)), F_STR("from", probe_result_name(b->result)),
              F_STR("to", probe_result_name(r)));
    b->result = r;
    c->pod->record_dirty = true;
    pod_wake(c->pod, "probe result changed");
}

static void probes_say(struct prober *b, const char *reason, const char *prefix, const char *text, size_t n)
{
    buf_auto shown = BUF_INIT(PROBE_TEXT_MAX + 8);

    probe_add_utf8(&shown, text, n, PROBE_TEXT_MAX);
    pod_event(b->c->pod, b->c, true, reason, "%s probe %s%s", probe_type_name(b->type), prefix, shown.p);
}

static void note_last(struct prober *b, const struct probe_attempt *a)
{
    buf_auto text = BUF_INIT(sizeof(b->last_text));

    probe_add_utf8(&text, a->text.p, a->text.n, sizeof(b->last_text) - 1);
    snprintf(b->last_text, sizeof(b->last_text), "%s", text.p);
    b->last_ns = clock_wall_ns();
    b->last_failed = a->outcome != PROBE_SUCCESS && a->outcome != PROBE_WARNING;
    b->last_errored = a->errored;
}

/* During a container's first second failures are neither reported nor counted, only retried; see the
 * header. */
static bool is_early(const struct prober *b)
{
    return !own_of(b->c)->recovered && b->type != PROBE_LIVENESS &&
           clock_boot_since_ns(b->c->cur.started_at) < SECOND;
}

static void probes_judge(struct prober *b, const struct probe_attempt *a)
{
    const struct api_probe *spec = probes_spec(b->c, b->type);
    bool success;
    char prefix[64];

    note_last(b, a);
    success = !b->last_failed;
    if (a->errored) { /* no verdict */
        snprintf(prefix, sizeof(prefix),
                 "errored and resulted in %s state: ", probe_outcome_name(a->outcome));
        probes_say(b, "Unhealthy", prefix, a->text.p, a->text.n);
        return;
    }
    probes_tally_add(&b->tally, success, clock_boot_since_ns(b->begun_at));
    if (a->outcome == PROBE_WARNING)
        probes_say(b, "ProbeWarning", "warning: ", a->text.p, a->text.n);
    else if (!success)
        probes_say(b, "Unhealthy", "failed: ", a->text.p, a->text.n);
    if (!probes_count(&b->count, success, spec->success_threshold, spec->failure_threshold))
        return;
    set_result(b, success ? RESULT_SUCCESS : RESULT_FAILURE);
    if (!success && b->type != PROBE_READINESS) {
        b->held = true;
        b->active = false;
        b->count = (struct probe_count){ 0 };
    }
}

static void on_attempt(struct probe_attempt *a)
{
    struct prober *b = container_of(a, struct prober, attempt);
    struct ctr *c = b->c;
    struct ctr_own *own = own_of(c);
    bool current = b->active && strcmp(own->probes->id, c->cur.id) == 0;

    b->running = false;
    if (current && a->errored && !a->cancelled && ++b->tries < TRIES_MAX) {
        buf_done(&a->text);
        check_now(b);
        probes_arm(own->probes);
        return;
    }
    place_release(b);
    if (current && !a->cancelled && is_early(b) && (a->outcome == PROBE_FAILURE || a->errored)) {
        note_last(b, a);
        b->due_at =
            clock_boot_in_ms(probe_needs_process(c, probes_spec(c, b->type)) ? EARLY_PROCESS_MS : EARLY_MS);
    } else {
        if (current && !a->cancelled)
            probes_judge(b, a);
        /* A tick that passed meanwhile is made up for once. */
        b->due_at = probes_tick(b->epoch, period_ns(b), clock_boot_after(b->begun_at, 1));
        if (clock_boot_is_due(b->due_at))
            b->due_at = clock_boot();
    }
    buf_done(&a->text);
    probes_arm(own->probes);
    if (!current || a->cancelled)
        pod_wake(c->pod, "probe ended"); /* something may be waiting for its end */
}

static void check_now(struct prober *b)
{
    if (!b->active || b->running || b->c->pod->node->closing || !place_take(b))
        return;
    b->running = true;
    if (b->tries == 0)
        b->begun_at = clock_boot();
    probe_attempt_start(&b->attempt, b->c, probes_spec(b->c, b->type), on_attempt);
}

/* ---- control ---- */

static struct ctr_probes *probes_new(struct ctr *c)
{
    struct ctr_probes *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return NULL; /* retried with the pod; unknown until then */
    s->c = c;
    boot_timer_init(c->pod->node->timers, &s->timer);
    for (size_t t = 0; t < PROBE_TYPES; t++) {
        s->v[t].c = c;
        s->v[t].type = (enum probe_type)t;
    }
    return s;
}

static void begin_instance(struct ctr_probes *s)
{
    struct ctr *c = s->c;

    snprintf(s->id, sizeof(s->id), "%s", c->cur.id);
    for (size_t t = 0; t < PROBE_TYPES; t++) {
        struct prober *b = &s->v[t];
        b->result = initial_result(c, b->type);
        b->count = (struct probe_count){ 0 };
        b->held = b->active = false;
        b->last_ns = 0;
        b->last_failed = b->last_errored = false;
        b->last_text[0] = '\0';
    }
}

static void pod_probes_stop(struct prober *b)
{
    b->active = false;
    leave_queue(b);
    if (b->running)
        probe_attempt_cancel(&b->attempt);
}

/* The ticks of a starting probe: see the header. */
static void probes_start(struct prober *b)
{
    struct ctr *c = b->c;
    struct boot_time now = clock_boot(), over = delay_over_at(b);

    if (own_of(c)->recovered) /* not all at once after a restart of the agent */
        b->epoch = clock_boot_after(now, (int64_t)random() * 1000000 % period_ns(b));
    else
        b->epoch = b->type == PROBE_READINESS || !clock_boot_is_set(containers_of(c->pod)->probes_since)
                       ? now
                       : containers_of(c->pod)->probes_since;
    b->active = true;
    b->due_at = probes_tick(b->epoch, period_ns(b), clock_boot_is_before(over, now) ? now : over);
}

/* Whether it should check in the container's current state. */
static bool probes_is_wanted(const struct prober *b)
{
    const struct ctr *c = b->c;
    const struct pod *p = c->pod;
    bool ends = p->state == POD_TERMINATING || c->state != CTR_RUNNING;

    if (probes_spec(c, b->type) == NULL || b->held || p->node->closing || own_of(c)->post != POST_NONE)
        return false;
    if (c->state != CTR_RUNNING && c->state != CTR_PRESTOP && c->state != CTR_STOPPING &&
        c->state != CTR_KILLING)
        return false;
    switch (b->type) {
    case PROBE_STARTUP:
        return !ends && b->result != RESULT_SUCCESS;
    case PROBE_LIVENESS:
        return !ends && ctr_started(c);
    case PROBE_READINESS: /* until the very end */
        return ctr_started(c);
    }
    return false;
}

void probes_step(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    bool any = false;

    for (size_t t = 0; t < PROBE_TYPES; t++)
        any = any || probes_spec(c, (enum probe_type)t) != NULL;
    if (!any || (own->probes == NULL && !ctr_alive(c)))
        return;
    if (own->probes == NULL && (own->probes = probes_new(c)) == NULL)
        return;
    if (strcmp(own->probes->id, c->cur.id) != 0 && ctr_alive(c))
        begin_instance(own->probes);
    for (size_t t = 0; t < PROBE_TYPES; t++) {
        struct prober *b = &own->probes->v[t];
        bool wanted = probes_is_wanted(b);
        if (wanted && !b->active)
            probes_start(b);
        else if (!wanted && (b->active || b->queued))
            pod_probes_stop(b);
    }
    probes_arm(own->probes);
}

void probes_stop(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    for (size_t t = 0; own->probes != NULL && t < PROBE_TYPES; t++)
        pod_probes_stop(&own->probes->v[t]);
    if (own->probes != NULL)
        boot_timer_stop(&own->probes->timer);
}

static void probes_on_closed(struct boot_timer *timer)
{
    free(container_of(timer, struct ctr_probes, timer));
}

void probes_free(struct ctr *c)
{
    struct ctr_probes *s = take_ptr(&own_of(c)->probes);

    if (s == NULL)
        return;
    for (size_t t = 0; t < PROBE_TYPES; t++)
        leave_queue(&s->v[t]);
    boot_timer_close(&s->timer, probes_on_closed);
}
