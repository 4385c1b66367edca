/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden - what kubelet's own functions computed. The recordings are not part of the repository:
 * CORACLE_GOLDEN names their folder, or they are beside the checkout.
 */
#ifndef TESTS_UNIT_AGENT_PLACEMENT_GOLDEN_H
#define TESTS_UNIT_AGENT_PLACEMENT_GOLDEN_H
#include "tests/unit/agent_placement/helper.h"

#include "agent/placement/reserve.h"

#include <jansson.h>

static json_t *golden;
static size_t golden_done;

static inline int golden_open(const char *name)
{
    const char *tops[] = { getenv("CORACLE_GOLDEN"), "../shared/golden" };

    for (size_t i = 0; i < 2 && golden == NULL; i++) {
        char path[1024];

        snprintf(path, sizeof(path), "%s/managers/%s", tops[i] == NULL ? "" : tops[i], name);
        golden = json_load_file(path, 0, NULL);
    }
    return 0;
}

static inline int golden_close(void **state)
{
    (void)state;
    json_decref(golden);
    return 0;
}

/* Calls `replay` for each recorded case of a list. */
static inline void each_case(const char *list, void (*replay)(const json_t *x))
{
    const json_t *v = json_object_get(golden, list), *x;
    size_t i;

    if (v == NULL) {
        print_message("no recordings: CORACLE_GOLDEN names no folder with managers\n");
        skip();
    }
    golden_done = 0;
    json_array_foreach (v, i, x) {
        replay(x);
        golden_done++;
    }
    print_message("%s: %zu cases\n", list, golden_done);
}

static inline const char *text_of(const json_t *x, const char *key)
{
    const char *text = json_string_value(json_object_get(x, key));

    return text != NULL ? text : "";
}

static inline long long number_of(const json_t *x, const char *key)
{
    return (long long)json_integer_value(json_object_get(x, key));
}

static inline bool flag_of(const json_t *x, const char *key)
{
    return json_is_true(json_object_get(x, key));
}

static inline void expect_text(const json_t *x, const char *where, const char *want, const char *got)
{
    if (strcmp(want, got) == 0)
        return;
    fail_msg("%s %zu: \"%s\" is expected, not \"%s\"\n%.2000s", where, golden_done, want, got,
             json_dumps(x, JSON_COMPACT));
}

static inline uint64_t nodes_in(const json_t *list)
{
    uint64_t ret = 0;
    size_t i;
    json_t *id;

    json_array_foreach (list, i, id)
        ret |= 1ull << json_integer_value(id);
    return ret;
}

/* [{"numa": [0], "preferred": true}, ...] */
static inline void hints_in(const json_t *list, struct pl_hints *ret)
{
    struct err e = { 0 };
    size_t i;
    json_t *x;

    *ret = (struct pl_hints){ .any = json_is_null(list) || list == NULL };
    json_array_foreach (list, i, x) {
        assert_int_equal(pl_hints_add(ret, nodes_in(json_object_get(x, "numa")), &e), ERR_OK);
        ret->v[i].preferred = flag_of(x, "preferred");
    }
}

static inline void print_hints(const struct pl_hints *h, char *ret, size_t size)
{
    size_t n = (size_t)snprintf(ret, size, "%s", h->any ? "any" : "");

    for (size_t i = 0; i < h->n && n < size && !h->any; i++)
        n += (size_t)snprintf(ret + n, size - n, "%llx%s ", (unsigned long long)h->v[i].nodes,
                              h->v[i].preferred ? "!" : "");
}

static inline void expect_hints(const json_t *x, const char *where, const json_t *want,
                                const struct pl_hints *got)
{
    char a[20000], b[20000];
    struct pl_hints h;

    hints_in(want, &h);
    print_hints(&h, a, sizeof(a));
    print_hints(got, b, sizeof(b));
    pl_hints_done(&h);
    expect_text(x, where, a, b);
}

static inline size_t options_in(const json_t *x, struct pl_option *ret)
{
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach (json_object_get(x, "options"), name, value)
        ret[n++] = (struct pl_option){ name, json_string_value(value) };
    return n;
}

static inline enum pl_policy policy_in(const json_t *x, const char *key)
{
    enum pl_policy p = PL_POLICY_NONE;

    assert_true(pl_policy_from_name(text_of(x, key), &p));
    return p;
}

static inline enum pl_kind kind_in(const json_t *container)
{
    const char *kind = text_of(container, "kind");

    return strcmp(kind, "init") == 0 ? PL_INIT : strcmp(kind, "sidecar") == 0 ? PL_SIDECAR : PL_REGULAR;
}

static inline json_t *by_key(const json_t *list, const char *key, const char *value)
{
    size_t i;
    json_t *x;

    json_array_foreach (list, i, x)
        if (strcmp(text_of(x, key), value) == 0)
            return x;
    fail_msg("no %s %s", key, value);
    return NULL;
}
#endif
