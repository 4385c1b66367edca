/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugins as Debian ships them, in a network namespace that plays the host: bridge + host-local, portmap,
 * bandwidth, firewall.  Needs root; skipped, with the reason, where something is missing.
 */
#include "rootns.h"

#include "cni/cni.h"
#include "cni/host/netns.h"
#include "cni/strays.h"
#include "cni/undo.h"

#define BRIDGE "crtest0"
#define ID "coraclecnitest0123456789abcdef"

static const char *const nobody[] = { NULL };

static const char *why_not;
static const char *const bin_dirs[] = { "/opt/cni/bin", "/usr/lib/cni", NULL };

static const char list[] = "{\"cniVersion\": \"1.0.0\", \"name\": \"crtest\", \"plugins\": ["
                           " {\"type\": \"bridge\", \"bridge\": \"" BRIDGE
                           "\", \"isGateway\": true, \"ipMasq\": true, \"hairpinMode\": true,"
                           "  \"ipam\": {\"type\": \"host-local\", \"ranges\": [[{\"subnet\": "
                           "\"10.231.77.0/24\"}], [{\"subnet\": \"fd77:231::/64\"}]],"
                           "             \"routes\": [{\"dst\": \"0.0.0.0/0\"}, {\"dst\": \"::/0\"}]}},"
                           " {\"type\": \"portmap\", \"capabilities\": {\"portMappings\": true}},"
                           " {\"type\": \"firewall\", \"ingressPolicy\": \"same-bridge\"},"
                           " {\"type\": \"bandwidth\", \"capabilities\": {\"bandwidth\": true}}]}";

static int setup(void **state)
{
    if (place_make(state) != 0)
        return -1;
    if (why_not == NULL) {
        struct err e = { 0 };

        /* Each test finds a host of its own. */
        if (unshare(CLONE_NEWNET) != 0 || nl_link_up("lo", &e) != ERR_OK)
            return -1;
        mount_shared(*state);
        put(*state, "net.d/10-crtest.conflist", list);
    }
    return 0;
}

static void finish(struct place *p, struct ended *d)
{
    run_until_ended(p, d);
    if (d->result.code != ERR_OK)
        fail_msg("%s", d->result.text);
    *d = (struct ended){ 0 };
}

/* All that plugins may change on a host. */
static char *host_state(void)
{
    return sh(
        "exec 2>/dev/null; iptables-save | grep -v '^#'; ip6tables-save | grep -v '^#'; nft list ruleset; ip "
        "-o link | "
        "cut -d' ' -f1-3; ip -o addr; ip route show table all; grep -rH . /proc/sys/net/ipv4/ip_forward "
        "/proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf | grep -v stable_secret | sort");
}

static void add(struct place *p, struct cni *c, const struct cni_attachment *a, struct cni_result *ret)
{
    struct ended d = { 0 };
    struct cni_op o;

    cni_add_start(&o, c, a, on_ended, &d);
    finish(p, &d);
    *ret = o.result;
}

static void del(struct place *p, struct cni *c, const struct cni_attachment *a)
{
    struct ended d = { 0 };
    struct cni_op o;

    cni_del_start(&o, c, a, on_ended, &d);
    finish(p, &d);
}

static void make_netns(struct place *p, const char *dir)
{
    struct netns_spec spec = { .dir = dir, .net = true, .ipc = true, .uts = true };
    struct ended d = { 0 };
    struct proc_call call;

    netns_create_start(&call, &spec, -1, NULL, &p->loop, on_ended, &d);
    finish(p, &d);
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("\"%s\" is in:\n%s", part, text);
}

