/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_helper.h"

#include "agent/api/schema/about.h"
#include "base/codec/json.h"

#define PROTO "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

static struct api_document document(const char *path, const char *query, const char *accept)
{
    struct api_document d;
    struct err e = { 0 };

    assert_int_equal(
        api_serve_document(&(struct api_document_request){ .path = path, .query = query, .accept = accept },
                           &d, &e),
        ERR_OK);
    return d;
}

/* ---- descriptions ---- */

static void check_described(const struct api_schema *schema, int depth)
{
    assert_true(depth < 20);
    if (api_about_type(schema->name)[0] == '\0')
        fail_msg("no description of %s (agent/api/schema/about_*.c)", schema->name);
    for (const struct api_row *row = schema->rows; row->name != NULL; row++) {
        if (api_about_field(schema, row->name)[0] == '\0')
            fail_msg("no description of %s.%s (agent/api/schema/about_*.c)", schema->name, row->name);
        if (row->nested != NULL)
            check_described(row->nested, depth + 1);
    }
    if (schema->base != NULL)
        check_described(schema->base, depth + 1);
}

static void every_field_has_a_description(void **state)
{
    (void)state;
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++) {
        if (k->schema != NULL)
            check_described(k->schema, 0);
        else if (api_about_type(k->kind)[0] == '\0')
            fail_msg("no description of %s", k->kind);
    }
}

/* ---- the documents ---- */

static const char *ref_of(const json_t *o)
{
    const json_t *items = json_object_get(o, "items"), *more = json_object_get(o, "additionalProperties");
    const json_t *all = json_array_get(json_object_get(o, "allOf"), 0);

    if (all != NULL)
        return text_at(all, "$ref");
    return text_at(items != NULL ? items : more != NULL ? more : o, "$ref");
}

static void every_reference_is_defined(json_t *schemas, const char *prefix)
{
    const char *name, *field;
    json_t *type, *property;

    json_object_foreach (schemas, name, type) {
        json_object_foreach (json_object_get(type, "properties"), field, property) {
            const char *ref = ref_of(property);
            if (ref[0] != '\0' && json_object_get(schemas, ref + strlen(prefix)) == NULL)
                fail_msg("%s.%s: %s", name, field, ref);
            assert_true(text_at(property, "description")[0] != '\0');
        }
    }
}

static void version_3_has_a_document_for_each_group(void **state)
{
    struct api_document d = document("/openapi/v3", NULL, "application/json"), one, other;
    JSON_AUTO *index = parsed(&d);
    const char *path;
    json_t *entry;

    (void)state;
    json_object_foreach (json_object_get(index, "paths"), path, entry) {
        const char *url = text_at(entry, "serverRelativeURL"), *query = strchr(url, '?') + 1;
        char plain[200];
        snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(url, "?"), url);
        one = document(plain, query, NULL);
        assert_int_equal(one.code, 200);
        assert_string_equal(header_of(&one, "Cache-Control"), "public, immutable");
        JSON_AUTO *doc = parsed(&one);
        every_reference_is_defined(json_at(doc, "components.schemas"), "#/components/schemas/");
        other = document(plain, "hash=DEAD", NULL);
        assert_int_equal(other.code, 301);
        assert_string_equal(header_of(&other, "Location"), url);
        api_document_done(&one);
        api_document_done(&other);
    }
    api_document_done(&d);
}

static void version_2_has_them_all(void **state)
{
    struct api_document d = document("/openapi/v2", NULL, "application/json");
    JSON_AUTO *doc = parsed(&d);
    json_t *schemas = json_object_get(doc, "definitions"), *pod;

    (void)state;
    every_reference_is_defined(schemas, "#/definitions/");
    pod = json_object_get(schemas, "io.k8s.api.core.v1.Pod");
    assert_string_equal(
        text_at(json_array_get(json_object_get(pod, "x-kubernetes-group-version-kind"), 0), "kind"), "Pod");
    assert_non_null(
        json_object_get(json_object_get(doc, "paths"), "/api/v1/namespaces/{namespace}/pods/{name}"));
    api_document_done(&d);
}

