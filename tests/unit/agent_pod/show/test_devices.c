/* SPDX-License-Identifier: Apache-2.0 */
/* What the socket says of devices: the list, the node's explanation, metrics. */
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/device/internal.h"
#include "agent/pod/show/devices.h"
#include "base/codec/json.h"

#define DEV "example.com/dev"

static void describe(const struct dp_provider *p, char *ret, size_t size)
{
    (void)p;
    snprintf(ret, size, "p1.sock, pid 812");
}

static struct dp_provider plugin = { .rank = DP_RANK_PLUGIN, .kind = "plugin", .describe = describe };

/* Two devices, of which web's container holds the second and one that is listed no more. */
static void devices_of_web(struct world *w)
{
    static const int64_t numa[] = { 0, 1 };
    static const struct dp_device listed[] = {
        { .id = "dev-10", .healthy = false },
        { .id = "dev-2", .healthy = true, .numa = numa, .n_numa = 2 },
    };
    static const struct dp_held held[] = { { .id = "dev-2" }, { .id = "gone/\t\x1b" } };
    struct pod *p =
        world_pod(w, "web", "containers: [{name: main, image: a, resources: {limits: {" DEV ": 2}}}]");
    const struct dp_holding h = {
        .pod_uid = p->uid, .container = "main", .resource = DEV, .devices = held, .n_devices = 2
    };
    struct dp_inventory *all = devices_inventory_fill(&w->node);
    struct err e = { 0 };

    assert_int_equal(dp_inventory_provide(all, DEV, &plugin, (struct dp_options){ 0 }, &e), ERR_OK);
    assert_int_equal(dp_inventory_list(all, &plugin, DEV, listed, 2, &e), ERR_OK);
    assert_int_equal(dp_inventory_count(all, "example.com/slot", 4, &e), ERR_OK);
    assert_int_equal(dp_holdings_put(device_node(&w->node)->holdings, &h, &e), ERR_OK);
}

static void release(struct world *w)
{
    dp_holdings_drop(device_node(&w->node)->holdings, NULL, NULL, NULL);
}

static void assert_device(struct world *w, const json_t *key, const char *wanted)
{
    const char *name = json_string_value(key);
    json_auto_t *device = NULL;
    mem_auto char *text = NULL;

    assert_non_null(name);
    assert_int_equal(name[0], '/');
    device = device_json(&w->node, name + 1);
    json_object_del(json_object_get(device, "pod"), "uid");
    text = json_dumps(device, JSON_COMPACT);
    assert_string_equal(text, wanted);
}

static void every_device_is_listed_with_its_pod(void **state)
{
    struct world *w = *state;
    json_auto_t *keys = NULL, *held = NULL;

    devices_of_web(w);
    held = devices_keys(&w->node, true);
    assert_int_equal(json_array_size(held), 2);
    assert_string_equal(json_string_value(json_array_get(held, 0)), "/" DEV "\tdev-2");
    assert_string_equal(json_string_value(json_array_get(held, 1)), "/" DEV "\tgone/\t\x1b");
    keys = devices_keys(&w->node, false);
    assert_int_equal(json_array_size(keys), 3);
    assert_device(w, json_array_get(keys, 0),
                  "{\"resource\":\"" DEV "\",\"id\":\"dev-2\",\"health\":\"Healthy\",\"numaNodes\":[0,1],"
                  "\"provider\":\"plugin: p1.sock, pid 812\","
                  "\"pod\":{\"namespace\":\"default\",\"name\":\"web\"},\"containers\":[\"main\"]}");
    assert_device(w, json_array_get(keys, 1),
                  "{\"resource\":\"" DEV "\",\"id\":\"dev-10\",\"health\":\"Unhealthy\","
                  "\"provider\":\"plugin: p1.sock, pid 812\"}");
    assert_device(w, json_array_get(keys, 2),
                  "{\"resource\":\"" DEV "\",\"id\":\"gone/\\t\\u001B\",\"health\":\"Unhealthy\","
                  "\"provider\":\"plugin: p1.sock, pid 812\","
                  "\"pod\":{\"namespace\":\"default\",\"name\":\"web\"},\"containers\":[\"main\"]}");
    assert_null(device_json(&w->node, DEV "\tdev-3"));
    assert_null(device_json(&w->node, "example.com/none\tdev-2"));
    assert_null(device_json(&w->node, "no tab"));
    release(w);
}

static const char *detail(const json_t *steps, const char *name, const char *state)
{
    const json_t *step;
    size_t i;

    json_array_foreach (steps, i, step)
        if (str_eq(json_str(step, "name"), name) && str_eq(json_str(step, "state"), state))
            return json_str(step, "detail");
    return "";
}

static void the_node_explains_each_resource(void **state)
{
    struct world *w = *state;
    json_auto_t *steps = json_array(), *later = json_array();
    struct err e = { 0 };

    devices_of_web(w);
    devices_explain_node(&w->node, steps);
    assert_string_equal(detail(steps, "resource " DEV, "done"),
                        "plugin: p1.sock, pid 812; 2 devices, 1 of them healthy");
    assert_string_equal(detail(steps, "resource example.com/slot", "done"),
                        "4, a number of the configuration");
    dp_inventory_withdraw(devices_inventory_fill(&w->node), &plugin, DEV);
    devices_explain_node(&w->node, later);
    assert_string_equal(detail(later, "resource " DEV, "waiting"),
                        "its provider is gone: none of its 2 devices can be given to pods");
    assert_int_equal(
        dp_inventory_provide(devices_inventory_fill(&w->node), DEV, &plugin, (struct dp_options){ 0 }, &e),
        ERR_OK); /* no timer runs any more */
    release(w);
}

static void metrics_have_the_numbers_of_each_resource(void **state)
{
    struct world *w = *state;
    buf_auto out = BUF_INIT(64 * 1024);

    devices_of_web(w);
    devices_metrics(&w->node, &out);
    assert_non_null(strstr(out.p, "\ncoracle_extended_resource_capacity{resource_name=\"" DEV "\"} 2\n"));
    assert_non_null(strstr(out.p, "\ncoracle_extended_resource_allocatable{resource_name=\"" DEV "\"} 1\n"));
    assert_non_null(strstr(out.p, "\ncoracle_extended_resource_held_devices{resource_name=\"" DEV "\"} 2\n"));
    assert_non_null(
        strstr(out.p, "\ncoracle_extended_resource_capacity{resource_name=\"example.com/slot\"} 4\n"));
    assert_null(strstr(out.p, "held_devices{resource_name=\"example.com/slot\"}"));
    release(w);
}

static void admissions_are_counted_by_their_time(void **state)
{
    struct admissions a = { 0 };

    (void)state;
    admissions_add(&a, 50000, false);
    admissions_add(&a, 50001, true);
    admissions_add(&a, UINT64_C(1000000000), false);
    assert_int_equal(a.pods, 3);
    assert_int_equal(a.refused, 1);
    assert_int_equal(a.buckets[0], 1);
    assert_int_equal(a.buckets[1], 2);
    assert_int_equal(a.buckets[ADMISSION_BUCKETS - 1], 2); /* up to 819.2 ms */
    assert_int_equal(a.took_ns, 1000100001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(every_device_is_listed_with_its_pod),
        WORLD_TEST(the_node_explains_each_resource),
        cmocka_unit_test(admissions_are_counted_by_their_time),
        WORLD_TEST(metrics_have_the_numbers_of_each_resource),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
