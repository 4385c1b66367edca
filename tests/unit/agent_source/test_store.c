/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct src_store *store;
    char seen[2000];
};

static void on_change(enum src_change change, const struct api_object *o, void *arg)
{
    static const char *const words[] = { "added", "updated", "removed" };
    const struct api_meta *meta = api_object_meta(o);
    struct fixture *f = arg;
    size_t n = strlen(f->seen);

    snprintf(f->seen + n, sizeof(f->seen) - n, "%s %s %s/%s;", words[change], api_kind_name(o->kind),
             meta->namespace != NULL ? meta->namespace : "", meta->name);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->store = src_store_new();
    src_store_watch(f->store, on_change, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    src_store_free(f->store);
    free(f);
    return 0;
}

static void put(struct fixture *f, const char *yaml)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    struct err e = { 0 };

    assert_int_equal(api_decode_file("x.yaml", yaml, strlen(yaml), &objects, &problems, &e), ERR_OK);
    for (size_t i = 0; i < problems.n; i++)
        print_error("%s: %s\n", problems.v[i].field, problems.v[i].message);
    assert_int_equal(problems.n, 0);
    for (size_t i = 0; i < objects.n; i++)
        assert_int_equal(src_store_put(f->store, &objects.v[i], &e), ERR_OK);
    api_objects_done(&objects);
    api_problems_done(&problems);
}

static void assert_seen(struct fixture *f, const char *want)
{
    assert_string_equal(f->seen, want);
    f->seen[0] = '\0';
}

#define POD(name, image)                                                                                     \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\nspec: {containers: [{name: c, image: " image     \
    "}]}\n"
#define CONFIG(kind, name, data) "---\napiVersion: v1\nkind: " kind "\nmetadata: {name: " name "}\n" data "\n"
#define CLASS(name, value, rest)                                                                             \
    "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " name "}\nvalue: " value  \
    "\n" rest "\n"

static void objects_are_found_by_kind_namespace_and_name(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", "x:1") CONFIG("ConfigMap", "a", "data: {k: v}")
               CONFIG("Secret", "a", "stringData: {k: s}") CLASS("high", "1000", ""));
    assert_seen(
        f, "added Pod default/a;added ConfigMap default/a;added Secret default/a;added PriorityClass /high;");
    assert_string_equal(src_store_pod(f->store, API_FROM_FOLDER, "default", "a")->spec.containers[0].image,
                        "x:1");
    assert_null(src_store_pod(f->store, API_FROM_FOLDER, "other", "a"));
    assert_int_equal(src_store_config(f->store, API_FROM_FOLDER, API_CONFIG_MAP, "default", "a")->kind,
                     API_CONFIG_MAP);
    assert_int_equal(src_store_config(f->store, API_FROM_FOLDER, API_SECRET, "default", "a")->kind,
                     API_SECRET);
    assert_null(src_store_config(f->store, API_FROM_FOLDER, API_SECRET, "default", "b"));
    assert_int_equal(src_store_priority_class(f->store, "high")->value, 1000);
    assert_null(src_store_default_priority(f->store));
}

static void equal_content_is_no_change_and_any_difference_is_one(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", "x:1"));
    put(f, CONFIG("ConfigMap", "a", "data: {k: v, l: w}"));
    put(f, CLASS("high", "1000", ""));
    f->seen[0] = '\0';
    put(f, "# a comment\n" POD("a", "'x:1'"));
    put(f, CONFIG("ConfigMap", "a", "data: {l: w, k: v}"));
    put(f, CLASS("high", "1000", ""));
    assert_seen(f, "");
    put(f, POD("a", "x:2"));
    assert_seen(f, "updated Pod default/a;");
    put(f, CONFIG("ConfigMap", "a", "data: {k: v, l: W}"));
    put(f, CONFIG("ConfigMap", "a", "data: {k: v, l: W}\nimmutable: true"));
    put(f, CONFIG("ConfigMap", "a, labels: {x: y}", "data: {k: v, l: W}\nimmutable: true"));
    assert_seen(f, "updated ConfigMap default/a;updated ConfigMap default/a;updated ConfigMap default/a;");
    put(f, CLASS("high", "1001", ""));
    assert_seen(f, "updated PriorityClass /high;");
    assert_int_equal(src_store_priority_class(f->store, "high")->value, 1001);
}

#define RUNTIME(handler, memory)                                                                             \
    "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: safe}\nhandler: " handler              \
    "\noverhead: {podFixed: {memory: " memory "}}\n"

static void runtime_classes_are_found_by_their_source(void **state)
{
    struct fixture *f = *state;

    put(f, RUNTIME("runc", "1Mi"));
    put(f, RUNTIME("runc", "1048576"));
    assert_seen(f, "added RuntimeClass /safe;");
    assert_string_equal(src_store_runtime_class(f->store, API_FROM_FOLDER, "safe")->handler, "runc");
    assert_null(src_store_runtime_class(f->store, API_FROM_SERVER, "safe"));
    assert_null(src_store_runtime_class(f->store, API_FROM_FOLDER, "other"));
    put(f, RUNTIME("crun", "1Mi"));
    put(f, RUNTIME("crun", "2Mi"));
    assert_seen(f, "updated RuntimeClass /safe;updated RuntimeClass /safe;");
}

