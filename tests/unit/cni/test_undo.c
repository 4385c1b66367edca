/* SPDX-License-Identifier: Apache-2.0 */
/* The record of the host's state and what is put back, without plugins: iptables and ip play their part. */
#include "rootns.h"

#include "cni/cni.h"
#include "cni/internal.h"
#include "cni/undo.h"

static const char *why_not;

#define NEED_ROOT                                                                                            \
    do {                                                                                                     \
        if (why_not != NULL)                                                                                 \
            SKIP(why_not);                                                                                   \
    } while (0)

static bool has_nft;

#define NEED_NFT                                                                                             \
    do {                                                                                                     \
        if (!has_nft)                                                                                        \
            SKIP("no nft");                                                                                  \
    } while (0)

/* Each test finds a host of its own; a new one inherits IPv4 settings from the real one. */
static int setup(void **state)
{
    struct err e = { 0 };

    if (place_make(state) != 0)
        return -1;
    if (why_not != NULL)
        return 0;
    if (unshare(CLONE_NEWNET) != 0 || nl_link_up("lo", &e) != ERR_OK)
        return -1;
    return system("sysctl -qw net.ipv4.ip_forward=0") == 0 ? 0 : -1;
}

static const char *const no_plugins[] = { NULL };

static struct err record(struct place *p, struct cni *c)
{
    struct ended d = { 0 };
    struct cni_undo u;

    cni_undo_record_start(&u, c, on_ended, &d);
    run_until_ended(p, &d);
    return d.result;
}

static struct err undo(struct place *p, struct cni *c)
{
    struct ended d = { 0 };
    struct cni_undo u;

    cni_undo_start(&u, c, on_ended, &d);
    run_until_ended(p, &d);
    return d.result;
}

static void assert_says(const char *command, const char *expected)
{
    str_auto said = sh(command);

    assert_string_equal(said, expected);
}

static void without_a_record_nothing_is_touched(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;

    NEED_ROOT;
    c = open_with(p, no_plugins);
    free(sh("iptables -t nat -N CNI-HOSTPORT-DNAT; sysctl -qw net.ipv4.ip_forward=1"));
    assert_int_equal(undo(p, c).code, ERR_OK);
    assert_says("iptables -t nat -S CNI-HOSTPORT-DNAT", "-N CNI-HOSTPORT-DNAT\n");
    assert_says("cat /proc/sys/net/ipv4/ip_forward", "1\n");
    cni_close(c);
}

