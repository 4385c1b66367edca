/* SPDX-License-Identifier: Apache-2.0 */
/* All values of an argument except a few, in the form that libseccomp supports: rules that compare bits, each
 * argument once per rule. */
#include "agent/runtime/spec/internal.h"

#include <assert.h>

struct split {
    const uint32_t *without;
    size_t n;
    struct rt_values *out;
    size_t n_out;
};

static bool split_matches(const struct rt_values *in, uint32_t v)
{
    return (v & (uint32_t)in->mask) == (uint32_t)in->value;
}

static void split_emit(struct split *s, struct rt_values v)
{
    assert(s->n_out < RT_SPLIT_MAX);
    s->out[s->n_out++] = v;
}

/* Sorts the free bits of `in`: *differ has the bits in which the excluded values of `in` differ, *common the
 * other bits, in which they all equal *any. False: `in` has no excluded value. */
static bool split_compare(const struct split *s, const struct rt_values *in, uint32_t *ret_any,
                          uint32_t *ret_common, uint32_t *ret_differ)
{
    bool found = false;

    *ret_differ = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!split_matches(in, s->without[i]))
            continue;
        if (!found)
            *ret_any = s->without[i];
        found = true;
        *ret_differ |= s->without[i] ^ *ret_any;
    }
    *ret_common = ~(uint32_t)in->mask & ~*ret_differ;
    return found;
}

/* A value that differs from the excluded ones in a common bit is allowed; the rest is split by a bit in which
 * the excluded values differ. The recursion is no deeper than the number of excluded values, since each half
 * has fewer of them. */
static void split(struct split *s, struct rt_values in)
{
    uint32_t any = 0, common = 0, differ = 0, bit;

    if (!split_compare(s, &in, &any, &common, &differ)) {
        split_emit(s, in);
        return;
    }
    for (bit = UINT32_C(1) << 31; bit != 0; bit >>= 1) {
        if ((common & bit) == 0)
            continue;
        split_emit(s, (struct rt_values){ .mask = in.mask | bit, .value = in.value | (~any & bit) });
        in.mask |= bit;
        in.value |= any & bit;
    }
    if (differ == 0)
        return;
    for (bit = UINT32_C(1) << 31; (differ & bit) == 0;)
        bit >>= 1;
    in.mask |= bit;
    split(s, in);
    in.value |= bit;
    split(s, in);
}

size_t rt_values_without(struct rt_values in, const uint32_t *without, size_t n,
                         struct rt_values ret[RT_SPLIT_MAX])
{
    struct split s = { .without = without, .n = n, .out = ret };

    assert(n <= RT_WITHOUT_MAX);
    split(&s, in);
    return s.n_out;
}