static void what_is_removed_is_gone_and_told_of_once(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", "x:1"));
    f->seen[0] = '\0';
    src_store_remove(f->store, API_FROM_FOLDER, API_KIND_POD, "default", "a");
    src_store_remove(f->store, API_FROM_FOLDER, API_KIND_POD, "default", "a");
    assert_seen(f, "removed Pod default/a;");
    assert_null(src_store_pod(f->store, API_FROM_FOLDER, "default", "a"));
}

static void put_served(struct fixture *f, const char *text)
{
    json_auto_t *o = json_loads(text, 0, NULL);
    struct api_object object;
    struct err e = { 0 };

    assert_non_null(o);
    assert_int_equal(api_decode_served(o, &object, &e), ERR_OK);
    assert_int_equal(src_store_put(f->store, &object, &e), ERR_OK);
    api_object_unref(&object);
}

#define SERVED_CONFIG                                                                                        \
    "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\", \"namespace\": "      \
    "\"default\"}, \"data\": {\"k\": \"server\"}}"

static void look(struct fixture *f, enum api_origin origin, enum presence_answer want, const char *why)
{
    struct err e = { 0 };

    assert_int_equal(presence_of(src_store_look_config(f->store, origin, API_CONFIG_MAP, "default", "a", &e)),
                     want);
    if (strstr(e.text, why) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", e.text, why);
}

static void objects_of_the_apiserver_are_others_and_unknown_until_it_answers(void **state)
{
    struct fixture *f = *state;

    put(f, CONFIG("ConfigMap", "a", "data: {k: folder}"));
    look(f, API_FROM_FOLDER, PRESENCE_PRESENT, "");
    look(f, API_FROM_SERVER, PRESENCE_UNKNOWN,
         "configmap \"a\" is not known yet: the apiserver has not answered");
    src_store_lacks(f->store, API_CONFIG_MAP, "default", "a", "refused (403)");
    look(f, API_FROM_SERVER, PRESENCE_UNKNOWN, "refused (403)");
    src_store_lacks(f->store, API_CONFIG_MAP, "default", "a", NULL);
    look(f, API_FROM_SERVER, PRESENCE_ABSENT, "");
    f->seen[0] = '\0';
    put_served(f, SERVED_CONFIG);
    assert_seen(f, "added ConfigMap default/a;");
    put_served(f, SERVED_CONFIG);
    assert_seen(f, "");
    look(f, API_FROM_SERVER, PRESENCE_PRESENT, "");
    assert_memory_equal(
        src_store_config(f->store, API_FROM_SERVER, API_CONFIG_MAP, "default", "a")->data[0].data, "server",
        6);
    assert_memory_equal(
        src_store_config(f->store, API_FROM_FOLDER, API_CONFIG_MAP, "default", "a")->data[0].data, "folder",
        6);
    /* a refusal does not take away what it said before; a proof of absence does */
    src_store_lacks(f->store, API_CONFIG_MAP, "default", "a", "refused (403)");
    look(f, API_FROM_SERVER, PRESENCE_PRESENT, "");
    assert_seen(f, "");
    src_store_lacks(f->store, API_CONFIG_MAP, "default", "a", NULL);
    assert_seen(f, "removed ConfigMap default/a;");
    src_store_forget(f->store, API_CONFIG_MAP, "default", "a");
    look(f, API_FROM_SERVER, PRESENCE_UNKNOWN, "has not answered");
    look(f, API_FROM_FOLDER, PRESENCE_PRESENT, "");
}

static void it_is_ready_when_each_source_has_delivered(void **state)
{
    struct fixture *f = *state;

    src_store_expect_server(f->store);
    src_store_set_ready(f->store, API_FROM_FOLDER);
    assert_false(src_store_ready(f->store));
    src_store_set_ready(f->store, API_FROM_SERVER);
    assert_true(src_store_ready(f->store));
}

static void the_smallest_default_class_is_the_default(void **state)
{
    struct fixture *f = *state;

    put(f, CLASS("big", "500", "globalDefault: true") CLASS("small", "100", "globalDefault: true")
               CLASS("none", "1", ""));
    assert_string_equal(src_store_default_priority(f->store)->meta.name, "small");
}

static void count(const struct api_object *o, void *arg)
{
    assert_int_equal(o->kind, API_KIND_POD);
    (*(int *)arg)++;
}

static void all_of_a_kind_are_visited(void **state)
{
    struct fixture *f = *state;
    int n = 0;

    put(f, POD("a", "x:1") "---\n" POD("b", "x:1") CONFIG("ConfigMap", "a", "data: {}"));
    src_store_each(f->store, API_KIND_POD, count, &n);
    assert_int_equal(n, 2);
    assert_false(src_store_ready(f->store));
    src_store_set_ready(f->store, API_FROM_FOLDER);
    assert_true(src_store_ready(f->store));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(objects_are_found_by_kind_namespace_and_name),
        T(equal_content_is_no_change_and_any_difference_is_one),
        T(runtime_classes_are_found_by_their_source),
        T(what_is_removed_is_gone_and_told_of_once),
        T(objects_of_the_apiserver_are_others_and_unknown_until_it_answers),
        T(it_is_ready_when_each_source_has_delivered),
        T(the_smallest_default_class_is_the_default),
        T(all_of_a_kind_are_visited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
