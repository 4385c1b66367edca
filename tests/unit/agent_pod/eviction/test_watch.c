/* SPDX-License-Identifier: Apache-2.0 */
/* The alarms, the manager, the pace and the look are the test's: they stand in for those of the libraries. */
#include "tests/unit/base/helper.h"
#include "tests/unit/script_clock.h"

#include "agent/eviction/pace.h"
#include "agent/pod/eviction/internal.h"
#include "base/log.h"
#include "cgroups/memory_alarm.h"
#include "cgroups/meter.h"
#include "cgroups/psi_watch.h"

#define MIB (UINT64_C(1) << 20)
#define HEADROOM                                                                                             \
    1000 /* and the signal's number: the scripted manager tells the scripted pace whose it is                \
          */

struct cg_memory_alarm {
    char path[64];
    void (*fn)(void *arg);
    void *arg;
    uint64_t level, seen;
    uint64_t rest_ms;
    bool closed;
};

struct cg_psi_watch {
    void (*fn)(void *arg);
    void *arg;
    bool closed;
};

static struct {
    bool v1, no_psi, no_memory;
    struct cg_memory_alarm alarms[2];
    size_t n_alarms;
    struct cg_psi_watch memory, io, cpu;
    unsigned looks, signals;
    const char *why;
    struct memory_seen memory_seen;
    struct ev_settings settings;
    uint64_t headroom[EV_SIGNALS], pace_ms[EV_SIGNALS], woken_ms;
} script;

enum err_code cg_memory_alarm_open(struct cg_memory_alarm **ret, struct cg_tree *t, const char *path,
                                   uv_loop_t *loop, void (*fn)(void *arg), void *arg, struct err *e)
{
    (void)t;
    (void)loop;
    if (script.no_memory)
        return err_set(e, ERR_PRECONDITION, "no cgroup hierarchy has the memory controller");
    if (strcmp(path, "/") == 0 && !script.v1)
        return err_set(e, ERR_UNIMPLEMENTED, "the root cgroup of v2 reports no memory usage");
    *ret = &script.alarms[script.n_alarms++];
    **ret = (struct cg_memory_alarm){ .fn = fn, .arg = arg, .level = UINT64_MAX };
    snprintf((*ret)->path, sizeof((*ret)->path), "%s", path);
    return ERR_OK;
}

enum err_code cg_memory_alarm_set(struct cg_memory_alarm *a, uint64_t bytes, uint64_t seen, struct err *e)
{
    (void)e;
    a->level = bytes;
    a->seen = seen;
    return ERR_OK;
}

void cg_memory_alarm_rest(struct cg_memory_alarm *a, uint64_t ms)
{
    a->rest_ms = ms;
}

bool cg_memory_alarm_slows(const struct cg_memory_alarm *a)
{
    (void)a;
    return !script.v1;
}

void cg_memory_alarm_close(struct cg_memory_alarm *a, void (*closed)(void *arg), void *arg)
{
    (void)closed;
    (void)arg;
    if (a != NULL)
        a->closed = true;
}

enum err_code cg_psi_watch_open(struct cg_psi_watch **ret, const char *resource, uint64_t stall_us,
                                uint64_t window_us, uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                                struct err *e)
{
    (void)loop;
    assert_true(stall_us > 0 && stall_us <= window_us && window_us >= 500000 && window_us <= 10000000);
    if (script.no_psi)
        return err_set(e, ERR_PRECONDITION, "%s pressure: switched off in this kernel (psi=1)", resource);
    *ret = strcmp(resource, "memory") == 0 ? &script.memory
           : strcmp(resource, "io") == 0   ? &script.io
                                           : &script.cpu;
    **ret = (struct cg_psi_watch){ .fn = fn, .arg = arg };
    return ERR_OK;
}

void cg_psi_watch_close(struct cg_psi_watch *w, void (*closed)(void *arg), void *arg)
{
    (void)closed;
    (void)arg;
    if (w != NULL)
        w->closed = true;
}

enum err_code cg_class_path(const struct cg_tree *t, enum cg_class class_, char *ret, size_t size,
                            struct err *e)
{
    (void)t;
    (void)e;
    assert_int_equal(class_, CG_GUARANTEED);
    snprintf(ret, size, "/r/kubepods");
    return ERR_OK;
}

const struct memory_seen *observe_memory(const struct observe *o)
{
    (void)o;
    return &script.memory_seen;
}

void eviction_check(struct node *n, unsigned signals, const char *why)
{
    (void)n;
    script.looks++;
    script.signals |= signals;
    script.why = why;
}

const struct ev_settings *ev_manager_settings(const struct ev_manager *m)
{
    (void)m;
    return &script.settings;
}

