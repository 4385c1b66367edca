/* SPDX-License-Identifier: Apache-2.0 */
/* provider - a provider of devices whose answers are the test's. Include it after script_parts.h. */
#ifndef TESTS_UNIT_AGENT_POD_DEVICE_PROVIDER_H
#define TESTS_UNIT_AGENT_POD_DEVICE_PROVIDER_H
#include "agent/pod/device/devices.h"
#include "agent/pod/device/internal.h"

#define DEV "example.com/dev"
#define NET "example.com/net"

static struct {
    char ids[256];        /* of the newest question */
    struct dp_ask *asked; /* the newest one */
    unsigned n_allocate, n_preferred, n_pre_start;
    struct op *questions[64]; /* that are open, oldest first */
    size_t n_questions;
} provider;

static void provider_ask(struct dp_ask *a, const char *name, const char *const *ids, size_t n,
                         op_done_fn done, void *owner, uv_loop_t *loop)
{
    size_t k = 0;

    provider.ids[0] = '\0';
    for (size_t i = 0; i < n; i++)
        k += (size_t)snprintf(provider.ids + k, sizeof(provider.ids) - k, "%s%s", i > 0 ? "," : "", ids[i]);
    provider.asked = a;
    script_begin(&a->op, loop, name, done, owner);
}

static void provider_allocate(struct dp_provider *p, struct dp_ask *a, const char *const *ids, size_t n,
                              op_done_fn done, void *owner)
{
    (void)p;
    provider.n_allocate++;
    provider_ask(a, "Allocate", ids, n, done, owner, ((struct pod *)owner)->node->o.loop);
}

static void provider_preferred(struct dp_provider *p, struct dp_ask *a, const char *const *available,
                               size_t n_available, const char *const *must, size_t n_must, int32_t size,
                               op_done_fn done, void *owner)
{
    (void)p;
    (void)must;
    (void)n_must;
    (void)size;
    provider.n_preferred++;
    provider_ask(a, "GetPreferredAllocation", available, n_available, done, owner,
                 ((struct pod *)owner)->node->o.loop);
}

static void provider_pre_start(struct dp_provider *p, struct dp_ask *a, const char *const *ids, size_t n,
                               op_done_fn done, void *owner)
{
    (void)p;
    provider.n_pre_start++;
    provider_ask(a, "PreStartContainer", ids, n, done, owner,
                 ((struct device_ctr *)owner)->pod->node->o.loop);
}

static struct dp_provider provider_one = { .rank = DP_RANK_PLUGIN,
                                           .kind = "plugin",
                                           .allocate = provider_allocate,
                                           .preferred = provider_preferred,
                                           .pre_start = provider_pre_start };
static struct dp_provider provider_two;

/* "a b-" are two devices, of which the second is unhealthy; "a@1" is on NUMA node 1. */
static inline void provider_list(struct world *w, struct dp_provider *p, const char *resource,
                                 const char *devices)
{
    struct dp_device v[32] = { 0 };
    int64_t numa[32];
    char copy[256], *save = NULL;
    size_t n = 0;
    struct err e = { 0 };

    snprintf(copy, sizeof(copy), "%s", devices);
    for (char *id = strtok_r(copy, " ", &save); id != NULL; id = strtok_r(NULL, " ", &save)) {
        char *at = strchr(id, '@');
        size_t len = strlen(id);
        v[n].healthy = id[len - 1] != '-';
        if (!v[n].healthy)
            id[len - 1] = '\0';
        if (at != NULL) {
            *at = '\0';
            numa[n] = atoi(at + 1);
            v[n].numa = &numa[n];
            v[n].n_numa = 1;
        }
        v[n++].id = id;
    }
    if (dp_inventory_list(devices_inventory_fill(&w->node), p, resource, v, n, &e) != ERR_OK)
        fail_msg("%s", e.text);
    script_turn(w);
}

/* It comes with these devices; NULL: without a list so far. */
static inline void provider_comes(struct world *w, struct dp_provider *p, const char *resource,
                                  const char *devices, struct dp_options o)
{
    struct err e = { 0 };

    provider_two = provider_one;
    if (dp_inventory_provide(devices_inventory_fill(&w->node), resource, p, o, &e) != ERR_OK)
        fail_msg("%s", e.text);
    if (devices != NULL)
        provider_list(w, p, resource, devices);
    script_turn(w);
}

static inline void provider_goes(struct world *w, struct dp_provider *p, const char *resource)
{
    dp_inventory_withdraw(devices_inventory_fill(&w->node), p, resource);
    script_turn(w);
}

/* The oldest open Allocate succeeds with this answer; NULL: an empty one. */
static inline void provider_allocates(struct world *w, const struct dp_answer *answer)
{
    static const struct dp_answer empty;
    struct op *op = script_op("Allocate");
    struct dp_ask *a = container_of(op, struct dp_ask, op);
    struct err e = { 0 };

    assert_non_null(op);
    if (dp_answer_pack(answer != NULL ? answer : &empty, &a->raw, &a->n_raw, &e) != ERR_OK ||
        dp_answer_unpack(&a->answer, a->raw, a->n_raw, &e) != ERR_OK)
        fail_msg("%s", e.text);
    op_finish(op, NULL);
    script_turn(w);
}

static inline void provider_fails(struct world *w, const char *question, enum err_code code, const char *text)
{
    struct op *op = script_op(question);
    struct err e = { 0 };

    if (op == NULL)
        fail_msg("no %s is under way", question);
    err_set(&e, code, "%s", text);
    op_finish(op, &e);
    script_turn(w);
}

static inline void provider_prefers(struct world *w, const char *a, const char *b)
{
    struct op *op = script_op("GetPreferredAllocation");
    struct dp_ask *ask = container_of(op, struct dp_ask, op);
    size_t n = 3 * sizeof(char *);

    assert_non_null(op);
    ask->preferred = calloc(1, n + strlen(a) + strlen(b != NULL ? b : "") + 2);
    assert_non_null(ask->preferred);
    ask->preferred[0] = strcpy((char *)ask->preferred + n, a);
    if (b != NULL)
        ask->preferred[1] = strcpy((char *)ask->preferred + n + strlen(a) + 1, b);
    op_finish(op, NULL);
    script_turn(w);
}

static inline int provider_setup(void **state)
{
    struct world *w;

    memset(&provider, 0, sizeof(provider));
    if (script_setup(state) != 0)
        return -1;
    w = *state;
    w->node.o.device_plugin_wait_ms = 300000;
    return 0;
}

static inline int provider_teardown(void **state)
{
    struct world *w = *state;
    struct dp_inventory *v = devices_inventory_fill(&w->node);

    w->node.closing = true;
    for (size_t i = 0; i < 2; i++) {
        dp_inventory_withdraw(v, i == 0 ? &provider_one : &provider_two, DEV);
        dp_inventory_withdraw(v, i == 0 ? &provider_one : &provider_two, NET);
    }
    dp_inventory_free(v); /* with the timer after which it forgets them */
    device_node(&w->node)->inventory = NULL;
    return script_teardown(state);
}

#define PROVIDER_TEST(name) cmocka_unit_test_setup_teardown(name, provider_setup, provider_teardown)
#endif
