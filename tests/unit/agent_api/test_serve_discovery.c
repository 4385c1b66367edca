/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_helper.h"

#include "agent/api/schema/kinds.h"
#include "base/codec/json.h"

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define KUBECTL                                                                                              \
    AGGREGATED ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

static struct api_document document(const char *path, const char *accept)
{
    struct api_document d;
    struct err e = { 0 };

    assert_int_equal(
        api_serve_document(
            &(struct api_document_request){ .path = path, .accept = accept, .server = "127.0.0.1:6443" }, &d,
            &e),
        ERR_OK);
    return d;
}

/* ---- paths ---- */

static void a_path_names_kind_namespace_name_and_subresource(void **state)
{
    struct api_target t;

    (void)state;
    assert_true(api_target_parse("/api/v1/namespaces/a/pods/b/log", &t));
    assert_string_equal(t.kind->kind, "Pod");
    assert_string_equal(t.namespace, "a");
    assert_string_equal(t.name, "b");
    assert_string_equal(t.sub->name, "log");
    assert_true(api_target_parse("/apis/apps/v1/deployments/", &t));
    assert_string_equal(t.kind->kind, "Deployment");
    assert_string_equal(t.namespace, "");
    assert_string_equal(t.name, "");
    assert_null(t.sub);
    assert_true(api_target_parse("/api/v1/namespaces/a%2eb", &t));
    assert_string_equal(t.kind->kind, "Namespace");
    assert_string_equal(t.name, "a.b");
    assert_true(api_target_parse("/api/v1/namespaces/a/status", &t));
    assert_string_equal(t.kind->kind, "Namespace");
    assert_string_equal(t.sub->name, "status");
    assert_true(api_target_parse("/apis/metrics.k8s.io/v1beta1/nodes", &t));
    assert_string_equal(t.kind->kind, "NodeMetrics");
}

static void a_path_of_nothing_is_refused(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "/api",
        "/api/v1",
        "api/v1/pods",
        "/api/v2/pods",
        "/apis/apps/v1",
        "/apis/apps/v1/pods",
        "/api/v1/pods/a",
        "/api/v1/namespaces/a/nodes/b",
        "/api/v1/namespaces/a/pods/b/nothing",
        "/api/v1//pods",
        "/api/v1/namespaces/a/pods/b/log/c",
        "/api/v1/namespaces/a%2fb",
        "/api/v1/namespaces/a%00",
        "/api/v1/namespaces/a%2",
        "/api/v1/namespaces/a%zz",
        "/a/b/c/d/e/f/g/h/i/j/k",
    };
    struct api_target t;
    char path[400] = "/api/v1/nodes/";

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (api_target_parse(paths[i], &t))
            fail_msg("%s", paths[i]);
    }
    memset(path + strlen(path), 'a', 254);
    assert_false(api_target_parse(path, &t));
    path[strlen(path) - 1] = '\0';
    assert_true(api_target_parse(path, &t));
}

static void kinds_are_found_as_objects_name_them(void **state)
{
    (void)state;
    assert_string_equal(api_kind_of_object("apps/v1", "Deployment")->plural, "deployments");
    assert_string_equal(api_kind_of_object("v1", "Event")->group, "");
    assert_string_equal(api_kind_of_object("events.k8s.io/v1", "Event")->group, "events.k8s.io");
    assert_null(api_kind_of_object("v1", "Deployment"));
    assert_null(api_kind_of_object("apps/v1/x", "Deployment"));
    assert_null(api_kind_of_object("/v1", "Podd"));
}

/* Each kind is where its number says, and is found by what it says of itself. */
static void the_table_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < API_KINDS; i++) {
        const struct api_kind_row *k = &api_kinds[i];
        enum api_kind found;

        if (k->kind == NULL)
            fail_msg("kind %zu has no row", i);
        assert_int_equal(k->id, i);
        assert_ptr_equal(api_kind_of_object(k->api_version, k->kind), k);
        assert_ptr_equal(api_kind_of_resource(k->group, k->version, k->plural), k);
        assert_true((k->schema != NULL) == (k->held != API_HELD_NOT));
        if (k->held != API_HELD_NOT)
            assert_true(api_kind_find(k->kind, strlen(k->kind), &found) && found == k->id);
    }
    assert_null(api_kinds[API_KINDS].kind);
}

/* ---- documents ---- */

