/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/text.h"
#include "tests/unit/base/helper.h"

static void errors_begin_small(void **state)
{
    char text[PROBE_ERRNO_SIZE];

    (void)state;
    probe_errno(ECONNREFUSED, text);
    assert_string_equal(text, "connection refused");
    probe_errno(EHOSTUNREACH, text);
    assert_string_equal(text, "no route to host");
    probe_errno(99999, text);
    assert_string_equal(text, "unknown error");
}

static void addresses_of_both_families(void **state)
{
    buf_auto b = BUF_INIT(1000);

    (void)state;
    probe_add_address(&b, "10.0.0.1", 80);
    buf_addc(&b, ' ');
    probe_add_address(&b, "fd00::1", 8080);
    assert_string_equal(b.p, "10.0.0.1:80 [fd00::1]:8080");
    assert_true(probe_host_is_address("10.0.0.1"));
    assert_true(probe_host_is_address("fe80::1%eth0"));
    assert_false(probe_host_is_address("10.0.0.1%eth0"));
    assert_false(probe_host_is_address("localhost"));
    assert_false(probe_host_is_address("1.2.3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_begin_small),
        cmocka_unit_test(addresses_of_both_families),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
