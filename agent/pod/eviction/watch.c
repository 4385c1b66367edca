/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch - schedules checks. Memory: by alarms at the levels of memory_level.h, and by the machine's memory
 * pressure. Disks, process ids, and memory without an alarm: at intervals that depend on how fast they can
 * run out (agent/eviction/pace.h), earlier under I/O pressure or after an event that may use them up.
 *
 * On v2 there is one alarm, of all pods together: at the level of the machine's threshold, or at that of what
 * pods may use, whichever comes first. v1 has one for each.
 */
#include "agent/eviction/pace.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/eviction/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "cgroups/memory_alarm.h"
#include "cgroups/meter.h"
#include "cgroups/psi_watch.h"

#include <inttypes.h>

/* Of the machine's time, so that reclaim for a file that is read does not fire, but growth that must wait for
 * memory does. Kernel's window: 500 ms to 10 s. */
#define MEMORY_STALL_US 20000
#define MEMORY_WINDOW_US 1000000
/* A disk that is written at full speed has its writers wait for most of the time; 4 GiB/s take no more than
 * that in a window. */
#define IO_STALL_US 50000
#define IO_WINDOW_US 1000000
/* A process that forks as fast as it can keeps processors busy and makes others wait for them. Only while
 * process ids have a threshold: on a machine with much to do this is an event a second. */
#define CPU_STALL_US 500000
#define CPU_WINDOW_US 1000000
/* Combines checks that are due at about the same time. */
#define TOGETHER_MS 1000
/* No pod can be evicted: as often as kubelet measures. */
#define HELPLESS_MS 10000

enum { ALARM_MACHINE, ALARM_PODS, ALARMS };
enum { PSI_MEMORY, PSI_IO, PSI_CPU, PSIS };

struct eviction_watch {
    struct node *node;
    struct cg_memory_alarm *alarms[ALARMS];
    struct cg_psi_watch *psi[PSIS];
    struct err alarm_error, psi_error;
    uint64_t levels[ALARMS];
    bool helpless, cpu_watched;
    bool without[EV_SIGNALS]; /* seen, and there is no threshold */
    struct ev_pace paces[EV_SIGNALS];
    uint64_t due_ms[EV_SIGNALS]; /* clock_boot_ms(); 0: no threshold, or not seen yet */
    uint64_t timer_at;
    uv_timer_t timer;
};

/* ---- the timer ---- */

static void plan_timer(struct eviction_watch *w, uint64_t now_ms);

static void watch_on_timer(uv_timer_t *timer)
{
    struct eviction_watch *w = timer->data;
    uint64_t now = clock_boot_ms();
    unsigned due = 0;

    w->timer_at = 0;
    for (size_t i = 0; i < EV_SIGNALS; i++) {
        uint64_t slack = w->paces[i].wait_ms / 8 + (w->paces[i].wait_ms >= TOGETHER_MS ? TOGETHER_MS : 0);
        if (w->due_ms[i] == 0 || w->due_ms[i] > now + slack)
            continue;
        due |= SIGNAL_BIT(i);
        w->due_ms[i] = now + PACE_MAX_MS; /* if that check observes nothing */
    }
    plan_timer(w, now);
    if (due != 0 && !w->node->closing)
        eviction_check(w->node, due, "it is time");
}

static void plan_timer(struct eviction_watch *w, uint64_t now_ms)
{
    uint64_t first = 0;

    for (size_t i = 0; i < EV_SIGNALS; i++)
        if (w->due_ms[i] != 0 && (first == 0 || w->due_ms[i] < first))
            first = w->due_ms[i];
    if (first == w->timer_at)
        return;
    w->timer_at = first;
    if (first == 0)
        uv_timer_stop(&w->timer);
    else
        uv_timer_start(&w->timer, watch_on_timer, first > now_ms ? first - now_ms : 0, 0);
}

static void due_in(struct eviction_watch *w, enum ev_signal s, uint64_t in_ms, uint64_t now_ms)
{
    uint64_t at = now_ms + in_ms;

    if (w->due_ms[s] == 0 || at < w->due_ms[s])
        w->due_ms[s] = at;
}

