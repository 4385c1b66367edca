/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a configuration that was read again while the agent runs. */
#include "agent/config/internal.h"

#include <string.h>

/* Size of a setting's own field; 0 if it has none. */
static size_t field_size(const struct config_row *r)
{
    if (r->offset == 0)
        return 0;
    switch (r->type) {
    case T_BOOL:
        return sizeof(bool);
    case T_DURATION:
        return sizeof(uint64_t);
    case T_TEXTS:
        return sizeof(struct config_list);
    default:
        return sizeof(char *);
    }
}

static void reload_swap(void *a, void *b, size_t n)
{
    unsigned char *x = a, *y = b;

    while (n-- > 0) {
        unsigned char c = x[n];
        x[n] = y[n];
        y[n] = c;
    }
}

static bool reload_same(const struct config_state *a, const struct config_state *b, size_t i)
{
    const json_t *x = config_effective(a, i), *y = config_effective(b, i);

    return x == NULL || y == NULL ? x == y : json_equal(x, y);
}

/* The members of struct agent_config not covered by a single row, and whether they may change. */
#define SWAP(field) reload_swap(&c->field, &next->field, sizeof(c->field))

static void swap_derived(struct agent_config *c, struct agent_config *next)
{
    SWAP(node_labels);
    SWAP(node_taints);
    SWAP(n_node_taints);
    SWAP(extended_resources);
    SWAP(max_pods_n);
    SWAP(pod_pids_limit);
    SWAP(cpu_cfs_period_us);
    SWAP(image_gc_high);
    SWAP(image_gc_low);
    SWAP(eviction);
    SWAP(resources.evict_memory);
    SWAP(resources.evict_storage);
    SWAP(log_level);
}

void config_take(struct agent_config *c, struct agent_config *next,
                 void (*changed)(const char *setting, bool live, void *arg), void *arg)
{
    size_t n = config_n_rows();

    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = config_row(i, NULL);
        bool live = (r->marks & LIVE) != 0 || r->effect != WORKS; /* settings without effect change at once */

        if (!reload_same(c->state, next->state, i) && r->effect == WORKS && r->key != NULL)
            changed(r->key, live, arg);
        if (!live)
            continue;
        reload_swap(&c->state->set[i], &next->state->set[i], sizeof(c->state->set[i]));
        reload_swap(&c->state->defaults[i], &next->state->defaults[i], sizeof(c->state->defaults[i]));
        if (r->offset != FIELD(log_level))
            reload_swap((char *)c + r->offset, (char *)next + r->offset, field_size(r));
    }
    swap_derived(c, next);
}
