/* SPDX-License-Identifier: Apache-2.0 */
/* $(VAR) expansion, downward API values, environment order: kubelet's rules over a scripted pod and store. */
#include "agent/pod/env/env.h"
#include "agent/pod/limits/internal.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/source/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct world {
    struct src_store *store;
    struct node node;
    struct pod pod;
    struct sandbox box;
    struct limits_node limits;
};

static const char objects[] =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {A: from-map, B: bee}\nbinaryData: {Z: "
    "AAEC}\n---\n"
    "apiVersion: v1\nkind: Secret\nmetadata: {name: sec}\nstringData: {password: s3cret}\n";

static void load(struct world *w, const char *manifest)
{
    struct api_problems problems = { 0 };
    struct api_objects found = { 0 };
    struct err e = { 0 };

    assert_int_equal(api_decode_file("test.yaml", manifest, strlen(manifest), &found, &problems, &e), ERR_OK);
    if (problems.n > 0)
        fail_msg("%s: %s", problems.v[0].field, problems.v[0].message);
    for (size_t i = 0; i < found.n; i++) {
        if (found.v[i].kind == API_KIND_POD) {
            api_pod_unref(w->pod.api);
            w->pod.api = api_pod_ref(found.v[i].pod);
        } else {
            assert_int_equal(src_store_put(w->store, &found.v[i], &e), ERR_OK);
        }
    }
    api_objects_done(&found);
    api_problems_done(&problems);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->store = src_store_new();
    w->node.o.store = w->store;
    w->node.o.node_name = "node-a";
    w->node.o.node_ip = "192.0.2.7";
    w->node.o.cpu_milli = 4000;
    w->node.o.memory_bytes = 8ull << 30;
    w->node.o.hugepages_dir = "/does/not/exist";
    w->node.parts[ROOM_LIMITS] = &w->limits;
    w->pod.node = &w->node;
    w->pod.parts[ROOM_SANDBOX] = &w->box;
    snprintf(w->pod.uid, sizeof(w->pod.uid), "uid-1");
    load(w, objects);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    api_pod_unref(w->pod.api);
    src_store_free(w->store);
    free(w);
    return 0;
}

static const char *build_and_get(struct world *w, struct arena *a, const char *env_yaml, const char *name,
                                 struct err *e)
{
    str_auto text = str_printf(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {app: web}}\nspec:\n  containers:\n"
        "  - name: c\n    image: x\n    resources: {limits: {cpu: 1500m}}\n%s",
        env_yaml);
    struct env env;

    load(w, text);
    if (env_build(&w->pod, &w->pod.api->spec.containers[0], a, &env, e) != ERR_OK)
        return NULL;
    return env_get(&env, name);
}

static void secrets_are_taken_out_of_what_is_shown(void **state)
{
    char *secrets[] = { (char *)"hunter2", (char *)"abc", (char *)"hunter2-long", (char *)"" };
    struct env env = { .secrets = secrets, .n_secrets = 4, .cap_secrets = 4 };
    char text[128] = "exec /bin/hunter2-long hunter2hunter2: abc not found";
    char cut[64] = "executable file `/bin/hunter2-lo";

    (void)state;
    env_redact(&env, text);
    assert_string_equal(text, "exec /bin/*** ******: abc not found");
    env_redact(&env, cut);
    assert_true(strstr(cut, "hunter") == NULL);
}

static void secrets_are_taken_out_in_other_forms(void **state)
{
    char *secrets[] = { (char *)"a\"b\\c\nd/<e>", (char *)"correct horse",
                        (char *)"\377\376\373\377\277\357" };
    struct env env = { .secrets = secrets, .n_secrets = 3, .cap_secrets = 3 };
    /* echo -n | base64, as it is, behind "u:", behind "us:" */
    char encoded[] = "Y29ycmVjdCBob3JzZQ== dTpjb3JyZWN0IGhvcnNl dXM6Y29ycmVjdCBob3JzZQ==";
    char urls[] = "__77_7_v //77/7/v";
    char json[] = "{\"a\\\"b\\\\c\\nd/<e>\"} a\\\"b\\\\c\\nd\\/<e> a\\\"b\\\\c\\nd/\\u003ce\\u003e";
    char cut[] = "open /a\\\"b\\\\c\\nd";
    char other[] = "Y29ycmVs ../etc/horse correct x";

    (void)state;
    env_redact(&env, encoded);
    assert_null(strstr(encoded, "Y29ycmVj"));
    assert_null(strstr(encoded, "jb3JyZWN0IGhvcnN"));
    assert_string_equal(encoded, "***Q== dTp*** dXM6***Q==");
    env_redact(&env, urls);
    assert_string_equal(urls, "*** ***");
    env_redact(&env, json);
    assert_string_equal(json, "{\"***\"} *** ***");
    env_redact(&env, cut);
    assert_string_equal(cut, "open /***");
    env_redact(&env, other);
    assert_string_equal(other, "Y29ycmVs ../etc/horse correct x");
}

