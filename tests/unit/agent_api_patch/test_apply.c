/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/apply/apply.h"
#include "tests/unit/agent_api_patch/patch_case.h"

#include "base/scope.h"

#define NOW "2030-01-01T00:00:00Z"
#define LATER "2030-01-01T00:00:05Z"

/* A ConfigMap that managers write one after the other. */
struct object {
    const struct api_patch_kind *kind;
    json_t *live;   /* NULL: there is none */
    json_t *status; /* of the last failure */
};

static struct object made(const char *version, const char *name)
{
    struct object o = { .kind = api_patch_kind_find(version, name) };

    assert_non_null(o.kind);
    return o;
}

static void done(struct object *o)
{
    json_decref(o->live);
    json_decref(o->status);
}

static bool apply_at(struct object *o, const char *manager, const char *now, bool force, const char *text)
{
    const struct api_manager by = { manager, NULL, now };
    json_t *config = patch_load(text), *ret = NULL;
    struct err e = { 0 };
    bool ok;

    json_decref(o->status);
    o->status = NULL;
    ok = api_apply(o->kind, &by, force, o->live, config, &ret, &o->status, &e) == ERR_OK;
    json_decref(config);
    if (ok) {
        json_decref(o->live);
        o->live = ret;
    }
    return ok;
}

static bool apply(struct object *o, const char *manager, const char *data)
{
    str_auto text = NULL;

    assert_true(
        asprintf(&text,
                 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":%s}",
                 data) > 0);
    return apply_at(o, manager, NOW, false, text);
}

static void update(struct object *o, const char *manager, const char *text)
{
    const struct api_manager by = { manager, NULL, NOW };
    json_t *object = patch_load(text);
    struct err e = { 0 };

    assert_int_equal(api_update_managed(o->kind, &by, o->live, object, &e), ERR_OK);
    json_decref(o->live);
    o->live = object;
}

static void expect_data(const struct object *o, const char *data)
{
    patch_expect(json_object_get(o->live, "data"), data);
}

static const json_t *fields_of(const struct object *o, const char *manager, const char *operation)
{
    json_t *entry;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(o->live, "metadata"), "managedFields"), i, entry)
        if (strcmp(json_string_value(json_object_get(entry, "manager")), manager) == 0 &&
            strcmp(json_string_value(json_object_get(entry, "operation")), operation) == 0)
            return json_object_get(entry, "fieldsV1");
    return NULL;
}

static void a_field_left_out_is_removed_if_no_other_has_it(void **state)
{
    struct object o = made("v1", "ConfigMap");

    (void)state;
    assert_true(apply(&o, "m1", "{\"x\":\"1\",\"y\":\"1\"}"));
    assert_true(apply(&o, "m2", "{\"x\":\"1\",\"z\":\"1\"}"));
    assert_true(apply(&o, "m1", "{}"));
    expect_data(&o, "{\"x\":\"1\",\"z\":\"1\"}");
    patch_expect(fields_of(&o, "m2", "Apply"), "{\"f:data\":{\"f:x\":{},\"f:z\":{}}}");
    assert_true(apply(&o, "m2", "{\"z\":\"1\"}"));
    expect_data(&o, "{\"z\":\"1\"}");
    done(&o);
}

static void another_value_is_a_conflict_and_force_takes_it(void **state)
{
    struct object o = made("v1", "ConfigMap");

    (void)state;
    assert_true(apply(&o, "m1", "{\"x\":\"1\",\"y\":\"1\"}"));
    assert_false(apply(&o, "m2", "{\"x\":\"2\"}"));
    patch_expect_status(o.status, 409, "Apply failed with 1 conflict: conflict with \"m1\": .data.x");
    assert_false(apply(&o, "m2", "{\"x\":\"2\",\"y\":\"2\"}"));
    patch_expect_status(o.status, 409,
                        "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .data.x\n- .data.y");
    assert_true(apply_at(&o, "m2", NOW, true,
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},"
                         "\"data\":{\"x\":\"2\"}}"));
    expect_data(&o, "{\"x\":\"2\",\"y\":\"1\"}");
    patch_expect(fields_of(&o, "m1", "Apply"), "{\"f:data\":{\"f:y\":{}}}");
    done(&o);
}

static void updates_are_managers_too(void **state)
{
    struct object o = made("v1", "ConfigMap");

    (void)state;
    update(&o, "u", "{\"metadata\":{\"name\":\"c\",\"labels\":{\"a\":\"1\"}},\"data\":{\"x\":\"1\"}}");
    patch_expect(fields_of(&o, "u", "Update"),
                 "{\"f:data\":{\".\":{},\"f:x\":{}},\"f:metadata\":{\"f:labels\":{\".\":{},\"f:a\":{}}}}");
    assert_false(apply(&o, "m1", "{\"x\":\"2\"}"));
    patch_expect_status(o.status, 409, "Apply failed with 1 conflict: conflict with \"u\" using v1: .data.x");
    assert_true(apply(&o, "m1", "{\"x\":\"1\"}"));
    update(&o, "m1", "{\"metadata\":{\"name\":\"c\"},\"data\":{\"x\":\"3\"}}");
    assert_null(fields_of(&o, "m1", "Apply"));
    patch_expect(fields_of(&o, "m1", "Update"), "{\"f:data\":{\"f:x\":{}}}");
    done(&o);
}

