/* What plugins are given, byte for byte, and what comes of everything they may answer. */
#include "oracle_run.h"

#define ID "0123abcd"
#define ARGS                                                                                                 \
    "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=" ID              \
    ";K8S_POD_UID=u1;IP=10.0.0.9"

static const char *const nobody[] = { NULL };

static const struct cni_port_mapping ports[] = {
    { 8080, 80, "tcp", "" }, { 53, 5353, "udp", "10.1.1.1" }, { 9, 9, "sctp", NULL }, { 0, 7, "tcp", NULL }
};
static const char *const ranges[] = { "10.0.0.0/16", "fd00::/64", NULL };
static const char *const servers[] = { "10.96.0.10", NULL };
static const char *const searches[] = { "default.svc", "svc", NULL };
static const char *const options[] = { "ndots:5", NULL };
static const struct cni_pair annotations[] = { { "a", "1" }, { "b/c", "\"x\"" } };
static const struct cni_attachment web = { .container_id = ID,
                                           .netns = "/run/ns",
                                           .ifname = "eth0",
                                           .pod_namespace = "default",
                                           .pod_name = "web",
                                           .pod_uid = "u1",
                                           .ports = ports,
                                           .n_ports = ARRAY_LEN(ports),
                                           .ingress_bits = 10000000,
                                           .egress_bits = 1000000,
                                           .ip_ranges = ranges,
                                           .cgroup_path = "/kubepods/podu1",
                                           .dns_servers = servers,
                                           .dns_searches = searches,
                                           .dns_options = options,
                                           .annotations = annotations,
                                           .n_annotations = ARRAY_LEN(annotations),
                                           .ip = "10.0.0.9",
                                           .mac = "0a:58:0a:00:00:09" };

static const struct {
    const char *name, *value;
} capabilities[] = {
    { "portMappings", "[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"},"
                      "{\"hostPort\":53,\"containerPort\":5353,\"protocol\":\"udp\",\"hostIP\":\"10.1.1.1\"},"
                      "{\"hostPort\":9,\"containerPort\":9,\"protocol\":\"sctp\"}]" },
    { "bandwidth", "{\"ingressRate\":10000000,\"ingressBurst\":500000,"
                   "\"egressRate\":1000000,\"egressBurst\":96000}" },
    { "ipRanges", "[[{\"subnet\":\"10.0.0.0/16\"}],[{\"subnet\":\"fd00::/64\"}]]" },
    { "ips", "[\"10.0.0.9/32\"]" },
    { "mac", "\"0a:58:0a:00:00:09\"" },
    { "dns",
      "{\"servers\":[\"10.96.0.10\"],\"searches\":[\"default.svc\",\"svc\"],\"options\":[\"ndots:5\"]}" },
    { "cgroupPath", "\"/kubepods/podu1\"" },
    { "io.kubernetes.cri.pod-annotations", "{\"a\":\"1\",\"b/c\":\"\\\"x\\\"\"}" },
};
#define NONE 0u
#define ALL ((1u << ARRAY_LEN(capabilities)) - 1)

static struct err run(struct place *p, struct cni *c, start_fn start)
{
    return run_one(p, c, start, &web);
}

static const char *found; /* by the caller, in the next checks */
static bool fresh;

static void check(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                  void *owner)
{
    cni_check_start(o, c, a, found, fresh, done, owner);
}

static void run_well(struct place *p, struct cni *c, start_fn start)
{
    struct err e = run(p, c, start);

    if (e.code != ERR_OK)
        fail_msg("%s", e.text);
}

static void gc(struct place *p, struct cni *c, struct cni_gc *g)
{
    struct ended d = { 0 };

    cni_gc_start(g, c, nobody, "eth0", on_ended, &d);
    run_until_ended(p, &d);
    if (d.result.code != ERR_OK)
        fail_msg("%s", d.result.text);
}

/* ---- what was recorded -------------------------------------------------------------------------------- */

#define ATTACHED                                                                                             \
    "env CNI_CONTAINERID=" ID "\nenv CNI_NETNS=/run/ns\nenv CNI_IFNAME=eth0\nenv CNI_ARGS=" ARGS "\n"
#define DUMMIES "env CNI_CONTAINERID=dummy\nenv CNI_NETNS=dummy\nenv CNI_IFNAME=dummy\n"

