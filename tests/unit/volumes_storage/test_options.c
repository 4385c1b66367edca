/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"
#include "volumes/storage/internal.h"

#include <stdlib.h>

static enum err_code check(const char *option)
{
    struct err e = { 0 };

    return storage_check_options(&option, 1, &e);
}

static void options_that_are_no_mount_are_refused(void **state)
{
    static const char *const bad[] = {
        "",         "a,", ",a",   "a b",           "a\nb", "-o",   "bind", "remount", "ro,bind",
        "helper=x", "bg", "loop", "X-mount.mkdir", "a,,b", "move", "a\\b", "rshared"
    };
    static const char *const good[] = {
        "ro", "nfsvers=4.1", "soft,timeo=30", "noatime", "_netdev", "loopback"
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (check(bad[i]) != ERR_INVALID)
            fail_msg("\"%s\" is allowed", bad[i]);
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (check(good[i]) != ERR_OK)
            fail_msg("\"%s\" is refused", good[i]);
}

static void options_are_joined_in_order(void **state)
{
    const char *const options[] = { "b", "a", "b" };
    struct storage_spec s = { .options = options, .n_options = 3 };
    char *text = storage_join_options(&s, "ro");

    (void)state;
    assert_string_equal(text, "b,a,b,ro");
    free(text);
    s.n_options = 0;
    text = storage_join_options(&s, NULL);
    assert_string_equal(text, "");
    free(text);
}

static void a_missing_program_is_named_with_its_package(void **state)
{
    const char *const args[] = { "x", NULL };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(
        storage_run(
            &(struct storage_run){ .program = "coracle-no-such", .package = "a-package", .args = args }, &e),
        ERR_NOT_FOUND);
    assert_string_equal(e.text, "program coracle-no-such is missing on this node: install a-package");
}

static void a_program_that_fails_is_quoted(void **state)
{
    const char *const args[] = { "/nowhere/at/all", NULL };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(
        storage_run(&(struct storage_run){ .program = "ls", .package = "coreutils", .args = args }, &e),
        ERR_UNKNOWN);
    assert_non_null(strstr(e.text, "ls: exit status 2: "));
    assert_non_null(strstr(e.text, "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_are_no_mount_are_refused),
        cmocka_unit_test(options_are_joined_in_order),
        cmocka_unit_test(a_missing_program_is_named_with_its_package),
        cmocka_unit_test(a_program_that_fails_is_quoted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
