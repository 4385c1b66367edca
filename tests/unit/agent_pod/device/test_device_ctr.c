/* SPDX-License-Identifier: Apache-2.0 */
/* Containers with devices: what they get, what is prepared before a start, and what their status says. */
#include "tests/unit/agent_pod/script_parts.h"

#include "tests/unit/agent_pod/device/provider.h"

#include "agent/pod/status/status.h"
#include "base/codec/json.h"

#define ONE "containers: [{name: main, image: x, resources: {limits: {" DEV ": 1}}}]"
#define BOTH                                                                                                 \
    "containers: [{name: main, image: x, command: [run, $(DEV_IDS), $(OWN)], env: [{name: OWN, value: "      \
    "mine}, "                                                                                                \
    "{name: NET_IDS, value: own}], resources: {limits: {" NET ": 1, " DEV ": 1}}}]"
#define PRE_START ((struct dp_options){ .pre_start = true })
#define PLAIN ((struct dp_options){ 0 })

static struct dp_kv dev_envs[] = { { "DEV_IDS", "dev-0" }, { "SHARED", "of dev" } };
static struct dp_kv net_envs[] = { { "NET_IDS", "net-0" }, { "SHARED", "of net" } };
static struct dp_mount dev_mounts[] = { { "/mnt/x", "/host/dev", true } };
static struct dp_mount net_mounts[] = { { "/mnt/x", "/host/net", false }, { "/mnt/y", "/host/y", false } };
static struct dp_node dev_nodes[] = { { "/dev/a", "/dev/null", "rw" } };
static struct dp_node net_nodes[] = { { "/dev/a", "/dev/zero", "r" }, { "/dev/b", "/dev/zero", "r" } };
static struct dp_kv dev_annotations[] = { { "example.com/note", "one" } };
static struct dp_kv net_annotations[] = { { "example.com/note", "two" } };
static const char *dev_cdi[] = { "example.com/dev=0" };
static const char *net_cdi[] = { "example.com/net=0", "example.com/dev=0" };

static const struct dp_answer dev_answer = { .envs = dev_envs,
                                             .n_envs = 2,
                                             .mounts = dev_mounts,
                                             .n_mounts = 1,
                                             .nodes = dev_nodes,
                                             .n_nodes = 1,
                                             .annotations = dev_annotations,
                                             .n_annotations = 1,
                                             .cdi = dev_cdi,
                                             .n_cdi = 1 };
static const struct dp_answer net_answer = { .envs = net_envs,
                                             .n_envs = 2,
                                             .mounts = net_mounts,
                                             .n_mounts = 2,
                                             .nodes = net_nodes,
                                             .n_nodes = 2,
                                             .annotations = net_annotations,
                                             .n_annotations = 1,
                                             .cdi = net_cdi,
                                             .n_cdi = 2 };

static struct pod *running(struct world *w, struct dp_options o)
{
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", o);
    p = script_pod(w, "a", ONE);
    script_turn(w);
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    if (o.pre_start) {
        script_answer(w, "PreStartContainer", ERR_OK);
        script_answer_all(w, NULL);
    }
    assert_int_equal(p->state, POD_RUNNING);
    return p;
}

static void assert_status(const struct pod *p, const char *id, const char *health)
{
    json_auto_t *status = devices_status(p->ctrs[0]);
    str_auto text = json_text(status);
    str_auto wanted = str_printf(
        "[{\"name\":\"" DEV "\",\"resources\":[{\"resourceID\":\"%s\",\"health\":\"%s\"}]}]", id, health);

    assert_string_equal(text != NULL ? text : "", wanted);
}

/* ---- what it gets ---- */

static void the_first_answer_by_name_of_the_resource_wins(void **state)
{
    const struct device_gift gifts[] = { { DEV, &dev_answer }, { NET, &net_answer } };
    struct arena arena = { 0 };
    struct dp_answer m;
    struct strs conflicts = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(device_merge(gifts, 2, &arena, &m, &conflicts, &e), ERR_OK);
    assert_int_equal(m.n_envs, 3);
    assert_string_equal(m.envs[1].value, "of dev");
    assert_string_equal(m.envs[2].name, "NET_IDS");
    assert_int_equal(m.n_mounts, 2);
    assert_string_equal(m.mounts[0].host_path, "/host/dev");
    assert_int_equal(m.n_nodes, 2);
    assert_string_equal(m.nodes[0].host_path, "/dev/null");
    assert_int_equal(m.n_annotations, 1);
    assert_string_equal(m.annotations[0].value, "one");
    assert_int_equal(m.n_cdi, 2);
    assert_int_equal(conflicts.n, 4);
    assert_string_equal(conflicts.v[0],
                        "environment variable SHARED: that of " DEV " is used, that of " NET " differs");
    strs_done(&conflicts);
    arena_done(&arena);
}

