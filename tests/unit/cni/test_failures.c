/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of everything that plugins may answer: told in one line, and undone. */
#include "oracle_run.h"

static void every_failure_is_told_in_one_line_and_can_be_undone(void **state)
{
    static const struct {
        const char *told, *add, *del; /* NULL: no failure */
        enum err_code code;           /* of ADD */
    } cases[] = {
        { "exit 7\n", "netplugin failed with no error message: exit status 7",
          "netplugin failed with no error message: exit status 7", ERR_UNKNOWN },
        { "kill 9\n", "netplugin failed with no error message: killed by signal 9",
          "netplugin failed with no error message: killed by signal 9", ERR_UNKNOWN },
        { "err no such bridge\nexit 1\n", "netplugin failed: \"no such bridge\": exit status 1",
          "netplugin failed: \"no such bridge\": exit status 1", ERR_UNKNOWN },
        { "out {\"cniVersion\":\"1.0.0\",\"code\":7,\"msg\":\"bad "
          "subnet\",\"details\":\"10.0.0.0/40\"}\nexit 1\n",
          "bad subnet: 10.0.0.0/40 (CNI code 7)", "bad subnet: 10.0.0.0/40 (CNI code 7)", ERR_PRECONDITION },
        { "out {\"code\":11,\"msg\":\"busy\"}\nerr ignored\nexit 1\n", "busy (CNI code 11)",
          "busy (CNI code 11)", ERR_UNAVAILABLE },
        { "out {\"code\":3,\"msg\":\"unknown\"}\nexit 1\n", "unknown (CNI code 3)", NULL, ERR_UNKNOWN },
        { "out {\"code\":100,\"ms\nexit 1\n",
          "netplugin failed but error parsing its diagnostic message \"{\"code\":100,\"ms\": JSON: line 1, "
          "column 15: unexpected newline: exit status 1",
          "netplugin failed but error parsing its diagnostic message \"{\"code\":100,\"ms\": JSON: line 1, "
          "column 15: unexpected newline: exit status 1",
          ERR_UNKNOWN },
        { "exit 0\n", "CNI result: line 1, column 0: unexpected token", NULL, ERR_INVALID },
        { "out {\"ips\":[{\"address\n", "CNI result: line 1, column 17: unexpected newline", NULL,
          ERR_INVALID },
        { "out []\n", "CNI result: not a JSON object", NULL, ERR_INVALID },
        { "out {\"ips\":[{\"address\":\"nowhere\"}]}\n", "CNI result: ips[0].address", NULL, ERR_INVALID },
        { "out {\"cniVersion\":\"9.9.9\"}\n", "CNI result: cniVersion: \"9.9.9\" is not supported", NULL,
          ERR_INVALID },
        { "out {\"cniVersion\":1}\n", "CNI result: cniVersion: not a string", NULL, ERR_INVALID },
        { "flood 1100000\n", "CNI plugin: more than 1048576 bytes of output",
          "CNI plugin: more than 1048576 bytes of output", ERR_EXHAUSTED },
    };
    struct place *p = *state;
    struct cni *c = NULL;
    char text[600];

    one_plugin(p, "1.0.0", "");
    c = open_cni(p);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;

        oracle_tell(p, "main", "ADD", cases[i].told);
        oracle_tell(p, "main", "DEL", cases[i].told);
        e = run(p, c, cni_add_start);
        snprintf(text, sizeof(text), "plugin type=\"main\" failed (add): %s", cases[i].add);
        if (!str_starts(e.text, text))
            fail_msg("case %zu: \"%s\" is not \"%s\"", i, e.text, text);
        assert_int_equal(e.code, cases[i].code);
        assert_int_equal(run(p, c, cni_add_start).code, ERR_PRECONDITION); /* not before it was undone */
        e = run(p, c, cni_del_start);
        snprintf(text, sizeof(text), "plugin type=\"main\" failed (del): %s",
                 cases[i].del != NULL ? cases[i].del : "");
        if (cases[i].del == NULL ? e.code != ERR_OK : !str_starts(e.text, text))
            fail_msg("case %zu: \"%s\" is not \"%s\"", i, e.text, text);
        assert_int_equal(count(p, "cache"), cases[i].del != NULL ? 1 : 0);
        oracle_tell(p, "main", "DEL", "");
        run_well(p, c, cni_del_start); /* until it works */
        assert_int_equal(count(p, "cache"), 0);
    }
    cni_close(c);
}

static void a_plugin_that_hangs_is_ended_with_its_children(void **state)
{
    struct place *p = *state;
    struct ended d = { 0 };
    struct cni *c = NULL;
    struct cni_op o;
    pid_t child;

    one_plugin(p, "1.0.0", "");
    oracle_tell(p, "main", "ADD", "hang\n");
    c = open_cni(p);
    cni_add_start(&o, c, &web, on_ended, &d);
    run_until(p, has_child, p);
    child = child_of(p);
    assert_false(is_gone(&child));
    op_cancel(&o.op);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_CANCELLED);
    run_until(p, is_gone, &child);
    run_well(p, c, cni_del_start);
    cni_close(c);
}

static void a_child_that_outlives_its_plugin_holds_nobody_up(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    uint64_t before;
    pid_t child;

    one_plugin(p, "1.0.0", "");
    oracle_tell(p, "main", "ADD", "out {\"ips\":[{\"address\":\"10.0.0.9/24\"}]}\nchild\n");
    c = open_cni(p);
    before = clock_mono_ms();
    run_well(p, c, cni_add_start);
    assert_true(clock_mono_ms() - before < 60000); /* the child sleeps for 1000 s */
    child = child_of(p);
    kill(child, SIGKILL);
    run_well(p, c, cni_del_start);
    cni_close(c);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(every_failure_is_told_in_one_line_and_can_be_undone),
        TEST(a_plugin_that_hangs_is_ended_with_its_children),
        TEST(a_child_that_outlives_its_plugin_holds_nobody_up),
    };

    if (oracle_is_called())
        return oracle_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