static void a_secret_that_a_variable_replaced_is_known_still(void **state)
{
    struct world *w = *state;
    struct arena a = { 0 };
    struct err e = { 0 };
    struct env env;
    char text[64] = "stat /bin/s3cret-value: no such file";

    load(w, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {K: s3cret-value}\n");
    load(w,
         "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: x\n"
         "    envFrom: [{secretRef: {name: s}}]\n    env: [{name: K, value: plain}]\n");
    assert_int_equal(env_build(&w->pod, &w->pod.api->spec.containers[0], &a, &env, &e), ERR_OK);
    assert_string_equal(env_get(&env, "K"), "plain");
    env_redact(&env, text);
    assert_string_equal(text, "stat /bin/***: no such file");
    arena_done(&a);
}

static void expansion_follows_kubelet(void **state)
{
    struct env_var vars[] = { { (char *)"A", (char *)"one" }, { (char *)"E", (char *)"" } };
    struct env env = { .v = vars, .n = 2, .cap = 2 };
    struct arena a = { 0 };
    const char *missing;

    (void)state;
    assert_string_equal(env_expand("$(A)-$(A)", &env, &a, NULL), "one-one");
    assert_string_equal(env_expand("$$(A)", &env, &a, NULL), "$(A)");
    assert_string_equal(env_expand("$$$(A)", &env, &a, NULL), "$one");
    assert_string_equal(env_expand("$(NOPE)", &env, &a, &missing), "$(NOPE)");
    assert_string_equal(missing, "NOPE");
    assert_string_equal(env_expand("x$(E)y", &env, &a, &missing), "xy");
    assert_string_equal(missing, "E");
    assert_string_equal(env_expand("$A $(A", &env, &a, NULL), "$A $(A");
    assert_string_equal(env_expand("end$", &env, &a, NULL), "end$");
    arena_done(&a);
}

static void what_expands_beyond_the_limit_is_reported_as_such(void **state)
{
    char *half = malloc(ENV_BYTES_MAX / 2 + 2);
    struct env_var vars[] = { { (char *)"A", half } };
    const struct env env = { .v = vars, .n = 1, .cap = 1 };
    struct arena a = { 0 };
    struct err e = { 0 };

    (void)state;
    memset(half, 'x', ENV_BYTES_MAX / 2 + 1);
    half[ENV_BYTES_MAX / 2 + 1] = '\0';
    assert_non_null(env_expand("$(A)", &env, &a, NULL));
    assert_null(env_expand("$(A)$(A)", &env, &a, NULL));
    assert_int_equal(env_expand_error(&e), ERR_INVALID);
    assert_string_equal(e.text,
                        "the environment is too large, allowed are 20000 variables and 4194304 bytes");
    arena_done(&a);
    free(half);
}

static void a_sub_path_is_cleaned_but_stays_absolute(void **state)
{
    static const struct {
        const char *sub_path, *expr, *wanted;
    } cases[] = { { NULL, NULL, "" },           { "", NULL, "" },
                  { "./", NULL, "" },           { "./logs//a/", NULL, "logs/a" },
                  { "/logs/", NULL, "/logs/" }, { "../x", NULL, "../x" },
                  { NULL, "$(A)/./x", "one/x" } };
    struct env_var vars[] = { { (char *)"A", (char *)"one" } };
    const struct env env = { .v = vars, .n = 1, .cap = 1 };
    struct api_volume_mount m = { 0 };
    struct arena a = { 0 };
    const char *missing;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        m.sub_path = (char *)cases[i].sub_path;
        m.sub_path_expr = (char *)cases[i].expr;
        assert_string_equal(env_sub_path(&m, &env, &a, &missing), cases[i].wanted);
        assert_null(missing);
    }
    m.sub_path_expr = (char *)"$(B)";
    assert_non_null(env_sub_path(&m, &env, &a, &missing));
    assert_string_equal(missing, "B");
    arena_done(&a);
}

