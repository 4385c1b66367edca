/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins are given, byte for byte: all verbs, versions and capabilities. */
#include "oracle_run.h"

#define ARGS                                                                                                 \
    "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=" ID              \
    ";K8S_POD_UID=u1;IP=10.0.0.9"

static const struct cni_port_mapping ports[] = {
    { 8080, 80, "tcp", "" }, { 53, 5353, "udp", "10.1.1.1" }, { 9, 9, "sctp", NULL }, { 0, 7, "tcp", NULL }
};
static const char *const ranges[] = { "10.0.0.0/16", "fd00::/64", NULL };
static const char *const servers[] = { "10.96.0.10", NULL };
static const char *const searches[] = { "default.svc", "svc", NULL };
static const char *const options[] = { "ndots:5", NULL };
static const struct cni_pair annotations[] = { { "a", "1" }, { "b/c", "\"x\"" } };
static const struct cni_attachment full = { .container_id = ID,
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

static void run_full(struct place *p, struct cni *c, start_fn start)
{
    struct err e = run_one(p, c, start, &full);

    if (e.code != ERR_OK)
        fail_msg("%s", e.text);
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
                                   "env GOMAXPROCS=1\n"
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
    run_full(p, c, cni_add_start);
    assert_call(p, "VERSION", "main", DUMMIES, "{\"cniVersion\":\"1.1.0\"}");
    assert_call(p, "VERSION", "meta", DUMMIES, "{\"cniVersion\":\"1.1.0\"}");
    assert_true(assert_call(p, "ADD", "main", ATTACHED, main_alone) <
                assert_call(p, "ADD", "meta", ATTACHED, meta_first));
    if (new) {
        assert_true(assert_call(p, "STATUS", "main", "", main_bare) <
                    assert_call(p, "STATUS", "meta", "", meta_bare));
    }
    run_full(p, c, check);
    assert_true(assert_call(p, "CHECK", "main", ATTACHED, main_last) <
                assert_call(p, "CHECK", "meta", ATTACHED, meta_last));
    gc(p, c, &g);
    assert_int_equal(g.n_networks, new ? 1 : 0);
    if (new)
        assert_call(p, "GC", "main", "", main_gc);
    run_full(p, c, cni_del_start);
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

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(every_verb_is_called_as_the_specification_says),
    };

    if (oracle_is_called())
        return oracle_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
