/* SPDX-License-Identifier: Apache-2.0 */
/* ADD and DEL as a whole, with plugins that are shell scripts and write down how they were called. */
#include "helper.h"

#include "cni/internal.h"

#define ID "0123abcd"
#define ENTRY "cache/net-" ID "-eth0.json"

static const struct cni_port_mapping web_port = { 8080, 80, "tcp", "" };
static const struct cni_attachment web = { .container_id = ID,
                                           .netns = "/run/ns",
                                           .ifname = "eth0",
                                           .pod_namespace = "default",
                                           .pod_name = "web",
                                           .pod_uid = "u1",
                                           .ports = &web_port,
                                           .n_ports = 1,
                                           .egress_bits = 5000 };

#define SPEAKS                                                                                               \
    "test $CNI_COMMAND = VERSION && echo '{\"supportedVersions\": [\"0.1.0\", \"0.3.1\", \"0.4.0\","         \
    " \"1.0.0\"]}' && exit\n"

/* A plugin that appends "<COMMAND> <type>" to the file log, stores what it read, and then does `then`. */
static void put_plugin(const struct place *p, const char *type, const char *then)
{
    str_auto path = str_printf("bin/%s", type);
    str_auto text =
        str_printf("#!/bin/sh\n" SPEAKS "cat >%s/in-%s-$CNI_COMMAND\necho $CNI_COMMAND %s >>%s/log\n%s\n",
                   p->dir, type, type, p->dir, then);

    put_mode(p, path, 0755, text);
}

#define ANSWER(text) "test $CNI_COMMAND = DEL || echo '" text "'"

static void put_chain(const struct place *p, const char *version)
{
    str_auto conf =
        str_printf("{\"name\": \"net\", \"cniVersion\": \"%s\", \"plugins\": [{\"type\": \"main\"},"
                   " {\"type\": \"ports\", \"capabilities\": {\"portMappings\": true}},"
                   " {\"type\": \"rate\", \"capabilities\": {\"bandwidth\": true}}]}",
                   version);

    put(p, "net.d/10.conflist", conf);
    put_plugin(
        p, "main",
        ANSWER("{\"cniVersion\":\"0.4.0\",\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"/run/ns\"}],"
               "\"ips\":[{\"version\":\"4\",\"address\":\"10.0.0.9/24\",\"interface\":0}]}"));
    put_plugin(
        p, "ports",
        ANSWER("{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\",\"address\":\"10.0.0.10/24\"}]}"));
    put_plugin(
        p, "rate",
        ANSWER("{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\",\"address\":\"10.0.0.11/24\"}]}"));
}

static struct err add(struct place *p, struct cni *c, struct cni_op *o)
{
    struct ended d = { 0 };

    cni_add_start(o, c, &web, on_ended, &d);
    run_until_ended(p, &d);
    return d.result;
}

static struct err del(struct place *p, struct cni *c, const struct cni_attachment *a)
{
    struct ended d = { 0 };
    struct cni_op o;

    cni_del_start(&o, c, a, on_ended, &d);
    run_until_ended(p, &d);
    return d.result;
}

static void assert_log(const struct place *p, const char *expected)
{
    str_auto log = get(p, "log");

    assert_string_equal(log, expected);
    unlinkat(p->fd, "log", 0);
}

static json_t *member(const struct place *p, const char *file, const char *key)
{
    str_auto text = get(p, file);
    json_auto_t *v = parse(text);

    return json_incref(json_object_get(v, key));
}

#define assert_member(p, file, key, expected)                                                                \
    do {                                                                                                     \
        json_auto_t *v_ = member(p, file, key);                                                              \
        assert_json_equal(v_, expected);                                                                     \
    } while (0)

static void assert_no_member(const struct place *p, const char *file, const char *key)
{
    json_auto_t *v = member(p, file, key);

    assert_null(v);
}

#define MAIN_RESULT                                                                                          \
    "{\"cniVersion\": \"0.4.0\", \"interfaces\": [{\"name\": \"eth0\", \"sandbox\": \"/run/ns\"}],"          \
    " \"ips\": [{\"version\": \"4\", \"address\": \"10.0.0.9/24\", \"interface\": 0}]}"
#define PORTS_RESULT                                                                                         \
    "{\"cniVersion\": \"0.4.0\", \"ips\": [{\"version\": \"4\", \"address\": \"10.0.0.10/24\"}]}"
