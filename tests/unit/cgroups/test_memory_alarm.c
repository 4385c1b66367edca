/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's cgroups where this host has the memory controller, and a folder that imitates v2 (fake_v2.h).
 */
#define set_up fake_set_up
#define tear_down fake_tear_down
#include "tests/unit/cgroups/fake_v2.h"
#undef set_up
#undef tear_down
#include "tests/unit/cgroups/host_tree.h"

#include "base/clock.h"
#include "cgroups/memory_alarm.h"

#include <sys/resource.h>

#define DEADLINE_MS 20000
#define MIB (UINT64_C(1) << 20)
#define PODS "/r/kubepods"

struct bell {
    uv_loop_t loop;
    struct cg_memory_alarm *alarm;
    unsigned rung, closed;
};

static void ring(void *arg)
{
    ++((struct bell *)arg)->rung;
}

static void on_closed(void *arg)
{
    ++((struct bell *)arg)->closed;
}

static void turn(struct bell *b, unsigned ms)
{
    for (uint64_t until = clock_mono_ms() + ms; clock_mono_ms() < until; usleep(2000))
        uv_run(&b->loop, UV_RUN_NOWAIT);
}

static bool rings(struct bell *b)
{
    for (uint64_t until = clock_mono_ms() + DEADLINE_MS; b->rung == 0 && clock_mono_ms() < until;
         usleep(2000))
        uv_run(&b->loop, UV_RUN_NOWAIT);
    return b->rung > 0;
}

static void finish(struct bell *b)
{
    cg_memory_alarm_close(b->alarm, on_closed, b);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(b->closed, 1);
    assert_int_equal(uv_loop_close(&b->loop), 0);
}

