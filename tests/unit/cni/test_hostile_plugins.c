/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that answer what nobody expects, or are none at all: told, undone, and nothing is left. */
#include "oracle_run.h"

#include "cni/strays.h"

static void two_plugins(struct place *p)
{
    put(p, "net.d/10.conflist",
        "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":\"main\"},{\"type\":\"meta\"}]}");
    oracle_put(p, "main");
}

#define ERROR_OBJECT "out {\"cniVersion\":\"1.0.0\",\"code\":7,\"msg\":\"no such subnet\"}\nexit 0\n"

static void an_error_object_is_an_error_whatever_the_exit_status(void **state)
{
    struct place *p = *state;
    struct cni *c;
    struct err e;

    one_plugin(p, "1.0.0", "");
    c = open_cni(p);
    oracle_tell(p, "main", "ADD", ERROR_OBJECT);
    e = run(p, c, cni_add_start);
    assert_int_equal(e.code, ERR_PRECONDITION);
    assert_string_equal(e.text, "plugin type=\"main\" failed (add): no such subnet (CNI code 7)");
    run_well(p, c, cni_del_start);

    oracle_tell(p, "main", "ADD", "out {\"code\":0,\"msg\":\"\",\"ips\":[{\"address\":\"10.0.0.9/24\"}]}\n");
    run_well(p, c, cni_add_start);
    oracle_tell(p, "main", "CHECK", "out {\"code\":0,\"msg\":\"all well\"}\n");
    run_well(p, c, check);
    oracle_tell(p, "main", "CHECK", ERROR_OBJECT);
    assert_int_equal(run(p, c, check).code, ERR_PRECONDITION);
    oracle_tell(p, "main", "DEL", ERROR_OBJECT);
    assert_int_equal(run(p, c, cni_del_start).code, ERR_PRECONDITION);
    assert_int_equal(count(p, "cache"), 1);
    oracle_tell(p, "main", "DEL", "out {\"code\":3,\"msg\":\"never seen\"}\n"); /* nothing to clean up */
    run_well(p, c, cni_del_start);
    assert_int_equal(count(p, "cache"), 0);
    cni_close(c);
}

/* ---- no programs ----------------------------------------------------------------------------------------
 */

static void what_is_no_program_is_named_when_the_list_is_loaded(void **state)
{
    static const struct {
        const char *text, *why; /* text NULL: a folder */
    } cases[] = {
        { NULL, "/bin/main is not a file" },
        { "echo '{}'\n", "/bin/main: Exec format error" },
        { "", "/bin/main: Exec format error" },
        /* ELF, 64 bits, of a machine (0xfefe) that there is not. */
        { "\x7f"
          "ELF\x02\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x02\x01\xfe\xfe\x01",
          "/bin/main: Exec format error" },
    };
    struct place *p = *state;
    struct err e = { 0 };

    put(p, "net.d/10.conf", "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"main\"}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *why = NULL;
        struct cni *c;

        assert_int_equal(fs_remove_tree(p->fd, "bin", &e), ERR_OK);
        if (cases[i].text != NULL)
            put_mode(p, "bin/main", 0755, cases[i].text);
        else
            assert_int_equal(fs_mkdirs_beneath(p->fd, "bin/main", 0755, &e), ERR_OK);
        c = open_cni(p);
        e = run(p, c, cni_add_start);
        assert_true(e.code != ERR_OK);
        assert_null(cni_default_network(c, &why));
        if (strstr(why, cases[i].why) == NULL || strstr(e.text, cases[i].why) == NULL)
            fail_msg("case %zu: %s (ADD: %s)", i, why, e.text);
        assert_int_equal(count(p, "cache"), 0);
        run_well(p, c, cni_del_start);
        e = (struct err){ 0 };
        cni_close(c);
        uv_run(&p->loop, UV_RUN_NOWAIT);
    }
}