void eviction_watch_woken(struct eviction_watch *w, enum ev_condition what, uint64_t now_ms)
{
    for (size_t i = 0; i < EV_SIGNALS; i++) {
        if (ev_signal_condition(i) != what || w->without[i])
            continue;
        due_in(w, i, what == EV_MEMORY_PRESSURE ? 0 : ev_pace_wake(&w->paces[i], i, now_ms), now_ms);
    }
    if (what == EV_MEMORY_PRESSURE)
        w->helpless = false;
    plan_timer(w, now_ms);
}

/* ---- the kernel's events ---- */

static void on_alarm(void *arg)
{
    const struct eviction_watch *w = arg;

    if (!w->node->closing)
        eviction_check(w->node, SIGNALS_MEMORY, "the memory alarm");
}

static void on_memory_pressure(void *arg)
{
    const struct eviction_watch *w = arg;

    if (!w->node->closing)
        eviction_check(w->node, SIGNALS_MEMORY, "memory pressure of the machine");
}

static void on_cpu_pressure(void *arg)
{
    struct eviction_watch *w = arg;

    if (!w->node->closing)
        eviction_watch_woken(w, EV_PID_PRESSURE, clock_boot_ms());
}

static void on_io_pressure(void *arg)
{
    struct eviction_watch *w = arg;

    if (!w->node->closing)
        eviction_watch_woken(w, EV_DISK_PRESSURE, clock_boot_ms());
}

static void open_psi(struct eviction_watch *w, size_t which, const char *resource, uint64_t stall_us,
                     uint64_t window_us, void (*fn)(void *arg))
{
    struct err e = { 0 };

    if (cg_psi_watch_open(&w->psi[which], resource, stall_us, window_us, w->node->o.loop, fn, w, &e) ==
        ERR_OK)
        return;
    log_info("pressure of the machine is not reported", F_ERR(&e));
    w->psi_error = e;
}

/* ---- a round is over ---- */

