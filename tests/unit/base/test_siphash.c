#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/siphash.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_authors_vectors_come_out),
        cmocka_unit_test(another_key_makes_another_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
