/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "cni/plugin/names.h"
#include "cni/plugin/result.h"

#define V100 CNI_V(1, 0, 0)

static const char modern[] =
    "{\"cniVersion\": \"1.1.0\", \"interfaces\": [{\"name\": \"br0\", \"mac\": \"m\", \"mtu\": 1400},"
    " {\"name\": \"veth1\"}, {\"name\": \"eth0\", \"sandbox\": \"/ns\", \"socketPath\": \"/s\"}],"
    " \"ips\": [{\"address\": \"10.1.2.3/24\", \"gateway\": \"10.1.2.1\", \"interface\": 2},"
    " {\"address\": \"fd00::0005/64\", \"interface\": 2}],"
    " \"routes\": [{\"dst\": \"0.0.0.0/0\", \"gw\": \"10.1.2.1\", \"mtu\": 1300}, {\"dst\": \"::/0\"}],"
    " \"dns\": {\"nameservers\": [\"1.1.1.1\"]}}";

static json_t *parsed(const char *text)
{
    struct err e = { 0 };
    json_t *v = NULL;

    if (cni_result_parse(&v, text, strlen(text), V100, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return v;
}

static void assert_converts(const char *from, int to, const char *expected)
{
    json_auto_t *v = parsed(from), *other = NULL;
    struct err e = { 0 };

    assert_int_equal(cni_result_convert(&other, v, V100, to, &e), ERR_OK);
    assert_json_equal(other, expected);
}

static void assert_refused(const char *text, const char *message)
{
    struct err e = { 0 };
    json_t *v = NULL;

    assert_int_not_equal(cni_result_parse(&v, text, strlen(text), V100, &e), ERR_OK);
    assert_null(v);
    assert_string_equal(e.text, message);
}

static void addresses_are_those_of_the_pods_interface(void **state)
{
    json_auto_t *v = parsed(modern);
    struct cni_result r;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_result_addresses(&r, v, V100, "eth0", &e), ERR_OK);
    assert_int_equal(r.n_ips, 2);
    assert_string_equal(r.ips[0], "10.1.2.3");
    assert_string_equal(r.ips[1], "fd00::5");
}

static void addresses_of_host_side_interfaces_are_not_the_pods(void **state)
{
    json_auto_t *v =
        parsed("{\"interfaces\": [{\"name\": \"eth0\"}, {\"name\": \"eth0\", \"sandbox\": \"/ns\"}],"
               " \"ips\": [{\"address\": \"10.0.0.1/24\", \"interface\": 0},"
               " {\"address\": \"10.0.0.2/24\", \"interface\": 1}, {\"address\": \"10.0.0.3/24\"}]}");
    struct cni_result r;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_result_addresses(&r, v, V100, "eth0", &e), ERR_OK);
    assert_int_equal(r.n_ips, 2);
    assert_string_equal(r.ips[0], "10.0.0.2");
    assert_string_equal(r.ips[1], "10.0.0.3");
    /* Nothing fits: all of them, as ocicni does. */
    assert_int_equal(cni_result_addresses(&r, v, V100, "net1", &e), ERR_OK);
    assert_string_equal(r.ips[0], "10.0.0.3");
}

static void a_result_without_addresses_is_a_result(void **state)
{
    json_auto_t *v = parsed("{}");
    struct cni_result r = { .n_ips = 9 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_result_addresses(&r, v, V100, "eth0", &e), ERR_OK);
    assert_int_equal(r.n_ips, 0);
}

static void more_addresses_than_fit_are_left_out(void **state)
{
    json_auto_t *v = parsed(
        "{\"ips\": [{\"address\": \"10.0.0.1/8\"}, {\"address\": \"10.0.0.2/8\"},"
        " {\"address\": \"10.0.0.3/8\"}, {\"address\": \"10.0.0.4/8\"}, {\"address\": \"10.0.0.5/8\"}]}");
    struct cni_result r;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_result_addresses(&r, v, V100, "eth0", &e), ERR_OK);
    assert_int_equal(r.n_ips, CNI_IPS_MAX);
    assert_string_equal(r.ips[CNI_IPS_MAX - 1], "10.0.0.4");
}

