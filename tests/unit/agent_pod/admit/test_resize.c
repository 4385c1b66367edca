/* SPDX-License-Identifier: Apache-2.0 */
/* What an edit of cpu and memory means: taken at once, waiting with kubelet's words, or back to what it was.
 */
#include "agent/pod/admit/admit.h"
#include "agent/pod/admit/resize.h"
#include "agent/pod/core/internal.h"
#include "agent/pod/limits/cpu_memory.h"
#include "agent/pod/limits/limits.h"
#include "tests/unit/agent_pod/world.h"

#define CTR(resources) "containers: [{name: a, image: x, resources: {" resources "}}]"

static struct pod *running(struct world *w, const char *name, const char *spec)
{
    struct pod *p = world_pod(w, name, spec);

    worker_node(&w->node)->runner_active = true; /* nothing runs by itself here */
    p->admitted = true;
    p->state = POD_RUNNING;
    return p;
}

/* The pod p with another spec. */
static struct api_pod *edited(struct world *w, const struct pod *p, const char *spec)
{
    str_auto text =
        str_printf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {%s}}", p->api->meta.name, spec);
    struct api_problems problems = { 0 };
    struct api_objects found = { 0 };
    struct api_pod *api;
    struct err e = { 0 };

    (void)w;
    assert_int_equal(api_decode_file("test.yaml", text, strlen(text), &found, &problems, &e), ERR_OK);
    if (problems.n > 0)
        fail_msg("%s: %s", problems.v[0].field, problems.v[0].message);
    api = api_pod_ref(found.v[0].pod);
    api_objects_done(&found);
    return api;
}

static void take(struct world *w, struct pod *p, const char *spec)
{
    struct api_pod *api = edited(w, p, spec), *got = resize_take(p, api);

    assert_non_null(got);
    api_pod_unref(p->api);
    p->api = got;
    for (size_t i = 0; i < p->n_ctrs; i++)
        p->ctrs[i]->spec = &got->spec.containers[i];
    api_pod_unref(api);
}

static int64_t cpu(const struct pod *p)
{
    struct quantity q = resources_pod_request(p->api, "cpu");

    return quantity_milli(&q);
}

static void condition_is(struct pod *p, const char *wanted)
{
    json_auto_t *list = json_array();
    str_auto text = NULL;

    resize_conditions(p, list);
    for (size_t i = 0; i < json_array_size(list); i++)
        json_object_del(json_array_get(list, i), "lastTransitionTime");
    text = json_dumps(list, JSON_COMPACT);
    assert_string_equal(text, wanted);
}

static const char *last_event(const struct world *w)
{
    const struct event *v, *last = NULL;

    TAILQ_FOREACH (v, &core_node(&w->node)->events, link)
        last = v;
    return last != NULL ? last->message : "";
}

static void what_fits_is_taken_at_once(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, "a", CTR("requests: {cpu: 1}"));

    take(w, p, CTR("requests: {cpu: 2}"));
    assert_int_equal(cpu(p), 2000);
    assert_false(resize_waits(p));
    condition_is(p, "[{\"type\":\"PodResizeInProgress\",\"status\":\"True\","
                    "\"lastProbeTime\":null}]");
    assert_string_equal(last_event(w), "Pod resize started: {\"containers\":[{\"name\":\"a\",\"resources\":{"
                                       "\"requests\":{\"cpu\":\"2\"}}}]}");
}

