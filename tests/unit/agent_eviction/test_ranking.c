/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded orders of a real kubelet, and orders derived from its rules: tests/fixtures/eviction. */
#include "tests/unit/agent_eviction/helper.h"

#include "base/codec/json.h"

#define RECORDED "tests/fixtures/eviction/ranking.json"
#define DERIVED "tests/fixtures/eviction/ranking_rules.json"
#define CONTAINERS_MAX 8

struct loaded {
    struct ev_pod v[PODS_MAX];
    struct ev_container containers[PODS_MAX][CONTAINERS_MAX];
};

static struct quantity amount(const json_t *resources, const char *name)
{
    const char *text = json_str(resources, name);
    struct quantity q = { 0 };

    if (text != NULL)
        assert_int_equal(quantity_parse(text, &q, ERR_IGNORED), ERR_OK);
    return q;
}

/* A limit without a request is one. */
static int64_t requested(const json_t *container, const char *name)
{
    struct quantity q = amount(json_object_get(container, "requests"), name);

    if (json_object_get(json_object_get(container, "requests"), name) == NULL)
        q = amount(json_object_get(container, "limits"), name);
    return quantity_value(&q);
}

/* Containers and sidecars together, or an init container beside the sidecars before it. */
static uint64_t pod_request(const json_t *pod, const char *name)
{
    const json_t *whole = json_object_get(json_object_get(pod, "podRequests"), name);
    struct quantity overhead = amount(json_object_get(pod, "overhead"), name), q;
    int64_t sum = 0, sidecars = 0, most = 0;
    json_t *c;
    size_t i;

    json_array_foreach (json_object_get(pod, "containers"), i, c) {
        const int64_t one = requested(c, name);

        if (json_flag(c, "init") && one + sidecars > most)
            most = one + sidecars;
        if (json_flag(c, "sidecar"))
            sidecars += one;
        if (!json_flag(c, "init"))
            sum += one;
    }
    if (most > sum)
        sum = most;
    if (whole != NULL) {
        q = amount(json_object_get(pod, "podRequests"), name);
        sum = quantity_value(&q);
    }
    return (uint64_t)(sum + quantity_value(&overhead));
}

/* NULL: an emptyDir on disk. */
static bool is_local(const char *kind)
{
    return kind == NULL || str_eq(kind, "emptyDir") || str_eq(kind, "configMap") || str_eq(kind, "gitRepo") ||
           str_eq(kind, "hostPath");
}

static void load_usage(const json_t *pod, struct ev_pod *p, struct ev_container *containers)
{
    const char *name;
    json_t *item;
    size_t i;

    json_array_foreach (json_object_get(pod, "containers"), i, item) {
        const json_t *usage = json_object_get(item, "usage");

        assert_true(i < CONTAINERS_MAX);
        containers[i] = (struct ev_container){
            .name = json_str(item, "name"),
            .layer_known = usage != NULL,
            .log_known = usage != NULL,
            .layer = { (uint64_t)json_int(usage, "rootfs", 0), (uint64_t)json_int(usage, "rootfsInodes", 0) },
            .log = { (uint64_t)json_int(usage, "logs", 0), (uint64_t)json_int(usage, "logsInodes", 0) },
        };
        p->n_containers++;
    }
    json_object_foreach (json_object_get(pod, "volumes"), name, item) {
        const char *kind = json_str(json_object_get(pod, "volumeKinds"), name);

        if (!is_local(kind))
            continue;
        p->volumes.bytes += (uint64_t)json_int(item, "used", 0);
        p->volumes.inodes += (uint64_t)json_int(item, "inodes", 0);
    }
}

static void load_pod(const json_t *pod, struct ev_pod *p, struct ev_container *containers)
{
    const bool known = !json_flag(pod, "noStats");

    *p = (struct ev_pod){ .key = json_str(pod, "name"),
                          .priority = (int32_t)json_int(pod, "priority", 0),
                          .memory_known = known,
                          .layers_known = known,
                          .rest_known = known,
                          .processes_known = known,
                          .memory = (uint64_t)json_int(pod, "memory", 0),
                          .processes = (uint64_t)json_int(pod, "processes", 0),
                          .memory_request = pod_request(pod, "memory"),
                          .storage_request = pod_request(pod, "ephemeral-storage"),
                          .containers = containers };
    p->critical = json_flag(pod, "static") || p->priority >= 2000000000;
    load_usage(pod, p, containers);
}

static enum ev_layout layout_of(const char *word)
{
    return str_eq(word, "imagefs") ? EV_LAYOUT_IMAGEFS
           : str_eq(word, "split") ? EV_LAYOUT_SPLIT
                                   : EV_LAYOUT_ONE;
}

static void same_names(const char *name, const json_t *want, const struct ev_pod **got, size_t n,
                       bool evictable)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (evictable && got[i]->critical)
            continue;
        if (!str_eq(json_string_value(json_array_get(want, at)), got[i]->key))
            fail_msg("%s: %s is at %zu, not %s", name, got[i]->key, at,
                     json_string_value(json_array_get(want, at)));
        at++;
    }
    assert_int_equal(at, json_array_size(want));
}

static void rank_case(const json_t *one)
{
    const json_t *pods = json_object_get(one, "pods");
    const size_t n = json_array_size(pods);
    const struct ev_pod *order[PODS_MAX];
    static struct loaded all;

    assert_true(n <= PODS_MAX);
    for (unsigned backwards = 0; backwards < (json_flag(one, "ties") ? 1 : 2); backwards++) {
        for (size_t i = 0; i < n; i++) {
            load_pod(json_array_get(pods, i), &all.v[i], all.containers[i]);
            order[backwards ? n - 1 - i : i] = &all.v[i];
        }
        ev_rank(ev_signal_parse(json_str(one, "signal")), layout_of(json_str(one, "filesystems")), order, n);
        same_names(json_str(one, "name"), json_object_get(one, "order"), order, n, false);
        same_names(json_str(one, "name"), json_object_get(one, "evictable"), order, n, true);
    }
}

static void rank_cases(const char *file, size_t n)
{
    json_error_t error;
    json_auto_t *all = json_load_file(file, 0, &error);
    json_t *one;
    size_t i;

    if (all == NULL)
        fail_msg("%s: %s", file, error.text);
    assert_int_equal(json_array_size(json_object_get(all, "cases")), n);
    json_array_foreach (json_object_get(all, "cases"), i, one)
        rank_case(one);
}

static void kubelets_orders_are_ours(void **state)
{
    (void)state;
    rank_cases(RECORDED, 47);
}

static void the_rules_hold_for_what_was_not_recorded(void **state)
{
    (void)state;
    rank_cases(DERIVED, 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kubelets_orders_are_ours),
        cmocka_unit_test(the_rules_hold_for_what_was_not_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
