/* SPDX-License-Identifier: Apache-2.0 */
/* Which version of the specification is spoken, and what is known of plugins that are asked for theirs. */
#include "oracle_run.h"

static bool has_problem(void *arg)
{
    return cni_problem(arg, 0) != NULL;
}

static void the_highest_version_that_all_speak_is_used(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    str_auto text = NULL;

    put(p, "net.d/10.conflist",
        "{\"cniVersions\":[\"0.3.1\",\"0.4.0\",\"1.1.0\",\"1.0.0\",\"7.0.0\"],\"name\":\"net\","
        "\"plugins\":[{\"type\":\"main\"},{\"type\":\"meta\"}]}");
    oracle_put(p, "main");
    oracle_put(p, "meta");
    oracle_tell(p, "main", "VERSION", "out {\"supportedVersions\":[\"0.4.0\",\"1.0.0\",\"8.0.0\"]}\n");
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    calls(p, "ADD", "main", &text, NULL);
    assert_non_null(strstr(text, "\"cniVersion\":\"1.0.0\""));
    run_well(p, c, cni_del_start);
    assert_int_equal(calls(p, "STATUS", "main", NULL, NULL), 0); /* 1.0.0 has none */
    cni_close(c);
}

static void a_list_that_a_plugin_does_not_speak_is_named_and_the_next_one_used(void **state)
{
    static const struct {
        const char *told, *problem;
    } cases[] = {
        { "out {\"supportedVersions\":[\"0.4.0\",\"1.0.0\"]}\n",
          "10.conflist: network \"net\": plugin \"main\" does not speak cniVersion 1.1.0 (it speaks 0.4.0, "
          "1.0.0)" },
        { "out {\"code\":4,\"msg\":\"unknown CNI_COMMAND: VERSION\"}\nexit 1\n",
          "10.conflist: network \"net\": plugin \"main\" does not speak cniVersion 1.1.0 (it speaks 0.1.0)" },
        { "exit 1\n",
          "10.conflist: network \"net\": plugin type=\"main\" failed (version): netplugin failed with "
          "no error message: exit status 1" },
        { "out {}\n", "10.conflist: network \"net\": supportedVersions: not a list" },
        { "out {\"supp\n",
          "10.conflist: network \"net\": plugin type=\"main\" failed (version): VERSION: line 1" },
        { "flood 1100000\n",
          "10.conflist: network \"net\": plugin type=\"main\" failed (version): CNI plugin: more "
          "than 1048576 bytes of output" },
    };
    struct place *p = *state;

    one_plugin(p, "1.1.0", "");
    put(p, "net.d/20.conf", "{\"cniVersion\":\"1.0.0\",\"name\":\"second\",\"type\":\"other\"}");
    oracle_put(p, "other");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cni *c;

        oracle_tell(p, "main", "VERSION", cases[i].told);
        c = open_cni(p);
        run_until(p, has_problem, c);
        if (!str_starts(cni_problem(c, 0), cases[i].problem))
            fail_msg("case %zu: \"%s\" is not \"%s\"", i, cni_problem(c, 0), cases[i].problem);
        assert_string_equal(cni_default_network(c, NULL), "second");
        run_well(p, c, cni_add_start);
        assert_int_equal(calls(p, "ADD", "main", NULL, NULL), 0);
        run_well(p, c, cni_del_start);
        cni_close(c);
        uv_run(&p->loop, UV_RUN_NOWAIT);
    }
}

static void a_program_that_is_replaced_is_asked_again(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    int changes = 0;

    one_plugin(p, "1.1.0", "");
    oracle_tell(p, "main", "VERSION", "out {\"supportedVersions\":[\"0.4.0\"]}\n");
    c = open_cni(p);
    cni_on_change(c, on_change, &changes);
    run_until(p, has_problem, c);
    assert_null(cni_default_network(c, NULL));
    unlinkat(p->fd, "told/main.VERSION", 0);
    unlinkat(p->fd, "bin/main", 0);
    changes = 0;
    put_mode(p, "bin/main", 0755,
             "#!/bin/sh\ntest $CNI_COMMAND != VERSION || echo '{\"supportedVersions\": [\"1.1.0\"]}'\n");
    run_until(p, changed, &changes);
    assert_null(cni_problem(c, 0));
    assert_string_equal(cni_default_network(c, NULL), "net");
    cni_close(c);
}

static void a_plugin_that_hangs_when_asked_for_its_versions_delays_one_operation_once(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;

    one_plugin(p, "1.0.0", "");
    oracle_put(p, "other");
    put(p, "net.d/20.conf", "{\"cniVersion\":\"1.0.0\",\"name\":\"second\",\"type\":\"other\"}");
    oracle_tell(p, "other", "VERSION", "hang\n");
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    run_well(p, c, cni_del_start);
    assert_true(op_count() > 0); /* the other network's plugin is still being asked */
    cni_close(c);
    while (op_count() > 0)
        uv_run(&p->loop, UV_RUN_ONCE);

    oracle_tell(p, "main", "VERSION", "hang\n");
    unlinkat(p->fd, "net.d/20.conf", 0);
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    assert_true(op_count() == 0);
    cni_reload(c);
    assert_true(op_count() > 0);
    run_well(p, c, cni_del_start);
    assert_true(op_count() > 0); /* asked again, and not waited for */
    cni_close(c);
}

static void a_plugin_that_cannot_be_executed_is_named(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    const char *why = NULL;

    put(p, "net.d/10.conf", "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"main\"}");
    put_mode(p, "bin/main", 0644, "#!/bin/sh\n");
    c = open_cni(p);
    assert_null(cni_default_network(c, &why));
    assert_non_null(strstr(why, "10.conf: plugin \"main\": "));
    assert_non_null(strstr(why, "/bin/main is not executable"));
    cni_close(c);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(the_highest_version_that_all_speak_is_used),
        TEST(a_list_that_a_plugin_does_not_speak_is_named_and_the_next_one_used),
        TEST(a_program_that_is_replaced_is_asked_again),
        TEST(a_plugin_that_hangs_when_asked_for_its_versions_delays_one_operation_once),
        TEST(a_plugin_that_cannot_be_executed_is_named),
    };

    if (oracle_is_called())
        return oracle_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
