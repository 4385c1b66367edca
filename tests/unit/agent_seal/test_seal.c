/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing: what was sealed comes back, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/seal/seal.h"
#include "base/scope.h"

#include <string.h>

static const unsigned char key[SEAL_KEY_SIZE] = "0123456789abcdef0123456789abcde";
static const char text[] = "a password";

static struct str of(const char *s)
{
    return (struct str){ s, strlen(s) };
}

static void seal(const char *head, struct str plain, struct buf *ret)
{
    struct err e = { 0 };

    buf_init(ret, 1 << 20);
    assert_int_equal(seal_text(key, of(head), plain, ret, &e), ERR_OK);
    assert_int_equal(ret->n, SEAL_NONCE_SIZE + plain.n + SEAL_TAG_SIZE);
}

static void refused(const unsigned char *with, struct str head, struct str sealed)
{
    buf_auto back = BUF_INIT(1 << 20);
    struct err e = { 0 };

    buf_adds(&back, "before");
    assert_int_equal(seal_open(with, head, sealed, &back, &e), ERR_DATA_LOSS);
    assert_string_equal(back.p, "before"); /* nothing of it is given */
}

static void what_was_sealed_comes_back(void **state)
{
    buf_auto sealed = BUF_INIT(0);
    buf_auto back = BUF_INIT(1 << 20);
    struct err e = { 0 };

    (void)state;
    seal("Secret/a/b", of(text), &sealed);
    assert_null(memmem(sealed.p, sealed.n, text, strlen(text)));
    assert_int_equal(seal_open(key, of("Secret/a/b"), (struct str){ sealed.p, sealed.n }, &back, &e), ERR_OK);
    assert_string_equal(back.p, text);
}

static void nothing_and_much_can_be_sealed(void **state)
{
    static char much[300000];

    (void)state;
    memset(much, 'x', sizeof(much));
    for (size_t n = 0; n <= sizeof(much); n += sizeof(much) / 2) {
        buf_auto sealed = BUF_INIT(0);
        buf_auto back = BUF_INIT(1 << 20);
        struct err e = { 0 };

        seal("h", (struct str){ much, n }, &sealed);
        assert_int_equal(seal_open(key, of("h"), (struct str){ sealed.p, sealed.n }, &back, &e), ERR_OK);
        assert_int_equal(back.n, n);
        assert_memory_equal(back.p, much, n);
    }
}

static void the_same_text_is_never_sealed_to_the_same_bytes(void **state)
{
    buf_auto a = BUF_INIT(0);
    buf_auto b = BUF_INIT(0);

    (void)state;
    seal("h", of(text), &a);
    seal("h", of(text), &b);
    assert_memory_not_equal(a.p, b.p, SEAL_NONCE_SIZE);
    assert_memory_not_equal(a.p + SEAL_NONCE_SIZE, b.p + SEAL_NONCE_SIZE, strlen(text));
}

static void another_name_does_not_open_it(void **state)
{
    buf_auto sealed = BUF_INIT(0);

    (void)state;
    seal("Secret/a/b", of(text), &sealed);
    refused(key, of("Secret/a/c"), (struct str){ sealed.p, sealed.n });
    refused(key, of("Secret/a/b "), (struct str){ sealed.p, sealed.n });
    refused(key, of(""), (struct str){ sealed.p, sealed.n });
}

static void another_key_does_not_open_it(void **state)
{
    unsigned char other[SEAL_KEY_SIZE];
    buf_auto sealed = BUF_INIT(0);

    (void)state;
    seal("h", of(text), &sealed);
    memcpy(other, key, sizeof(other));
    other[31] ^= 1;
    refused(other, of("h"), (struct str){ sealed.p, sealed.n });
}

static void each_flipped_bit_is_noticed(void **state)
{
    buf_auto sealed = BUF_INIT(0);

    (void)state;
    seal("h", of(text), &sealed);
    for (size_t i = 0; i < sealed.n * 8; i++) {
        sealed.p[i / 8] ^= (char)(1 << i % 8);
        refused(key, of("h"), (struct str){ sealed.p, sealed.n });
        sealed.p[i / 8] ^= (char)(1 << i % 8);
    }
}

static void each_cut_is_noticed(void **state)
{
    buf_auto sealed = BUF_INIT(0);

    (void)state;
    seal("h", of(text), &sealed);
    for (size_t n = 0; n < sealed.n; n++) {
        refused(key, of("h"), (struct str){ sealed.p, n });
        refused(key, of("h"), (struct str){ sealed.p + sealed.n - n, n });
    }
}

static void a_buffer_that_is_too_small_is_an_error(void **state)
{
    buf_auto small = BUF_INIT(20);
    struct err e = { 0 };

    (void)state;
    assert_int_equal(seal_text(key, of("h"), of(text), &small, &e), ERR_EXHAUSTED);
    assert_int_equal(small.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sealed_comes_back),
        cmocka_unit_test(nothing_and_much_can_be_sealed),
        cmocka_unit_test(the_same_text_is_never_sealed_to_the_same_bytes),
        cmocka_unit_test(another_name_does_not_open_it),
        cmocka_unit_test(another_key_does_not_open_it),
        cmocka_unit_test(each_flipped_bit_is_noticed),
        cmocka_unit_test(each_cut_is_noticed),
        cmocka_unit_test(a_buffer_that_is_too_small_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