#define RATE_RESULT                                                                                          \
    "{\"cniVersion\": \"0.4.0\", \"ips\": [{\"version\": \"4\", \"address\": \"10.0.0.11/24\"}]}"

static void add_runs_the_list_in_order_and_hands_results_on(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    struct cni_result cached;
    struct cni_op o;
    struct err e = { 0 };

    put_chain(p, "0.4.0");
    c = open_cni(p);
    assert_string_equal(cni_default_network(c, NULL), "net");
    assert_int_equal(add(p, c, &o).code, ERR_OK);
    assert_int_equal(o.result.n_ips, 1);
    assert_string_equal(o.result.ips[0], "10.0.0.11"); /* the last plugin's word */
    assert_log(p, "ADD main\nADD ports\nADD rate\n");
    assert_no_member(p, "in-main-ADD", "prevResult");
    assert_no_member(p, "in-main-ADD", "runtimeConfig");
    assert_member(p, "in-ports-ADD", "prevResult", MAIN_RESULT);
    assert_member(p, "in-ports-ADD", "runtimeConfig",
                  "{\"portMappings\": [{\"hostPort\": 8080, \"containerPort\": 80, \"protocol\": \"tcp\"}]}");
    assert_member(p, "in-rate-ADD", "prevResult", PORTS_RESULT);
    assert_member(p, "in-rate-ADD", "runtimeConfig",
                  "{\"bandwidth\": {\"egressRate\": 5000, \"egressBurst\": 96000}}");

    assert_int_equal(presence_of(cni_cached_result(c, ID, "eth0", &cached, &e)), PRESENCE_PRESENT);
    assert_string_equal(cached.ips[0], "10.0.0.11");
    cni_close(c);
}

static void del_runs_backwards_with_the_final_result_and_forgets(void **state)
{
    struct place *p = *state;
    const struct cni_attachment gone = { .container_id = ID, .ifname = "eth0" };
    struct cni_result cached;
    struct cni *c = NULL;
    struct cni_op o;
    struct err e = { 0 };

    put_chain(p, "0.4.0");
    c = open_cni(p);
    assert_int_equal(add(p, c, &o).code, ERR_OK);
    unlinkat(p->fd, "log", 0);
    assert_int_equal(del(p, c, &gone).code, ERR_OK);
    assert_log(p, "DEL rate\nDEL ports\nDEL main\n");
    assert_member(p, "in-rate-DEL", "prevResult", RATE_RESULT);
    assert_member(p, "in-main-DEL", "prevResult", RATE_RESULT);
    /* What only the cache still knows. */
    assert_member(p, "in-ports-DEL", "runtimeConfig",
                  "{\"portMappings\": [{\"hostPort\": 8080, \"containerPort\": 80, \"protocol\": \"tcp\"}]}");
    assert_int_equal(count(p, "cache"), 0);
    assert_int_equal(presence_of(cni_cached_result(c, ID, "eth0", &cached, &e)), PRESENCE_ABSENT);
    cni_close(c);
}

static void del_before_version_0_4_0_has_no_previous_result(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    struct cni_op o;

    put_chain(p, "0.3.1");
    c = open_cni(p);
    assert_int_equal(add(p, c, &o).code, ERR_OK);
    /* The plugins answered in 0.4.0; they must be given their configuration's version. */
    assert_member(p, "in-ports-ADD", "prevResult",
                  "{\"cniVersion\": \"0.3.1\", \"interfaces\": [{\"name\": \"eth0\", \"sandbox\": "
                  "\"/run/ns\"}], \"routes\": [],"
                  " \"ips\": [{\"version\": \"4\", \"address\": \"10.0.0.9/24\", \"interface\": 0}]}");
    assert_int_equal(del(p, c, &web).code, ERR_OK);
    assert_no_member(p, "in-main-DEL", "prevResult");
    cni_close(c);
}

static void del_uses_the_list_of_the_add_even_when_its_file_is_gone(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    struct cni_op o;

    put_chain(p, "1.0.0");
    c = open_cni(p);
    assert_int_equal(add(p, c, &o).code, ERR_OK);
    cni_close(c);
    unlinkat(p->fd, "net.d/10.conflist", 0);
    unlinkat(p->fd, "log", 0);
    c = open_cni(p);
    assert_null(cni_default_network(c, NULL));
    assert_int_equal(del(p, c, &web).code, ERR_OK);
    assert_log(p, "DEL rate\nDEL ports\nDEL main\n");
    cni_close(c);
}

