/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fifty pods ADDed at once, with Debian's plugins, in a network namespace that plays the host: against a
 * shell loop that runs the same plugins with the same parallelism in the same minute.  Needs root.  Beside
 * other tests twice the loop's time is still no failure; CNI_PARALLEL_PERCENT=120 is the measure on a quiet
 * machine.
 */
#include "rootns.h"

#include "base/sanitized.h"
#include "cni/host/netns.h"
#include "cni/internal.h"

#define PODS 50
#define TRIES 3 /* a busy machine may spoil some */
#define PERCENT_BESIDE_OTHERS 200

static const char *why_not;
static const char *const bin_dirs[] = { "/opt/cni/bin", "/usr/lib/cni", NULL };

#define BRIDGE_CONF                                                                                          \
    "\"type\":\"bridge\",\"bridge\":\"crpar0\",\"isGateway\":true,\"ipMasq\":true,"                          \
    "\"ipam\":{\"type\":\"host-local\",\"dataDir\":\"%s/data\",\"ranges\":[[{\"subnet\":\"10.232.0.0/"       \
    "16\"}]],"                                                                                               \
    "\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}"
#define HEAD "\"cniVersion\":\"1.0.0\",\"name\":\"crpar\""
#define RATE "{\"ingressRate\":1000000,\"ingressBurst\":96000,\"egressRate\":1000000,\"egressBurst\":96000}"

/* One pod: VERB ID NETNS PORT. */
static const char script[] =
    "export CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=$3 CNI_IFNAME=eth0 "
    "CNI_PATH=/opt/cni/bin:/usr/lib/cni "
    "CNI_ARGS=IgnoreUnknown=1\n"
    "b=/usr/lib/cni; test -d /opt/cni/bin && test -x /opt/cni/bin/bridge && b=/opt/cni/bin\n"
    "ports='\"runtimeConfig\":{\"portMappings\":[{\"hostPort\":'$4',\"containerPort\":80,\"protocol\":"
    "\"tcp\"}]}'\n"
    "failed() { echo \"$1 of $CNI_CONTAINERID: $r\"; exit 1; }\n"
    "r=$($b/bridge <<E\n{" HEAD "," BRIDGE_CONF "}\nE\n) || failed bridge\n"
    "r=$($b/portmap <<E\n{" HEAD ",\"type\":\"portmap\",$ports,\"prevResult\":$r}\nE\n) || failed portmap\n"
    "r=$($b/bandwidth <<E\n{" HEAD ",\"type\":\"bandwidth\",\"runtimeConfig\":{\"bandwidth\":" RATE
    "},\"prevResult\":$r}\nE\n) || failed bandwidth\n"
    "echo \"$r\" >%s/result-$2\n";

static int setup(void **state)
{
    if (place_make(state) != 0)
        return -1;
    if (why_not == NULL) {
        struct err e = { 0 };

        if (unshare(CLONE_NEWNET) != 0 || nl_link_up("lo", &e) != ERR_OK)
            return -1;
        mount_shared(*state);
    }
    return 0;
}

struct fleet {
    struct place *p;
    struct cni *c;
    struct cni_op ops[PODS];
    char ids[PODS][32], dirs[PODS][128], netns[PODS][140];
    struct cni_port_mapping ports[PODS];
    int ended;
};

static void on_pod(struct op *op, const struct err *result)
{
    struct fleet *f = op->owner;

    if (result->code != ERR_OK)
        print_message("%s\n", result->text);
    assert_int_equal(result->code, ERR_OK);
    f->ended++;
}

static void make_namespaces(struct fleet *f, const char *whose)
{
    /* Of two portmap plugins that find its chains missing at the same moment, one fails. */
    free(sh("for c in SETMARK MASQ DNAT; do iptables -t nat -N CNI-HOSTPORT-$c; done"));
    for (int i = 0; i < PODS; i++) {
        struct netns_spec spec = { .dir = f->dirs[i], .net = true };
        struct ended d = { 0 };
        struct proc_call call;

        snprintf(f->ids[i], sizeof(f->ids[i]), "%s%d", whose, i);
        snprintf(f->dirs[i], sizeof(f->dirs[i]), "%s/ns/%s%d", f->p->dir, whose, i);
        snprintf(f->netns[i], sizeof(f->netns[i]), "%s/net", f->dirs[i]);
        f->ports[i] = (struct cni_port_mapping){ 20000 + i, 80, "tcp", "" };
        netns_create_start(&call, &spec, -1, NULL, &f->p->loop, on_ended, &d);
        run_until_ended(f->p, &d);
        assert_int_equal(d.result.code, ERR_OK);
    }
}

static void remove_namespaces(struct fleet *f)
{
    struct err e = { 0 };

    for (int i = 0; i < PODS; i++)
        assert_int_equal(netns_remove(f->dirs[i], &e), ERR_OK);
    free(sh("iptables -t nat -F; iptables -t nat -X 2>/dev/null; for l in $(ip -o link | grep -o "
            "'bwp[0-9a-f]*'); "
            "do ip link del $l; done"));
}