static void env_wins_over_env_from_and_sees_it(void **state)
{
    struct arena a = { 0 };
    struct err e = { 0 };
    const char *v =
        build_and_get(*state, &a,
                      "    envFrom: [{configMapRef: {name: cm}, prefix: P_}]\n"
                      "    env: [{name: X, value: '$(P_A)/$(LATER)'}, {name: LATER, value: nope}]\n",
                      "X", &e);

    assert_string_equal(v, "from-map/$(LATER)");
    arena_done(&a);
}

static void missing_references_have_kubelets_words(void **state)
{
    struct arena a = { 0 };
    struct err e = { 0 };

    assert_null(build_and_get(
        *state, &a, "    env: [{name: X, valueFrom: {configMapKeyRef: {name: nope, key: k}}}]\n", "X", &e));
    assert_string_equal(e.text, "configmap \"nope\" not found");
    assert_null(build_and_get(
        *state, &a, "    env: [{name: X, valueFrom: {secretKeyRef: {name: sec, key: k}}}]\n", "X", &e));
    assert_string_equal(e.text, "couldn't find key k in Secret default/sec");
    assert_int_equal(e.code, ERR_PRECONDITION);
    arena_done(&a);
}

static void a_value_with_a_nul_byte_is_refused_by_name(void **state)
{
    struct arena a = { 0 };
    struct err e = { 0 };

    load(*state, "{apiVersion: v1, kind: Secret, metadata: {name: bin}, data: {plain: eA==, bytes: eAB5}}");
    assert_null(build_and_get(*state, &a, "    envFrom: [{secretRef: {name: bin}}]\n", "plain", &e));
    assert_string_equal(
        e.text, "key bytes of secret \"bin\" contains a NUL byte and cannot be an environment variable");
    e = (struct err){ 0 };
    assert_null(build_and_get(
        *state, &a, "    env: [{name: A, valueFrom: {secretKeyRef: {name: bin, key: bytes}}}]\n", "A", &e));
    assert_string_equal(
        e.text, "key bytes of secret \"bin\" contains a NUL byte and cannot be an environment variable");
    arena_done(&a);
}

static void optional_references_leave_earlier_values(void **state)
{
    struct arena a = { 0 };
    struct err e = { 0 };
    const char *v = build_and_get(
        *state, &a,
        "    env: [{name: X, value: first}, {name: X, valueFrom: {configMapKeyRef: {name: nope, key: k, "
        "optional: true}}}]\n",
        "X", &e);

    assert_string_equal(v, "first");
    arena_done(&a);
}

