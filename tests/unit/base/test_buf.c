/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/buf.h"

static void an_empty_buffer_is_an_empty_string(void **state)
{
    buf_auto b = BUF_INIT(10);
    struct err e = { 0 };

    (void)state;
    assert_string_equal(b.p, "");
    assert_int_equal(buf_check(&b, &e), ERR_OK);
    buf_add(&b, "", 0);
    assert_string_equal(b.p, "");
}

static void appending_keeps_it_terminated(void **state)
{
    buf_auto b = BUF_INIT(1000);

    (void)state;
    buf_adds(&b, "pod ");
    buf_addf(&b, "%s/%d", "a", 12);
    buf_addc(&b, '!');
    buf_add(&b, "\0x", 2);
    assert_int_equal(b.n, 11);
    assert_memory_equal(b.p, "pod a/12!\0x\0", 12);
}

static void content_may_reach_the_maximum_but_not_pass_it(void **state)
{
    buf_auto b = BUF_INIT(100);
    struct err e = { 0 };
    int i;

    (void)state;
    for (i = 0; i < 100; i++)
        buf_addc(&b, 'x');
    assert_int_equal(b.n, 100);
    assert_false(b.failed);
    assert_true(b.cap <= 101);
    buf_addc(&b, 'y');
    assert_int_equal(b.n, 100);
    assert_int_equal(buf_check(&b, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "out of memory or over the limit of 100 bytes");
}

static void after_a_failure_content_stays_and_appends_do_nothing(void **state)
{
    buf_auto b = BUF_INIT(5);

    (void)state;
    buf_adds(&b, "abc");
    buf_addf(&b, "%s", "defgh");
    assert_true(b.failed);
    buf_addc(&b, 'd');
    assert_null(buf_room(&b, 1));
    assert_string_equal(b.p, "abc");
    buf_reset(&b);
    buf_adds(&b, "again");
    assert_string_equal(b.p, "again");
    assert_false(b.failed);
}

static void huge_requests_fail_without_overflow(void **state)
{
    buf_auto b = BUF_INIT(SIZE_MAX);

    (void)state;
    buf_adds(&b, "abc");
    assert_null(buf_room(&b, SIZE_MAX - 3));
    assert_true(b.failed);
    assert_string_equal(b.p, "abc");
}

static void detaching_gives_the_memory_away(void **state)
{
    buf_auto b = BUF_INIT(100);
    str_auto text = NULL;
    str_auto empty = NULL;

    (void)state;
    buf_adds(&b, "keep");
    text = buf_detach(&b);
    assert_string_equal(text, "keep");
    assert_int_equal(b.n, 0);
    empty = buf_detach(&b);
    assert_string_equal(empty, "");
    buf_adds(&b, "next");
    assert_string_equal(b.p, "next");
}

static void lent_memory_is_copied_and_never_freed(void **state)
{
    char mine[] = "lent text";
    struct buf b = { .p = mine, .n = strlen(mine), .max = 100 };
    str_auto text = NULL;

    (void)state;
    buf_done(&b);
    assert_string_equal(mine, "lent text");

    b = (struct buf){ .p = mine, .n = strlen(mine), .max = 100 };
    text = buf_detach(&b);
    assert_string_equal(text, "lent text");
    assert_ptr_not_equal(text, mine);

    b = (struct buf){ .p = mine, .n = strlen(mine), .max = 100 };
    buf_remove_front(&b, 5);
    buf_adds(&b, "!");
    assert_string_equal(b.p, "text!");
    assert_string_equal(mine, "lent text");
    buf_done(&b);
}

static void the_front_can_be_removed(void **state)
{
    buf_auto b = BUF_INIT(100);

    (void)state;
    buf_adds(&b, "abcdef");
    buf_remove_front(&b, 0);
    buf_remove_front(&b, 2);
    assert_string_equal(b.p, "cdef");
    buf_remove_front(&b, 4);
    assert_string_equal(b.p, "");
    buf_remove_front(&b, 9);
    assert_int_equal(b.n, 0);
}

static void room_is_written_by_hand(void **state)
{
    buf_auto b = BUF_INIT(1000);
    char *room = buf_room(&b, 500);

    (void)state;
    assert_non_null(room);
    memcpy(room, "abc", 3);
    b.n += 3;
    b.p[b.n] = '\0';
    assert_string_equal(b.p, "abc");
}

static void wiping_empties_it(void **state)
{
    buf_auto b = BUF_INIT(100);

    (void)state;
    buf_wipe(&b);
    buf_adds(&b, "secret");
    buf_wipe(&b);
    assert_int_equal(b.n, 0);
    assert_int_equal(b.cap, 0);
    assert_string_equal(b.p, "");
}

static void strings_compare_and_match(void **state)
{
    str_auto text = str_printf("%s-%d", "a", 3);

    (void)state;
    assert_string_equal(text, "a-3");
    assert_true(str_starts("abc", "ab"));
    assert_true(str_starts("abc", ""));
    assert_false(str_starts("a", "ab"));
    assert_true(str_ends("abc", "bc"));
    assert_true(str_ends("abc", ""));
    assert_false(str_ends("c", "bc"));
    assert_true(str_eq(NULL, NULL));
    assert_false(str_eq(NULL, ""));
    assert_true(str_eq("a", "a"));
}

static void a_secret_leaves_nothing_where_it_shrinks(void **state)
{
    struct buf b = BUF_SECRET(1000);
    char *room;

    (void)state;
    room = buf_room(&b, 100);
    buf_adds(&b, "secret text");
    buf_remove_front(&b, 7);
    assert_string_equal(b.p, "text");
    assert_memory_equal(room + 4, "\0\0\0\0\0\0\0", 7);
    buf_reset(&b);
    assert_memory_equal(room, "\0\0\0\0", 4);
    buf_adds(&b, "more");
    for (int i = 0; i < 40; i++)
        buf_adds(&b, " and more");
    assert_true(str_starts(b.p, "more and"));
    buf_done(&b);
    assert_true(b.secret && b.cap == 0);
    buf_adds(&b, "again");
    str_wipe(buf_detach(&b));
    assert_true(b.secret && b.n == 0);
    str_wipe(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_is_an_empty_string),
        cmocka_unit_test(appending_keeps_it_terminated),
        cmocka_unit_test(content_may_reach_the_maximum_but_not_pass_it),
        cmocka_unit_test(after_a_failure_content_stays_and_appends_do_nothing),
        cmocka_unit_test(huge_requests_fail_without_overflow),
        cmocka_unit_test(detaching_gives_the_memory_away),
        cmocka_unit_test(lent_memory_is_copied_and_never_freed),
        cmocka_unit_test(the_front_can_be_removed),
        cmocka_unit_test(room_is_written_by_hand),
        cmocka_unit_test(wiping_empties_it),
        cmocka_unit_test(a_secret_leaves_nothing_where_it_shrinks),
        cmocka_unit_test(strings_compare_and_match),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