static void the_same_version_is_passed_on_as_it_is(void **state)
{
    json_auto_t *v = parsed("{\"cniVersion\": \"1.0.0\", \"unknown\": 1}"), *same = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_result_convert(&same, v, V100, V100, &e), ERR_OK);
    assert_ptr_equal(same, v);
}

static void a_result_without_version_gets_the_configurations(void **state)
{
    (void)state;
    assert_converts("{\"ips\": [{\"address\": \"10.0.0.1/8\"}]}", V100,
                    "{\"cniVersion\": \"1.0.0\", \"interfaces\": [], \"routes\": [], \"ips\": [{\"address\": "
                    "\"10.0.0.1/8\"}]}");
}

static void newer_members_are_dropped_for_older_versions(void **state)
{
    (void)state;
    assert_converts(modern, V100,
                    "{\"cniVersion\": \"1.0.0\", \"interfaces\": [{\"name\": \"br0\", \"mac\": \"m\"}, "
                    "{\"name\": \"veth1\"},"
                    " {\"name\": \"eth0\", \"sandbox\": \"/ns\"}],"
                    " \"ips\": [{\"address\": \"10.1.2.3/24\", \"gateway\": \"10.1.2.1\", \"interface\": 2},"
                    " {\"address\": \"fd00::0005/64\", \"interface\": 2}],"
                    " \"routes\": [{\"dst\": \"0.0.0.0/0\", \"gw\": \"10.1.2.1\"}, {\"dst\": \"::/0\"}],"
                    " \"dns\": {\"nameservers\": [\"1.1.1.1\"]}}");
    assert_converts(
        "{\"cniVersion\": \"1.0.0\", \"ips\": [{\"address\": \"10.0.0.1/8\"}, {\"address\": \"fd::1/64\"}]}",
        CNI_V(0, 4, 0),
        "{\"cniVersion\": \"0.4.0\", \"interfaces\": [], \"routes\": [],"
        " \"ips\": [{\"version\": \"4\", \"address\": \"10.0.0.1/8\"},"
        " {\"version\": \"6\", \"address\": \"fd::1/64\"}]}");
}

static void version_0_3_becomes_1_0(void **state)
{
    (void)state;
    assert_converts(
        "{\"cniVersion\": \"0.3.1\", \"interfaces\": [{\"name\": \"eth0\", \"sandbox\": \"/ns\"}],"
        " \"ips\": [{\"version\": \"4\", \"address\": \"10.0.0.1/8\", \"interface\": 0},"
        " {\"version\": \"4\", \"address\": \"10.0.0.2/8\", \"interface\": -1}]}",
        V100,
        "{\"cniVersion\": \"1.0.0\", \"interfaces\": [{\"name\": \"eth0\", \"sandbox\": \"/ns\"}], "
        "\"routes\": [],"
        " \"ips\": [{\"address\": \"10.0.0.1/8\", \"interface\": 0}, {\"address\": \"10.0.0.2/8\"}]}");
}

static const char ancient[] = "{\"cniVersion\": \"0.2.0\", \"ip4\": {\"ip\": \"10.0.0.5/24\", \"gateway\": "
                              "\"10.0.0.1\", \"routes\": [{\"dst\": \"0.0.0.0/0\"}]},"
                              " \"ip6\": {\"ip\": \"fd00::5/64\"}, \"dns\": {}}";

static void version_0_2_becomes_1_0_and_back(void **state)
{
    json_auto_t *v = parsed(ancient);
    struct cni_result r;
    struct err e = { 0 };

    (void)state;
    assert_converts(
        ancient, V100,
        "{\"cniVersion\": \"1.0.0\", \"interfaces\": [], \"routes\": [{\"dst\": \"0.0.0.0/0\"}], \"dns\": {},"
        " \"ips\": [{\"address\": \"10.0.0.5/24\", \"gateway\": \"10.0.0.1\"}, {\"address\": "
        "\"fd00::5/64\"}]}");
    assert_int_equal(cni_result_addresses(&r, v, V100, "eth0", &e), ERR_OK);
    assert_int_equal(r.n_ips, 2);
    assert_string_equal(r.ips[0], "10.0.0.5");
    assert_converts(modern, CNI_V(0, 2, 0),
                    "{\"cniVersion\": \"0.2.0\", \"dns\": {\"nameservers\": [\"1.1.1.1\"]},"
                    " \"ip4\": {\"ip\": \"10.1.2.3/24\", \"gateway\": \"10.1.2.1\","
                    " \"routes\": [{\"dst\": \"0.0.0.0/0\", \"gw\": \"10.1.2.1\"}]},"
                    " \"ip6\": {\"ip\": \"fd00::0005/64\", \"routes\": [{\"dst\": \"::/0\"}]}}");
}