static void downward_values_and_resources(void **state)
{
    struct world *w = *state;
    struct arena a = { 0 };
    struct err e = { 0 };

    assert_string_equal(
        build_and_get(
            w, &a, "    env: [{name: X, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['app']\"}}}]\n",
            "X", &e),
        "web");
    assert_string_equal(
        build_and_get(w, &a, "    env: [{name: X, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]\n", "X",
                      &e),
        "192.0.2.7");
    assert_string_equal(
        build_and_get(w, &a, "    env: [{name: X, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]\n",
                      "X", &e),
        "2");
    assert_string_equal(
        build_and_get(w, &a,
                      "    env: [{name: X, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "
                      "1m}}}]\n",
                      "X", &e),
        "1500");
    assert_string_equal(
        build_and_get(w, &a,
                      "    env: [{name: X, valueFrom: {resourceFieldRef: {resource: limits.memory, "
                      "divisor: 1Gi}}}]\n",
                      "X", &e),
        "8");
    assert_null(build_and_get(
        w, &a, "    env: [{name: X, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]\n", "X", &e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    arena_done(&a);
}

static void a_limit_of_zero_is_none(void **state)
{
    static const struct {
        const char *pod, *value;
    } cases[] = { { "", "4" },
                  { "  resources: {limits: {cpu: 3}}\n", "3" }, /* the node's; the pod's */
                  { "  resources: {requests: {cpu: 0}, limits: {cpu: 0}}\n", "4" } };
    struct world *w = *state;
    struct arena a = { 0 };
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct env env;
        str_auto text =
            str_printf("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n%s  containers:\n  - name: "
                       "c\n    image: x\n"
                       "    resources: {limits: {cpu: 0}}\n"
                       "    env: [{name: X, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]\n",
                       cases[i].pod);
        load(w, text);
        assert_int_equal(env_build(&w->pod, &w->pod.api->spec.containers[0], &a, &env, &e), ERR_OK);
        assert_string_equal(env_get(&env, "X"), cases[i].value);
    }
    arena_done(&a);
}

static bool one_service(const char *namespace_, node_service_fn each, void *to, void *arg)
{
    static const struct node_service_port port[] = { { 443, "https", "TCP" } };
    static const struct node_service s = { "default", "kubernetes", "10.0.0.1", port, 1 };

    (void)namespace_;
    each(&s, to);
    return *(const bool *)arg;
}

static void variables_of_services_come_last_and_are_seen(void **state)
{
    static const char manifest[] =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: x\n"
        "    envFrom: [{configMapRef: {name: k}}]\n"
        "    env: [{name: URL, value: \"https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)\"},\n"
        "          {name: KUBERNETES_PORT, value: mine}, {name: SEEN, value: $(KUBERNETES_PORT)}]\n";
    struct world *w = *state;
    bool known = true;
    const struct node_cluster cluster = { .services = one_service, .arg = &known };
    struct arena a = { 0 };
    struct err e = { 0 };
    struct env env;

    w->node.cluster = &cluster;
    load(w,
         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: k}\ndata: {KUBERNETES_SERVICE_PORT: '6443'}\n");
    load(w, manifest);
    assert_int_equal(env_build(&w->pod, &w->pod.api->spec.containers[0], &a, &env, &e), ERR_OK);
    assert_string_equal(env.v[0].name, "KUBERNETES_SERVICE_PORT"); /* the pod's own come first */
    assert_string_equal(env_get(&env, "KUBERNETES_SERVICE_PORT"), "6443");
    assert_string_equal(env_get(&env, "URL"), "https://10.0.0.1:6443");
    assert_string_equal(env_get(&env, "KUBERNETES_PORT"), "mine");
    assert_string_equal(env_get(&env, "SEEN"), "mine");
    assert_string_equal(env_get(&env, "KUBERNETES_PORT_443_TCP"), "tcp://10.0.0.1:443");
    assert_int_equal(env.n, 10); /* eight of the Service, two of them the pod's; and two more */
    assert_null(env.services);
    arena_done(&a);
}

static void only_pods_of_the_apiserver_wait_for_services(void **state)
{
    struct world *w = *state;
    bool known = false;
    const struct node_cluster cluster = { .services = one_service, .arg = &known };
    struct arena a = { 0 };
    struct err e = { 0 };
    struct env env = { .n = 77 };

    w->node.cluster = &cluster;
    load(w,
         "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: x\n");
    w->pod.api->origin = API_FROM_SERVER;
    assert_int_equal(env_build(&w->pod, &w->pod.api->spec.containers[0], &a, &env, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "services have not yet been read at least once, cannot construct envvars");
    assert_int_equal(env.n, 77);
    w->node.cluster = NULL; /* the daemon ends */
    assert_int_equal(env_build(&w->pod, &w->pod.api->spec.containers[0], &a, &env, &e), ERR_PRECONDITION);
    w->node.cluster = &cluster;
    w->pod.api->origin = API_FROM_FOLDER; /* a static pod takes what is known */
    assert_int_equal(env_build(&w->pod, &w->pod.api->spec.containers[0], &a, &env, &e), ERR_OK);
    assert_int_equal(env.n, 8);
    w->node.cluster = NULL; /* a lone node */
    assert_int_equal(env_build(&w->pod, &w->pod.api->spec.containers[0], &a, &env, &e), ERR_OK);
    assert_int_equal(env.n, 0);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_taken_out_of_what_is_shown),
        cmocka_unit_test(secrets_are_taken_out_in_other_forms),
        cmocka_unit_test_setup_teardown(a_secret_that_a_variable_replaced_is_known_still, setup, teardown),
        cmocka_unit_test(expansion_follows_kubelet),
        cmocka_unit_test(what_expands_beyond_the_limit_is_reported_as_such),
        cmocka_unit_test(a_sub_path_is_cleaned_but_stays_absolute),
        cmocka_unit_test_setup_teardown(env_wins_over_env_from_and_sees_it, setup, teardown),
        cmocka_unit_test_setup_teardown(missing_references_have_kubelets_words, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_with_a_nul_byte_is_refused_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(optional_references_leave_earlier_values, setup, teardown),
        cmocka_unit_test_setup_teardown(downward_values_and_resources, setup, teardown),
        cmocka_unit_test_setup_teardown(a_limit_of_zero_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(variables_of_services_come_last_and_are_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(only_pods_of_the_apiserver_wait_for_services, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
