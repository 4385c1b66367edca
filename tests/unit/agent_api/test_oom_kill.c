/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/api/manifest/decode.h"
#include "agent/api/oom_kill.h"
#include "base/files/fs.h"

#include <string.h>

static void the_three_ways_are_understood(void **state)
{
    enum api_oom_kill way;

    (void)state;
    assert_true(api_oom_kill_parse(NULL, &way));
    assert_int_equal(way, API_OOM_KILL_UNSET);
    assert_true(api_oom_kill_parse("process", &way));
    assert_int_equal(way, API_OOM_KILL_PROCESS);
    assert_true(api_oom_kill_parse("container", &way));
    assert_int_equal(way, API_OOM_KILL_CONTAINER);
    assert_true(api_oom_kill_parse("pod", &way));
    assert_int_equal(way, API_OOM_KILL_POD);
    assert_false(api_oom_kill_parse("", &way));
    assert_false(api_oom_kill_parse("Pod", &way));
    assert_int_equal(way, API_OOM_KILL_UNSET);
}

static void a_pod_with_another_value_is_refused(void **state)
{
    static const char manifest[] = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n"
                                   "    coracle.dev/oom-kill: node\n"
                                   "spec: {containers: [{name: c, image: i}]}\n";
    struct api_problems problems = { 0 };
    struct api_objects found = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(api_decode_file("a.yaml", manifest, strlen(manifest), &found, &problems, &e), ERR_OK);
    assert_int_equal(problems.n, 1);
    assert_non_null(strstr(problems.v[0].field, "metadata.annotations[coracle.dev/oom-kill]"));
    assert_string_equal(problems.v[0].message,
                        "\"node\" is not allowed, allowed are process, container and pod");
    api_objects_done(&found);
    api_problems_done(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_ways_are_understood),
        cmocka_unit_test(a_pod_with_another_value_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