static void set_alarm(struct eviction_watch *w, size_t which, uint64_t usage, uint64_t working_set,
                      uint64_t headroom)
{
    struct memory_plan plan = memory_plan(usage, working_set, headroom);
    struct err e = { 0 };

    if (w->alarms[which] == NULL)
        return;
    if (w->helpless)
        plan = (struct memory_plan){ .level = UINT64_MAX };
    w->levels[which] = plan.level;
    if (cg_memory_alarm_set(w->alarms[which], plan.level, usage, &e) != ERR_OK) {
        if (w->alarm_error.code == ERR_OK)
            log_warn("cannot set the memory alarm", F_ERR(&e));
        w->alarm_error = e;
    }
    if (plan.rest_ms != 0)
        cg_memory_alarm_rest(w->alarms[which], plan.rest_ms);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void set_alarms(struct eviction_watch *w, const struct ev_manager *m,
                       const struct ev_observation *seen)
{
    const struct memory_seen *memory = observe_memory(eviction_node(w->node)->observe);
    const struct ev_settings *s = ev_manager_settings(m);
    uint64_t machine = memory_headroom(s, EV_MEMORY, &seen->v[EV_MEMORY]);
    uint64_t pods = memory_headroom(s, EV_ALLOCATABLE_MEMORY, &seen->v[EV_ALLOCATABLE_MEMORY]);

    if (seen->v[EV_MEMORY].known && machine != UINT64_MAX)
        machine = smaller(machine, memory_floor_headroom(memory));
    if (machine > 0 && pods > 0)
        w->helpless = false;
    if (w->alarms[ALARM_MACHINE] != NULL && memory->known)
        set_alarm(w, ALARM_MACHINE, memory->usage, memory->working_set, machine);
    else
        pods = smaller(pods, machine);
    if (memory->pods_known)
        set_alarm(w, ALARM_PODS, memory->pods_usage, memory->pods_working_set, pods);
}

static bool something_runs(const struct node *n)
{
    pods_each (n, p)
        if (p->state == POD_STARTING || p->state == POD_RUNNING)
            return true;
    return false;
}

void eviction_watch_seen(struct eviction_watch *w, const struct ev_manager *m,
                         const struct ev_observation *seen, uint64_t now_ms)
{
    const bool running = something_runs(w->node);

    for (size_t i = 0; i < EV_SIGNALS; i++) {
        const struct ev_value *v = &seen->v[i];
        uint64_t headroom = v->known ? ev_manager_headroom(m, i, v) : UINT64_MAX;
        if (!v->known)
            continue;
        w->due_ms[i] = 0;
        w->without[i] = headroom == UINT64_MAX;
        if (headroom != UINT64_MAX)
            due_in(w, i, ev_pace_next(&w->paces[i], i, v, headroom, running, now_ms), now_ms);
    }
    if (seen->v[EV_PID].known && !w->without[EV_PID] && !w->cpu_watched) {
        w->cpu_watched = true;
        open_psi(w, PSI_CPU, "cpu", CPU_STALL_US, CPU_WINDOW_US, on_cpu_pressure);
    }
    if (seen->v[EV_MEMORY].known || seen->v[EV_ALLOCATABLE_MEMORY].known)
        set_alarms(w, m, seen);
    if (w->helpless)
        due_in(w, EV_MEMORY, HELPLESS_MS, now_ms);
    plan_timer(w, now_ms);
}

void eviction_watch_helpless(struct eviction_watch *w)
{
    w->helpless = true;
}

/* ---- output for people ---- */

static void explain_alarm(const struct eviction_watch *w, json_t *steps)
{
    char text[160];

    if (w->alarm_error.code != ERR_OK) {
        explain_step(steps, "memory alarm", "failed", 0, w->alarm_error.text, 0);
        return;
    }
    if (w->helpless)
        snprintf(text, sizeof(text), "no pod can be evicted: memory is read every %d s", HELPLESS_MS / 1000);
    else if (w->levels[ALARM_PODS] != UINT64_MAX || w->levels[ALARM_MACHINE] != UINT64_MAX)
        snprintf(text, sizeof(text), "at %" PRIu64 " MiB in use by %s",
                 (w->levels[ALARM_PODS] != UINT64_MAX ? w->levels[ALARM_PODS] : w->levels[ALARM_MACHINE]) >>
                     20,
                 w->levels[ALARM_PODS] != UINT64_MAX ? "all pods together" : "the machine");
    else
        return;
    explain_step(steps, "memory alarm", "waiting", 0, text, 0);
}

void eviction_watch_explain(const struct eviction_watch *w, json_t *steps)
{
    explain_alarm(w, steps);
    if (w->psi_error.code != ERR_OK)
        explain_step(steps, "pressure of the machine", "failed", 0, w->psi_error.text, 0);
}

/* ---- life ---- */

static void open_alarm(struct eviction_watch *w, size_t which, const char *path)
{
    struct node *n = w->node;
    struct err e = { 0 };

    w->levels[which] = UINT64_MAX;
    if (cg_memory_alarm_open(&w->alarms[which], n->o.cgroups, path, n->o.loop, on_alarm, w, &e) == ERR_OK ||
        e.code == ERR_UNIMPLEMENTED) /* the machine on v2 */
        return;
    log_warn("no memory alarm: the memory of pods is read less often", F_ERR(&e));
    w->alarm_error = e;
}

static void open_alarms(struct eviction_watch *w)
{
    struct cg_tree *tree = w->node->o.cgroups;
    struct err e = { 0 };
    char path[1024];

    if (tree == NULL)
        return;
    open_alarm(w, ALARM_MACHINE, "/");
    if (cg_class_path(tree, CG_GUARANTEED, path, sizeof(path), &e) == ERR_OK)
        open_alarm(w, ALARM_PODS, path);
}

struct eviction_watch *eviction_watch_open(struct node *n)
{
    struct eviction_watch *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        log_error("eviction signals are not watched: out of memory");
        return NULL;
    }
    w->node = n;
    uv_timer_init(n->o.loop, &w->timer);
    w->timer.data = w;
    open_alarms(w);
    open_psi(w, PSI_MEMORY, "memory", MEMORY_STALL_US, MEMORY_WINDOW_US, on_memory_pressure);
    open_psi(w, PSI_IO, "io", IO_STALL_US, IO_WINDOW_US, on_io_pressure);
    return w;
}

static void watch_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void eviction_watch_close(struct eviction_watch *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < ALARMS; i++)
        cg_memory_alarm_close(w->alarms[i], NULL, NULL);
    for (size_t i = 0; i < PSIS; i++)
        cg_psi_watch_close(w->psi[i], NULL, NULL);
    uv_close((uv_handle_t *)&w->timer, watch_on_closed);
}