uint64_t ev_manager_headroom(const struct ev_manager *m, enum ev_signal s, const struct ev_value *v)
{
    (void)m;
    (void)v;
    return script.headroom[s];
}

uint64_t ev_pace_next(struct ev_pace *p, enum ev_signal s, const struct ev_value *v, uint64_t headroom,
                      bool running, uint64_t now_ms)
{
    (void)s;
    (void)v;
    (void)running;
    (void)now_ms;
    p->wait_ms = script.pace_ms[headroom - HEADROOM];
    return p->wait_ms;
}

uint64_t ev_pace_wake(struct ev_pace *p, enum ev_signal s, uint64_t now_ms)
{
    (void)p;
    (void)s;
    (void)now_ms;
    return script.woken_ms;
}

/* ---- a node ---- */

struct site {
    uv_loop_t loop;
    struct node node;
    struct eviction_node part;
    struct ev_observation seen;
};

static int site_up(void **state)
{
    struct site *s = calloc(1, sizeof(*s));

    memset(&script, 0, sizeof(script));
    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    uv_loop_init(&s->loop);
    s->node.o.loop = &s->loop;
    s->node.o.cgroups = (struct cg_tree *)(uintptr_t)1; /* the alarms' own affair */
    s->node.parts[ROOM_EVICTION] = &s->part;
    script.settings.n = 2;
    script.settings.v[0] = (struct ev_threshold){ .signal = EV_MEMORY, .value = { .quantity = 100 * MIB } };
    script.settings.v[1] =
        (struct ev_threshold){ .signal = EV_ALLOCATABLE_MEMORY, .value = { .quantity = 100 * MIB } };
    script.memory_seen = (struct memory_seen){ .known = true,
                                               .total = 2048 * MIB,
                                               .kernel_available = 1900 * MIB,
                                               .usage = 300 * MIB,
                                               .working_set = 200 * MIB,
                                               .pods_known = true,
                                               .pods_usage = 120 * MIB,
                                               .pods_working_set = 100 * MIB,
                                               .pods_limit = 1500 * MIB };
    for (size_t i = 0; i < EV_SIGNALS; i++) {
        script.headroom[i] = UINT64_MAX;
        script.pace_ms[i] = PACE_MAX_MS;
    }
    *state = s;
    return 0;
}

static void site_open(struct site *s)
{
    s->part.watch = eviction_watch_open(&s->node);
    assert_non_null(s->part.watch);
}

static int site_down(void **state)
{
    struct site *s = *state;
    int rc;

    eviction_watch_close(s->part.watch);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    rc = uv_loop_close(&s->loop);
    for (size_t i = 0; i < script.n_alarms; i++)
        rc |= !script.alarms[i].closed;
    free(s);
    return rc;
}

/* What the machine and the pods have, as the values of the last look. */
static void memory_is(struct site *s, uint64_t working_set, uint64_t pods)
{
    script.memory_seen.working_set = working_set;
    script.memory_seen.pods_working_set = script.memory_seen.pods_usage = pods;
    s->seen.v[EV_MEMORY] = (struct ev_value){ true, 2048 * MIB - working_set, 2048 * MIB };
    s->seen.v[EV_ALLOCATABLE_MEMORY] = (struct ev_value){ true, 1500 * MIB - pods, 1500 * MIB };
    script.headroom[EV_MEMORY] = HEADROOM + EV_MEMORY;
    script.headroom[EV_ALLOCATABLE_MEMORY] = HEADROOM + EV_ALLOCATABLE_MEMORY;
}

static void seen(struct site *s)
{
    eviction_watch_seen(s->part.watch, NULL, &s->seen, clock_boot_ms());
}

/* A signal with a threshold that is far away. */
static void watched(struct site *s, enum ev_signal signal, uint64_t pace_ms)
{
    s->seen.v[signal] = (struct ev_value){ true, 100, 1000 };
    script.headroom[signal] = HEADROOM + signal;
    script.pace_ms[signal] = pace_ms;
}

/* Until the next timer. The first turn registers what is polled. */
static int left_ms(struct site *s)
{
    uv_run(&s->loop, UV_RUN_NOWAIT);
    return uv_backend_timeout(&s->loop);
}

/* ---- memory ---- */

static void on_v2_the_nearer_of_two_thresholds_sets_the_level_of_the_pods(void **state)
{
    struct site *s = *state;

    site_open(s);
    assert_int_equal(script.n_alarms, 1);
    assert_string_equal(script.alarms[0].path, "/r/kubepods");
    memory_is(s, 200 * MIB, 100 * MIB); /* 1748 to the machine's, 1300 to the pods' */
    seen(s);
    assert_int_equal(script.alarms[0].level, (100 + 650) * MIB);
    assert_int_equal(script.alarms[0].seen, 100 * MIB);
    memory_is(s, 1500 * MIB, 100 * MIB); /* others than pods: 448 to the machine's */
    seen(s);
    assert_int_equal(script.alarms[0].level, (100 + 224) * MIB);
}