static void fields_without_manager_are_gathered(void **state)
{
    struct object o = made("v1", "ConfigMap");

    (void)state;
    o.live = patch_load("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"uid\":"
                        "\"u\"},\"data\":{\"x\":\"1\"}}");
    assert_false(apply(&o, "m1", "{\"x\":\"2\"}"));
    patch_expect_status(
        o.status, 409,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.x");
    assert_true(apply(&o, "m1", "{\"x\":\"1\",\"y\":\"1\"}"));
    patch_expect(fields_of(&o, "before-first-apply", "Update"), "{\"f:data\":{\".\":{},\"f:x\":{}}}");
    done(&o);
}

static void an_apply_without_change_sets_no_time(void **state)
{
    static const char *const config =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":{\"x\":\"1\"}}";
    struct object o = made("v1", "ConfigMap");
    json_t *before, *entry;
    struct err e = { 0 };
    bool same;

    (void)state;
    assert_true(apply_at(&o, "m1", NOW, false, config));
    before = json_incref(o.live);
    assert_true(apply_at(&o, "m1", LATER, false, config));
    assert_int_equal(api_keep_times(before, o.live, &same, &e), ERR_OK);
    assert_true(same);
    assert_true(apply_at(&o, "m2", LATER, false, config));
    entry = json_array_get(json_object_get(json_object_get(o.live, "metadata"), "managedFields"), 0);
    assert_string_equal(json_string_value(json_object_get(entry, "manager")), "m2");
    assert_null(json_object_get(entry, "time"));
    json_decref(before);
    done(&o);
}

#define DEPLOYMENT(spec)                                                                                     \
    "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"},\"spec\":" spec "}"
#define POD_SPEC(text) DEPLOYMENT("{\"template\":{\"spec\":{" text "}}}")

static void lists_are_owned_by_their_keys(void **state)
{
    struct object o = made("apps/v1", "Deployment");

    (void)state;
    assert_true(apply_at(&o, "m1", NOW, false,
                         POD_SPEC("\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\"}]")));
    assert_true(
        apply_at(&o, "m2", NOW, false, POD_SPEC("\"containers\":[{\"name\":\"b\",\"args\":[\"x\"]}]")));
    assert_true(apply_at(&o, "m1", NOW, false, POD_SPEC("\"containers\":[{\"name\":\"c\"}]")));
    patch_expect(
        json_object_get(json_object_get(json_object_get(json_object_get(o.live, "spec"), "template"), "spec"),
                        "containers"),
        "[{\"name\":\"b\",\"args\":[\"x\"]},{\"name\":\"c\"}]");
    assert_false(
        apply_at(&o, "m1", NOW, false, POD_SPEC("\"containers\":[{\"name\":\"b\",\"args\":[\"y\"]}]")));
    patch_expect_status(o.status, 409,
                        "Apply failed with 1 conflict: conflict with \"m2\": "
                        ".spec.template.spec.containers[name=\"b\"].args");
    done(&o);
}

static void a_configuration_must_fit_the_types(void **state)
{
    static const char *const texts[][2] = {
        { POD_SPEC("\"bar\":1"), ".spec.template.spec.bar: field not declared in schema" },
        { POD_SPEC("\"containers\":[{\"name\":\"a\"},{\"name\":\"a\"}]"),
          ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]" },
        { POD_SPEC("\"containers\":{}"), ".spec.template.spec.containers: expected list, got &{map[]}" },
        { DEPLOYMENT("{\"replicas\":\"1\"}"), ".spec.replicas: expected numeric (int or float), got string" },
    };
    struct object o = made("apps/v1", "Deployment");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        str_auto message = NULL;

        assert_true(asprintf(&message,
                             "failed to create typed patch object (/d; apps/v1, Kind=Deployment): %s",
                             texts[i][1]) > 0);
        assert_false(apply_at(&o, "m1", NOW, false, texts[i][0]));
        patch_expect_status(o.status, 500, message);
    }
    assert_false(apply_at(&o, "m1", NOW, false, "{\"apiVersion\":\"v1\",\"kind\":\"Secret\"}"));
    patch_expect_status(o.status, 400, "invalid object type: /v1, Kind=Secret");
    done(&o);
}

static void the_oldest_updaters_are_merged(void **state)
{
    struct object o = made("v1", "ConfigMap");
    char manager[16], text[200];
    json_t *entry;
    size_t i, updaters = 0;

    (void)state;
    for (int n = 0; n < 14; n++) {
        snprintf(manager, sizeof(manager), "u%02d", n);
        snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"c\"},\"data\":{\"k%d\":\"1\"}}", n);
        update(&o, manager, text);
    }
    json_array_foreach (json_object_get(json_object_get(o.live, "metadata"), "managedFields"), i, entry)
        updaters++;
    assert_true(updaters <= 10);
    done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_left_out_is_removed_if_no_other_has_it),
        cmocka_unit_test(another_value_is_a_conflict_and_force_takes_it),
        cmocka_unit_test(updates_are_managers_too),
        cmocka_unit_test(fields_without_manager_are_gathered),
        cmocka_unit_test(an_apply_without_change_sets_no_time),
        cmocka_unit_test(lists_are_owned_by_their_keys),
        cmocka_unit_test(a_configuration_must_fit_the_types),
        cmocka_unit_test(the_oldest_updaters_are_merged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
