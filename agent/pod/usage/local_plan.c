/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/local_plan.h"

static bool counts(const struct plan_limit *l, const struct plan_tree *t, bool enforce)
{
    if (enforce && t->kind == LOCAL_LOG)
        return false;
    switch (l->of) {
    case PLAN_OF_VOLUME:
        return t->kind == LOCAL_VOLUME && t->index == l->index;
    case PLAN_OF_CONTAINER:
        return t->kind != LOCAL_VOLUME && t->index == l->index;
    case PLAN_OF_POD:
        return true;
    }
    return false;
}

static uint64_t sum_of(const struct plan_limit *l, const struct plan_tree *trees, size_t n, bool enforce,
                       size_t *ret_growing)
{
    uint64_t sum = 0;

    *ret_growing = 0;
    for (size_t i = 0; i < n; i++)
        if (counts(l, &trees[i], enforce)) {
            sum += trees[i].bytes;
            *ret_growing += trees[i].quota;
        }
    return sum;
}

static void lower(uint64_t *limit, uint64_t to)
{
    if (*limit == 0 || to < *limit)
        *limit = to;
}

static void plan_one(const struct plan_limit *l, struct plan_tree *trees, size_t n, bool enforce)
{
    size_t growing;
    uint64_t sum = sum_of(l, trees, n, enforce, &growing), left = l->bytes > sum ? l->bytes - sum : 0, part;

    if (growing == 0)
        return;
    part = left / growing / PLAN_STEP * PLAN_STEP;
    part = part > PLAN_STEP ? part : PLAN_STEP;
    for (size_t i = 0; i < n; i++) {
        struct plan_tree *t = &trees[i];

        if (!t->quota || !counts(l, t, enforce))
            continue;
        if (enforce)
            lower(&t->hard, t->bytes + left > 0 ? t->bytes + left : 1);
        if (t->warns && (!enforce || growing > 1))
            lower(&t->soft, t->bytes + part);
    }
}

void local_plan(struct plan_tree *trees, size_t n, const struct plan_limit *limits, size_t n_limits,
                bool enforce)
{
    for (size_t i = 0; i < n; i++)
        trees[i].soft = trees[i].hard = 0;
    for (size_t i = 0; i < n_limits; i++)
        plan_one(&limits[i], trees, n, enforce);
    for (size_t i = 0; i < n; i++) /* the hard one warns, too */
        if (trees[i].hard != 0 && trees[i].soft >= trees[i].hard)
            trees[i].soft = 0;
}

bool local_plan_exceeded(const struct plan_tree *trees, size_t n, const struct plan_limit *limits,
                         size_t n_limits, bool enforce)
{
    size_t growing;

    for (size_t i = 0; i < n_limits; i++)
        if (sum_of(&limits[i], trees, n, enforce, &growing) > limits[i].bytes)
            return true;
    return false;
}