static void the_kernels_estimate_sets_a_nearer_level(void **state)
{
    struct site *s = *state;

    site_open(s);
    memory_is(s, 1000 * MIB, 900 * MIB);
    script.memory_seen.kernel_available = 400 * MIB; /* about 300 to 5% of 2048 */
    seen(s);
    assert_true(script.alarms[0].level > (900 + 145) * MIB && script.alarms[0].level < (900 + 150) * MIB);
}

static void on_v1_the_machine_has_an_alarm_of_its_own(void **state)
{
    struct site *s = *state;

    script.v1 = true;
    site_open(s);
    assert_int_equal(script.n_alarms, 2);
    assert_string_equal(script.alarms[0].path, "/");
    memory_is(s, 200 * MIB, 100 * MIB);
    script.memory_seen.usage = 250 * MIB;
    seen(s);
    assert_int_equal(script.alarms[0].level, (250 + (2048 - 200 - 100) / 2) * MIB);
    assert_int_equal(script.alarms[1].level, (100 + 650) * MIB);
}

static void page_cache_at_the_level_lets_the_alarm_rest(void **state)
{
    struct site *s = *state;

    site_open(s);
    memory_is(s, 700 * MIB, 600 * MIB);
    seen(s);
    assert_int_equal(script.alarms[0].rest_ms, 0);
    script.memory_seen.pods_usage = 1400 * MIB;
    seen(s);
    assert_int_equal(script.alarms[0].level, 1400 * MIB);
    assert_int_not_equal(script.alarms[0].rest_ms, 0);
}

static void alarms_and_pressure_have_memory_looked_at(void **state)
{
    struct site *s = *state;

    site_open(s);
    script.alarms[0].fn(script.alarms[0].arg);
    assert_int_equal(script.looks, 1);
    assert_int_equal(script.signals, SIGNALS_MEMORY);
    assert_string_equal(script.why, "the memory alarm");
    script.memory.fn(script.memory.arg);
    assert_int_equal(script.looks, 2);
    s->node.closing = true;
    script.alarms[0].fn(script.alarms[0].arg);
    script.memory.fn(script.memory.arg);
    script.io.fn(script.io.arg);
    assert_int_equal(script.looks, 2);
}

static void pods_that_cannot_be_evicted_are_not_slowed_down(void **state)
{
    struct site *s = *state;

    site_open(s);
    memory_is(s, 2000 * MIB, 1450 * MIB);
    seen(s);
    assert_int_equal(script.alarms[0].level, 1450 * MIB); /* beyond the last line */
    eviction_watch_helpless(s->part.watch);
    seen(s);
    assert_int_equal(script.alarms[0].level, UINT64_MAX);
    assert_true(left_ms(s) <= 10000); /* as often as kubelet looks */
    seen(s);
    assert_int_equal(script.alarms[0].level, UINT64_MAX);
    memory_is(s, 500 * MIB, 400 * MIB); /* it ended by itself */
    seen(s);
    assert_int_equal(script.alarms[0].level, (400 + 500) * MIB);
}

/* ---- disks, process ids ---- */

static void a_node_at_rest_is_looked_at_every_five_minutes(void **state)
{
    struct site *s = *state;

    site_open(s);
    assert_false(uv_loop_alive(&s->loop)); /* no timer */
    memory_is(s, 200 * MIB, 100 * MIB);
    watched(s, EV_NODEFS, PACE_MAX_MS);
    watched(s, EV_PID, PACE_MAX_MS);
    seen(s);
    assert_true(left_ms(s) > 299000);
    assert_int_equal(script.looks, 0);
}

static void signals_without_thresholds_have_no_timer(void **state)
{
    struct site *s = *state;

    site_open(s);
    s->seen.v[EV_NODEFS] = (struct ev_value){ true, 100, 1000 };
    seen(s);
    assert_false(uv_loop_alive(&s->loop)); /* no timer */
}

static void what_is_due_about_now_is_one_look(void **state)
{
    struct site *s = *state;

    site_open(s);
    watched(s, EV_NODEFS, 100);
    watched(s, EV_NODEFS_INODES, 105);
    watched(s, EV_PID, 5000);
    seen(s);
    assert_true(left_ms(s) <= 100);
    script_clock_pass(SCRIPT_SECOND / 10);
    while (script.looks == 0)
        uv_run(&s->loop, UV_RUN_NOWAIT);
    assert_int_equal(script.signals, SIGNAL_BIT(EV_NODEFS) | SIGNAL_BIT(EV_NODEFS_INODES));
    assert_true(left_ms(s) > 4000);
}

