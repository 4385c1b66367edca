/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/array.h"
#include "base/clock.h"
#include "cgroups/psi_watch.h"

#include <signal.h>
#include <sys/wait.h>

#define DEADLINE_MS 20000

static void count(void *arg)
{
    ++*(unsigned *)arg;
}

static void end_loop(uv_loop_t *loop)
{
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

/* With or without CAP_SYS_RESOURCE, which a window of 1 s needs. */
static void waiting_for_a_processor_triggers(void **state)
{
    struct cg_psi_watch *w = NULL;
    struct err e = { 0 };
    unsigned n = 0, closed = 0;
    pid_t pids[12];
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    enum err_code code = cg_psi_watch_open(&w, "cpu", 50000, 1000000, &loop, count, &n, &e);
    if (code != ERR_OK)
        end_loop(&loop);
    if (code == ERR_PRECONDITION)
        SKIP(e.text);
    if (code != ERR_OK)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) { /* more than there are processors */
        pids[i] = fork();
        if (pids[i] == 0)
            for (;;) {
            }
    }
    for (uint64_t until = clock_mono_ms() + DEADLINE_MS; n == 0 && clock_mono_ms() < until; usleep(5000))
        uv_run(&loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    cg_psi_watch_close(w, count, &closed);
    end_loop(&loop);
    assert_int_not_equal(n, 0);
    assert_int_equal(closed, 1);
}

static void a_trigger_that_the_kernel_would_not_take_is_refused(void **state)
{
    static const uint64_t wrong[][2] = {
        { 0, 1000000 }, { 100000, 499999 }, { 100000, 10000001 }, { 600000, 500000 }
    };
    struct cg_psi_watch *w = NULL;
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err e = { 0 };
        assert_int_equal(cg_psi_watch_open(&w, "memory", wrong[i][0], wrong[i][1], &loop, count, NULL, &e),
                         ERR_INVALID);
    }
    assert_null(w);
    cg_psi_watch_close(w, NULL, NULL);
    end_loop(&loop);
}

static void a_resource_without_pressure_is_said(void **state)
{
    struct cg_psi_watch *w = NULL;
    struct err e = { 0 };
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    assert_int_equal(cg_psi_watch_open(&w, "no-such", 100000, 1000000, &loop, count, NULL, &e),
                     ERR_PRECONDITION);
    assert_string_equal(e.text, "no-such pressure: not supported by this kernel (no CONFIG_PSI, or psi=1 "
                                "missing on its command line)");
    end_loop(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_for_a_processor_triggers),
        cmocka_unit_test(a_trigger_that_the_kernel_would_not_take_is_refused),
        cmocka_unit_test(a_resource_without_pressure_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
