/* SPDX-License-Identifier: Apache-2.0 */
/* What cgroup files say, as kernels write it and as none would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroups/internal.h"

#include <string.h>

static void cpu_stat_of_v2_has_times_in_microseconds(void **state)
{
    const char text[] =
        "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\ncore_sched.force_idle_usec 0\n"
        "nr_periods 10\nnr_throttled 4\nthrottled_usec 500\nnr_bursts 0\nburst_usec 0\n";
    struct cg_sample s = { 0 };

    (void)state;
    cg_take_cpu_stat(text, strlen(text), &s);
    assert_int_equal(s.cpu.usage_ns, 1234567000);
    assert_int_equal(s.cpu.user_ns, 1000000000);
    assert_int_equal(s.cpu.system_ns, 234567000);
    assert_int_equal(s.cpu.periods, 10);
    assert_int_equal(s.cpu.throttled_periods, 4);
    assert_int_equal(s.cpu.throttled_ns, 500000);
}

static void cpu_stat_of_v1_has_throttled_time_in_nanoseconds(void **state)
{
    const char text[] = "nr_periods 7\nnr_throttled 3\nthrottled_time 99\nnr_bursts 0\nburst_time 0\n";
    struct cg_sample s = { 0 };

    (void)state;
    cg_take_cpu_stat(text, strlen(text), &s);
    assert_int_equal(s.cpu.periods, 7);
    assert_int_equal(s.cpu.throttled_periods, 3);
    assert_int_equal(s.cpu.throttled_ns, 99);
}

static void memory_stat_of_v2_is_read_by_whole_keys(void **state)
{
    const char text[] =
        "anon 4096\nfile 8192\nkernel 100\nfile_mapped 12\nfile_dirty 1\ninactive_anon 5\n"
        "active_anon 6\ninactive_file 7000\nactive_file 1192\nanon_thp 0\npgfault 55\npgmajfault 2\n";
    struct cg_sample s = { 0 };

    (void)state;
    cg_take_memory_stat(text, strlen(text), &s);
    assert_int_equal(s.memory.rss, 4096);
    assert_int_equal(s.memory.file, 8192);
    assert_int_equal(s.memory.kernel, 100);
    assert_int_equal(s.memory.mapped_file, 12);
    assert_int_equal(s.memory.inactive_file, 7000);
    assert_int_equal(s.memory.page_faults, 55);
    assert_int_equal(s.memory.major_page_faults, 2);
}

static void memory_stat_of_v1_counts_what_is_below_but_for_the_faults(void **state)
{
    const char text[] =
        "cache 1\nrss 2\npgfault 30\npgmajfault 4\ninactive_file 5\ntotal_cache 100\ntotal_rss 200\n"
        "total_mapped_file 50\ntotal_swap 60\ntotal_pgfault 300\ntotal_inactive_file 70\n";
    struct cg_sample s = { 0 };

    (void)state;
    cg_take_memory_stat_v1(text, strlen(text), &s);
    assert_int_equal(s.memory.rss, 200);
    assert_int_equal(s.memory.file, 100);
    assert_int_equal(s.memory.mapped_file, 50);
    assert_int_equal(s.memory.swap, 60);
    assert_int_equal(s.memory.inactive_file, 70);
    assert_int_equal(s.memory.page_faults, 30);
}

static void what_makes_no_sense_leaves_the_member_alone(void **state)
{
    static const char *const texts[] = {
        "anon\n",
        "anon \n",
        "anon x\n",
        "anon -1\n",
        "anon 1x\n",
        "anon 12",
        " anon 1\n",
        "anon  1\n",
        "ANON 1\n",
        "anonymous 1\n",
        "anon 18446744073709551616\n",
        "anon 99999999999999999999999\n",
        "",
        "\n\n\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct cg_sample s = { .memory.rss = 7 };
        cg_take_memory_stat(texts[i], strlen(texts[i]), &s);
        if (s.memory.rss != 7)
            fail_msg("\"%s\" was taken", texts[i]);
    }
    struct cg_sample s = { .cpu.usage_ns = 7 };
    cg_take_cpu_stat("usage_usec 18446744073709551\nusage_usec 18446744073709552\n", 57, &s);
    assert_int_equal(s.cpu.usage_ns, UINT64_C(18446744073709551000)); /* the second would not fit */
}

static void limits_have_a_word_or_a_number_for_none(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        { "max\n", CG_NO_LIMIT },
        { "-1\n", CG_NO_LIMIT },
        { "9223372036854771712\n", CG_NO_LIMIT }, /* v1's highest */
        { "4611686018427387904\n", UINT64_C(1) << 62 },
        { "67108864\n", 67108864 },
        { "0\n", 0 },
    };
    uint64_t value = 1;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_true(cg_take_limit(cases[i].text, strlen(cases[i].text), &value));
        assert_true(value == cases[i].value);
    }
    assert_false(cg_take_limit("many\n", 5, &value));
    assert_false(cg_take_limit("", 0, &value));
}

