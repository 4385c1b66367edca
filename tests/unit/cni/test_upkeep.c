/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins are asked between ADD and DEL: STATUS, CHECK and GC. */
#include "oracle_run.h"

static bool is_ready(void *arg)
{
    return cni_default_network(arg, NULL) != NULL;
}

static bool is_not_ready(void *arg)
{
    return !is_ready(arg);
}

static void a_network_that_is_not_ready_says_so_until_it_is(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    const char *why = NULL;
    int changes = 0;
    struct err e;

    one_plugin(p, "1.1.0", "");
    oracle_tell(p, "main", "STATUS", "out {\"code\":50,\"msg\":\"no address left\"}\nexit 1\n");
    c = open_cni(p);
    cni_on_change(c, on_change, &changes);
    e = run(p, c, cni_add_start);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_string_equal(e.text, "plugin type=\"main\" failed (status): no address left (CNI code 50)");
    assert_true(is_not_ready(c));
    assert_null(cni_default_network(c, &why));
    assert_string_equal(why, e.text);
    assert_int_equal(calls(p, "ADD", "main", NULL, NULL), 0);
    changes = 0;
    oracle_tell(p, "main", "STATUS", "");
    run_until(p, is_ready, c);
    assert_int_equal(changes, 1);
    run_well(p, c, cni_add_start);
    run_well(p, c, cni_del_start);
    cni_close(c);
}

static void check_tells_what_is_missing_and_is_left_out_where_the_list_says_so(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    struct err e;

    one_plugin(p, "1.0.0", "");
    c = open_cni(p);
    assert_int_equal(run(p, c, check).code, ERR_NOT_FOUND);
    run_well(p, c, cni_add_start);
    run_well(p, c, check);
    oracle_tell(p, "main", "CHECK", "out {\"code\":100,\"msg\":\"no rule\"}\nexit 1\n");
    e = run(p, c, check);
    assert_int_equal(e.code, ERR_UNKNOWN);
    assert_string_equal(e.text, "plugin type=\"main\" failed (check): no rule (CNI code 100)");
    oracle_tell(p, "main", "CHECK", "err panic\nexit 2\n"); /* says nothing */
    run_well(p, c, check);
    run_well(p, c, cni_del_start);
    cni_close(c);

    one_plugin(p, "1.0.0", "\"disableCheck\":\"true\",");
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    forget_calls(p);
    run_well(p, c, check);
    assert_int_equal(calls(p, "CHECK", "main", NULL, NULL), 0);
    run_well(p, c, cni_del_start);
    cni_close(c);

    one_plugin(p, "0.3.1", "");
    oracle_tell(p, "main", "VERSION", "out {\"supportedVersions\":[\"0.3.1\"]}\n");
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    run_well(p, c, check);
    assert_int_equal(calls(p, "CHECK", "main", NULL, NULL), 0);
    run_well(p, c, cni_del_start);
    cni_close(c);
}

static bool fails_inside(struct place *p, struct cni *c, const char *text)
{
    struct ended d = { 0 };
    struct cni_op o;

    check(&o, c, &web, on_ended, &d);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_UNKNOWN);
    assert_string_equal(d.result.text, text);
    return o.inside;
}

static void what_the_first_plugin_misses_does_not_keep_the_others_from_being_asked(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;

    put(p, "net.d/10.conflist",
        "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":\"main\"},{\"type\":\"meta\"}]}");
    oracle_put(p, "main");
    oracle_put(p, "meta");
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    run_well(p, c, check);
    oracle_tell(p, "main", "CHECK", "out {\"code\":100,\"msg\":\"no route\"}\nexit 1\n");
    assert_true(fails_inside(p, c, "plugin type=\"main\" failed (check): no route (CNI code 100)"));
    assert_int_equal(calls(p, "CHECK", "meta", NULL, NULL), 2);
    oracle_tell(p, "meta", "CHECK", "out {\"code\":100,\"msg\":\"no rule\"}\nexit 1\n");
    assert_false(fails_inside(p, c, "plugin type=\"meta\" failed (check): no rule (CNI code 100)"));
    run_well(p, c, cni_del_start);
    cni_close(c);
}

static const char *found; /* by the caller, in the next checks */
static bool fresh;

static void check_found(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                        void *owner)
{
    cni_check_start(o, c, a, found, fresh, done, owner);
}

static void what_the_first_check_finds_wrong_is_the_measure(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    struct err e;

    one_plugin(p, "1.0.0", "");
    oracle_tell(p, "main", "CHECK", "out {\"code\":999,\"msg\":\"no ipv6 rule\"}\nexit 1\n");
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    run_well(p, c, check_found);
    run_well(p, c, check_found);
    cni_close(c); /* it is kept with the attachment */
    c = open_cni(p);
    run_well(p, c, check_found);
    oracle_tell(p, "main", "CHECK", "out {\"code\":999,\"msg\":\"no ipv4 rule\"}\nexit 1\n");
    e = run(p, c, check_found);
    assert_string_equal(e.text, "plugin type=\"main\" failed (check): no ipv4 rule (CNI code 999)");
    oracle_tell(p, "main", "CHECK", ""); /* better than at first: from now on so */
    run_well(p, c, check_found);
    found = "interface eth0 is gone";
    e = run(p, c, check_found);
    assert_int_equal(e.code, ERR_UNKNOWN);
    assert_string_equal(e.text, found);
    run_well(p, c, cni_del_start);

    /* The same before any CHECK: lost, unless it was like that from the start. */
    cni_reload(c);
    run_well(p, c, cni_add_start);
    assert_int_equal(run(p, c, check_found).code, ERR_UNKNOWN);
    fresh = true;
    run_well(p, c, check_found);
    fresh = false;
    run_well(p, c, check_found);
    found = NULL;
    run_well(p, c, cni_del_start);
    cni_close(c);
}

