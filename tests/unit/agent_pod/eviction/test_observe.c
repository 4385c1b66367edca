/* SPDX-License-Identifier: Apache-2.0 */
/* Disks and process ids of this machine; no cgroups, so memory cannot be read. The image store is the test's.
 */
#include "tests/unit/base/helper.h"

#include "agent/pod/eviction/internal.h"
#include "base/log.h"

#include <sys/statvfs.h>

static const char *images;

const char *img_store_dir(const struct img_store *s)
{
    (void)s;
    return images;
}

struct site {
    uv_loop_t loop;
    struct node node;
    struct observe *observe;
    struct ev_observation seen;
    unsigned n;
};

static void on_seen(const struct ev_observation *seen, void *arg)
{
    struct site *s = arg;

    s->seen = *seen;
    s->n++;
}

static int site_up(void **state)
{
    struct site *s = calloc(1, sizeof(*s));

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    uv_loop_init(&s->loop);
    images = "/";
    s->node.o.loop = &s->loop;
    s->node.o.root_dir = "/";
    s->node.o.state_dir = "/does/not/exist";
    *state = s;
    return 0;
}

static int site_down(void **state)
{
    struct site *s = *state;
    int rc;

    uv_run(&s->loop, UV_RUN_DEFAULT);
    rc = uv_loop_close(&s->loop);
    free(s);
    return rc;
}

static bool explains(const struct site *s, const char *part)
{
    json_auto_t *steps = json_array();
    str_auto text = NULL;

    observe_explain(s->observe, steps);
    text = json_dumps(steps, 0);
    return strstr(text, part) != NULL;
}

static void what_can_be_read_is_known_and_the_rest_is_explained(void **state)
{
    struct site *s = *state;
    struct statvfs fs;

    s->observe = observe_open(&s->node);
    assert_non_null(s->observe);
    observe_start(s->observe, SIGNALS_ALL, true, on_seen, s);
    assert_true(observe_busy(s->observe));
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(s->n, 1);
    assert_false(observe_busy(s->observe));
    assert_int_equal(statvfs("/", &fs), 0);
    assert_true(s->seen.v[EV_NODEFS].known && s->seen.v[EV_IMAGEFS].known && s->seen.v[EV_PID].known);
    assert_int_equal(s->seen.v[EV_NODEFS].capacity, (uint64_t)fs.f_blocks * fs.f_frsize);
    assert_true(s->seen.v[EV_PID].available < s->seen.v[EV_PID].capacity);
    assert_false(s->seen.v[EV_CONTAINERFS].known);
    assert_false(s->seen.v[EV_MEMORY].known);
    assert_true(explains(s, "/does/not/exist/containers"));
    assert_true(explains(s, "no cgroup hierarchy counts memory"));
    assert_int_equal(observe_layout(s->observe), EV_LAYOUT_ONE);
    observe_close(s->observe);
}

static void signals_that_are_not_asked_for_are_not_known(void **state)
{
    struct site *s = *state;

    s->observe = observe_open(&s->node);
    observe_start(s->observe, SIGNAL_BIT(EV_NODEFS_INODES), false, on_seen, s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < EV_SIGNALS; i++)
        assert_true(i == EV_NODEFS_INODES || !s->seen.v[i].known);
    observe_close(s->observe);
}

static void one_that_was_closed_reports_nothing(void **state)
{
    struct site *s = *state;

    s->observe = observe_open(&s->node);
    observe_start(s->observe, SIGNALS_DISK, false, on_seen, s);
    observe_close(s->observe);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(s->n, 0);
    observe_close(NULL);
}

static void devices_say_the_layout(void **state)
{
    (void)state;
    assert_int_equal(observe_layout_of(1, 1, 1), EV_LAYOUT_ONE);
    assert_int_equal(observe_layout_of(1, 2, 2), EV_LAYOUT_IMAGEFS);
    assert_int_equal(observe_layout_of(1, 2, 1), EV_LAYOUT_SPLIT);
    assert_int_equal(observe_layout_of(1, 1, 2), EV_LAYOUT_IMAGEFS);
    assert_int_equal(observe_layout_of(1, 2, 3), EV_LAYOUT_IMAGEFS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_can_be_read_is_known_and_the_rest_is_explained, site_up,
                                        site_down),
        cmocka_unit_test_setup_teardown(signals_that_are_not_asked_for_are_not_known, site_up, site_down),
        cmocka_unit_test_setup_teardown(one_that_was_closed_reports_nothing, site_up, site_down),
        cmocka_unit_test(devices_say_the_layout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