static bool has(const char *const *env, const char *wanted)
{
    for (; env != NULL && *env != NULL; env++)
        if (strcmp(*env, wanted) == 0)
            return true;
    return false;
}

static void the_answers_reach_the_containers_configuration(void **state)
{
    struct world *w = *state;
    struct dp_answer dev = dev_answer, net = net_answer;
    const struct rt_config *config;
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    provider_comes(w, &provider_two, NET, "net-0", PLAIN);
    p = script_pod(w, "a", BOTH);
    script_turn(w);
    dev.n_cdi = net.n_cdi = 0;
    provider_allocates(w, &dev);
    provider_allocates(w, &net);
    script_answer_all(w, "create");
    config = ctr_run_config(own_of(p->ctrs[0])->run);
    assert_true(has(config->device_env, "DEV_IDS=dev-0"));
    assert_true(has(config->device_env, "NET_IDS=net-0")); /* the container's own wins in the runtime */
    assert_true(has(config->env, "NET_IDS=own"));
    assert_string_equal(config->command->v[1], "dev-0");
    assert_string_equal(config->command->v[2], "mine");
    assert_int_equal(config->n_devices, 2);
    assert_string_equal(config->devices[0].container_path, "/dev/a");
    assert_string_equal(config->devices[0].permissions, "rw");
    assert_int_equal(config->n_annotations, 1);
    assert_string_equal(config->mounts[0].source, "/host/dev");
    assert_true(config->mounts[0].read_only);
    assert_true(config->mounts[0].device);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
}

/* ---- before a start ---- */

static void devices_are_prepared_before_each_start(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, PRE_START);

    assert_int_equal(provider.n_pre_start, 1);
    assert_string_equal(provider.ids, "dev-0");
    script_exit(w, p->ctrs[0], 1);
    script_pass(w, 11 * SCRIPT_SECOND);
    assert_int_equal(provider.n_pre_start, 2);
    assert_null(script_op("create"));
    json_auto_t *steps = json_array();
    containers_explain(p, steps);
    assert_non_null(strstr(json_str(json_array_get(steps, 0), "detail"), "PreStartContainer"));
    script_answer(w, "PreStartContainer", ERR_OK);
    script_answer_all(w, NULL);
    assert_int_equal(p->ctrs[0]->restarts, 1);
    assert_int_equal(provider.n_allocate, 1); /* once in the pod's life */
}

static void a_failed_preparation_is_a_configuration_error_and_tried_again(void **state)
{
    static const char text[] =
        "device plugin PreStartContainer rpc failed with err: rpc error: code = Internal "
        "desc = no";
    struct world *w = *state;
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0", PRE_START);
    p = script_pod(w, "a", ONE);
    script_turn(w);
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    provider_fails(w, "PreStartContainer", ERR_INTERNAL, "rpc error: code = Internal desc = no");
    assert_string_equal(p->ctrs[0]->waiting_reason, "CreateContainerConfigError");
    assert_string_equal(p->ctrs[0]->waiting_message, text);
    script_pass(w, 11 * SCRIPT_SECOND);
    assert_int_equal(provider.n_pre_start, 2);
    script_answer(w, "PreStartContainer", ERR_OK);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
}

