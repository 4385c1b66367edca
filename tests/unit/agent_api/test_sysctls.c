/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel settings pods may have, in kubelet's words. */
#include "agent/api/sysctls.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const allowed[] = { "kernel.msg*", "net/core/somaxconn", "net.ipv4.conf.*", NULL };

static const char *verdict(const char *name, bool host_network, bool host_ipc)
{
    static struct err e;
    struct api_sysctl one = { (char *)name, (char *)"1" };
    struct api_pod_spec spec = { .host_network = host_network, .host_ipc = host_ipc };

    e = (struct err){ 0 };
    spec.security.sysctls = &one;
    spec.security.n_sysctls = 1;
    if (sysctls_admit(&spec, allowed, &e) == ERR_OK)
        return "allowed";
    assert_int_equal(e.code, ERR_PRECONDITION);
    return e.text;
}

static void safe_ones_and_those_the_node_allows_may_be_set(void **state)
{
    (void)state;
    assert_string_equal(verdict("net.ipv4.tcp_syncookies", false, false), "allowed");
    assert_string_equal(verdict("net/ipv4/tcp_syncookies", false, false), "allowed");
    assert_string_equal(verdict("kernel.shm_rmid_forced", false, false), "allowed");
    assert_string_equal(verdict("kernel.msgmax", false, false), "allowed");
    assert_string_equal(verdict("net.core.somaxconn", false, false), "allowed");
    assert_string_equal(verdict("net/ipv4/conf/eth0.1/forwarding", false, false), "allowed");
}

static void others_are_forbidden_by_their_name_with_dots(void **state)
{
    (void)state;
    assert_string_equal(verdict("kernel.sem", false, false),
                        "forbidden sysctl: \"kernel.sem\" not allowlisted");
    assert_string_equal(verdict("net/core/rmem_max", false, false),
                        "forbidden sysctl: \"net.core.rmem_max\" not allowlisted");
    assert_string_equal(verdict("kernel.panic", false, false),
                        "forbidden sysctl: \"kernel.panic\" not allowlisted");
    assert_string_equal(verdict("net.core.somaxconn2", false, false),
                        "forbidden sysctl: \"net.core.somaxconn2\" not allowlisted");
}

static void those_of_a_namespace_of_the_host_stay_forbidden(void **state)
{
    (void)state;
    assert_string_equal(verdict("net.ipv4.tcp_syncookies", true, false),
                        "forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host net enabled");
    assert_string_equal(verdict("net/core/somaxconn", true, false),
                        "forbidden sysctl: \"net.core.somaxconn\" not allowed with host net enabled");
    assert_string_equal(verdict("kernel.msgmax", false, true),
                        "forbidden sysctl: \"kernel.msgmax\" not allowed with host ipc enabled");
    assert_string_equal(verdict("kernel.msgmax", true, false), "allowed");
    assert_string_equal(verdict("net.core.somaxconn", false, true), "allowed");
}

static void pattern_is(const char *pattern, const char *text)
{
    const char *const list[] = { "net.*", pattern, NULL };
    struct err e = { 0 };

    if (text == NULL) {
        if (sysctls_check_patterns(list, &e) != ERR_OK)
            fail_msg("%s", e.text);
        return;
    }
    assert_int_equal(sysctls_check_patterns(list, &e), ERR_INVALID);
    assert_string_equal(e.text, text);
}

static void patterns_must_be_of_namespaced_settings(void **state)
{
#define REGEX                                                                                                \
    " must have at most 253 characters and match regex "                                                     \
    "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
    static const char *const good[] = { "kernel.sem",  "kernel.shm*", "fs.mqueue.*", "fs/mqueue/msg_max",
                                        "net.ipv4.a*", "net.*",       "net.a-*" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        pattern_is(good[i], NULL);
    pattern_is("kernel.panic", "the sysctl \"kernel.panic\" are not known to be namespaced");
    pattern_is("kernel.*", "the sysctls \"kernel.*\" are not known to be namespaced");
    pattern_is("*", "the sysctls \"*\" are not known to be namespaced");
    pattern_is("net*", "the sysctls \"net*\" are not known to be namespaced");
    pattern_is("net.*.x", "sysctl \"net.*.x\"" REGEX);
    pattern_is("net..x", "sysctl \"net..x\"" REGEX);
    pattern_is("net.X", "sysctl \"net.X\"" REGEX);
    pattern_is("net.a-", "sysctl \"net.a-\"" REGEX);
    pattern_is("net.-a", "sysctl \"net.-a\"" REGEX);
    pattern_is("", "sysctl \"\"" REGEX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safe_ones_and_those_the_node_allows_may_be_set),
        cmocka_unit_test(others_are_forbidden_by_their_name_with_dots),
        cmocka_unit_test(those_of_a_namespace_of_the_host_stay_forbidden),
        cmocka_unit_test(patterns_must_be_of_namespaced_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
