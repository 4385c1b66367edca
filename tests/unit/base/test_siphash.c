/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/siphash.h"

#include <sys/stat.h>

/* vectors_sip64 of the authors' reference implementation: key and text are 0, 1, 2 ... */
static void the_authors_vectors_come_out(void **state)
{
    static const uint64_t wanted[] = { 0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu, 0x0d6c8009d9a94f5au,
                                       0x85676696d7fb7e2du };
    unsigned char key[SIPHASH_KEY_SIZE], text[64];

    (void)state;
    for (unsigned char i = 0; i < sizeof(key); i++)
        key[i] = i;
    for (unsigned char i = 0; i < sizeof(text); i++)
        text[i] = i;
    for (size_t n = 0; n < 4; n++)
        assert_true(siphash(key, text, n) == wanted[n]);
    assert_true(siphash(key, text, 15) == 0xa129ca6149be45e5u); /* the paper's example */
}

static void another_key_makes_another_hash(void **state)
{
    unsigned char key[SIPHASH_KEY_SIZE] = { 0 };
    uint64_t before = siphash(key, "text", 4);

    (void)state;
    key[15] = 1;
    assert_true(siphash(key, "text", 4) != before);
}

static void a_key_is_made_once_and_read_back(void **state)
{
    unsigned char key[SIPHASH_KEY_SIZE] = { 0 }, again[SIPHASH_KEY_SIZE] = { 0 };
    char path[300];
    struct err e = { 0 };
    struct stat st;
    FILE *f;

    snprintf(path, sizeof(path), "%s/key", (const char *)*state);
    siphash_key(path, key, &e);
    siphash_key(path, again, &e);
    assert_int_equal(e.code, ERR_OK);
    assert_memory_equal(key, again, sizeof(key));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    f = fopen(path, "w"); /* damaged: another one */
    assert_non_null(f);
    fputs("0123", f);
    assert_int_equal(fclose(f), 0);
    siphash_key(path, key, &e);
    assert_int_equal(e.code, ERR_OK);
    assert_memory_not_equal(key, again, sizeof(key));
    siphash_key(path, again, &e);
    assert_memory_equal(key, again, sizeof(key));
}

static void a_key_that_cannot_be_kept_is_good_and_said(void **state)
{
    unsigned char key[SIPHASH_KEY_SIZE] = { 0 }, none[SIPHASH_KEY_SIZE] = { 0 };
    char path[300];
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s/no/such/folder/key", (const char *)*state);
    siphash_key(path, key, &e);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_memory_not_equal(key, none, sizeof(key));
}

static void contents_are_told_apart_part_by_part(void **state)
{
    (void)state;
    assert_true(siphash_part(0, "abc", 3) == siphash_part(0, "abc", 3));
    assert_true(siphash_part(0, "abc", 3) != siphash_part(0, "abd", 3));
    assert_true(siphash_part(siphash_part(0, "ab", 2), "c", 1) !=
                siphash_part(siphash_part(0, "a", 1), "bc", 2));
    assert_true(siphash_part(siphash_part(0, "", 0), "", 0) != siphash_part(0, "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_authors_vectors_come_out),
        cmocka_unit_test(another_key_makes_another_hash),
        cmocka_unit_test(contents_are_told_apart_part_by_part),
        cmocka_unit_test_setup_teardown(a_key_is_made_once_and_read_back, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_key_that_cannot_be_kept_is_good_and_said, scratch_make,
                                        scratch_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