static void a_pod_comes_and_goes_and_the_host_is_as_it_was(void **state)
{
    static const struct cni_port_mapping ports[] = { { 18080, 80, "tcp", "" },
                                                     { 18053, 53, "udp", "10.231.77.1" } };
    struct place *p = *state;
    struct cni_attachment a = { .container_id = ID,
                                .ifname = "eth0",
                                .pod_namespace = "default",
                                .pod_name = "web",
                                .pod_uid = "u1",
                                .ports = ports,
                                .n_ports = ARRAY_LEN(ports),
                                .ingress_bits = 8000000,
                                .egress_bits = 8000000 };
    struct cni_result result, cached;
    str_auto before = NULL;
    str_auto during = NULL;
    str_auto left = NULL;
    str_auto after = NULL;
    str_auto inside = NULL;
    str_auto command = NULL;
    str_auto dir = NULL;
    str_auto netns = NULL;
    struct ended d = { 0 };
    struct cni_undo undo;
    struct err e = { 0 };
    struct cni *c;

    if (why_not != NULL)
        SKIP(why_not);
    before = host_state();
    dir = strdup(in_place(p, "ns/pod"));
    netns = strdup(in_place(p, "ns/pod/net"));
    c = open_with(p, bin_dirs);
    assert_null(cni_problem(c, 0));
    cni_undo_record_start(&undo, c, on_ended, &d);
    finish(p, &d);
    make_netns(p, dir);

    a.netns = netns;
    add(p, c, &a, &result);
    assert_int_equal(result.n_ips, 2);
    assert_string_equal(result.ips[0], "10.231.77.2");
    assert_string_equal(result.ips[1], "fd77:231::2");
    assert_int_equal(presence_of(cni_cached_result(c, ID, "eth0", &cached, &e)), PRESENCE_PRESENT);
    assert_memory_equal(&cached, &result, sizeof(cached));
    command = str_printf("nsenter --net=%s ip -o addr show dev eth0", netns);
    inside = sh(command);
    assert_contains(inside, "inet 10.231.77.2/24 ");
    assert_contains(inside, "inet6 fd77:231::2/64 ");
    assert_true(exists(p, "data/crtest/10.231.77.2"));
    during = host_state();
    assert_contains(during, "veth");
    assert_contains(during, "bwp");
    assert_contains(during, "CNI-DN-");
    assert_contains(during, "--dport 18080 -j DNAT --to-destination 10.231.77.2:80");

    del(p, c, &a);
    left = host_state();
    assert_lacks(left, "veth");
    assert_lacks(left, "bwp");
    assert_lacks(left, "CNI-DN-");
    assert_lacks(left, "10.231.77.2/");
    assert_lacks(left, "10.231.77.2 ");
    assert_contains(left, BRIDGE);
    assert_false(exists(p, "data/crtest/10.231.77.2"));
    assert_int_equal(presence_of(cni_cached_result(c, ID, "eth0", &cached, &e)), PRESENCE_ABSENT);
    e = (struct err){ 0 };
    a.netns = "";
    assert_int_equal(netns_remove(dir, &e), ERR_OK);
    del(p, c, &a); /* once more, when all is gone */

    cni_remove_bridges(c);
    assert_false(exists(p, "data/crtest"));
    cni_undo_start(&undo, c, on_ended, &d);
    finish(p, &d);
    after = host_state();
    assert_string_equal(after, before);
    assert_int_equal(count(p, "cache"), 0);
    cni_close(c);
}

#define MANY 12

struct many {
    struct cni_op ops[MANY];
    char ids[MANY][32], netns[MANY][128];
    struct cni_port_mapping ports[MANY];
    int ended;
};

static void on_one_of_many(struct op *op, const struct err *result)
{
    struct many *m = op->owner;

    if (result->code != ERR_OK)
        print_message("%s\n", result->text);
    assert_int_equal(result->code, ERR_OK);
    m->ended++;
}

static void run_many(struct place *p, struct cni *c, struct many *m, bool adding)
{
    m->ended = 0;
    for (int i = 0; i < MANY; i++) {
        struct cni_attachment a = { .container_id = m->ids[i],
                                    .netns = m->netns[i],
                                    .ifname = "eth0",
                                    .ports = &m->ports[i],
                                    .n_ports = 1 };

        if (adding)
            cni_add_start(&m->ops[i], c, &a, on_one_of_many, m);
        else
            cni_del_start(&m->ops[i], c, &a, on_one_of_many, m);
    }
    while (m->ended < MANY && uv_run(&p->loop, UV_RUN_ONCE) != 0)
        ;
    assert_int_equal(m->ended, MANY);
}

static void many_pods_at_once_get_different_addresses(void **state)
{
    struct place *p = *state;
    struct many m = { 0 };
    str_auto left = NULL;
    struct err e = { 0 };
    struct cni *c;

    if (why_not != NULL)
        SKIP(why_not);
    c = open_with(p, bin_dirs);
    for (int i = 0; i < MANY; i++) {
        snprintf(m.ids[i], sizeof(m.ids[i]), "coraclecnitest%d", i);
        snprintf(m.netns[i], sizeof(m.netns[i]), "%s/ns/%d/net", p->dir, i);
        m.ports[i] = (struct cni_port_mapping){ 18000 + i, 80, "tcp", "" };
        *strrchr(m.netns[i], '/') = '\0';
        make_netns(p, m.netns[i]);
        strcat(m.netns[i], "/net");
    }
    run_many(p, c, &m, true);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(m.ops[i].result.n_ips, 2);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(m.ops[i].result.ips[0], m.ops[k].result.ips[0]);
    }
    run_many(p, c, &m, false);
    left = host_state();
    assert_lacks(left, "veth");
    assert_lacks(left, "CNI-DN-");
    for (int i = 0; i < MANY; i++) {
        *strrchr(m.netns[i], '/') = '\0';
        assert_int_equal(netns_remove(m.netns[i], &e), ERR_OK);
    }
    cni_close(c);
}

