/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a decode can fail: an ordinary error comes back, and nothing leaks. */
#include "helper.h"

#include "agent/api/selector.h"
#include "agent/api/yaml/yaml.h"

#include "tests/unit/base/nomem.h"

static const char pod[] =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {a: b}}\nspec:\n  hostNetwork: true\n  "
    "containers:\n"
    "  - name: c\n    image: x\n    ports: [{containerPort: 80}]\n    env: [{name: A, value: b}]\n"
    "    resources: {limits: {cpu: 0.5}}\n    livenessProbe: {exec: {command: [a]}}\n"
    "    volumeMounts: [{name: v, mountPath: /v}]\n"
    "  volumes: [{name: v, projected: {sources: [{configMap: {name: c, items: [{key: k, path: p}]}}]}}]\n";

static const char others[] =
    "apiVersion: v1\nkind: Secret\nmetadata: &m {name: s}\ntype: kubernetes.io/dockerconfigjson\n"
    "stringData: {.dockerconfigjson: '{}'}\ndata: {a: YQ==}\n---\n"
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: scheduling.k8s.io/v1\n  kind: PriorityClass\n"
    "  metadata: &x {name: p}\n  value: 1\n- {apiVersion: v1, kind: ConfigMap, metadata: {<<: *x}}\n";

static void try(const char *text, size_t wanted)
{
    bool ok = false;

    NOMEM_EACH(ok, {
        struct api_objects objects = { 0 };
        struct api_problems problems = { 0 };
        struct err e = { 0 };
        enum err_code code = api_decode_file("f", text, strlen(text), &objects, &problems, &e);

        ok = code == ERR_OK && objects.n == wanted && problems.n == 0;
        if (code != ERR_OK && code != ERR_EXHAUSTED)
            abort();
        if (code == ERR_OK && !ok) { /* a failure must not look like success with something missing */
            print_message("%s\n", problems.n > 0 ? problems.v[0].message : "an object is missing");
            abort();
        }
        api_objects_done(&objects);
        api_problems_done(&problems);
    });
}

static void a_pod_is_whole_or_not_there(void **state)
{
    (void)state;
    try(pod, 1);
}

static void other_objects_are_whole_or_not_there(void **state)
{
    (void)state;
    try(others, 3);
}

static void problems_that_find_no_room_are_counted(void **state)
{
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct api_objects objects = { 0 };
        struct api_problems problems = { 0 };
        struct err e = { 0 };
        static const char text[] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}\nx: 1\n";

        ok = api_decode_file("f", text, strlen(text), &objects, &problems, &e) == ERR_OK && problems.n == 2;
        if (objects.n != 0 || (e.code == ERR_OK && problems.n + problems.dropped != 2))
            abort();
        api_objects_done(&objects);
        api_problems_done(&problems);
    });
}

static void selectors_and_yaml_texts_report_it(void **state)
{
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct api_selector *s = NULL;
        struct err e = { 0 };

        ok = api_selector_parse("a in (b,c,d),!e,f=g", &s, &e) == ERR_OK;
        if (!ok && e.code != ERR_EXHAUSTED)
            abort();
        api_selector_free(s);
    });
    NOMEM_EACH(ok, {
        json_t *v = json_pack("{s:[i,s],s:{}}", "a", 1, "two\nlines", "b");
        char *text = v != NULL ? yaml_from_json(v) : NULL;

        ok = text != NULL;
        free(text);
        json_decref(v);
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_is_whole_or_not_there),
        cmocka_unit_test(other_objects_are_whole_or_not_there),
        cmocka_unit_test(problems_that_find_no_room_are_counted),
        cmocka_unit_test(selectors_and_yaml_texts_report_it),
    };

    json_object_seed(1); /* once, so that it allocates nothing while it is watched */
    return NOMEM_RUN(tests);
}