static void bad_results_say_where(void **state)
{
    (void)state;
    assert_refused("[]", "CNI result: not a JSON object");
    assert_refused("{\"cniVersion\": \"7.0.0\"}", "CNI result: cniVersion: \"7.0.0\" is not supported");
    assert_refused("{\"cniVersion\": 1}", "CNI result: cniVersion: not a string");
    assert_refused("{\"ips\": {}}", "CNI result: ips: not a list");
    assert_refused("{\"ips\": [7]}", "CNI result: ips[0]: not an object");
    assert_refused("{\"ips\": [{}]}", "CNI result: ips[0].address: missing");
    assert_refused("{\"ips\": [{\"address\": \"10.0.0.1\"}]}",
                   "CNI result: ips[0].address: \"10.0.0.1\" is not an address with a prefix length");
    assert_refused("{\"ips\": [{\"address\": \"10.0.0.1/33\"}]}",
                   "CNI result: ips[0].address: \"10.0.0.1/33\" is not an address with a prefix length");
    assert_refused("{\"ips\": [{\"address\": \"; rm -rf/8\"}]}",
                   "CNI result: ips[0].address: \"; rm -rf/8\" is not an address with a prefix length");
    assert_refused("{\"ips\": [{\"address\": \"10.0.0.1/8\", \"interface\": 0}]}",
                   "CNI result: ips[0].interface: not an index of interfaces");
    assert_refused("{\"interfaces\": [{}]}", "CNI result: interfaces[0].name: missing");
    assert_refused("{\"interfaces\": [{\"name\": \"\"}]}", "CNI result: interfaces[0].name: missing");
    assert_refused("{\"interfaces\": [{\"name\": \"../a\"}]}",
                   "CNI result: interfaces[0].name: not the name of an interface");
    assert_refused("{\"interfaces\": [{\"name\": \"a\\nb\"}]}",
                   "CNI result: interfaces[0].name: not the name of an interface");
    assert_refused("{\"interfaces\": [{\"name\": \"a\\u0000b\"}]}",
                   "CNI result: line 1, column 35: \\u0000 is not allowed without JSON_ALLOW_NUL");
    assert_refused("{\"ips\": [{\"address\": \"0.0.0.0/0\"}]}",
                   "CNI result: ips[0].address: \"0.0.0.0/0\" is not an address a pod can have");
    assert_refused("{\"ips\": [{\"address\": \"224.0.0.1/24\"}]}",
                   "CNI result: ips[0].address: \"224.0.0.1/24\" is not an address a pod can have");
    assert_refused("{\"ips\": [{\"address\": \"::/64\"}]}",
                   "CNI result: ips[0].address: \"::/64\" is not an address a pod can have");
    assert_refused("{\"ips\": [{\"address\": \"ff02::1/64\"}]}",
                   "CNI result: ips[0].address: \"ff02::1/64\" is not an address a pod can have");
    assert_refused("{\"interfaces\": [{\"name\": \"a\", \"sandbox\": 1}]}",
                   "CNI result: interfaces[0].sandbox: not a string");
    assert_refused("{\"routes\": [{\"dst\": \"default\"}]}", "CNI result: routes[0].dst: not a destination");
    assert_refused("{\"dns\": 1}", "CNI result: dns: not an object");
    assert_refused("{\"cniVersion\": \"0.1.0\", \"ip4\": {\"ip\": \"fd00::1/64\"}}",
                   "CNI result: ip4.ip: not an address of this family");
}

