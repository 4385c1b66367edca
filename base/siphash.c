/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"

#include <string.h>

struct state {
    uint64_t v[4];
};

static uint64_t siphash_rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static uint64_t little_endian(const unsigned char *p, size_t n)
{
    uint64_t x = 0;

    for (size_t i = 0; i < n; i++)
        x |= (uint64_t)p[i] << (8 * i);
    return x;
}

static void rounds(struct state *s, unsigned n)
{
    uint64_t *v = s->v;

    while (n-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = siphash_rotate(v[1], 13) ^ v[0];
        v[3] = siphash_rotate(v[3], 16) ^ v[2];
        v[0] = siphash_rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = siphash_rotate(v[1], 17) ^ v[2];
        v[3] = siphash_rotate(v[3], 21) ^ v[0];
        v[2] = siphash_rotate(v[2], 32);
    }
}

static void siphash_take_word(struct state *s, uint64_t word)
{
    s->v[3] ^= word;
    rounds(s, 2);
    s->v[0] ^= word;
}

uint64_t siphash(const unsigned char key[SIPHASH_KEY_SIZE], const void *data, size_t size)
{
    uint64_t k0 = little_endian(key, 8), k1 = little_endian(key + 8, 8);
    struct state s = { { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                         k1 ^ 0x7465646279746573u } };
    const unsigned char *p = data;
    size_t left = size;

    for (; left >= 8; left -= 8, p += 8)
        siphash_take_word(&s, little_endian(p, 8));
    siphash_take_word(&s, little_endian(p, left) | (uint64_t)size << 56);
    s.v[2] ^= 0xff;
    rounds(&s, 4);
    return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}