static void del_of_nothing_known_asks_the_default_network_or_succeeds(void **state)
{
    struct place *p = *state;
    struct cni *c = open_cni(p);

    assert_int_equal(del(p, c, &web).code, ERR_OK);
    assert_log(p, "");
    put_chain(p, "1.0.0");
    cni_reload(c);
    assert_int_equal(del(p, c, &web).code, ERR_OK);
    assert_log(p, "DEL rate\nDEL ports\nDEL main\n");
    assert_no_member(p, "in-main-DEL", "prevResult");
    put(p, ENTRY, "damaged");
    assert_int_equal(del(p, c, &web).code, ERR_OK);
    assert_log(p, "DEL rate\nDEL ports\nDEL main\n");
    assert_false(exists(p, ENTRY));
    cni_close(c);
}

static void a_failed_add_is_told_and_must_be_deleted_before_another(void **state)
{
    struct place *p = *state;
    struct cni_result cached;
    struct cni *c = NULL;
    struct cni_op o;
    struct err e;

    put_chain(p, "1.0.0");
    put_plugin(p, "ports",
               "test $CNI_COMMAND = DEL && exit 0; echo '{\"code\": 100, \"msg\": \"port taken\"}'; exit 1");
    c = open_cni(p);
    e = add(p, c, &o);
    assert_int_equal(e.code, ERR_UNKNOWN);
    assert_string_equal(e.text, "plugin type=\"ports\" failed (add): port taken (CNI code 100)");
    assert_log(p, "ADD main\nADD ports\n");
    e = (struct err){ 0 };
    assert_int_equal(presence_of(cni_cached_result(c, ID, "eth0", &cached, &e)), PRESENCE_ABSENT);

    e = add(p, c, &o);
    assert_int_equal(e.code, ERR_PRECONDITION);
    assert_string_equal(e.text, "container " ID " already has eth0, at least partly: DEL must come first");
    assert_int_equal(del(p, c, &web).code, ERR_OK);
    assert_log(p, "DEL rate\nDEL ports\nDEL main\n");
    /* The half that succeeded is known to the plugins that take it away. */
    assert_member(p, "in-main-DEL", "prevResult",
                  "{\"cniVersion\": \"1.0.0\", \"interfaces\": [{\"name\": \"eth0\", \"sandbox\": "
                  "\"/run/ns\"}], \"routes\": [],"
                  " \"ips\": [{\"address\": \"10.0.0.9/24\", \"interface\": 0}]}");
    assert_int_equal(count(p, "cache"), 0);
    cni_close(c);
}

static void a_failing_del_stops_and_can_be_repeated(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    struct cni_op o;
    struct err e;

    put_chain(p, "1.0.0");
    c = open_cni(p);
    assert_int_equal(add(p, c, &o).code, ERR_OK);
    unlinkat(p->fd, "log", 0);
    put_plugin(p, "ports", "echo '{\"code\": 11, \"msg\": \"busy\"}'; exit 1");
    e = del(p, c, &web);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_string_equal(e.text, "plugin type=\"ports\" failed (del): busy (CNI code 11)");
    assert_log(p, "DEL rate\nDEL ports\n");
    assert_true(exists(p, ENTRY));
    /* "Container unknown, nothing to clean up" is as good as done. */
    put_plugin(p, "ports", "echo '{\"code\": 3, \"msg\": \"unknown container\"}'; exit 1");
    assert_int_equal(del(p, c, &web).code, ERR_OK);
    assert_log(p, "DEL rate\nDEL ports\nDEL main\n");
    assert_false(exists(p, ENTRY));
    cni_close(c);
}

static bool file_is_there(void *arg)
{
    return access(arg, F_OK) == 0;
}