static void a_plugin_that_could_not_be_executed_is_not_asked_to_undo(void **state)
{
    struct place *p = *state;
    struct cni *c;
    struct err e;

    two_plugins(p);
    put_mode(p, "bin/meta", 0755, "#!/no/such/interpreter\n");
    c = open_cni(p);
    for (int i = 0; i < 2; i++) {
        e = run(p, c, cni_add_start);
        if (strstr(e.text, "plugin type=\"meta\" failed (add): ") == NULL ||
            strstr(e.text, "No such file") == NULL)
            fail_msg("%s", e.text);
        assert_int_equal(count(p, "cache"), 1);
        cni_close(c); /* it is kept with the attachment */
        c = open_cni(p);
        run_well(p, c, cni_del_start);
        assert_int_equal(calls(p, "DEL", "main", NULL, NULL), i + 1);
        assert_int_equal(count(p, "cache"), 0);
    }

    /* Of a whole attachment all must be undone: once the program is there again. */
    unlinkat(p->fd, "bin/meta", 0);
    oracle_put(p, "meta");
    cni_reload(c);
    run_well(p, c, cni_add_start);
    unlinkat(p->fd, "bin/meta", 0);
    e = run(p, c, cni_del_start);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "failed to find plugin \"meta\""));
    assert_int_equal(count(p, "cache"), 1);
    oracle_put(p, "meta");
    run_well(p, c, cni_del_start);
    assert_int_equal(calls(p, "DEL", "meta", NULL, NULL), 1);
    assert_int_equal(count(p, "cache"), 0);
    cni_close(c);
}

/* ---- results --------------------------------------------------------------------------------------------
 */

/* {"ips": [...], "x": <more>} */
static void tell_result(struct place *p, const char *more)
{
    str_auto text =
        str_printf("{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.9/24\"}],\"x\":%s}", more);

    put(p, "result", text);
    oracle_tell(p, "main", "ADD", "file result\n");
}

static char *repeated(const char *head, const char *text, size_t size, const char *tail)
{
    buf_auto b = BUF_INIT(1 << 21);

    buf_adds(&b, head);
    while (b.n + strlen(text) <= size)
        buf_adds(&b, text);
    buf_adds(&b, tail);
    return buf_detach(&b);
}

static void a_result_of_a_megabyte_is_passed_on_whole(void **state)
{
    struct place *p = *state;
    str_auto large = repeated("\"", "\xc3\xa4", 1000 * 1000, "\"");
    str_auto text = NULL;
    struct cni *c;

    two_plugins(p);
    oracle_put(p, "meta");
    tell_result(p, large);
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    calls(p, "ADD", "meta", &text, NULL);
    assert_non_null(strstr(text, large));
    run_well(p, c, cni_del_start);
    cni_close(c);
}

static void a_result_that_could_not_be_kept_fails_and_can_be_undone(void **state)
{
    struct place *p = *state;
    str_auto growing = repeated("[0.1", ",0.1", 1000 * 1000, "]"); /* kept as 0.10000000000000001 */
    str_auto deep = repeated("", "[", 2040, "");
    str_auto both = repeated(deep, "]", 4080, "");
    const struct {
        const char *text, *error;
    } cases[] = {
        { growing, "CNI result cache: " },
        { both, "plugin type=\"main\" failed (add): CNI result: nested in more than 64 levels" },
    };
    struct cni *c;
    struct err e;

    one_plugin(p, "1.0.0", "");
    c = open_cni(p);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        tell_result(p, cases[i].text);
        e = run(p, c, cni_add_start);
        assert_int_equal(e.code, ERR_EXHAUSTED);
        if (!str_starts(e.text, cases[i].error))
            fail_msg("%s", e.text);
        assert_int_equal(run(p, c, cni_add_start).code, ERR_PRECONDITION);
        run_well(p, c, cni_del_start);
        assert_int_equal(count(p, "cache"), 0);
    }
    cni_close(c);
}

static void floods_of_errors_are_told_in_one_short_line(void **state)
{
    struct place *p = *state;
    struct cni *c;
    struct err e;

    one_plugin(p, "1.0.0", "");
    c = open_cni(p);
    oracle_tell(p, "main", "ADD", "spill 3000000\nexit 1\n");
    e = run(p, c, cni_add_start);
    assert_int_equal(e.code, ERR_UNKNOWN);
    assert_true(str_starts(e.text, "plugin type=\"main\" failed (add): netplugin failed: \"xxxx"));
    assert_true(strlen(e.text) < 450);
    oracle_tell(p, "main", "DEL", "spill 3000000\n");
    run_well(p, c, cni_del_start);
    cni_close(c);
}

/* ---- damaged entries ------------------------------------------------------------------------------------
 */

#define ENTRY "net-" ID "-eth0.json"
#define VALID "\"cni.dev/valid-attachments\":[{\"containerID\":\"" ID "\",\"ifname\":\"eth0\"}]"

