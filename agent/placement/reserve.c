/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/reserve.h"

#include <stdio.h>

static bool is_memory(const char *type)
{
    return strcmp(type, "memory") == 0 || str_starts(type, "hugepages-");
}

/* In the format of the last amount, as in kubelet. */
static struct quantity sum_of(const struct pl_reservation *v, size_t n, const char *type)
{
    struct quantity sum = quantity_from_int(0, QUANTITY_DECIMAL_SI);

    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i].type, type) == 0)
            sum = quantity_add(&v[i].amount, &sum);
    return sum;
}

static enum err_code compare(const struct pl_reservation *v, size_t n_v, const struct pl_reservation *whole,
                             size_t n_whole, const char *type, struct err *e)
{
    struct quantity a = sum_of(v, n_v, type), b = sum_of(whole, n_whole, type);
    char x[QUANTITY_TEXT_SIZE], y[QUANTITY_TEXT_SIZE];

    if (quantity_cmp(&a, &b) == 0)
        return ERR_OK;
    quantity_format(&a, x);
    quantity_format(&b, y);
    return err_set(e, ERR_INVALID,
                   "the total amount \"%s\" of type \"%.40s\" is not equal to the value \"%s\" determined by "
                   "Node Allocatable feature",
                   x, type, y);
}

/* The entry of this node and type, or a new one. */
static struct pl_reserved *entry_of(struct pl_reserved *v, size_t *n, const struct pl_reservation *x)
{
    for (size_t i = 0; i < *n; i++)
        if (v[i].node == x->node && strcmp(v[i].type, x->type) == 0)
            return &v[i];
    v[*n] = (struct pl_reserved){ .node = x->node };
    snprintf(v[*n].type, sizeof(v[*n].type), "%s", x->type);
    return &v[(*n)++];
}

enum err_code pl_reserve(const struct pl_machine *m, const struct pl_reservation *v, size_t n_v,
                         const struct pl_reservation *whole, size_t n_whole, struct pl_reserved *ret,
                         size_t *ret_n, struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; i < n_v; i++)
        if (pl_node_index(m, v[i].node) < 0)
            return err_set(e, ERR_INVALID,
                           "the reserved memory configuration references a NUMA node %u that does not exist "
                           "on this machine",
                           v[i].node);
    for (size_t i = 0; i < n_v; i++)
        if (compare(v, n_v, whole, n_whole, v[i].type, e) != ERR_OK)
            return e->code;
    for (size_t i = 0; i < n_whole; i++)
        if (is_memory(whole[i].type) && compare(v, n_v, whole, n_whole, whole[i].type, e) != ERR_OK)
            return e->code;
    for (size_t i = 0; i < n_v; i++)
        entry_of(ret, &n, &v[i])->bytes = (uint64_t)quantity_value(&v[i].amount);
    *ret_n = n;
    return ERR_OK;
}