/* The last such call was exactly this; returns its number, for the order. */
static int assert_call(const struct place *p, const char *verb, const char *type, const char *env,
                       const char *input)
{
    str_auto text = NULL;
    int number;
    str_auto expected = str_printf("arg %s/bin/%s\nenv CNI_COMMAND=%s\n%senv CNI_PATH=%s/bin:/nowhere\n"
                                   "env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                                   "stdin %s",
                                   p->dir, type, verb, env, p->dir, input);

    if (calls(p, verb, type, &text, &number) == 0)
        fail_msg("%s of %s was not called", verb, type);
    assert_string_equal(text, expected);
    return number;
}

/* ---- all verbs, versions and capabilities -------------------------------------------------------------- */

/* {"portMappings":true,...}, a further one that nobody supplies and one that is switched off. */
static char *declare(unsigned set)
{
    buf_auto b = BUF_INIT(4096);

    buf_adds(&b, "{\"aliases\":true");
    for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
        buf_addf(&b, ",\"%s\":%s", capabilities[i].name, set >> i & 1 ? "true" : "false");
    buf_adds(&b, "}");
    return buf_detach(&b);
}

static char *supplied(unsigned set)
{
    buf_auto b = BUF_INIT(4096);

    for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
        if (set >> i & 1)
            buf_addf(&b, "%s\"%s\":%s", b.n > 0 ? "," : ",\"runtimeConfig\":{", capabilities[i].name,
                     capabilities[i].value);
    buf_adds(&b, b.n > 0 ? "}" : "");
    return buf_detach(&b);
}

/* A result as a plugin of that version gives it. */
static char *result_of(const char *version, const char *address)
{
    return str_printf(
        "{\"cniVersion\":\"%s\",\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"0a:58:0a:00:00:09\","
        "\"sandbox\":\"/run/ns\"}],\"ips\":[{%s\"address\":\"%s\",\"interface\":0}],"
        "\"routes\":[],\"dns\":{}}",
        version, strcmp(version, "0.4.0") == 0 ? "\"version\":\"4\"," : "", address);
}

static void go_through(struct place *p, const char *version, unsigned set)
{
    str_auto declared = declare(set);
    str_auto config = supplied(set);
    str_auto first = result_of(version, "10.0.0.9/24");
    str_auto last = result_of(version, "10.0.0.10/24");
    str_auto list =
        str_printf("{\"cniVersion\":\"%s\",\"name\":\"net\",\"plugins\":["
                   "{\"type\":\"main\",\"x\":[1,{\"y\":null}],\"capabilities\":%s},"
                   "{\"prevResult\":1,\"runtimeConfig\":2,\"type\":\"meta\",\"name\":\"other\"}]}",
                   version, declared);
    str_auto main_head = str_printf("{\"type\":\"main\",\"x\":[1,{\"y\":null}],\"name\":\"net\","
                                    "\"cniVersion\":\"%s\"",
                                    version);
    str_auto meta_head = str_printf("{\"type\":\"meta\",\"name\":\"net\",\"cniVersion\":\"%s\"", version);
    str_auto tell_first = str_printf("out %s\n", first);
    str_auto tell_last = str_printf("out %s\n", last);
    str_auto main_alone = str_printf("%s%s}", main_head, config);
    str_auto main_last = str_printf("%s%s,\"prevResult\":%s}", main_head, config, last);
    str_auto main_bare = str_printf("%s}", main_head);
    str_auto meta_first = str_printf("%s,\"prevResult\":%s}", meta_head, first);
    str_auto meta_last = str_printf("%s,\"prevResult\":%s}", meta_head, last);
    str_auto meta_bare = str_printf("%s}", meta_head);
    str_auto main_gc = str_printf("%s,\"cni.dev/valid-attachments\":[{\"containerID\":\"" ID
                                  "\",\"ifname\":\"eth0\"}],\"cni.dev/attachments\":[{\"containerID\":\"" ID
                                  "\",\"ifname\":\"eth0\"}]}",
                                  main_head);
    bool new = strcmp(version, "1.1.0") == 0;
    struct cni_gc g;
    struct cni *c;

    forget_calls(p);
    put(p, "net.d/10.conflist", list);
    oracle_tell(p, "main", "ADD", tell_first);
    oracle_tell(p, "meta", "ADD", tell_last);
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    assert_call(p, "VERSION", "main", DUMMIES, "{\"cniVersion\":\"1.1.0\"}");
    assert_call(p, "VERSION", "meta", DUMMIES, "{\"cniVersion\":\"1.1.0\"}");
    assert_true(assert_call(p, "ADD", "main", ATTACHED, main_alone) <
                assert_call(p, "ADD", "meta", ATTACHED, meta_first));
    if (new) {
        assert_true(assert_call(p, "STATUS", "main", "", main_bare) <
                    assert_call(p, "STATUS", "meta", "", meta_bare));
    }
    run_well(p, c, check);
    assert_true(assert_call(p, "CHECK", "main", ATTACHED, main_last) <
                assert_call(p, "CHECK", "meta", ATTACHED, meta_last));
    gc(p, c, &g);
    assert_int_equal(g.n_networks, new ? 1 : 0);
    if (new)
        assert_call(p, "GC", "main", "", main_gc);
    run_well(p, c, cni_del_start);
    assert_true(assert_call(p, "DEL", "meta", ATTACHED, meta_last) <
                assert_call(p, "DEL", "main", ATTACHED, main_last));
    assert_int_equal(calls(p, "STATUS", "main", NULL, NULL), new);
    assert_int_equal(calls(p, "GC", "meta", NULL, NULL), new);
    assert_int_equal(calls(p, "VERSION", "main", NULL, NULL), 1);
    cni_close(c);
    uv_run(&p->loop, UV_RUN_NOWAIT);
}