static void what_others_have_is_waited_for(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, "a", CTR("requests: {cpu: 1}"));
    struct pod *other = running(w, "b", CTR("requests: {cpu: 2}"));

    take(w, p, CTR("requests: {cpu: 3}"));
    assert_int_equal(cpu(p), 1000);
    assert_true(resize_waits(p));
    condition_is(p, "[{\"type\":\"PodResizePending\",\"status\":\"True\","
                    "\"lastProbeTime\":null,\"reason\":\"Deferred\",\"message\":\"Node didn't have enough "
                    "resource: cpu, requested: 3000, used: 2000, capacity: 4000\"}]");
    assert_string_equal(
        last_event(w),
        "Pod resize OutOfcpu: {\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{"
        "\"cpu\":\"3\"}}}],\"error\":\"Node didn't have enough resource: cpu, requested: 3000, "
        "used: 2000, capacity: 4000\"}");
    other->state = POD_TERMINATED;
    take(w, p, CTR("requests: {cpu: 3}"));
    assert_int_equal(cpu(p), 3000);
    assert_false(resize_waits(p));
}

static void more_than_the_node_has_is_infeasible(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, "a", CTR("requests: {cpu: 1}, limits: {memory: 1Gi}"));

    take(w, p, CTR("requests: {cpu: 5}, limits: {memory: 100Gi}"));
    assert_int_equal(cpu(p), 1000);
    condition_is(p, "[{\"type\":\"PodResizePending\",\"status\":\"True\","
                    "\"lastProbeTime\":null,\"reason\":\"Infeasible\",\"message\":\"Node didn't have enough "
                    "capacity: memory, requested: 107374182400, capacity: 8589934592\"}]");
    take(w, p, CTR("requests: {cpu: 1}, limits: {memory: 1Gi}")); /* taken back */
    assert_false(resize_waits(p));
    condition_is(p, "[]");
}

static void the_rest_of_an_edit_is_taken_while_its_resources_wait(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, "a", CTR("requests: {cpu: 1}"));

    take(w, p, "containers: [{name: a, image: y, resources: {requests: {cpu: 9}}}]");
    assert_string_equal(p->api->spec.containers[0].image, "y");
    assert_int_equal(cpu(p), 1000);
    assert_string_equal(resize_desired(p)->spec.containers[0].image, "y");
}

static void a_pod_that_is_not_admitted_yet_is_judged_then(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "a", CTR("requests: {cpu: 1}"));

    take(w, p, CTR("requests: {cpu: 9}"));
    assert_int_equal(cpu(p), 9000);
    condition_is(p, "[]");
}

static void nothing_becomes_smaller_before_its_turn(void **state)
{
    struct cpu_memory keep = { .known = false };
    struct cg_limits l = CG_LIMITS_NONE;

    (void)state;
    l.cpu_shares = 1024;
    l.cpu_period_us = 100000;
    l.cpu_quota_us = 100000;
    l.memory_max = 64 << 20;
    resources_widen(&keep, &l);
    assert_int_equal(l.memory_max, 64 << 20);
    keep = (struct cpu_memory){ true, 500, 2000, 0, 128 << 20 };
    resources_widen(&keep, &l);
    assert_int_equal(l.cpu_shares, 1024);
    assert_int_equal(l.cpu_quota_us, 200000);
    assert_int_equal(l.memory_max, 128 << 20);
    keep = (struct cpu_memory){ true, 2000, -1, 0, -1 };
    resources_widen(&keep, &l);
    assert_int_equal(l.cpu_shares, 2048);
    assert_int_equal(l.cpu_quota_us, -1);
    assert_int_equal(l.memory_max, -1);
}

static void the_status_shows_what_a_container_has(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, "a", CTR("limits: {cpu: 1, memory: 64Mi}"));
    json_auto_t *o = json_pack("{s:{s:s, s:s}}", "limits", "cpu", "1", "memory", "64Mi");
    str_auto text = NULL;

    p->ctrs[0]->cur.sizes = cpu_memory_of_container(p->ctrs[0]);
    resize_actual(p->ctrs[0], o);
    text = json_dumps(o, JSON_COMPACT);
    assert_string_equal(text, "{\"limits\":{\"cpu\":\"1\",\"memory\":\"64Mi\"}}");
    free(take_ptr(&text));
    p->ctrs[0]->cur.sizes = (struct cpu_memory){ true, 250, 1500, -1, 128 << 20 };
    resize_actual(p->ctrs[0], o);
    text = json_dumps(o, JSON_COMPACT);
    assert_string_equal(
        text, "{\"limits\":{\"cpu\":\"1500m\",\"memory\":\"128Mi\"},\"requests\":{\"cpu\":\"250m\"}}");
}

