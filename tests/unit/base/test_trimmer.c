/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sanitized.h"
#include "base/trimmer.h"
#include "helper.h"

#include <stdlib.h>

/* What this process has mapped of files, such as code, in KiB. */
static long file_kib(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    long kib = -1;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "RssFile: %ld", &kib) == 1)
            break;
    fclose(f);
    return kib;
}

static void code_is_unmapped_and_runs_again(void **state)
{
    long before = file_kib(), after;

    (void)state;
    trimmer_run();
    after = file_kib();
    if (!SANITIZED) /* whose run-time library is in use again at once */
        assert_true(after < before);
    assert_int_equal(strtol("17", NULL, 10), 17);
}

/* The timer would keep the loop alive: it ends by itself. */
static void a_burst_of_work_costs_one_wake_up(void **state)
{
    struct ended *d = *state;
    struct trimmer t = { 0 };
    uint64_t begin;

    trimmer_later(NULL);
    trimmer_later(&t); /* closed: nothing happens */
    trimmer_open(&t, d->loop);
    uv_run(d->loop, UV_RUN_DEFAULT); /* nothing is due before there was work */
    begin = uv_hrtime();
    for (int i = 0; i < 1000; i++)
        trimmer_later(&t);
    assert_int_equal(t.run_ms, 0);
    uv_run(d->loop, UV_RUN_DEFAULT);
    assert_int_not_equal(t.run_ms, 0);
    assert_true((uv_hrtime() - begin) / 1000000 >= TRIMMER_DELAY_MS - 10);
    trimmer_later(&t); /* the next time is due later: the loop does not wait for it here */
    assert_true(uv_timer_get_due_in(&t.timer) > 0);
    trimmer_close(&t);
    trimmer_close(&t);
    uv_run(d->loop, UV_RUN_DEFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_unmapped_and_runs_again),
        cmocka_unit_test_setup_teardown(a_burst_of_work_costs_one_wake_up, loop_make, loop_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
