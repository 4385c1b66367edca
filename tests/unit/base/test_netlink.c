/* SPDX-License-Identifier: Apache-2.0 */
/* In a network namespace of its own, built with ip(8). */
#include "helper.h"

#include "base/netlink.h"

#include <sched.h>

static bool have_namespace;

static int enter_namespace(void **state)
{
    (void)state;
    have_namespace = geteuid() == 0 && unshare(CLONE_NEWNET) == 0;
    return 0;
}

static bool sh(const char *command)
{
    return system(command) == 0;
}

#define NEED_NAMESPACE()                                                                                     \
    do {                                                                                                     \
        if (!have_namespace)                                                                                 \
            SKIP("needs root and a network namespace");                                                      \
    } while (0)

static void names_are_checked(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(nl_link_up("", &e), ERR_INVALID);
    assert_int_equal(nl_link_delete("sixteen-bytes-xx", &e), ERR_INVALID);
    assert_string_equal(e.text, "\"sixteen-bytes-xx\" is not an interface name");
    assert_false(nl_link_exists(""));
    assert_false(nl_link_exists("sixteen-bytes-xx"));
    assert_false(nl_link_exists("coracle-no"));
}

static void links_go_up_and_away(void **state)
{
    struct err e = { 0 };

    (void)state;
    NEED_NAMESPACE();
    assert_true(nl_link_exists("lo"));
    assert_int_equal(nl_link_up("lo", &e), ERR_OK);
    assert_true(sh("ip -br link show lo up | grep -q lo"));
    if (!sh("ip link add cotest0 type dummy 2>/dev/null || ip link add cotest0 type bridge"))
        SKIP("needs dummy or bridge links");
    assert_true(nl_link_exists("cotest0"));
    assert_int_equal(nl_link_up("cotest0", &e), ERR_OK);
    assert_true(sh("ip -o link show cotest0 | grep -q '[<,]UP[,>]'"));
    assert_int_equal(nl_link_delete("cotest0", &e), ERR_OK);
    assert_false(nl_link_exists("cotest0"));
    assert_int_equal(nl_link_delete("cotest0", &e), ERR_OK); /* gone already */
}

static void failures_name_the_link(void **state)
{
    struct err e = { 0 };

    (void)state;
    NEED_NAMESPACE();
    assert_int_equal(nl_link_up("cotest9", &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "set up link cotest9: No such device");
    assert_int_equal(nl_link_delete("lo", &e), ERR_UNIMPLEMENTED);
    assert_string_equal(e.text, "delete link lo: Operation not supported");
}

static void the_default_route_decides(void **state)
{
    char v4[16] = "unset", v6[46] = "unset";
    struct err e = { 0 };

    (void)state;
    NEED_NAMESPACE();
    assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "no interface with a global address");
    assert_string_equal(v4, "unset");
    if (!sh("ip link add cotesta type veth peer name cotestb"))
        SKIP("needs veth links");
    assert_true(sh("ip addr add 10.1.0.5/24 dev cotesta; ip addr add 10.2.0.5/24 dev cotestb;"
                   "ip addr add 10.2.0.6/24 dev cotestb; ip link set lo up"));
    assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_NOT_FOUND); /* neither is up */

    /* No default route: the first that is up. */
    assert_true(sh("ip link set cotestb up"));
    assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_OK);
    assert_string_equal(v4, "10.2.0.5");
    assert_string_equal(v6, "");

    /* A bridge that pods made is not the node's own address, however early it came. */
    assert_true(sh("ip link set cotestb down"));
    if (sh("ip link add cotestc type bridge 2>/dev/null")) {
        assert_true(sh("ip addr add 10.3.0.1/24 dev cotestc; ip link set cotestc up"));
        assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_NOT_FOUND);
    }
    assert_true(sh("ip link set cotestb up"));

    assert_true(sh("ip link set cotesta up; ip route add default via 10.2.0.1 metric 50;"
                   "ip route add default via 10.1.0.1 metric 20; ip route add default via 10.2.0.1 table 7"));
    assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_OK);
    assert_string_equal(v4, "10.1.0.5");
    assert_true(sh("ip route add default via 10.2.0.1")); /* metric 0 */
    assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_OK);
    assert_string_equal(v4, "10.2.0.5");
    assert_true(sh("ip route del default metric 20; ip route del default metric 50; ip route del default;"
                   "ip route add default nexthop via 10.1.0.1 nexthop via 10.2.0.1"));
    assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_OK);
    assert_string_equal(v4, "10.1.0.5");

    if (sh("ip addr add fd00:1::5/64 dev cotesta nodad 2>/dev/null")) {
        assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_OK);
        assert_string_equal(v4, "10.1.0.5");
        assert_string_equal(v6, "fd00:1::5");
        assert_true(
            sh("ip route del default; ip addr flush dev cotesta scope global; ip addr flush dev cotestb;"
               "ip addr add fd00:2::5/64 dev cotestb nodad; ip -6 route add default via fd00:2::1"));
        assert_int_equal(nl_default_addresses(v4, v6, &e), ERR_OK);
        assert_string_equal(v4, "");
        assert_string_equal(v6, "fd00:2::5");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(links_go_up_and_away),
        cmocka_unit_test(failures_name_the_link),
        cmocka_unit_test(the_default_route_decides),
    };

    return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