static void the_first_record_of_a_boot_is_the_one_that_counts(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    str_auto first = NULL;
    str_auto second = NULL;
    struct stat st;

    NEED_ROOT;
    NEED_NFT;
    c = open_with(p, no_plugins);
    assert_int_equal(record(p, c).code, ERR_OK);
    assert_int_equal(fstatat(p->fd, "cache/undo.json", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    first = get(p, "cache/undo.json");
    free(sh("sysctl -qw net.ipv4.ip_forward=1; ip link add crundo0 type bridge; iptables -N CNI-ADMIN"));
    cni_close(c);
    c = open_with(p, no_plugins); /* killed and started again */
    assert_int_equal(record(p, c).code, ERR_OK);
    second = get(p, "cache/undo.json");
    assert_string_equal(second, first);
    assert_true(cni_undo_link_existed(c, "lo"));
    assert_false(cni_undo_link_existed(c, "crundo0"));
    assert_int_equal(undo(p, c).code, ERR_OK);
    assert_says("cat /proc/sys/net/ipv4/ip_forward", "0\n");
    assert_says("nft list ruleset", "");
    assert_false(exists(p, "cache/undo.json"));
    cni_close(c);
}

static void a_record_of_an_earlier_boot_says_nothing(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    str_auto fresh = NULL;

    NEED_ROOT;
    c = open_with(p, no_plugins);
    put(p, "cache/undo.json",
        "{\"kind\": \"cniUndo\", \"bootId\": \"another\", \"links\": [\"lo\"],"
        " \"sysctls\": {\"net/ipv4/ip_forward\": \"1\"}}");
    assert_false(cni_undo_link_existed(c, "lo"));
    assert_int_equal(undo(p, c).code, ERR_OK);
    assert_says("cat /proc/sys/net/ipv4/ip_forward", "0\n");
    assert_false(exists(p, "cache/undo.json"));
    put(p, "cache/undo.json", "damaged");
    assert_int_equal(record(p, c).code, ERR_OK);
    fresh = get(p, "cache/undo.json");
    assert_non_null(strstr(fresh, "\"sysctls\""));
    cni_close(c);
}

static void a_record_cannot_write_outside_the_network_sysctls(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;
    str_auto boot = NULL;
    str_auto text = NULL;
    str_auto before = NULL;

    NEED_ROOT;
    c = open_with(p, no_plugins);
    boot = sh("tr -d '\\n' </proc/sys/kernel/random/boot_id");
    before = sh("cat /proc/sys/kernel/printk_ratelimit");
    text = str_printf(
        "{\"kind\": \"cniUndo\", \"bootId\": \"%s\", \"sysctls\": {\"kernel/printk_ratelimit\": \"77\","
        " \"net/../kernel/printk_ratelimit\": \"77\"}}",
        boot);
    put(p, "cache/undo.json", text);
    assert_int_equal(undo(p, c).code, ERR_OK);
    assert_says("cat /proc/sys/kernel/printk_ratelimit", before);
    cni_close(c);
}

static void tables_and_policies_of_others_stay(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;

    NEED_ROOT;
    NEED_NFT;
    c = open_with(p, no_plugins);
    assert_int_equal(record(p, c).code, ERR_OK);
    /* Made meanwhile by others: an own table, a rule, a policy, an empty chain of somebody. */
    free(sh("nft add table ip mine; ip6tables -t nat -A POSTROUTING -o crx -j MASQUERADE; iptables -P "
            "FORWARD DROP;"
            "ip6tables -N SOMEBODY; iptables -t nat -S"));
    assert_int_equal(undo(p, c).code, ERR_OK);
    assert_says("nft list tables | sort",
                "table ip filter\ntable ip mine\ntable ip6 filter\ntable ip6 nat\n");
    assert_says("iptables -S", "-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT\n");
    assert_says("ip6tables -t nat -S POSTROUTING",
                "-P POSTROUTING ACCEPT\n-A POSTROUTING -o crx -j MASQUERADE\n");
    cni_close(c);
}

static void only_bridges_of_ours_are_deleted(void **state)
{
    struct place *p = *state;
    struct cni *c = NULL;

    NEED_ROOT;
    free(sh("ip link add crold0 type bridge; ip link add crveth0 type veth peer name crveth1"));
    put(p, "net.d/10.conflist",
        "{\"name\": \"n\", \"plugins\": [{\"type\": \"bridge\", \"bridge\": \"crold0\"}, {\"type\": "
        "\"bridge\", \"bridge\":"
        " \"crnew0\"}, {\"type\": \"bridge\", \"bridge\": \"crveth0\"}]}");
    put(p, "data/n/10.0.0.1", "lease");
    put(p, "data/other/10.0.0.1", "lease");
    c = open_with(p, no_plugins);
    assert_int_equal(record(p, c).code, ERR_OK);
    free(sh("ip link add crnew0 type bridge"));
    cni_remove_bridges(c);
    assert_true(nl_link_exists("crold0"));
    assert_true(nl_link_exists("crveth0")); /* not a bridge, whatever the list says */
    assert_false(nl_link_exists("crnew0"));
    assert_true(exists(p, "data/other/10.0.0.1"));
    cni_close(c);
}

static void recording_can_be_cancelled(void **state)
{
    struct place *p = *state;
    struct ended d = { 0 };
    struct cni_undo u;
    struct cni *c = NULL;

    NEED_ROOT;
    c = open_with(p, no_plugins);
    cni_undo_record_start(&u, c, on_ended, &d);
    assert_int_equal(d.calls, 0);
    op_cancel(&u.op);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_CANCELLED);
    assert_false(exists(p, "cache/undo.json"));
    cni_close(c);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(without_a_record_nothing_is_touched),
        TEST(the_first_record_of_a_boot_is_the_one_that_counts),
        TEST(a_record_of_an_earlier_boot_says_nothing),
        TEST(a_record_cannot_write_outside_the_network_sysctls),
        TEST(tables_and_policies_of_others_stay),
        TEST(only_bridges_of_ours_are_deleted),
        TEST(recording_can_be_cancelled),
    };

    if (system("for p in iptables ip6tables iptables-save ip sysctl; do command -v $p || exit 1; done "
               ">/dev/null") != 0)
        why_not = "no iptables, ip or sysctl";
    else
        why_not = rootns_enter();
    has_nft = system("command -v nft >/dev/null") == 0;
    return rootns_run(tests, ARRAY_LEN(tests));
}