/* A stick that was unplugged has another number when it is back. */
static void a_preparation_may_bring_a_new_answer(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, PRE_START);
    const struct rt_config *config;
    struct dp_ask *a;
    struct err e = { 0 };

    script_exit(w, p->ctrs[0], 1);
    script_pass(w, 11 * SCRIPT_SECOND);
    a = container_of(script_op("PreStartContainer"), struct dp_ask, op);
    assert_int_equal(
        dp_answer_pack(&(struct dp_answer){ .nodes = net_nodes, .n_nodes = 1 }, &a->raw, &a->n_raw, &e),
        ERR_OK);
    assert_int_equal(dp_answer_unpack(&a->answer, a->raw, a->n_raw, &e), ERR_OK);
    script_answer(w, "PreStartContainer", ERR_OK);
    config = ctr_run_config(own_of(p->ctrs[0])->run);
    assert_int_equal(config->n_devices, 1);
    assert_string_equal(config->devices[0].host_path, "/dev/zero");
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(dp_holdings_next(devices_holdings(&w->node), NULL)->n_answer > 0, true);
}

static void a_provider_that_is_away_prepares_nothing(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, PRE_START);

    provider_goes(w, &provider_one, DEV);
    script_exit(w, p->ctrs[0], 1);
    script_pass(w, 11 * SCRIPT_SECOND);
    script_answer_all(w, NULL);
    assert_int_equal(provider.n_pre_start, 1);
    assert_int_equal(p->ctrs[0]->restarts, 1);
    assert_int_equal(p->state, POD_RUNNING);
}

static void the_end_of_the_pod_ends_the_preparation(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, PRE_START);

    script_exit(w, p->ctrs[0], 1);
    script_pass(w, 11 * SCRIPT_SECOND);
    assert_non_null(script_op("PreStartContainer"));
    p->wanted = false;
    pod_wake(p, "test");
    script_turn(w);
    assert_null(script_op("PreStartContainer"));
    script_answer_all(w, NULL);
    assert_null(pods_find(&w->node, "default", "a"));
}

/* ---- health ---- */

static void the_status_follows_the_health_of_a_device(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, PLAIN);

    assert_status(p, "dev-0", "Healthy");
    provider_list(w, &provider_one, DEV, "dev-0- dev-1");
    assert_status(p, "dev-0", "Unhealthy");
    provider_list(w, &provider_one, DEV, "dev-1"); /* it is gone */
    assert_status(p, "dev-0", "Unhealthy");
    provider_goes(w, &provider_one, DEV);
    assert_status(p, "dev-0", "Unknown");
    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", PLAIN);
    assert_status(p, "dev-0", "Healthy");
    assert_int_equal(p->state, POD_RUNNING); /* all the time */
    assert_int_equal(p->ctrs[0]->restarts, 0);
}

static void only_app_containers_show_their_devices(void **state)
{
    struct world *w = *state;
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    p = script_pod(w, "a",
                   "initContainers: [{name: init, image: x, resources: {limits: {" DEV ": 1}}}], containers: "
                   "[{name: main, image: x, resources: {limits: {" DEV ": 1}}}]");
    script_turn(w);
    provider_allocates(w, NULL);
    provider_allocates(w, NULL);
    json_auto_t *object = pod_status_json(p);
    const json_t *status = json_object_get(object, "status");
    const json_t *init = json_array_get(json_object_get(status, "initContainerStatuses"), 0);
    const json_t *main_ = json_array_get(json_object_get(status, "containerStatuses"), 0);
    assert_non_null(init);
    assert_null(json_object_get(init, "allocatedResourcesStatus"));
    assert_non_null(json_object_get(main_, "allocatedResourcesStatus")); /* nothing runs yet */
}

static void explain_names_the_devices(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w, PLAIN);
    json_auto_t *steps = json_array();

    provider_list(w, &provider_one, DEV, "dev-0- dev-1");
    devices_explain(p, steps);
    assert_string_equal(json_str(json_array_get(steps, 0), "detail"), "main: " DEV " dev-0 (Unhealthy)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_answer_by_name_of_the_resource_wins),
        PROVIDER_TEST(the_answers_reach_the_containers_configuration),
        PROVIDER_TEST(devices_are_prepared_before_each_start),
        PROVIDER_TEST(a_failed_preparation_is_a_configuration_error_and_tried_again),
        PROVIDER_TEST(a_preparation_may_bring_a_new_answer),
        PROVIDER_TEST(a_provider_that_is_away_prepares_nothing),
        PROVIDER_TEST(the_end_of_the_pod_ends_the_preparation),
        PROVIDER_TEST(the_status_follows_the_health_of_a_device),
        PROVIDER_TEST(only_app_containers_show_their_devices),
        PROVIDER_TEST(explain_names_the_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
