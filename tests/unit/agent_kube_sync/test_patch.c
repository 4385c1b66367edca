/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "agent/kube/decide/patch.h"

static void patches(const char *from, const char *to, const char *wanted)
{
    json_t *a = json_loads(from, 0, NULL), *b = json_loads(to, 0, NULL), *w = json_loads(wanted, 0, NULL);
    json_t *patch = patch_two_way(a, b);

    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(w);
    if (!json_equal(patch, w))
        fail_msg("%s\nexpected %s", json_dumps(patch, JSON_COMPACT), wanted);
    json_decref(a);
    json_decref(b);
    json_decref(w);
    json_decref(patch);
}

static void conditions_are_merged_by_their_type(void **state)
{
    (void)state;
    patches("{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"ContainersNotReady\"},"
            "{\"type\":\"PodScheduled\",\"status\":\"True\"}]}",
            "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"PodScheduled\",\"status\":"
            "\"True\"}]}",
            "{\"conditions\":[{\"reason\":null,\"status\":\"True\",\"type\":\"Ready\"}],"
            "\"$setElementOrder/conditions\":[{\"type\":\"Ready\"},{\"type\":\"PodScheduled\"}]}");
}

static void the_first_conditions_need_no_order(void **state)
{
    (void)state;
    patches("{\"phase\":\"Pending\"}",
            "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
            "\"lastProbeTime\":null}]}",
            "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"lastProbeTime\":null}]}");
}

static void a_condition_that_goes_is_deleted_by_name(void **state)
{
    (void)state;
    patches("{\"conditions\":[{\"type\":\"PodResizePending\",\"status\":\"True\"},{\"type\":\"Ready\","
            "\"status\":\"True\"}]}",
            "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
            "{\"conditions\":[{\"$patch\":\"delete\",\"type\":\"PodResizePending\"}],"
            "\"$setElementOrder/conditions\":[{\"type\":\"Ready\"}]}");
}

static void another_order_alone_is_a_patch(void **state)
{
    (void)state;
    patches("{\"conditions\":[{\"type\":\"A\"},{\"type\":\"B\"}]}",
            "{\"conditions\":[{\"type\":\"B\"},{\"type\":\"A\"}]}",
            "{\"$setElementOrder/conditions\":[{\"type\":\"B\"},{\"type\":\"A\"}]}");
}

static void container_statuses_are_replaced_whole(void **state)
{
    (void)state;
    patches("{\"containerStatuses\":[{\"name\":\"a\",\"ready\":false},{\"name\":\"b\",\"ready\":true}]}",
            "{\"containerStatuses\":[{\"name\":\"a\",\"ready\":true},{\"name\":\"b\",\"ready\":true}]}",
            "{\"containerStatuses\":[{\"name\":\"a\",\"ready\":true},{\"name\":\"b\",\"ready\":true}]}");
}

static void what_go_leaves_out_is_no_difference(void **state)
{
    (void)state;
    patches("{\"containerStatuses\":[{\"name\":\"a\",\"ready\":false,\"restartCount\":0,\"imageID\":\"\","
            "\"lastState\":{}}],"
            "\"resources\":{}}",
            "{\"containerStatuses\":[{\"name\":\"a\",\"state\":{}}],\"message\":\"\",\"conditions\":[]}",
            "{}");
}

static void a_member_that_goes_is_null(void **state)
{
    (void)state;
    patches("{\"reason\":\"Evicted\",\"nodeInfo\":{\"bootID\":\"a\",\"kernelVersion\":\"6\"}}",
            "{\"nodeInfo\":{\"bootID\":\"b\"}}",
            "{\"reason\":null,\"nodeInfo\":{\"bootID\":\"b\",\"kernelVersion\":null}}");
}

static void quantities_are_compared_by_value(void **state)
{
    (void)state;
    patches("{\"capacity\":{\"memory\":\"16Gi\",\"cpu\":\"500m\",\"pods\":\"110\"}}",
            "{\"capacity\":{\"memory\":\"16777216Ki\",\"cpu\":\"0.5\",\"pods\":\"111\"}}",
            "{\"capacity\":{\"pods\":\"111\"}}");
    patches("{\"nodeInfo\":{\"bootID\":\"1Ki\"}}", "{\"nodeInfo\":{\"bootID\":\"1024\"}}",
            "{\"nodeInfo\":{\"bootID\":\"1024\"}}");
    assert_true(patch_quantity_equal("1", "1000m"));
    assert_true(patch_quantity_equal("1.5Gi", "1536Mi"));
    assert_false(patch_quantity_equal("1", "1Ki"));
    assert_false(patch_quantity_equal("1e3", "1000"));
    assert_false(patch_quantity_equal("", "0"));
    assert_false(patch_quantity_equal("999999999999999999T", "1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_merged_by_their_type),
        cmocka_unit_test(the_first_conditions_need_no_order),
        cmocka_unit_test(a_condition_that_goes_is_deleted_by_name),
        cmocka_unit_test(another_order_alone_is_a_patch),
        cmocka_unit_test(container_statuses_are_replaced_whole),
        cmocka_unit_test(what_go_leaves_out_is_no_difference),
        cmocka_unit_test(a_member_that_goes_is_null),
        cmocka_unit_test(quantities_are_compared_by_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