static uint64_t by_us(struct fleet *f)
{
    uint64_t start;

    make_namespaces(f, "us");
    start = clock_mono_ms();
    f->ended = 0;
    for (int i = 0; i < PODS; i++) {
        struct cni_attachment a = { .container_id = f->ids[i],
                                    .netns = f->netns[i],
                                    .ifname = "eth0",
                                    .ports = &f->ports[i],
                                    .n_ports = 1,
                                    .ingress_bits = 1000000,
                                    .egress_bits = 1000000 };

        cni_add_start(&f->ops[i], f->c, &a, on_pod, f);
    }
    while (f->ended < PODS && uv_run(&f->p->loop, UV_RUN_ONCE) != 0)
        ;
    start = clock_mono_ms() - start;
    for (int i = 0; i < PODS; i++) {
        struct cni_attachment a = { .container_id = f->ids[i], .netns = f->netns[i], .ifname = "eth0" };
        struct ended d = { 0 };

        cni_del_start(&f->ops[0], f->c, &a, on_ended, &d);
        run_until_ended(f->p, &d);
        assert_int_equal(d.result.code, ERR_OK);
    }
    remove_namespaces(f);
    return start;
}

static uint64_t by_shell(struct fleet *f)
{
    buf_auto arguments = BUF_INIT(64 * 1024);
    str_auto command = NULL;
    str_auto out = NULL;
    struct err e = { 0 };
    uint64_t start;

    make_namespaces(f, "sh");
    for (int i = 0; i < PODS; i++)
        buf_addf(&arguments, "ADD %s %s %d\n", f->ids[i], f->netns[i], f->ports[i].host_port);
    put(f->p, "pods", arguments.p);
    command =
        str_printf("xargs -P %zu -L 1 sh %s/pod.sh <%s/pods 2>&1", f->c->width.most, f->p->dir, f->p->dir);
    start = clock_mono_ms();
    out = sh(command);
    start = clock_mono_ms() - start;
    if (out[0] != '\0')
        fail_msg("%s", out);
    for (int i = 0; i < PODS; i++) {
        char result[64];

        snprintf(result, sizeof(result), "result-%s", f->ids[i]);
        assert_true(exists(f->p, result));
        unlinkat(f->p->fd, result, 0);
    }
    remove_namespaces(f);
    assert_int_equal(fs_remove_tree(f->p->fd, "data", &e), ERR_OK); /* the shell loop gives nothing back */
    return start;
}

static void compare_with_a_shell_loop(struct place *p)
{
    struct fleet *f = calloc(1, sizeof(*f));
    str_auto bridge = str_printf(BRIDGE_CONF, p->dir);
    str_auto list = str_printf(
        "{" HEAD ",\"plugins\":[{%s},{\"type\":\"portmap\",\"capabilities\":{\"portMappings\":true}},"
        "{\"type\":\"bandwidth\",\"capabilities\":{\"bandwidth\":true}}]}",
        bridge);
    str_auto text = str_printf(script, p->dir, p->dir);
    const char *asked = getenv("CNI_PARALLEL_PERCENT");
    uint64_t percent = asked != NULL ? strtoull(asked, NULL, 10) : PERCENT_BESIDE_OTHERS;
    uint64_t best_us = UINT64_MAX, best_sh = UINT64_MAX;
    struct cni_options o = { .loop = &p->loop,
                             .conf_dir = in_place(p, "net.d"),
                             .bin_dirs = bin_dirs,
                             .cache_dir = in_place(p, "cache"),
                             .ops_cgroup_fd = -1 };
    struct err e = { 0 };

    f->p = p;
    put(p, "net.d/10.conflist", list);
    put(p, "pod.sh", text);
    assert_int_equal(cni_open(&f->c, &o, &e), ERR_OK);
    free(sh("ip link add crpar0 type bridge; ip link set crpar0 up"));
    for (int i = 0; i < TRIES && (i == 0 || best_us * 100 > best_sh * percent); i++) {
        uint64_t us = by_us(f), shell = by_shell(f);

        best_us = us < best_us ? us : best_us;
        best_sh = shell < best_sh ? shell : best_sh;
        print_message("# measured 50 pods ADDed: %llu ms, by a shell loop %llu ms, %zu side by side\n",
                      (unsigned long long)us, (unsigned long long)shell, f->c->width.most);
    }
    if (best_us * 100 > best_sh * percent)
        fail_msg("%llu ms are more than %llu %% of %llu ms", (unsigned long long)best_us,
                 (unsigned long long)percent, (unsigned long long)best_sh);
    cni_close(f->c);
    free(f);
}

static void fifty_pods_take_no_longer_than_a_shell_loop(void **state)
{
    if (why_not != NULL)
        SKIP(why_not); /* before anything is allocated: it does not come back */
    compare_with_a_shell_loop(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fifty_pods_take_no_longer_than_a_shell_loop, setup, place_remove),
    };

    why_not = rootns_enter();
    if (why_not == NULL && access("/usr/lib/cni/bridge", X_OK) != 0 &&
        access("/opt/cni/bin/bridge", X_OK) != 0)
        why_not = "CNI plugins are not installed";
    /* Times of a sanitized build say nothing. */
    return _cmocka_run_group_tests("tests", tests, SANITIZED ? 0 : ARRAY_LEN(tests), NULL, NULL);
}