static void a_type_of_two_names_has_both(void **state)
{
    struct api_document d = document("/openapi/v3/api/v1", NULL, NULL);
    JSON_AUTO *doc = parsed(&d);
    json_t *schemas = json_at(doc, "components.schemas");
    json_t *source =
        json_object_get(json_object_get(schemas, "io.k8s.api.core.v1.EnvVarSource"), "properties");

    (void)state;
    assert_string_equal(ref_of(json_object_get(source, "secretKeyRef")),
                        "#/components/schemas/io.k8s.api.core.v1.SecretKeySelector");
    assert_string_equal(ref_of(json_object_get(source, "configMapKeyRef")),
                        "#/components/schemas/io.k8s.api.core.v1.ConfigMapKeySelector");
    assert_null(json_object_get(schemas, "io.k8s.api.core.v1.ObjectMeta (without namespace)"));
    api_document_done(&d);
}

/* kubectl computes its patches with these. */
static void lists_say_how_they_are_merged(void **state)
{
    struct api_document d = document("/openapi/v2", NULL, "application/json");
    JSON_AUTO *doc = parsed(&d);
    json_t *schemas = json_object_get(doc, "definitions");
    json_t *container =
        json_object_get(json_object_get(schemas, "io.k8s.api.core.v1.Container"), "properties");
    json_t *spec = json_object_get(json_object_get(schemas, "io.k8s.api.core.v1.PodSpec"), "properties");
    char *keys = json_dumps(json_at(container, "ports.x-kubernetes-list-map-keys"), JSON_COMPACT);

    (void)state;
    assert_string_equal(text_at(json_object_get(container, "ports"), "x-kubernetes-patch-merge-key"),
                        "containerPort");
    assert_string_equal(keys, "[\"containerPort\",\"protocol\"]");
    free(keys);
    assert_string_equal(text_at(json_object_get(container, "args"), "x-kubernetes-list-type"), "atomic");
    assert_string_equal(text_at(json_object_get(spec, "volumes"), "x-kubernetes-patch-strategy"),
                        "merge,retainKeys");
    assert_string_equal(text_at(json_object_get(spec, "tolerations"), "x-kubernetes-list-type"), "atomic");
    api_document_done(&d);
}

/* A walk over the fields of a message; every length must fit. */
static void check_message(const unsigned char *p, size_t n, size_t *ret_fields)
{
    size_t at = 0;

    while (at < n) {
        size_t size = 0, shift = 0;
        while (at < n && p[at] & 0x80)
            at++;
        at++;
        for (; at < n; shift += 7) {
            size |= (size_t)(p[at] & 0x7f) << shift;
            if (!(p[at++] & 0x80))
                break;
        }
        assert_true(size <= n - at);
        at += size;
        ++*ret_fields;
    }
    assert_int_equal(at, n);
}

static void protobuf_is_for_old_clients(void **state)
{
    struct api_document d = document("/openapi/v2", NULL, PROTO);
    size_t fields = 0;

    (void)state;
    assert_int_equal(d.code, 200);
    assert_string_equal(header_of(&d, "Content-Type"),
                        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    assert_memory_equal(d.body,
                        "\x0a\x03"
                        "2.0",
                        5);
    check_message((const unsigned char *)d.body, d.size, &fields);
    assert_int_equal(fields, 4);
    api_document_done(&d);
}

static void other_forms_are_not_acceptable(void **state)
{
    struct api_document d = document("/openapi/v2", NULL, "text/html");

    (void)state;
    assert_int_equal(d.code, 406);
    assert_int_equal(d.size, 0);
    api_document_done(&d);
    d = document("/openapi/v3/api/v1", NULL, "application/com.github.proto-openapi.spec.v3@v1.0+protobuf");
    assert_int_equal(d.code, 406);
    api_document_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_a_description),
        cmocka_unit_test(version_3_has_a_document_for_each_group),
        cmocka_unit_test(version_2_has_them_all),
        cmocka_unit_test(a_type_of_two_names_has_both),
        cmocka_unit_test(lists_say_how_they_are_merged),
        cmocka_unit_test(protobuf_is_for_old_clients),
        cmocka_unit_test(other_forms_are_not_acceptable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
