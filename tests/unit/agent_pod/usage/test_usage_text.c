/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text format: labels and values; and what is said about a killed process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/pod/core/usage_text.h"
#include "agent/pod/usage/oom.h"
#include "cgroups/oom_log.h"

#include <string.h>

static void labels_are_escaped(void **state)
{
    buf_auto b = BUF_INIT(1024);

    (void)state;
    usage_label(&b, "a", "plain", true);
    usage_label(&b, "b", "say \"hi\"\\\n", false);
    usage_label(&b, "c", "", false);
    assert_string_equal(b.p, "a=\"plain\",b=\"say \\\"hi\\\"\\\\\\n\",c=\"\"");
}

static void times_are_written_in_seconds_and_no_limit_as_0(void **state)
{
    static const struct {
        uint64_t value;
        enum usage_unit unit;
        const char *text;
    } cases[] = {
        { 7, UNIT_ONE, "7" },
        { 1500000001, UNIT_NS, "1.500000001" },
        { 999999999, UNIT_NS, "0.999999999" },
        { 0, UNIT_NS, "0.000000000" },
        { UINT64_MAX, UNIT_NS, "18446744073.709551615" },
        { 42, UNIT_US, "0.000042" },
        { 0, UNIT_ONE, "0" },
        { 4096, UNIT_LIMIT, "4096" },
        { UINT64_MAX, UNIT_LIMIT, "0" },
        { UINT64_MAX, UNIT_ONE, "18446744073709551615" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_auto b = BUF_INIT(1024);
        usage_value(&b, cases[i].value, cases[i].unit);
        assert_string_equal(b.p, cases[i].text);
    }
}

static void a_kill_is_described_with_whose_limit_it_was(void **state)
{
    struct cg_oom_kill k = { .pid = 412, .name = "tail", .anon_kib = 800, .file_kib = 4 };
    char text[400];

    (void)state;
    strcpy(k.limited, "/kubepods/pod1/c1");
    oom_describe(&k, "/kubepods/pod1/c1", text, sizeof(text));
    assert_string_equal(text, "Memory cgroup out of memory: Killed process 412 (tail), anon-rss:800kB, "
                              "file-rss:4kB, shmem-rss:0kB");
    strcpy(k.limited, "/kubepods/pod1");
    oom_describe(&k, "/kubepods/pod1/c1", text, sizeof(text));
    assert_non_null(strstr(text, "; it was the limit of the pod"));
    strcpy(k.limited, "/kubepods");
    oom_describe(&k, "/kubepods/pod1/c1", text, sizeof(text));
    assert_non_null(strstr(text, "; it was the limit of all pods together"));
    k.limited[0] = '\0';
    k.system = true;
    oom_describe(&k, "/kubepods/pod1/c1", text, sizeof(text));
    assert_string_equal(
        text, "Out of memory: Killed process 412 (tail), anon-rss:800kB, file-rss:4kB, shmem-rss:0kB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(times_are_written_in_seconds_and_no_limit_as_0),
        cmocka_unit_test(a_kill_is_described_with_whose_limit_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
