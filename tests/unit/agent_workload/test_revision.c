/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/revision.h"
#include "base/codec/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char web[] =
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"annotations\":{\"kubernetes.io/"
    "change-cause\":\"first\","
    "\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\"}},\"spec\":{\"replicas\":3,"
    "\"selector\":{\"matchLabels\":{\"app\":\"web\"}},\"minReadySeconds\":5,\"template\":{\"metadata\":{"
    "\"labels\":"
    "{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"a\"}]}}}}";

static json_t *owner(void)
{
    json_t *o = json_loads(web, 0, NULL);

    assert_non_null(o);
    return o;
}

static const char *annotation(const json_t *o, const char *key)
{
    return json_str(json_at(o, "metadata.annotations"), key);
}

static void a_deployment_has_replica_sets(void **state)
{
    json_auto_t *o = owner(), *rs = revision_object(API_KIND_DEPLOYMENT, o, "u", "bcd", 4);
    const json_t *above = json_array_get(json_at(rs, "metadata.ownerReferences"), 0);

    (void)state;
    assert_string_equal(json_str(rs, "kind"), "ReplicaSet");
    assert_string_equal(json_string_value(json_at(rs, "metadata.name")), "web-bcd");
    assert_string_equal(json_string_value(json_at(rs, "metadata.labels.pod-template-hash")), "bcd");
    assert_string_equal(json_string_value(json_at(rs, "spec.selector.matchLabels.pod-template-hash")), "bcd");
    assert_string_equal(json_string_value(json_at(rs, "spec.template.metadata.labels.pod-template-hash")),
                        "bcd");
    assert_int_equal(json_integer_value(json_at(rs, "spec.replicas")), 0);
    assert_int_equal(json_integer_value(json_at(rs, "spec.minReadySeconds")), 5);
    assert_string_equal(json_str(above, "kind"), "Deployment");
    assert_string_equal(json_str(above, "uid"), "u");
    assert_int_equal(revision_number(rs), 4);
    assert_string_equal(annotation(rs, "kubernetes.io/change-cause"), "first");
    assert_null(annotation(rs, "kubectl.kubernetes.io/last-applied-configuration"));
    assert_null(json_at(o, "spec.template.metadata.labels.pod-template-hash")); /* it is a copy */
}

static void sets_have_controller_revisions_with_a_patch(void **state)
{
    json_auto_t *o = owner(), *set = revision_object(API_KIND_STATEFUL_SET, o, "u", "bcd", 2),
                *daemon = revision_object(API_KIND_DAEMON_SET, o, "u", "bcd", 2);

    (void)state;
    assert_string_equal(json_str(set, "kind"), "ControllerRevision");
    assert_int_equal(json_int(set, "revision", 0), 2);
    assert_string_equal(json_string_value(json_at(set, "data.spec.template.$patch")), "replace");
    assert_string_equal(json_str(json_at(set, "metadata.labels"), "controller.kubernetes.io/hash"), "bcd");
    assert_string_equal(json_str(json_at(set, "metadata.labels"), "app"), "web");
    assert_string_equal(json_str(json_at(daemon, "metadata.labels"), "controller-revision-hash"), "bcd");
    assert_true(revision_renumber(set, 7));
    assert_int_equal(revision_number(set), 7);
    assert_null(annotation(set, REVISION_ANNOTATION));
}

static void a_new_number_leaves_the_old_ones_in_the_history(void **state)
{
    json_auto_t *o = owner(), *rs = revision_object(API_KIND_DEPLOYMENT, o, "u", "bcd", 1);
    const char *history;

    (void)state;
    assert_true(revision_renumber(rs, 3));
    assert_true(revision_renumber(rs, 5));
    assert_int_equal(revision_number(rs), 5);
    assert_string_equal(annotation(rs, "deployment.kubernetes.io/revision-history"), "1,3");
    for (int64_t i = 1000; i < 2000; i++)
        assert_true(revision_renumber(rs, i));
    history = annotation(rs, "deployment.kubernetes.io/revision-history");
    assert_true(strlen(history) <= 2000);
    assert_string_equal(history + strlen(history) - 4, "1998");
}

static void annotations_follow_the_deployment(void **state)
{
    json_auto_t *o = owner(), *rs = revision_object(API_KIND_DEPLOYMENT, o, "u", "bcd", 1);

    (void)state;
    assert_false(revision_annotate(rs, o));
    json_put_str(json_at(o, "metadata.annotations"), "kubernetes.io/change-cause", "second");
    json_put_str(json_at(o, "metadata.annotations"), REVISION_ANNOTATION, "9");
    assert_true(revision_annotate(rs, o));
    assert_string_equal(annotation(rs, "kubernetes.io/change-cause"), "second");
    assert_int_equal(revision_number(rs), 1);
}

static void a_template_looks_like_that_of_its_revision(void **state)
{
    json_auto_t *o = owner(), *rs = revision_object(API_KIND_DEPLOYMENT, o, "u", "bcd", 1),
                *cr = revision_object(API_KIND_DAEMON_SET, o, "u", "bcd", 1);
    const uint64_t looks = revision_looks(revision_template(o));

    (void)state;
    assert_true(looks != 0);
    assert_true(looks == revision_looks(revision_template(rs)));
    assert_true(looks == revision_looks(revision_template(cr)));
    json_put_str(json_at(o, "spec.template.metadata.labels"), "app", "other");
    assert_true(looks != revision_looks(revision_template(o)));
    assert_true(revision_looks(NULL) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deployment_has_replica_sets),
        cmocka_unit_test(sets_have_controller_revisions_with_a_patch),
        cmocka_unit_test(a_new_number_leaves_the_old_ones_in_the_history),
        cmocka_unit_test(annotations_follow_the_deployment),
        cmocka_unit_test(a_template_looks_like_that_of_its_revision),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