static void an_address_that_is_said_twice_is_one(void **state)
{
    json_auto_t *v =
        parsed("{\"interfaces\": [{\"name\": \"eth0\", \"sandbox\": \"/n\"}, {\"name\": \"eth0\","
               " \"sandbox\": \"/n\"}], \"ips\": [{\"address\": \"10.0.0.1/8\", \"interface\": 1},"
               " {\"address\": \"10.0.0.1/24\", \"interface\": 0}, {\"address\": \"fd00::0:1/64\","
               " \"interface\": -7}, {\"address\": \"fd00::1/64\"}]}");
    struct cni_result r;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_result_addresses(&r, v, V100, "eth0", &e), ERR_OK);
    assert_int_equal(r.n_ips, 2);
    assert_string_equal(r.ips[0], "10.0.0.1");
    assert_string_equal(r.ips[1], "fd00::1");
}

static void nesting_is_bounded(void **state)
{
    struct buf b = BUF_INIT(1 << 20);
    struct err e = { 0 };
    json_t *v = NULL;

    (void)state;
    for (int levels = CNI_RESULT_DEPTH_MAX - 1; levels <= CNI_RESULT_DEPTH_MAX; levels++) {
        b.n = 0;
        buf_adds(&b, "{\"x\": ");
        for (int i = 0; i < levels; i++)
            buf_adds(&b, "[");
        for (int i = 0; i < levels; i++)
            buf_adds(&b, "]");
        buf_adds(&b, "}");
        assert_int_equal(cni_result_parse(&v, b.p, b.n, V100, &e),
                         levels < CNI_RESULT_DEPTH_MAX ? ERR_OK : ERR_EXHAUSTED);
        json_decref(v);
        v = NULL;
    }
    assert_string_equal(e.text, "CNI result: nested in more than 64 levels");
    buf_done(&b);
}

static void lists_are_bounded(void **state)
{
    struct buf b = BUF_INIT(1 << 20);
    struct err e = { 0 };
    json_t *v = NULL;

    (void)state;
    buf_adds(&b, "{\"interfaces\": [{\"name\": \"a\"}");
    for (int i = 0; i < CNI_RESULT_ITEMS_MAX; i++)
        buf_adds(&b, ",{\"name\": \"a\"}");
    buf_adds(&b, "]}");
    assert_int_equal(cni_result_parse(&v, b.p, b.n, V100, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "CNI result: interfaces: 257 entries are more than the 256 allowed");
    buf_done(&b);
}

/* ---- every allocation may fail ---------------------------------------------------------------- */

static int allocations_left;

static void *failing_malloc(size_t n)
{
    return allocations_left-- > 0 ? malloc(n) : NULL;
}

static void no_allocation_failure_leaks_or_crashes(void **state)
{
    int n = 0;

    (void)state;
    for (bool done = false; !done; n++) {
        json_t *v = NULL, *other = NULL;
        struct err e = { 0 };

        allocations_left = n;
        json_set_alloc_funcs(failing_malloc, free);
        done = cni_result_parse(&v, modern, sizeof(modern) - 1, V100, &e) == ERR_OK &&
               cni_result_convert(&other, v, V100, CNI_V(0, 2, 0), &e) == ERR_OK;
        json_set_alloc_funcs(malloc, free);
        if (!done && allocations_left < 0)
            assert_int_not_equal(e.code, ERR_OK);
        json_decref(v);
        json_decref(other);
    }
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_those_of_the_pods_interface),
        cmocka_unit_test(addresses_of_host_side_interfaces_are_not_the_pods),
        cmocka_unit_test(a_result_without_addresses_is_a_result),
        cmocka_unit_test(more_addresses_than_fit_are_left_out),
        cmocka_unit_test(the_same_version_is_passed_on_as_it_is),
        cmocka_unit_test(a_result_without_version_gets_the_configurations),
        cmocka_unit_test(newer_members_are_dropped_for_older_versions),
        cmocka_unit_test(version_0_3_becomes_1_0),
        cmocka_unit_test(version_0_2_becomes_1_0_and_back),
        cmocka_unit_test(bad_results_say_where),
        cmocka_unit_test(an_address_that_is_said_twice_is_one),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(no_allocation_failure_leaks_or_crashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
