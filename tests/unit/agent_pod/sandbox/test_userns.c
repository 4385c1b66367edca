/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/userns.h"
#include "tests/unit/agent_pod/world.h"

static void the_range_of_kubelet_is_found_among_others(void **state)
{
    uint32_t first, n;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(
        userns_parse_range("alice:100000:65536\nkubelet:65536:7208960\n", "/etc/subuid", &first, &n, &e),
        ERR_OK);
    assert_int_equal(first, 65536);
    assert_int_equal(n, 7208960);
    assert_int_equal(userns_parse_range("", "/etc/subuid", &first, &n, &e), ERR_OK);
    assert_int_equal(n, 0);
    assert_int_equal(userns_parse_range("alice:1:2\nkubeletx:65536:65536", "/etc/subuid", &first, &n, &e),
                     ERR_OK);
    assert_int_equal(n, 0);
}

static void a_range_that_is_no_whole_blocks_is_refused(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "kubelet:100000:65536",
          "/etc/subuid: range 100000:65536 of user kubelet: both must be multiples of 65536, from 65536 up "
          "to 4294901760" },
        { "kubelet:0:65536",
          "/etc/subuid: range 0:65536 of user kubelet: both must be multiples of 65536, from 65536 up to "
          "4294901760" },
        { "kubelet:65536:0",
          "/etc/subuid: range 65536:0 of user kubelet: both must be multiples of 65536, from 65536 up to "
          "4294901760" },
        { "kubelet:4294901760:65536",
          "/etc/subuid: range 4294901760:65536 of user kubelet: both must be multiples of 65536, from "
          "65536 up to 4294901760" },
        { "kubelet:65536", "/etc/subuid: the line of user kubelet is not \"kubelet:<first id>:<number>\"" },
        { "kubelet:x:65536", "/etc/subuid: the line of user kubelet is not \"kubelet:<first id>:<number>\"" },
        { "kubelet:65536:65536\nkubelet:131072:65536",
          "/etc/subuid: user kubelet has more than one range; one is allowed" },
    };
    uint32_t first, n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };

        assert_int_equal(userns_parse_range(cases[i].text, "/etc/subuid", &first, &n, &e), ERR_INVALID);
        assert_string_equal(e.text, cases[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_range_of_kubelet_is_found_among_others),
        cmocka_unit_test(a_range_that_is_no_whole_blocks_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