static void a_limit_of_the_pod_is_that_of_containers_without_one(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, "a", "resources: {limits: {cpu: 1, memory: 64Mi}}, " CTR(""));
    struct cpu_memory before = cpu_memory_of_container(p->ctrs[0]), after;

    assert_int_equal(before.cpu_limit, 1000);
    assert_int_equal(before.memory_limit, 64 << 20);
    take(w, p, "resources: {limits: {cpu: 2, memory: 96Mi}}, " CTR(""));
    after = cpu_memory_of_container(p->ctrs[0]);
    assert_int_equal(after.cpu_limit, 2000);
    assert_int_equal(after.memory_limit, 96 << 20);
    assert_false(cpu_memory_same(&before, &after));
    take(w, p, "resources: {limits: {cpu: 2, memory: 96Mi}}, " CTR("limits: {memory: 32Mi}"));
    assert_int_equal(cpu_memory_of_container(p->ctrs[0]).memory_limit, 32 << 20);
}

static void a_limit_of_zero_is_none_and_no_smaller_one(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, "a", CTR("requests: {cpu: 1}, limits: {memory: 64Mi}"));
    int64_t before = cpu_memory_of_container(p->ctrs[0]).memory_limit, after;

    take(w, p, CTR("requests: {cpu: 1}, limits: {memory: 0}"));
    after = cpu_memory_of_container(p->ctrs[0]).memory_limit;
    assert_int_equal(after, -1);
    assert_false(cpu_memory_shrink(before, after));
    assert_true(cpu_memory_shrink(after, before));
}

static void who_waits_has_its_turn_as_in_kubelet(void **state)
{
    static const char *const wanted[] = { "default/less", "default/high", "default/guaranteed",
                                          "default/low" };
    struct world *w = *state;
    struct pod *low = running(w, "low", CTR("requests: {cpu: 1}")),
               *guaranteed = running(w, "guaranteed", CTR("limits: {cpu: 1, memory: 1Gi}")),
               *high = running(w, "high", CTR("requests: {cpu: 1}")),
               *less = running(w, "less", CTR("requests: {cpu: 1}")), *p;
    size_t i = 0;

    w->node.o.cpu_milli = 3000; /* they have more than there is */
    high->priority = 100;
    take(w, low, CTR("requests: {cpu: 3}"));
    take(w, guaranteed, CTR("limits: {cpu: 3, memory: 1Gi}"));
    take(w, high, CTR("requests: {cpu: 3}"));
    take(w, less, CTR("requests: {cpu: 900m}"));
    assert_true(TAILQ_EMPTY(&worker_node(&w->node)->dirty));
    pods_wake_pending(&w->node, "test");
    TAILQ_FOREACH (p, &worker_node(&w->node)->dirty, dirty_link) {
        assert_true(i < ARRAY_LEN(wanted));
        assert_string_equal(p->key, wanted[i++]);
    }
    assert_int_equal(i, ARRAY_LEN(wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(what_fits_is_taken_at_once),
        WORLD_TEST(what_others_have_is_waited_for),
        WORLD_TEST(more_than_the_node_has_is_infeasible),
        WORLD_TEST(the_rest_of_an_edit_is_taken_while_its_resources_wait),
        WORLD_TEST(a_pod_that_is_not_admitted_yet_is_judged_then),
        WORLD_TEST(nothing_becomes_smaller_before_its_turn),
        WORLD_TEST(the_status_shows_what_a_container_has),
        WORLD_TEST(a_limit_of_the_pod_is_that_of_containers_without_one),
        WORLD_TEST(a_limit_of_zero_is_none_and_no_smaller_one),
        WORLD_TEST(who_waits_has_its_turn_as_in_kubelet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