static void a_pod_whose_namespace_is_gone_still_gives_its_address_back(void **state)
{
    struct place *p = *state;
    struct cni_attachment a = { .container_id = ID, .ifname = "eth0" };
    struct cni_result result;
    str_auto dir = NULL;
    str_auto netns = NULL;
    str_auto left = NULL;
    struct err e = { 0 };
    struct cni *c;

    if (why_not != NULL)
        SKIP(why_not);
    dir = strdup(in_place(p, "ns/pod"));
    netns = strdup(in_place(p, "ns/pod/net"));
    c = open_with(p, bin_dirs);
    make_netns(p, dir);
    a.netns = netns;
    add(p, c, &a, &result);
    assert_true(exists(p, "data/crtest/10.231.77.2"));
    assert_int_equal(netns_remove(dir, &e), ERR_OK);
    cni_close(c);

    c = open_with(p, bin_dirs); /* as after a restart */
    a.netns = "";
    del(p, c, &a);
    assert_false(exists(p, "data/crtest/10.231.77.2"));
    left = host_state();
    assert_lacks(left, "CNI-DN-");
    assert_lacks(left, "veth");
    /* The masquerading rule stays: the plugin looks for its address in the namespace.  Hence DEL first. */
    cni_remove_bridges(c);
    assert_false(nl_link_exists(BRIDGE));
    cni_close(c);
}

static void what_was_there_before_is_left_alone(void **state)
{
    static const struct cni_port_mapping port = { 18080, 80, "tcp", "" };
    struct place *p = *state;
    struct cni_attachment a = { .container_id = ID, .ifname = "eth0", .ports = &port, .n_ports = 1 };
    struct cni_result result;
    str_auto before = NULL;
    str_auto after = NULL;
    str_auto dir = NULL;
    str_auto netns = NULL;
    struct ended d = { 0 };
    struct cni_undo undo;
    struct err e = { 0 };
    struct cni *c;

    if (why_not != NULL)
        SKIP(why_not);
    /* Another engine's bridge of the same name, forwarding, chains. */
    free(sh(
        "ip link add " BRIDGE " type bridge; ip addr add 10.231.77.1/24 dev " BRIDGE "; ip link set " BRIDGE
        " up;"
        "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.lo.route_localnet=1; iptables -t nat -N "
        "CNI-HOSTPORT-DNAT;"
        "iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT; iptables -N MINE;"
        "iptables -P FORWARD DROP; iptables -A FORWARD -m comment --comment \"a \\\"quoted\\\" one\" -j "
        "MINE"));
    before = sh("iptables-save -t filter | grep -v '^#'; ip -o link show " BRIDGE "| cut -d' ' -f1-2; "
                "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/lo/route_localnet");
    dir = strdup(in_place(p, "ns/pod"));
    netns = strdup(in_place(p, "ns/pod/net"));
    c = open_with(p, bin_dirs);
    cni_undo_record_start(&undo, c, on_ended, &d);
    finish(p, &d);
    make_netns(p, dir);
    a.netns = netns;
    add(p, c, &a, &result);
    del(p, c, &a);
    assert_int_equal(netns_remove(dir, &e), ERR_OK);
    cni_remove_bridges(c);
    free(sh("sysctl -qw net.ipv4.conf.lo.route_localnet=0"));
    cni_undo_start(&undo, c, on_ended, &d);
    finish(p, &d);
    after = sh("iptables-save -t filter | grep -v -e '^#' -e ISOLATION; ip -o link show " BRIDGE
               "| cut -d' ' -f1-2; "
               "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/lo/route_localnet");
    assert_string_equal(after, before);
    free(take_ptr(&after));
    after = sh("iptables-save -t nat");
    assert_contains(after, "-j CNI-HOSTPORT-DNAT"); /* the group was there in part: it stays as a whole */
    cni_close(c);
}

