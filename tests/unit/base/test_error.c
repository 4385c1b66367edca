/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/internal.h"

#include <errno.h>

static void code_and_text_are_set_together(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(err_set(&e, ERR_INVALID, "volume \"%s\": %d", "a", 7), ERR_INVALID);
    assert_int_equal(e.code, ERR_INVALID);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.text, "volume \"a\": 7");
}

static void an_errno_keeps_its_number_and_text(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(err_sys(&e, ENOENT, "open %s", "/x/y"), ERR_NOT_FOUND);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.text, "open /x/y: No such file or directory");
    assert_int_equal(err_sys(&e, 5555, "open x"), ERR_UNKNOWN);
    assert_string_equal(e.text, "open x: error 5555");
}

static void wrapping_puts_context_in_front_and_keeps_code_and_errno(void **state)
{
    struct err e = { 0 };

    (void)state;
    err_sys(&e, ENOSPC, "rename ..data");
    err_wrap(&e, "mount volume %s", "cfg");
    assert_int_equal(err_wrap(&e, "sync pod a/web"), ERR_EXHAUSTED);
    assert_int_equal(e.sys, ENOSPC);
    assert_string_equal(e.text, "sync pod a/web: mount volume cfg: rename ..data: No space left on device");
}

static void the_own_text_may_be_an_argument(void **state)
{
    struct err e = { 0 };

    (void)state;
    err_set(&e, ERR_UNKNOWN, "inner");
    err_set(&e, ERR_ABORTED, "outer (%s)", e.text);
    assert_string_equal(e.text, "outer (inner)");
    err_wrap(&e, "%s", e.text);
    assert_string_equal(e.text, "outer (inner): outer (inner)");
}

static void a_long_text_is_cut_and_terminated(void **state)
{
    char text[2000];
    struct err e = { 0 };

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&e, ERR_INVALID, "%s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_wrap(&e, "in front");
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    assert_memory_equal(e.text, "in front: aaa", 13);
    err_wrap(&e, "%s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static void a_long_subject_does_not_push_out_the_reason(void **state)
{
    char text[2000];
    struct err e = { 0 };

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_sys(&e, EACCES, "open %s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    assert_string_equal(e.text + strlen(e.text) - strlen("aa: Permission denied"), "aa: Permission denied");
}

static void assert_whole_characters(const char *text)
{
    size_t n = strlen(text), i = 0, len;

    assert_true(n >= sizeof(((struct err *)0)->text) - 4);
    for (; i < n; i += len) {
        len = utf8_char(text + i, n - i);
        assert_int_not_equal(len, 0);
    }
}

static void a_character_is_never_cut_in_two(void **state)
{
    char text[2000] = "";
    struct err e = { 0 };
    size_t i;

    (void)state;
    for (i = 0; i < 600; i++)
        strcat(text, "\xe2\x82\xac"); /* the euro sign, three bytes */
    for (i = 0; i < 4; i++) {
        err_set(&e, ERR_INVALID, "%.*s%s", (int)i, "xxxx", text);
        assert_whole_characters(e.text);
        err_wrap(&e, "%.*s%s", (int)i, "xxxx", text);
        assert_whole_characters(e.text);
        err_sys(&e, 2, "%.*s%s", (int)i, "xxxx", text);
        assert_whole_characters(e.text);
    }
}

static void codes_are_grpcs_in_grpcs_order(void **state)
{
    (void)state;
    assert_int_equal(ERR_CANCELLED, 1);
    assert_int_equal(ERR_NOT_FOUND, 5);
    assert_int_equal(ERR_UNAVAILABLE, 14);
    assert_int_equal(ERR_UNAUTHENTICATED, 16);
    assert_string_equal(err_code_name(ERR_OK), "OK");
    assert_string_equal(err_code_name(ERR_NOT_FOUND), "NOT_FOUND");
    assert_string_equal(err_code_name(ERR_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(err_code_name((enum err_code)99), "UNKNOWN");
}

static void no_errno_means_success(void **state)
{
    int i;

    (void)state;
    for (i = -1; i < 200; i++)
        assert_int_not_equal(err_from_errno(i), ERR_OK);
    assert_int_equal(err_from_errno(EACCES), ERR_PERMISSION);
    assert_int_equal(err_from_errno(EDQUOT), ERR_EXHAUSTED);
    assert_int_equal(err_from_errno(EBUSY), ERR_PRECONDITION);
}

static void out_of_memory_is_an_ordinary_error(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(err_nomem(&e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "out of memory");
}

static void a_kept_error_is_the_same_error(void **state)
{
    struct err_kept kept = { 0 };
    struct err e = { 0 }, got;

    (void)state;
    assert_int_equal(err_kept_get(&kept).code, ERR_OK);
    err_sys(&e, ENOSPC, "write record");
    err_keep(&kept, &e);
    got = err_kept_get(&kept);
    assert_int_equal(got.code, ERR_EXHAUSTED);
    assert_int_equal(got.sys, ENOSPC);
    assert_string_equal(got.text, "write record: No space left on device");
    err_kept_drop_text(&kept); /* as without memory for it */
    assert_string_equal(err_kept_get(&kept).text, "EXHAUSTED");
    err_keep(&kept, &(struct err){ 0 });
    assert_int_equal(err_kept_get(&kept).code, ERR_OK);
    assert_string_equal(err_kept_get(&kept).text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_and_text_are_set_together),
        cmocka_unit_test(an_errno_keeps_its_number_and_text),
        cmocka_unit_test(wrapping_puts_context_in_front_and_keeps_code_and_errno),
        cmocka_unit_test(the_own_text_may_be_an_argument),
        cmocka_unit_test(a_long_text_is_cut_and_terminated),
        cmocka_unit_test(a_long_subject_does_not_push_out_the_reason),
        cmocka_unit_test(a_character_is_never_cut_in_two),
        cmocka_unit_test(codes_are_grpcs_in_grpcs_order),
        cmocka_unit_test(no_errno_means_success),
        cmocka_unit_test(out_of_memory_is_an_ordinary_error),
        cmocka_unit_test(a_kept_error_is_the_same_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
