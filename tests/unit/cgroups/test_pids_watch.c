/* SPDX-License-Identifier: Apache-2.0 */
/* Forks that a kernel of files refuses; tests/host/test_eviction_pids.py has the real one. */
#include "tests/unit/cgroups/fake_v2.h"

#include "base/clock.h"
#include "cgroups/pids_watch.h"

#include <unistd.h>

#define DEADLINE_MS 20000
#define CTR "/r/kubepods/burstable"

struct seen {
    uv_loop_t loop;
    struct cg_pids_watch *w;
    unsigned reports;
    char path[CG_PATH_MAX];
    bool remove;
};

static void pids_on_refused(const char *path, void *arg)
{
    struct seen *s = arg;

    s->reports++;
    snprintf(s->path, sizeof(s->path), "%s", path);
    if (s->remove)
        cg_pids_watch_remove(s->w, s->path);
}

static void begin(struct fake *f, struct seen *s)
{
    struct err e = { 0 };

    *s = (struct seen){ 0 };
    fake_cgroup(f, "", ALL);
    fake_tree(f, "/r", ALL);
    put(f, CTR, "pids.events", "max 3\n");
    assert_int_equal(fake_open(f, "/r", "/", &e), ERR_OK);
    uv_loop_init(&s->loop);
    if (cg_pids_watch_open(&s->w, f->tree, &s->loop, pids_on_refused, s, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static void finish(struct seen *s)
{
    cg_pids_watch_close(s->w, NULL, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
}

static bool turns_until(struct seen *s, unsigned reports, uint64_t ms)
{
    uint64_t until = clock_mono_ms() + ms;

    while (s->reports < reports && clock_mono_ms() < until) {
        uv_run(&s->loop, UV_RUN_NOWAIT);
        usleep(2000);
    }
    return s->reports >= reports;
}

static void a_refused_fork_is_reported_once_and_then_left_alone(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct seen s;

    begin(f, &s);
    if (cg_pids_watch_add(s.w, CTR, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(cg_pids_watch_add(s.w, CTR, &e), ERR_OK);
    assert_false(turns_until(&s, 1, 100)); /* what was before is no news */
    put(f, CTR, "pids.events", "max 4\n");
    assert_true(turns_until(&s, 1, DEADLINE_MS));
    assert_string_equal(s.path, CTR);
    put(f, CTR, "pids.events", "max 500\n");
    assert_false(turns_until(&s, 2, 500)); /* it rests */
    assert_true(turns_until(&s, 2, CG_PIDS_REST_MS + DEADLINE_MS));
    finish(&s);
}

static void who_hears_of_it_may_remove_it(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct seen s;

    begin(f, &s);
    s.remove = true;
    assert_int_equal(cg_pids_watch_add(s.w, CTR, &e), ERR_OK);
    put(f, CTR, "pids.events", "max 4\n");
    assert_true(turns_until(&s, 1, DEADLINE_MS));
    cg_pids_watch_remove(s.w, CTR);
    finish(&s);
}

static void a_cgroup_that_is_not_there_cannot_be_watched(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct seen s;

    begin(f, &s);
    assert_int_equal(cg_pids_watch_add(s.w, "/coracle-no-such-cgroup", &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "watch pids.events of /coracle-no-such-cgroup: No such file or directory");
    cg_pids_watch_remove(s.w, "/coracle-no-such-cgroup");
    finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_refused_fork_is_reported_once_and_then_left_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_hears_of_it_may_remove_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cgroup_that_is_not_there_cannot_be_watched, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