static void garbage_collection_spares_the_living_whose_entry_is_damaged(void **state)
{
    static const char *const damages[] = { "", "{\"kind\":", "{\"kind\":\"other\"}", "[]", NULL };
    static const char *const living[] = { ID, NULL };
    struct place *p = *state;
    struct cni *c;

    one_plugin(p, "1.1.0", "");
    c = open_cni(p);
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        str_auto text = NULL;
        struct ended d = { 0 };
        struct cni_gc g;

        run_well(p, c, cni_add_start);
        if (damages[i] != NULL)
            put(p, "cache/" ENTRY, damages[i]);
        else
            unlinkat(p->fd, "cache/" ENTRY, 0);
        cni_gc_start(&g, c, living, "eth0", on_ended, &d);
        run_until_ended(p, &d);
        assert_int_equal(d.result.code, ERR_OK);
        calls(p, "GC", "main", &text, NULL);
        if (strstr(text, VALID) == NULL)
            fail_msg("case %zu: %s", i, text);
        run_well(p, c, cni_del_start);
        assert_false(exists(p, "cache/" ENTRY));
    }
    cni_close(c);
}

/* The addresses of the entry that is made for a container of nobody. */
static char *adopted(struct place *p, struct cni *c)
{
    struct cni_stray_list lost = { 0 };
    struct cni_strays strays;
    struct ended d = { 0 };
    str_auto text = NULL;
    json_auto_t *entry = NULL;

    assert_true(cni_strays_add(&lost, "net", "stray", "10.0.0.7"));
    cni_strays_start(&strays, c, "", "eth0", &lost, on_ended, &d);
    run_until_ended(p, &d);
    assert_int_equal(strays.n_adopted, 1);
    text = get(p, "cache/net-stray-eth0.json");
    entry = parse(text);
    unlinkat(p->fd, "cache/net-stray-eth0.json", 0);
    return json_dumps(json_object_get(json_object_get(entry, "result"), "ips"), JSON_COMPACT);
}

static void an_address_that_may_be_of_a_damaged_entry_is_not_taken_away(void **state)
{
    struct place *p = *state;
    str_auto before = NULL;
    str_auto after = NULL;
    struct ended d = { 0 };
    struct cni_op o;
    struct cni *c;

    one_plugin(p, "1.0.0", "");
    oracle_tell(p, "main", "ADD", "hang\n");
    c = open_cni(p);
    cni_add_start(&o, c, &web, on_ended,
                  &d); /* under way: so rules, which others may have here, are not read */
    run_until(p, has_child, p);
    before = adopted(p, c);
    assert_string_equal(before, "[{\"address\":\"10.0.0.7/32\"}]");
    put(p, "cache/net-other-eth0.json", "damaged");
    after = adopted(p, c);
    assert_string_equal(after, "[]");
    op_cancel(&o.op);
    run_until_ended(p, &d);
    run_well(p, c, cni_del_start);
    cni_close(c);
}

/* ---- what they get --------------------------------------------------------------------------------------
 */

static void no_descriptor_of_ours_reaches_a_plugin(void **state)
{
    struct place *p = *state;
    str_auto fds = NULL;
    int mine[3], n = 0;
    struct cni *c;

    for (; n < 3; n++)
        assert_true((mine[n] = open("/dev/null", O_RDONLY)) >= 0); /* without O_CLOEXEC, as a library may */
    one_plugin(p, "1.0.0", "");
    oracle_tell(p, "main", "ADD", "out {\"ips\":[{\"address\":\"10.0.0.9/24\"}]}\nfds\n");
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    fds = get(p, "fds");
    assert_string_equal(fds, "0 1 2 ");
    run_well(p, c, cni_del_start);
    cni_close(c);
    while (n > 0)
        close(mine[--n]);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(an_error_object_is_an_error_whatever_the_exit_status),
        TEST(what_is_no_program_is_named_when_the_list_is_loaded),
        TEST(a_plugin_that_could_not_be_executed_is_not_asked_to_undo),
        TEST(a_result_of_a_megabyte_is_passed_on_whole),
        TEST(a_result_that_could_not_be_kept_fails_and_can_be_undone),
        TEST(floods_of_errors_are_told_in_one_short_line),
        TEST(garbage_collection_spares_the_living_whose_entry_is_damaged),
        TEST(an_address_that_may_be_of_a_damaged_entry_is_not_taken_away),
        TEST(no_descriptor_of_ours_reaches_a_plugin),
    };

    if (oracle_is_called())
        return oracle_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