static void unknown_paths_are_a_status(void **state)
{
    struct api_document d = document("/apis/nothing", NULL);
    JSON_AUTO *v = parsed(&d);

    (void)state;
    assert_int_equal(d.code, 404);
    assert_string_equal(text_at(v, "reason"), "NotFound");
    assert_false(api_is_document("/apis/apps/v2"));
    assert_true(api_is_document("/apis/apps/v1/"));
    api_document_done(&d);
}

static void aggregated_documents_have_a_tag(void **state)
{
    struct api_document d = document("/apis", KUBECTL), again;
    struct api_document_request ask = { .path = "/apis", .accept = KUBECTL };
    struct err e = { 0 };

    (void)state;
    assert_string_equal(header_of(&d, "Content-Type"), AGGREGATED);
    ask.if_none_match = header_of(&d, "Etag");
    assert_int_equal(api_serve_document(&ask, &again, &e), ERR_OK);
    assert_int_equal(again.code, 304);
    assert_null(again.body);
    assert_string_equal(header_of(&again, "Etag"), header_of(&d, "Etag"));
    api_document_done(&again);
    api_document_done(&d);

    d = document("/api", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList");
    assert_non_null(strstr(d.body, "apidiscovery.k8s.io/v2beta1"));
    api_document_done(&d);
    d = document("/api", "application/json," AGGREGATED); /* the first of equals */
    assert_non_null(strstr(d.body, "APIVersions"));
    api_document_done(&d);
}

static void what_cannot_be_spoken_is_not_acceptable(void **state)
{
    struct api_document d = document("/api/v1", "text/html");

    (void)state;
    assert_int_equal(d.code, 406);
    assert_non_null(strstr(d.body, "NotAcceptable"));
    api_document_done(&d);
}

/* ---- recorded ---- */

static const char *const not_served[] = {
    /* nothing schedules, proxies or issues tokens here; a status is the node's own */
    "bindings", "binding", "proxy", "token", "finalize",
};

static bool is_served(const char *name)
{
    const char *sub = strchr(name, '/') == NULL ? name : strchr(name, '/') + 1;

    for (size_t i = 0; i < ARRAY_LEN(not_served); i++) {
        if (strcmp(sub, not_served[i]) == 0)
            return false;
    }
    return true;
}

/* The element of ours with the same name; verbs of ours may be fewer. */
static void compare_named(json_t *recorded, json_t *ours, const char *key, const char *where)
{
    json_t *r, *o;
    size_t i, j;

    json_array_foreach (recorded, i, r) {
        json_t *found = NULL;
        if (!is_served(text_at(r, key)))
            continue;
        json_array_foreach (ours, j, o) {
            if (strcmp(text_at(o, key), text_at(r, key)) == 0)
                found = o;
        }
        if (found == NULL)
            fail_msg("%s: no %s", where, text_at(r, key));
        json_array_foreach (json_object_get(found, "verbs"), j, o)
            assert_true(json_has(json_object_get(r, "verbs"), json_string_value(o)));
        json_object_del(found, "verbs");
        json_object_del(r, "verbs");
        if (json_object_get(r, "subresources") != NULL)
            compare_named(json_object_get(r, "subresources"), json_object_get(found, "subresources"),
                          "subresource", text_at(r, key));
        json_object_del(found, "subresources");
        json_object_del(r, "subresources");
        if (!json_equal(r, found))
            fail_msg("%s: %s\nbut %s", where, json_dumps(r, 0), json_dumps(found, 0));
    }
}

static json_t *first(json_t *list)
{
    return json_array_get(list, 0);
}

static void compare_groups(json_t *recorded, json_t *ours)
{
    json_t *r, *o;
    size_t i, j;

    json_array_foreach (recorded, i, r) {
        json_t *found = NULL;
        json_array_foreach (ours, j, o) {
            if (json_equal(json_object_get(o, "metadata"), json_object_get(r, "metadata")))
                found = o;
        }
        assert_non_null(found);
        compare_named(json_object_get(first(json_object_get(r, "versions")), "resources"),
                      json_object_get(first(json_object_get(found, "versions")), "resources"), "resource",
                      text_at(json_object_get(r, "metadata"), "name"));
        assert_true(json_equal(json_object_get(first(json_object_get(r, "versions")), "freshness"),
                               json_object_get(first(json_object_get(found, "versions")), "freshness")));
    }
}

static bool has_equal(json_t *list, json_t *v)
{
    json_t *o;
    size_t i;

    json_array_foreach (list, i, o) {
        if (json_equal(o, v))
            return true;
    }
    return false;
}

/* Ranges are not served, and a document has no other date than its hash. */
static bool is_argued(const char *header)
{
    return strcmp(header, "Accept-Ranges") == 0 || strcmp(header, "Last-Modified") == 0 ||
           strcmp(header, "Expires") == 0;
}

static void compare_headers(json_t *recorded, const struct api_document *d)
{
    const char *name;
    json_t *value;

    json_object_foreach (recorded, name, value) {
        if (is_argued(name))
            continue;
        if (header_of(d, name) == NULL)
            fail_msg("no %s", name);
        if (strchr(json_string_value(value), '<') == NULL)
            assert_string_equal(header_of(d, name), json_string_value(value));
    }
}

/* The recorded documents are much larger: the answers around them are compared. Version 3 is not spoken
 * in protobuf: every client takes JSON as well. */
static void replay_openapi(const json_t *recorded)
{
    const char *accept =
        json_string_value(json_object_get(json_object_get(recorded, "requestHeaders"), "Accept"));
    char path[200], hash[200] = "";
    struct api_document_request ask = { .path = path, .accept = accept, .query = hash };
    struct api_document d;
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s", text_at(recorded, "path"));
    if (!str_starts(path, "/openapi/") || strcmp(text_at(recorded, "name"), "openapi-v3-index") == 0 ||
        (strstr(path, "/v3") != NULL && accept != NULL && strstr(accept, "protobuf") != NULL))
        return;
    if (strstr(path, "hash=DEAD") != NULL) {
        strcpy(hash, "hash=DEAD");
    } else if (strchr(path, '?') != NULL) {
        *strchr(path, '?') = '\0';
        d = document(path, accept);
        snprintf(hash, sizeof(hash), "hash=%.64s", header_of(&d, "Etag") + 1);
        api_document_done(&d);
    }
    path[strcspn(path, "?")] = '\0';
    assert_int_equal(api_serve_document(&ask, &d, &e), ERR_OK);
    assert_int_equal(d.code, json_integer_value(json_object_get(recorded, "code")));
    compare_headers(json_object_get(recorded, "headers"), &d);
    api_document_done(&d);
}

static void replay(const json_t *recorded)
{
    const json_t *headers = json_object_get(recorded, "requestHeaders");
    json_t *result = json_object_get(recorded, "result"), *group;
    struct api_document d;
    size_t i;

    if (!api_is_document(text_at(recorded, "path")) || strcmp(text_at(recorded, "method"), "GET") != 0 ||
        strstr(text_at(recorded, "name"), "if-none-match") != NULL || result == NULL)
        return;
    d = document(text_at(recorded, "path"), json_string_value(json_object_get(headers, "Accept")));
    assert_int_equal(d.code, json_integer_value(json_object_get(recorded, "code")));
    compare_headers(json_object_get(recorded, "headers"), &d);
    JSON_AUTO *ours = parsed(&d);
    if (json_object_get(result, "items") != NULL) {
        compare_groups(json_object_get(result, "items"), json_object_get(ours, "items"));
    } else if (json_object_get(result, "resources") != NULL) {
        compare_named(json_object_get(result, "resources"), json_object_get(ours, "resources"), "name",
                      text_at(recorded, "path"));
        assert_string_equal(text_at(ours, "groupVersion"), text_at(result, "groupVersion"));
    } else if (json_object_get(result, "groups") != NULL) {
        json_array_foreach (json_object_get(result, "groups"), i, group)
            assert_true(has_equal(json_object_get(ours, "groups"), group));
    } else if (json_object_get(result, "versions") != NULL) {
        json_object_del(result, "serverAddressByClientCIDRs");
        json_object_del(ours, "serverAddressByClientCIDRs");
        assert_true(json_equal(result, ours));
    }
    api_document_done(&d);
}

static void recorded_discovery_holds(void **state)
{
    (void)state;
    each_case("discovery", "", replay);
    each_case("discovery", "openapi", replay_openapi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_names_kind_namespace_name_and_subresource),
        cmocka_unit_test(a_path_of_nothing_is_refused),
        cmocka_unit_test(kinds_are_found_as_objects_name_them),
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(unknown_paths_are_a_status),
        cmocka_unit_test(aggregated_documents_have_a_tag),
        cmocka_unit_test(what_cannot_be_spoken_is_not_acceptable),
        cmocka_unit_test(recorded_discovery_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