static void every_verb_is_called_as_the_specification_says(void **state)
{
    static const char *const versions[] = { "0.4.0", "1.0.0", "1.1.0" };
    struct place *p = *state;

    oracle_put(p, "main");
    oracle_put(p, "meta");
    for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
        go_through(p, versions[v], NONE);
        go_through(p, versions[v], ALL);
        for (size_t i = 0; i < ARRAY_LEN(capabilities); i++) {
            go_through(p, versions[v], 1u << i);
            go_through(p, versions[v], ALL & ~(1u << i));
        }
    }
}

/* ---- failures -------------------------------------------------------------------------------------------
 */

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

/* ---- versions -------------------------------------------------------------------------------------------
 */

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

/* ---- STATUS, CHECK, GC ----------------------------------------------------------------------------------
 */

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

static void what_the_first_check_finds_wrong_is_the_measure(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    struct err e;

    one_plugin(p, "1.0.0", "");
    oracle_tell(p, "main", "CHECK", "out {\"code\":999,\"msg\":\"no ipv6 rule\"}\nexit 1\n");
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    run_well(p, c, check);
    run_well(p, c, check);
    cni_close(c); /* it is kept with the attachment */
    c = open_cni(p);
    run_well(p, c, check);
    oracle_tell(p, "main", "CHECK", "out {\"code\":999,\"msg\":\"no ipv4 rule\"}\nexit 1\n");
    e = run(p, c, check);
    assert_string_equal(e.text, "plugin type=\"main\" failed (check): no ipv4 rule (CNI code 999)");
    oracle_tell(p, "main", "CHECK", ""); /* better than at first: from now on so */
    run_well(p, c, check);
    found = "interface eth0 is gone";
    e = run(p, c, check);
    assert_int_equal(e.code, ERR_UNKNOWN);
    assert_string_equal(e.text, found);
    run_well(p, c, cni_del_start);

    /* The same before any CHECK: lost, unless it was like that from the start. */
    cni_reload(c);
    run_well(p, c, cni_add_start);
    assert_int_equal(run(p, c, check).code, ERR_UNKNOWN);
    fresh = true;
    run_well(p, c, check);
    fresh = false;
    run_well(p, c, check);
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
    struct cni_attachment bare = web; /* no host ports */
    struct place *p = *state;
    struct cni *c;

    put(p, "net.d/10.conflist",
        "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":\"main\","
        "\"capabilities\":{\"portMappings\":true,\"bandwidth\":true}}]}");
    oracle_put(p, "main");
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
    assert_false(add_is_checked(p, c, &web)); /* its addresses matter, too */
    run_well(p, c, cni_del_start);
    bare.egress_bits = bare.ingress_bits = 0; /* another kind */
    assert_false(add_is_checked(p, c, &bare));
    run_well(p, c, cni_del_start);
    bare = web;
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
        TEST(every_verb_is_called_as_the_specification_says),
        TEST(every_failure_is_told_in_one_line_and_can_be_undone),
        TEST(a_plugin_that_hangs_is_ended_with_its_children),
        TEST(a_child_that_outlives_its_plugin_holds_nobody_up),
        TEST(the_highest_version_that_all_speak_is_used),
        TEST(a_list_that_a_plugin_does_not_speak_is_named_and_the_next_one_used),
        TEST(a_program_that_is_replaced_is_asked_again),
        TEST(a_plugin_that_hangs_when_asked_for_its_versions_delays_one_operation_once),
        TEST(a_plugin_that_cannot_be_executed_is_named),
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