static void an_agent_killed_in_the_middle_of_add_knows_what_to_delete(void **state)
{
    struct place *p = *state;
    struct ended d = { 0 };
    struct cni *c = NULL;
    struct cni_op o;
    struct strs ids = { 0 };
    struct err e = { 0 };

    put_chain(p, "1.0.0");
    put_plugin(p, "ports", "test $CNI_COMMAND = DEL || exec sleep 1000");
    c = open_cni(p);
    cni_add_start(&o, c, &web, on_ended, &d);
    run_until(p, file_is_there, (void *)in_place(p, "in-ports-ADD"));
    /* What is on disk now is all that a new agent would have. */
    assert_member(p, ENTRY, "complete", "false");
    assert_member(p, ENTRY, "containerId", "\"" ID "\"");
    assert_member(p, ENTRY, "result",
                  "{\"cniVersion\": \"1.0.0\", \"interfaces\": [{\"name\": \"eth0\", \"sandbox\": "
                  "\"/run/ns\"}], \"routes\": [],"
                  " \"ips\": [{\"address\": \"10.0.0.9/24\", \"interface\": 0}]}");
    assert_int_equal(cni_cached_ids(c, &ids, &e), ERR_OK);
    assert_int_equal(ids.n, 1);
    assert_string_equal(ids.v[0], ID);
    strs_done(&ids);
    op_cancel(&o.op);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_CANCELLED);
    assert_int_equal(del(p, c, &web).code, ERR_OK);
    assert_int_equal(cni_cached_ids(c, &ids, &e), ERR_OK);
    assert_int_equal(ids.n, 0);
    cni_close(c);
}

static void without_a_network_add_says_why(void **state)
{
    struct place *p = *state;
    struct cni *c = open_cni(p);
    struct cni_attachment bad = web;
    struct ended d = { 0 };
    struct cni_op o;
    struct err e = add(p, c, &o);
    char why[200];

    snprintf(why, sizeof(why), "no CNI configuration file in %s/net.d. Has your network provider started?",
             p->dir);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_string_equal(e.text, why);
    assert_int_equal(count(p, "cache"), 0);

    bad.netns = "relative";
    cni_add_start(&o, c, &bad, on_ended, &d);
    assert_int_equal(d.calls, 0); /* never from inside start */
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_INVALID);
    cni_close(c);
}

/* ---- many at once ------------------------------------------------------------------------------ */

#define MANY 40

struct many {
    struct place *p;
    struct cni *c;
    struct cni_op ops[MANY];
    char ids[MANY][16];
    int order[MANY]; /* in which they ended */
    int ended, cancelled;
    size_t most; /* ran at once */
};

static void on_one_of_many(struct op *op, const struct err *result)
{
    struct many *m = op->owner;

    if (result->code == ERR_CANCELLED)
        m->cancelled++;
    else
        assert_int_equal(result->code, ERR_OK);
    m->order[m->ended++] = (int)(container_of(op, struct cni_op, op) - m->ops);
}

static void start_many(struct many *m)
{
    struct cni_attachment a = web;

    while (cni_ask_holds(m->c)) /* nothing begins before plugins told their versions */
        uv_run(&m->p->loop, UV_RUN_ONCE);
    for (int i = 0; i < MANY; i++) {
        snprintf(m->ids[i], sizeof(m->ids[i]), "pod%d", i);
        a.container_id = m->ids[i];
        cni_add_start(&m->ops[i], m->c, &a, on_one_of_many, m);
    }
}

static void only_so_many_run_at_once_and_the_others_wait_their_turn(void **state)
{
    struct place *p = *state;
    struct many m = { .p = p };
    str_auto conf = str_printf("{\"name\": \"net\", \"plugins\": [{\"type\": \"main\"}]}");

    put(p, "net.d/10.conflist", conf);
    put_plugin(p, "main", "echo '{}'");
    m.c = open_cni(p);
    assert_true(m.c->width.most >= 4 && m.c->width.most < MANY);
    start_many(&m);
    assert_int_equal(m.c->n_running, m.c->width.most);
    while (m.ended < MANY && uv_run(&p->loop, UV_RUN_ONCE) != 0) {
        if (m.c->n_running > m.most)
            m.most = m.c->n_running;
    }
    assert_int_equal(m.ended, MANY);
    assert_true(m.most <= m.c->width.most);
    /* First come, first served: nobody ends before the ones that could not have been running beside it. */
    for (int i = 0; i < MANY; i++)
        assert_true(m.order[i] < i + 2 * (int)m.c->width.most);
    assert_int_equal(m.c->n_running, 0);
    cni_close(m.c);
}

