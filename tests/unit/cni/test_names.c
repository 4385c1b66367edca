/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "cni/plugin/names.h"

static void names_begin_with_a_letter_or_digit_and_stay_in_their_alphabet(void **state)
{
    char longest[CNI_NAME_MAX + 2];

    (void)state;
    assert_true(cni_name_ok("a"));
    assert_true(cni_name_ok("0a_B.c-9"));
    assert_false(cni_name_ok(NULL));
    assert_false(cni_name_ok(""));
    assert_false(cni_name_ok(".a"));
    assert_false(cni_name_ok("-a"));
    assert_false(cni_name_ok("a/b"));
    assert_false(cni_name_ok("a b"));
    assert_false(cni_name_ok("a\n"));
    assert_false(cni_name_ok("\xc3\xa4"));
    memset(longest, 'a', sizeof(longest));
    longest[CNI_NAME_MAX] = '\0';
    assert_true(cni_name_ok(longest));
    longest[CNI_NAME_MAX] = 'a';
    longest[CNI_NAME_MAX + 1] = '\0';
    assert_false(cni_name_ok(longest));
}

static void interface_names_are_what_the_kernel_takes(void **state)
{
    (void)state;
    assert_true(cni_ifname_ok("eth0"));
    assert_true(cni_ifname_ok("fifteen-bytes-0"));
    assert_false(cni_ifname_ok("sixteen-bytes-00"));
    assert_false(cni_ifname_ok(""));
    assert_false(cni_ifname_ok(NULL));
    assert_false(cni_ifname_ok("."));
    assert_false(cni_ifname_ok(".."));
    assert_false(cni_ifname_ok("a/b"));
    assert_false(cni_ifname_ok("a:0"));
    assert_false(cni_ifname_ok("a b"));
    assert_false(cni_ifname_ok("a\tb"));
}

static void plugin_types_are_plain_file_names(void **state)
{
    (void)state;
    assert_true(cni_type_ok("host-local"));
    assert_false(cni_type_ok("../bridge"));
    assert_false(cni_type_ok(".."));
    assert_false(cni_type_ok(""));
    assert_false(cni_type_ok(NULL));
}

static void argument_values_cannot_bring_in_further_arguments(void **state)
{
    (void)state;
    assert_true(cni_arg_ok("kube-system"));
    assert_true(cni_arg_ok(""));
    assert_false(cni_arg_ok("a;IP=1.2.3.4"));
    assert_false(cni_arg_ok("a=b"));
    assert_false(cni_arg_ok("a b"));
    assert_false(cni_arg_ok("a\nb"));
}

static void versions_compare_as_numbers(void **state)
{
    (void)state;
    assert_int_equal(cni_version_number(NULL), CNI_V(0, 1, 0));
    assert_int_equal(cni_version_number(""), CNI_V(0, 1, 0));
    assert_int_equal(cni_version_number("0.3.1"), CNI_V(0, 3, 1));
    assert_true(cni_version_number("0.4.0") < cni_version_number("1.0.0"));
    assert_int_equal(cni_version_number("1.2.0"), -1);
    assert_int_equal(cni_version_number("1.0"), -1);
    assert_string_equal(cni_version_text(CNI_V(1, 1, 0)), "1.1.0");
    assert_string_equal(cni_version_text(cni_version_number("0.4.0")), "0.4.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_begin_with_a_letter_or_digit_and_stay_in_their_alphabet),
        cmocka_unit_test(interface_names_are_what_the_kernel_takes),
        cmocka_unit_test(plugin_types_are_plain_file_names),
        cmocka_unit_test(argument_values_cannot_bring_in_further_arguments),
        cmocka_unit_test(versions_compare_as_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