static bool add_is_checked(struct place *p, struct cni *c, const struct cni_attachment *a)
{
    struct ended d = { 0 };
    struct cni_op o;

    cni_add_start(&o, c, a, on_ended, &d);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_OK);
    return o.checked;
}

static void a_kind_of_attachment_that_check_finds_whole_is_checked_once(void **state)
{
    static const struct cni_port_mapping port = { 8080, 80, "tcp", "" };
    struct cni_attachment full = web, bare; /* no host ports */
    struct place *p = *state;
    struct cni *c;

    put(p, "net.d/10.conflist",
        "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":\"main\","
        "\"capabilities\":{\"portMappings\":true,\"bandwidth\":true}}]}");
    oracle_put(p, "main");
    full.ports = &port;
    full.n_ports = 1;
    full.ingress_bits = 10000000;
    full.egress_bits = 1000000;
    bare = full;
    bare.n_ports = 0;
    c = open_cni(p);
    assert_false(add_is_checked(p, c, &bare));
    run_well(p, c, check);
    assert_int_equal(calls(p, "CHECK", "main", NULL, NULL), 1);
    run_well(p, c, cni_del_start);

    assert_true(add_is_checked(p, c, &bare));
    run_well(p, c, check); /* one that is asked for all the same */
    assert_int_equal(calls(p, "CHECK", "main", NULL, NULL), 2);
    run_well(p, c, cni_del_start);
    assert_false(add_is_checked(p, c, &full)); /* its addresses matter, too */
    run_well(p, c, cni_del_start);
    bare.egress_bits = bare.ingress_bits = 0; /* another kind */
    assert_false(add_is_checked(p, c, &bare));
    run_well(p, c, cni_del_start);
    bare = full;
    bare.n_ports = 0;
    cni_reload(c); /* another configuration, or other programs */
    assert_false(add_is_checked(p, c, &bare));
    run_well(p, c, cni_del_start);
    cni_close(c);
}

static void gc_runs_alone_and_asks_every_plugin(void **state)
{
    struct place *p = *state;
    struct ended added = { 0 }, collected = { 0 };
    struct cni *c = NULL;
    struct cni_op o;
    struct cni_gc g;
    str_auto text = NULL;
    int gc_number, del_number;

    put(p, "net.d/10.conflist",
        "{\"cniVersion\":\"1.1.0\",\"name\":\"net\","
        "\"plugins\":[{\"type\":\"main\"},{\"type\":\"meta\"}]}");
    oracle_put(p, "main");
    oracle_put(p, "meta");
    oracle_tell(p, "main", "GC", "out {\"code\":100,\"msg\":\"stuck\"}\nexit 1\n");
    c = open_cni(p);
    cni_add_start(&o, c, &web, on_ended, &added);
    cni_gc_start(&g, c, nobody, "eth0", on_ended, &collected);
    run_until_ended(p, &added);
    assert_int_equal(added.result.code, ERR_OK);
    run_until_ended(p, &collected);
    assert_string_equal(collected.result.text, "plugin type=\"main\" failed (gc): stuck (CNI code 100)");
    calls(p, "ADD", "meta", NULL, &del_number);
    assert_int_equal(calls(p, "GC", "meta", &text, &gc_number), 1);
    assert_non_null(strstr(text, "\"cni.dev/valid-attachments\":[{\"containerID\":\"" ID "\""));
    assert_true(gc_number > del_number);

    /* What comes while it runs waits. */
    unlinkat(p->fd, "told/main.GC", 0);
    collected = (struct ended){ 0 };
    forget_calls(p);
    cni_gc_start(&g, c, nobody, "eth0", on_ended, &collected);
    run_well(p, c, cni_del_start);
    assert_int_equal(collected.calls, 1);
    calls(p, "GC", "meta", NULL, &gc_number);
    calls(p, "DEL", "meta", NULL, &del_number);
    assert_true(gc_number < del_number);
    cni_close(c);

    put(p, "net.d/10.conflist",
        "{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"disableGC\":true,"
        "\"plugins\":[{\"type\":\"main\"}]}");
    c = open_cni(p);
    forget_calls(p);
    gc(p, c, &g);
    assert_int_equal(g.n_networks, 0);
    assert_int_equal(calls(p, "GC", "main", NULL, NULL), 0);
    cni_close(c);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(a_network_that_is_not_ready_says_so_until_it_is),
        TEST(check_tells_what_is_missing_and_is_left_out_where_the_list_says_so),
        TEST(what_the_first_plugin_misses_does_not_keep_the_others_from_being_asked),
        TEST(what_the_first_check_finds_wrong_is_the_measure),
        TEST(a_kind_of_attachment_that_check_finds_whole_is_checked_once),
        TEST(gc_runs_alone_and_asks_every_plugin),
    };

    if (oracle_is_called())
        return oracle_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