static void fewer_run_at_once_while_plugins_are_slow(void **state)
{
    struct place *p = *state;
    struct many m = { .p = p };
    struct cni_turn turn;
    str_auto slow = str_printf("%s/slow", p->dir);
    str_auto plugin = str_printf("[ ! -e %s/slow ] || sleep 3\necho '{}'", p->dir);

    put(p, "net.d/10.conflist", "{\"name\": \"net\", \"plugins\": [{\"type\": \"main\"}]}");
    put(p, "slow", "");
    put_plugin(p, "main", plugin);
    m.c = open_cni(p);
    start_many(&m);
    assert_false(cni_waits(&m.ops[0], &turn));
    assert_true(cni_waits(&m.ops[MANY - 1], &turn));
    assert_int_equal(turn.before, MANY - 1 - m.c->width.most);
    assert_int_equal(turn.now, turn.most);
    while (m.c->width.now > 1 && m.ended == 0 && uv_run(&p->loop, UV_RUN_ONCE) != 0)
        ;
    assert_int_equal(unlink(slow), 0);
    assert_int_equal(m.c->width.now, 1); /* each that is slow narrows it */
    assert_true(cni_waits(&m.ops[MANY - 1], &turn));
    assert_int_equal(turn.now, 1);
    while (m.ended < MANY && uv_run(&p->loop, UV_RUN_ONCE) != 0)
        assert_true(m.c->n_running <= m.c->width.most);
    assert_int_equal(m.ended, MANY);
    assert_int_equal(m.c->width.now, m.c->width.most); /* and those that are quick widen it */
    assert_false(cni_waits(&m.ops[MANY - 1], &turn));
    cni_close(m.c);
}

static void waiting_operations_can_be_cancelled(void **state)
{
    struct place *p = *state;
    struct many m = { .p = p };

    put(p, "net.d/10.conflist", "{\"name\": \"net\", \"plugins\": [{\"type\": \"main\"}]}");
    put_plugin(p, "main", "exec sleep 1000");
    m.c = open_cni(p);
    start_many(&m);
    for (int i = MANY - 1; i >= 0; i--)
        op_cancel(&m.ops[i].op);
    while (m.ended < MANY && uv_run(&p->loop, UV_RUN_ONCE) != 0)
        ;
    assert_int_equal(m.cancelled, MANY);
    /* Those that never ran left no trace; the others have to be deleted. */
    assert_int_equal(count(p, "cache"), m.c->width.most);
    cni_close(m.c);
}

/* ---- the folder ---------------------------------------------------------------------------------- */

static void a_list_that_appears_later_is_loaded_by_itself(void **state)
{
    struct place *p = *state;
    struct cni *c = open_cni(p);
    int calls = 0;

    cni_on_change(c, on_change, &calls);
    assert_null(cni_default_network(c, NULL));
    put(p, "net.d/10.conflist", "{\"name\": \"net\", \"plugins\": [{\"type\": \"main\"}]}");
    run_until(p, changed, &calls);
    assert_null(cni_default_network(c, NULL));
    assert_string_equal(cni_missing_plugins(c)[0], "main");
    assert_non_null(
        strstr(cni_problem(c, 0), "10.conflist: network \"net\": failed to find plugin \"main\" in path ["));
    assert_null(cni_problem(c, 1));

    calls = 0;
    put_plugin(p, "main", "echo '{}'"); /* the plugin folder is watched as well */
    run_until(p, changed, &calls);
    assert_string_equal(cni_default_network(c, NULL), "net");
    assert_null(cni_missing_plugins(c)[0]);
    assert_null(cni_problem(c, 0));

    calls = 0;
    put(p, "net.d/net/10.conf", "{\"type\": \"other\"}");
    run_until(p, changed, &calls);
    assert_null(cni_default_network(c, NULL));
    cni_close(c);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(add_runs_the_list_in_order_and_hands_results_on),
        TEST(del_runs_backwards_with_the_final_result_and_forgets),
        TEST(del_before_version_0_4_0_has_no_previous_result),
        TEST(del_uses_the_list_of_the_add_even_when_its_file_is_gone),
        TEST(del_of_nothing_known_asks_the_default_network_or_succeeds),
        TEST(a_failed_add_is_told_and_must_be_deleted_before_another),
        TEST(a_failing_del_stops_and_can_be_repeated),
        TEST(an_agent_killed_in_the_middle_of_add_knows_what_to_delete),
        TEST(without_a_network_add_says_why),
        TEST(only_so_many_run_at_once_and_the_others_wait_their_turn),
        TEST(fewer_run_at_once_while_plugins_are_slow),
        TEST(waiting_operations_can_be_cancelled),
        TEST(a_list_that_appears_later_is_loaded_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