static void set(struct bell *b, uint64_t bytes, uint64_t seen)
{
    struct err e = { 0 };

    if (cg_memory_alarm_set(b->alarm, bytes, seen, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

/* ---- the kernel ---- */

static void open_pod(struct host *h, struct bell *b)
{
    struct err e = { 0 };
    char pod[CG_PATH_MAX];

    make_pod(h, 256 << 20);
    uv_loop_init(&b->loop);
    assert_int_equal(cg_pod_path(h->tree, CG_BURSTABLE, "u1", pod, sizeof(pod), &e), ERR_OK);
    if (cg_memory_alarm_open(&b->alarm, h->tree, pod, &b->loop, ring, b, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static void growth_to_the_level_is_reported(void **state)
{
    struct host *h = need(state);
    struct bell b = { 0 };
    int go;

    open_pod(h, &b);
    pid_t pid = eater(h, 64 * MIB, &go);
    set(&b, 24 * MIB, 0);
    turn(&b, 50);
    assert_int_equal(b.rung, 0);
    assert_int_equal(write(go, "x", 1), 1);
    close(go);
    assert_true(rings(&b));
    kill(pid, SIGKILL);
    end_of(pid);
    finish(&b);
}

static void usage_that_grew_past_the_level_before_it_was_set_is_reported(void **state)
{
    struct host *h = need(state);
    struct bell b = { 0 };
    uint64_t usage = 0;
    struct err e = { 0 };
    char pod[CG_PATH_MAX];
    int go;

    open_pod(h, &b);
    assert_int_equal(cg_pod_path(h->tree, CG_BURSTABLE, "u1", pod, sizeof(pod), &e), ERR_OK);
    pid_t pid = eater(h, 64 * MIB, &go);
    assert_int_equal(write(go, "x", 1), 1);
    close(go);
    for (uint64_t until = clock_mono_ms() + DEADLINE_MS; usage < 64 * MIB && clock_mono_ms() < until;)
        assert_false(presence_is_unknown(cg_read_memory(h->tree, pod, &usage, &e)));
    if (cg_memory_alarm_slows(b.alarm)) { /* v2: reported with the next charge */
        kill(pid, SIGKILL);
        end_of(pid);
        finish(&b);
        SKIP("v1 only");
    }
    set(&b, 24 * MIB, 8 * MIB);
    assert_true(rings(&b));
    b.rung = 0;
    set(&b, 25 * MIB, usage); /* the caller knows: nothing is reported */
    turn(&b, 50);
    assert_int_equal(b.rung, 0);
    kill(pid, SIGKILL);
    end_of(pid);
    finish(&b);
}

static void no_level_reports_nothing(void **state)
{
    struct host *h = need(state);
    struct bell b = { 0 };
    int go;

    open_pod(h, &b);
    set(&b, 24 * MIB, 0);
    set(&b, UINT64_MAX, 0);
    pid_t pid = eater(h, 64 * MIB, &go);
    assert_int_equal(write(go, "x", 1), 1);
    close(go);
    turn(&b, 300);
    assert_int_equal(b.rung, 0);
    kill(pid, SIGKILL);
    end_of(pid);
    finish(&b);
}

/* v1: the kernel waits for others within the write, up to hundreds of ms; the loop has a pod to kill. */
static void the_loop_does_not_wait_for_a_level(void **state)
{
    struct host *h = need(state);
    struct bell b = { 0 };
    struct rusage before, after;

    open_pod(h, &b);
    getrusage(RUSAGE_THREAD, &before);
    for (unsigned i = 0; i < 20; i++) {
        set(&b, (100 + i) * MIB, 0);
        uv_run(&b.loop, UV_RUN_NOWAIT);
    }
    getrusage(RUSAGE_THREAD, &after);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, 10);
    finish(&b);
}

static void a_cgroup_that_is_not_there_has_no_alarm(void **state)
{
    struct host *h = need(state);
    struct bell b = { 0 };
    struct err e = { 0 };

    assert_int_equal(
        cg_memory_alarm_open(&b.alarm, h->tree, "/coracle-no-such-cgroup", &b.loop, ring, &b, &e),
        ERR_NOT_FOUND);
    assert_null(b.alarm);
    cg_memory_alarm_close(b.alarm, NULL, NULL);
}

/* ---- v2, imitated ---- */

static void open_fake(struct fake *f, struct bell *b, const char *high_before)
{
    struct err e = { 0 };

    fake_cgroup(f, "", ALL);
    fake_tree(f, "/r", ALL);
    if (fake_open(f, "/r", "/other", &e) != ERR_OK)
        fail_msg("%s", e.text);
    put(f, PODS, "memory.high", high_before);
    put(f, PODS, "memory.current", "104857600\n");
    put(f, PODS, "memory.events.local", "low 0\nhigh 7\nmax 0\n");
    uv_loop_init(&b->loop);
    if (cg_memory_alarm_open(&b->alarm, f->tree, PODS, &b->loop, ring, b, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

/* As the kernel writes: the file stays the same. */
static void events(struct fake *f, const char *text)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s/memory.events.local", f->dir, PODS);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static const char *high(struct fake *f)
{
    static char text[64];

    snprintf(text, sizeof(text), "%.*s", (int)strcspn(get(f, PODS, "memory.high"), "\n"),
             get(f, PODS, "memory.high"));
    return text;
}

static void an_open_takes_away_what_a_killed_agent_left(void **state)
{
    struct bell b = { 0 };

    open_fake(*state, &b, "");
    assert_string_equal(high(*state), "max");
    finish(&b);
}

static void a_level_above_the_usage_is_written_at_once(void **state)
{
    struct bell b = { 0 };

    open_fake(*state, &b, "");
    set(&b, 200 * MIB, 0);
    assert_string_equal(high(*state), "209715200");
    put(*state, PODS, "memory.high", ""); /* the kernel's file has no end to leave behind */
    finish(&b);
    assert_string_equal(high(*state), "max");
}

static void a_level_below_the_usage_is_written_on_the_pool(void **state)
{
    struct bell b = { 0 };

    open_fake(*state, &b, "");
    put(*state, PODS, "memory.high", "");
    set(&b, 50 * MIB, 0);
    for (uint64_t until = clock_mono_ms() + DEADLINE_MS; high(*state)[0] == '\0' && clock_mono_ms() < until;
         usleep(2000))
        uv_run(&b.loop, UV_RUN_NOWAIT);
    assert_string_equal(high(*state), "52428800");
    put(*state, PODS, "memory.high", "");
    finish(&b);
    assert_string_equal(high(*state), "max");
}

static void an_end_overtakes_a_level_that_is_being_written(void **state)
{
    struct bell b = { 0 };

    open_fake(*state, &b, "");
    put(*state, PODS, "memory.high", "");
    set(&b, 50 * MIB, 0);
    finish(&b);
    assert_int_equal(strncmp(high(*state), "max", 3), 0); /* the last write, over a longer one */
}

static void only_its_own_count_rings(void **state)
{
    struct bell b = { 0 };

    open_fake(*state, &b, "");
    set(&b, 200 * MIB, 0);
    events(*state, "low 0\nhigh 7\nmax 5\n");
    turn(&b, 50);
    assert_int_equal(b.rung, 0);
    events(*state, "low 0\nhigh 8\nmax 5\n");
    assert_true(rings(&b));
    finish(&b);
}

static void what_happens_in_a_rest_is_reported_once_after_it(void **state)
{
    struct bell b = { 0 };

    open_fake(*state, &b, "");
    set(&b, 200 * MIB, 0);
    cg_memory_alarm_rest(b.alarm, 300);
    events(*state, "low 0\nhigh 8\nmax 0\n");
    events(*state, "low 0\nhigh 9\nmax 0\n");
    turn(&b, 50);
    assert_int_equal(b.rung, 0);
    assert_true(rings(&b));
    turn(&b, 50);
    assert_int_equal(b.rung, 1);
    cg_memory_alarm_rest(b.alarm, 20); /* nothing happens: nothing is reported, and it is watched again */
    turn(&b, 100);
    assert_int_equal(b.rung, 1);
    b.rung = 0;
    events(*state, "low 0\nhigh 10\nmax 0\n");
    assert_true(rings(&b));
    finish(&b);
}

static void the_root_of_v2_has_no_alarm(void **state)
{
    struct fake *f = *state;
    struct bell b = { 0 };
    struct err e = { 0 };

    open_fake(f, &b, "");
    struct cg_memory_alarm *second = NULL;
    assert_int_equal(cg_memory_alarm_open(&second, f->tree, "/", &b.loop, ring, &b, &e), ERR_UNIMPLEMENTED);
    assert_string_equal(e.text, "the root cgroup of v2 reports no memory usage");
    assert_true(cg_memory_alarm_slows(b.alarm));
    finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define FAKE_TEST(name) cmocka_unit_test_setup_teardown(name, fake_set_up, fake_tear_down)
        HOST_TEST(growth_to_the_level_is_reported),
        HOST_TEST(usage_that_grew_past_the_level_before_it_was_set_is_reported),
        HOST_TEST(no_level_reports_nothing),
        HOST_TEST(the_loop_does_not_wait_for_a_level),
        HOST_TEST(a_cgroup_that_is_not_there_has_no_alarm),
        FAKE_TEST(an_open_takes_away_what_a_killed_agent_left),
        FAKE_TEST(a_level_above_the_usage_is_written_at_once),
        FAKE_TEST(a_level_below_the_usage_is_written_on_the_pool),
        FAKE_TEST(an_end_overtakes_a_level_that_is_being_written),
        FAKE_TEST(only_its_own_count_rings),
        FAKE_TEST(what_happens_in_a_rest_is_reported_once_after_it),
        FAKE_TEST(the_root_of_v2_has_no_alarm),
    };

    return cmocka_run_group_tests(tests, group_set_up, NULL);
}
