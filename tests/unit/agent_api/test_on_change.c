/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/api/manifest/decode.h"
#include "agent/api/on_change.h"
#include "base/files/fs.h"

#include <string.h>

static void the_three_ways_are_understood(void **state)
{
    enum api_on_change what;
    const char *name;

    (void)state;
    assert_true(api_on_change_parse(NULL, &what, &name));
    assert_int_equal(what, API_ON_CHANGE_IGNORE);
    assert_true(api_on_change_parse("ignore", &what, &name));
    assert_int_equal(what, API_ON_CHANGE_IGNORE);
    assert_true(api_on_change_parse("restart", &what, &name));
    assert_int_equal(what, API_ON_CHANGE_RESTART);
    assert_null(name);
    assert_true(api_on_change_parse("signal=HUP", &what, &name));
    assert_int_equal(what, API_ON_CHANGE_SIGNAL);
    assert_string_equal(name, "HUP");
    assert_true(api_on_change_parse("signal=SIGUSR1", &what, &name));
    assert_string_equal(name, "SIGUSR1");
}

static void anything_else_is_not(void **state)
{
    static const char *const no[] = { "",         "Restart",    "signal",     "signal=",  "signal=HUPP",
                                      "signal=1", "signal=hup", "signal=SIG", " restart", "restart,ignore" };
    enum api_on_change what;
    const char *name;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        if (api_on_change_parse(no[i], &what, &name))
            fail_msg("\"%s\" was taken", no[i]);
}

static void only_live_makes_sub_paths_follow(void **state)
{
    bool live = true;

    (void)state;
    assert_true(api_live_sub_path_parse(NULL, &live));
    assert_false(live);
    assert_true(api_live_sub_path_parse("live", &live));
    assert_true(live);
    assert_false(api_live_sub_path_parse("", &live));
    assert_false(api_live_sub_path_parse("Live", &live));
    assert_false(live);
}

static void a_pod_with_another_value_is_refused(void **state)
{
    static const char manifest[] = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n"
                                   "    coracle.dev/on-config-change: reload\n"
                                   "spec: {containers: [{name: c, image: i}]}\n";
    struct api_problems problems = { 0 };
    struct api_objects found = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(api_decode_file("a.yaml", manifest, strlen(manifest), &found, &problems, &e), ERR_OK);
    assert_int_equal(problems.n, 1);
    assert_non_null(strstr(problems.v[0].field, "metadata.annotations[coracle.dev/on-config-change]"));
    assert_string_equal(
        problems.v[0].message,
        "\"reload\" is not allowed, allowed are ignore, restart and signal=<name>, as signal=HUP");
    api_objects_done(&found);
    api_problems_done(&problems);
}

static void an_unknown_key_of_ours_is_accepted_and_listed(void **state)
{
    static const char manifest[] = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n"
                                   "    coracle.dev/oom-kil: pod\n"
                                   "spec: {containers: [{name: c, image: i}]}\n";
    struct api_problems problems = { 0 };
    struct api_objects found = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(api_decode_file("a.yaml", manifest, strlen(manifest), &found, &problems, &e), ERR_OK);
    assert_int_equal(problems.n, 0);
    assert_int_equal(found.v[0].pod->ignored.n, 1);
    assert_string_equal(found.v[0].pod->ignored.v[0],
                        "metadata.annotations[coracle.dev/oom-kil]: unknown annotation, did you mean "
                        "coracle.dev/oom-kill?");
    api_objects_done(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_ways_are_understood),
        cmocka_unit_test(anything_else_is_not),
        cmocka_unit_test(only_live_makes_sub_paths_follow),
        cmocka_unit_test(a_pod_with_another_value_is_refused),
        cmocka_unit_test(an_unknown_key_of_ours_is_accepted_and_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
