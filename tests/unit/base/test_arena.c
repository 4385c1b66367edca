/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/arena.h"

static void memory_is_zeroed_and_aligned(void **state)
{
    struct arena a = { 0 };
    size_t i, k;

    (void)state;
    for (i = 0; i < 3000; i++) {
        unsigned char *p = arena_alloc(&a, i);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (k = 0; k < i; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xff, i);
    }
    assert_int_equal(a.used, 3000 * 2999 / 2);
    arena_done(&a);
    assert_int_equal(a.used, 0);
    assert_null(a.blocks);
}

static void an_arena_is_usable_again_after_it_was_emptied(void **state)
{
    struct arena a = { 0 };

    (void)state;
    arena_done(&a);
    assert_string_equal(arena_strdup(&a, "x"), "x");
    arena_done(&a);
    assert_string_equal(arena_strdup(&a, "y"), "y");
    arena_done(&a);
}

static void strings_are_copied(void **state)
{
    struct arena a = { 0 };
    const char *none = NULL;

    (void)state;
    assert_string_equal(arena_strdup(&a, ""), "");
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_strndup(&a, "ab", 300), "ab");
    assert_string_equal(arena_printf(&a, "%s/%d", "pod", 5), "pod/5");
    assert_null(arena_strdup(&a, none));
    assert_null(arena_strndup(&a, none, 4));
    arena_done(&a);
}

static void a_large_piece_leaves_the_block_at_hand_usable(void **state)
{
    struct arena a = { 0 };
    char *first = arena_alloc(&a, 16), *large = arena_alloc(&a, 100000), *second = arena_alloc(&a, 16);

    (void)state;
    assert_non_null(large);
    assert_ptr_equal(second, first + 16);
    arena_done(&a);
}

static void an_absurd_size_is_refused(void **state)
{
    struct arena a = { 0 };

    (void)state;
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 8));
    assert_int_equal(a.used, 0);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(an_arena_is_usable_again_after_it_was_emptied),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(a_large_piece_leaves_the_block_at_hand_usable),
        cmocka_unit_test(an_absurd_size_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