static void pressure_of_disks_has_them_looked_at_sooner(void **state)
{
    struct site *s = *state;

    site_open(s);
    watched(s, EV_NODEFS, PACE_MAX_MS);
    watched(s, EV_PID, PACE_MAX_MS);
    seen(s);
    script.woken_ms = 1;
    script.io.fn(script.io.arg);
    script_clock_pass(SCRIPT_SECOND / 100);
    while (script.looks == 0)
        uv_run(&s->loop, UV_RUN_NOWAIT);
    assert_int_equal(script.signals & SIGNALS_DISK, SIGNALS_DISK);
    assert_int_equal(script.signals & (SIGNALS_PID | SIGNALS_MEMORY), 0);
}

/* Whoever forks as fast as it can; without a threshold, what keeps processors busy is no event. */
static void pressure_of_processors_has_process_ids_looked_at(void **state)
{
    struct site *s = *state;

    site_open(s);
    s->seen.v[EV_PID] = (struct ev_value){ true, 100, 1000 };
    seen(s); /* no threshold */
    assert_null(script.cpu.fn);
    eviction_watch_woken(s->part.watch, EV_PID_PRESSURE, clock_boot_ms());
    assert_false(uv_loop_alive(&s->loop)); /* no timer */
    watched(s, EV_PID, PACE_MAX_MS);
    seen(s);
    assert_non_null(script.cpu.fn);
    script.woken_ms = 1;
    script.cpu.fn(script.cpu.arg);
    script_clock_pass(SCRIPT_SECOND / 100);
    while (script.looks == 0)
        uv_run(&s->loop, UV_RUN_NOWAIT);
    assert_int_equal(script.signals, SIGNALS_PID);
}

static void something_that_takes_memory_has_it_looked_at_now(void **state)
{
    struct site *s = *state;

    site_open(s);
    eviction_watch_woken(s->part.watch, EV_MEMORY_PRESSURE, clock_boot_ms());
    while (script.looks == 0)
        uv_run(&s->loop, UV_RUN_NOWAIT);
    assert_int_equal(script.signals, SIGNALS_MEMORY);
}

/* ---- what is missing ---- */

static bool explains(const struct site *s, const char *part)
{
    json_auto_t *steps = json_array();
    str_auto text = NULL;

    eviction_watch_explain(s->part.watch, steps);
    text = json_dumps(steps, 0);
    return strstr(text, part) != NULL;
}

static void a_kernel_without_pressure_or_memory_controller_is_explained(void **state)
{
    struct site *s = *state;

    script.no_psi = script.no_memory = true;
    site_open(s);
    memory_is(s, 200 * MIB, 100 * MIB);
    seen(s);
    assert_true(explains(s, "no cgroup hierarchy has the memory controller"));
    assert_true(explains(s, "switched off in this kernel"));
}

static void the_level_is_explained(void **state)
{
    struct site *s = *state;

    site_open(s);
    assert_false(explains(s, "memory alarm"));
    memory_is(s, 200 * MIB, 100 * MIB);
    seen(s);
    assert_true(explains(s, "at 750 MiB in use by all pods together"));
    eviction_watch_helpless(s->part.watch);
    assert_true(explains(s, "no pod can be evicted: memory is read every 10 s"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define SITE_TEST(name) cmocka_unit_test_setup_teardown(name, site_up, site_down)
        SITE_TEST(on_v2_the_nearer_of_two_thresholds_sets_the_level_of_the_pods),
        SITE_TEST(the_kernels_estimate_sets_a_nearer_level),
        SITE_TEST(on_v1_the_machine_has_an_alarm_of_its_own),
        SITE_TEST(page_cache_at_the_level_lets_the_alarm_rest),
        SITE_TEST(alarms_and_pressure_have_memory_looked_at),
        SITE_TEST(pods_that_cannot_be_evicted_are_not_slowed_down),
        SITE_TEST(a_node_at_rest_is_looked_at_every_five_minutes),
        SITE_TEST(signals_without_thresholds_have_no_timer),
        SITE_TEST(what_is_due_about_now_is_one_look),
        SITE_TEST(pressure_of_disks_has_them_looked_at_sooner),
        SITE_TEST(pressure_of_processors_has_process_ids_looked_at),
        SITE_TEST(something_that_takes_memory_has_it_looked_at_now),
        SITE_TEST(a_kernel_without_pressure_or_memory_controller_is_explained),
        SITE_TEST(the_level_is_explained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