/* Its entry was lost: what the rules tell is enough to undo the rest, ifb and firewall's rules among it. */
static void a_pod_that_only_rules_tell_of_goes_without_a_trace(void **state)
{
    static const struct cni_port_mapping ports[] = { { 18080, 80, "tcp", "" }, { 18053, 53, "udp", "" } };
    struct place *p = *state;
    struct cni_attachment a = { .container_id = ID,
                                .ifname = "eth0",
                                .ports = ports,
                                .n_ports = ARRAY_LEN(ports),
                                .ingress_bits = 8000000,
                                .egress_bits = 8000000 };
    struct cni_stray_list lost = { 0 };
    struct cni_result result;
    struct cni_strays strays;
    str_auto dir = NULL;
    str_auto netns = NULL;
    str_auto left = NULL;
    str_auto entry = NULL;
    struct ended d = { 0 };
    struct err e = { 0 };
    struct cni *c;

    if (why_not != NULL)
        SKIP(why_not);
    dir = strdup(in_place(p, "ns/pod"));
    netns = strdup(in_place(p, "ns/pod/net"));
    c = open_with(p, bin_dirs);
    make_netns(p, dir);
    a.netns = netns;
    add(p, c, &a, &result);
    assert_int_equal(netns_remove(dir, &e), ERR_OK);
    unlinkat(p->fd, "cache/crtest-" ID "-eth0.json", 0);

    cni_strays_start(&strays, c, "somebody-else", "eth0", &lost, on_ended, &d);
    finish(p, &d);
    assert_int_equal(strays.n_adopted, 0);
    assert_memory_equal(strays.links, "bwp", 3); /* told, and left alone */
    unlinkat(p->fd, "data/crtest/10.231.77.2", 0);
    put(p, "data/crtest/fd77:231::2", "somebody-else");
    cni_strays_start(&strays, c, "coraclecni", "eth0", &lost, on_ended, &d);
    finish(p, &d);
    assert_int_equal(strays.n_adopted, 1);
    assert_true(exists(p, "data/crtest/10.231.77.2")); /* nobody gets it before the DEL */
    entry = get(p, "cache/crtest-" ID "-eth0.json");
    assert_lacks(entry, "fd77:231::2/128"); /* whose rules are somebody else's */
    a = (struct cni_attachment){ .container_id = ID, .netns = "", .ifname = "eth0" };
    del(p, c, &a);
    assert_int_equal(count(p, "cache"), 0);
    left = host_state();
    assert_lacks(left, "bwp");
    assert_lacks(left, ID);
    assert_lacks(left, "10.231.77.2/");
    assert_lacks(left, "CNI-DN-");
    assert_false(exists(p, "data/crtest/10.231.77.2"));
    cni_close(c);
}

/* Debian 12's plugins (1.1) have neither; with newer ones in /opt/cni/bin this is the real thing. */
static void plugins_of_cni_1_1_give_their_status_and_collect_garbage(void **state)
{
    struct place *p = *state;
    struct cni_attachment a = { .container_id = ID, .ifname = "eth0" };
    struct cni_result result;
    str_auto text = NULL;
    str_auto dir = NULL;
    str_auto netns = NULL;
    struct ended d = { 0 };
    struct err e = { 0 };
    struct cni_gc gc;
    struct cni *c;

    if (why_not != NULL)
        SKIP(why_not);
    text = strdup(list);
    memcpy(strstr(text, "1.0.0"), "1.1.0", 5);
    put(p, "net.d/10-crtest.conflist", text);
    c = open_with(p, bin_dirs);
    cni_gc_start(&gc, c, nobody, "eth0", on_ended,
                 &d); /* waits for what plugins say of their versions and their status */
    finish(p, &d);
    if (cni_default_network(c, NULL) == NULL) {
        assert_non_null(strstr(cni_problem(c, 0), "does not speak cniVersion 1.1.0"));
        assert_int_equal(gc.n_networks, 0);
        print_message("# not tried with these plugins: %s\n", cni_problem(c, 0));
        cni_close(c);
        return;
    }
    dir = strdup(in_place(p, "ns/pod"));
    netns = strdup(in_place(p, "ns/pod/net"));
    make_netns(p, dir);
    a.netns = netns;
    add(p, c, &a, &result);
    put(p, "data/crtest/10.231.77.99", "nobody\r\neth0");
    cni_gc_start(&gc, c, nobody, "eth0", on_ended, &d);
    finish(p, &d);
    assert_int_equal(gc.n_networks, 1);
    assert_true(exists(p, "data/crtest/10.231.77.2"));
    assert_false(exists(p, "data/crtest/10.231.77.99"));
    del(p, c, &a);
    assert_int_equal(netns_remove(dir, &e), ERR_OK);
    cni_close(c);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(a_pod_comes_and_goes_and_the_host_is_as_it_was),
        TEST(many_pods_at_once_get_different_addresses),
        TEST(a_pod_whose_namespace_is_gone_still_gives_its_address_back),
        TEST(what_was_there_before_is_left_alone),
        TEST(a_pod_that_only_rules_tell_of_goes_without_a_trace),
        TEST(plugins_of_cni_1_1_give_their_status_and_collect_garbage),
    };

    if (access("/usr/lib/cni/bridge", X_OK) != 0 && access("/opt/cni/bin/bridge", X_OK) != 0)
        why_not = "no CNI plugins in /opt/cni/bin or /usr/lib/cni";
    else if (system("command -v iptables-save ip nsenter >/dev/null") != 0)
        why_not = "no iptables, ip or nsenter";
    else
        why_not = rootns_enter();
    return rootns_run(tests, ARRAY_LEN(tests));
}