static void devices_are_added_up(void **state)
{
    const char v2[] = "8:0 rbytes=100 wbytes=200 rios=3 wios=4 dbytes=0 dios=0\n"
                      "253:1 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=9 dios=9\n259:0 \n";
    const char v1[] = "8:0 Read 100\n8:0 Write 50\n8:0 Sync 1\n8:0 Total 150\n8:16 Read 11\nTotal 161\n";
    struct cg_sample s = { 0 };
    uint64_t r = 0, w = 0;

    (void)state;
    cg_take_io_stat(v2, strlen(v2), &s);
    assert_int_equal(s.io.read_bytes, 101);
    assert_int_equal(s.io.write_bytes, 202);
    assert_int_equal(s.io.reads, 6);
    assert_int_equal(s.io.writes, 8);
    cg_take_blkio(v1, strlen(v1), &r, &w);
    assert_int_equal(r, 111);
    assert_int_equal(w, 50);
}

static void pressure_has_hundredths_of_a_percent(void **state)
{
    const char text[] = "some avg10=1.23 avg60=0.05 avg300=100.00 total=424242\n"
                        "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n";
    struct cg_psi p = { 0 };

    (void)state;
    cg_take_pressure(text, strlen(text), &p);
    assert_true(p.known);
    assert_int_equal(p.some.avg10, 123);
    assert_int_equal(p.some.avg60, 5);
    assert_int_equal(p.some.avg300, 10000);
    assert_int_equal(p.some.total_us, 424242);
    assert_int_equal(p.full.total_us, 1);
}

static void pressure_that_is_not_the_kernels_is_not_known(void **state)
{
    static const char *const texts[] = {
        "some avg10=1 avg60=0.05 avg300=0.00 total=1\n",
        "some avg10=1.2 avg60=0.05 avg300=0.00 total=1\n",
        "some avg60=0.05 avg300=0.00 total=1\n",
        "some avg10=101.00 avg60=0.05 avg300=0.00 total=1\n",
        "half avg10=0.00 avg60=0.05 avg300=0.00 total=1\n",
        "some avg10=0.00 avg60=0.05 avg300=0.00 total=\n",
        "some avg10=0.00 avg60=0.05 avg300=0.00 total=1",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct cg_psi p = { 0 };
        cg_take_pressure(texts[i], strlen(texts[i]), &p);
        if (p.known)
            fail_msg("\"%s\" was taken", texts[i]);
    }
}

static void a_rate_needs_two_samples_that_are_neither_too_close_nor_too_far_apart(void **state)
{
    struct cg_rate r = { 0 };
    const uint64_t s = 1000000000;

    (void)state;
    assert_false(cg_rate_update(&r, 10 * s, 5 * s));
    assert_int_equal(r.base_mono_ns, 10 * s);
    assert_false(cg_rate_update(&r, 10 * s + CG_RATE_MIN_NS - 1, 6 * s)); /* too close; the base stays */
    assert_int_equal(r.base_mono_ns, 10 * s);
    assert_true(cg_rate_update(&r, 12 * s, 5 * s + s / 2));
    assert_int_equal(r.nano_cores, s / 4);
    assert_true(cg_rate_update(&r, 12 * s + 1, 6 * s)); /* right after: what was known */
    assert_int_equal(r.nano_cores, s / 4);
    assert_true(cg_rate_update(&r, 14 * s, 5 * s + s / 2)); /* from 12 s on */
    assert_int_equal(r.nano_cores, 0);
    assert_false(cg_rate_update(&r, 14 * s + CG_RATE_MAX_NS + 1, 9 * s)); /* an average of long ago */
    assert_false(cg_rate_update(&r, 80 * s, 1 * s)); /* less than before: it was made anew */
    assert_true(cg_rate_update(&r, 81 * s, 3 * s));
    assert_int_equal(r.nano_cores, 2 * s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_stat_of_v2_has_times_in_microseconds),
        cmocka_unit_test(cpu_stat_of_v1_has_throttled_time_in_nanoseconds),
        cmocka_unit_test(memory_stat_of_v2_is_read_by_whole_keys),
        cmocka_unit_test(memory_stat_of_v1_counts_what_is_below_but_for_the_faults),
        cmocka_unit_test(what_makes_no_sense_leaves_the_member_alone),
        cmocka_unit_test(limits_have_a_word_or_a_number_for_none),
        cmocka_unit_test(devices_are_added_up),
        cmocka_unit_test(pressure_has_hundredths_of_a_percent),
        cmocka_unit_test(pressure_that_is_not_the_kernels_is_not_known),
        cmocka_unit_test(a_rate_needs_two_samples_that_are_neither_too_close_nor_too_far_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
