/* SPDX-License-Identifier: Apache-2.0 */
/* Ephemeral containers of a pod of the apiserver, and of the manifest folder: how they are added, and what
 * they do not count for. */
#include "tests/unit/agent_pod/script_parts.h"

#include "agent/pod/core/cluster_link.h"
#include "agent/pod/status/status.h"
#include "agent/pod/worker/worker.h"
#include "base/codec/json.h"

/* A version of the pod with ephemeral containers of these names. */
static void want(struct world *w, const char *const *names, size_t n)
{
    json_auto_t *o = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:[{s:s, s:s}], s:[]}}", "apiVersion", "v1",
                               "kind", "Pod", "metadata", "name", "web", "namespace", "default", "uid", "u-1",
                               "spec", "containers", "name", "main", "image", "a:1", "ephemeralContainers");
    json_t *list = json_object_get(json_object_get(o, "spec"), "ephemeralContainers");
    struct api_object made;
    struct err e = { 0 };

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", names[i], "image", "tools:1"));
    if (api_decode_served(o, &made, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_null(made.pod->served.problem);
    pods_want(&w->node, made.pod);
    api_object_unref(&made);
}

#define WANT(w, ...)                                                                                         \
    want(w, (const char *const[]){ __VA_ARGS__ }, ARRAY_LEN(((const char *const[]){ __VA_ARGS__ })))

/* ---- a cluster without Services ---- */

static void told_of_pod(struct pod *p, void *arg)
{
    (void)p;
    (void)arg;
}

static void told_of_end(const struct pod *p, void *arg)
{
    (void)p;
    (void)arg;
}

static void told_of_event(json_t *event, void *arg)
{
    (void)event;
    (void)arg;
}

static bool services(const char *namespace_, node_service_fn each, void *to, void *arg)
{
    (void)namespace_;
    (void)each;
    (void)to;
    (void)arg;
    return true;
}

static const struct node_cluster cluster = {
    .pod_changed = told_of_pod, .pod_gone = told_of_end, .event = told_of_event, .services = services
};

static int joined(void **state)
{
    int failed = script_setup(state);

    if (failed == 0)
        node_set_cluster(&((struct world *)*state)->node, &cluster);
    return failed;
}

#define JOINED_TEST(name) cmocka_unit_test_setup_teardown(name, joined, script_teardown)

/* The pod, whose container runs. */
static struct pod *running(struct world *w)
{
    struct pod *p;

    want(w, NULL, 0);
    p = pods_find(&w->node, "default", "web");
    assert_non_null(p);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    return p;
}

static void they_are_added_and_nothing_else_changes(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w);
    struct ctr *first = p->ctrs[0], *added;

    WANT(w, "d1");
    assert_int_equal(p->n_ctrs, 2);
    added = p->ctrs[1];
    assert_ptr_equal(p->ctrs[0], first); /* operations under way hold pointers */
    assert_int_equal(first->state, CTR_RUNNING);
    assert_false(first->replace);
    assert_null(p->successor);
    assert_int_equal(added->kind, CTR_EPHEMERAL);
    assert_string_equal(added->spec->name, "d1");
    assert_ptr_equal(added->pod, p);
    script_answer_all(w, NULL);
    assert_int_equal(added->state, CTR_RUNNING);
    WANT(w, "d2", "d1"); /* a strategic merge patch puts new ones first */
    assert_int_equal(p->n_ctrs, 3);
    assert_ptr_equal(p->ctrs[1], added);
    assert_string_equal(p->ctrs[1]->spec->name, "d1");
    assert_string_equal(p->ctrs[2]->spec->name, "d2");
    script_answer_all(w, NULL);
    assert_int_equal(p->ctrs[2]->state, CTR_RUNNING);
    WANT(w, "d2", "d1");
    script_answer_all(w, NULL);
    assert_int_equal(p->n_ctrs, 3);
    assert_int_equal(first->restarts + first->cur.attempt, 0);
}

static void a_pending_pod_gets_them_too(void **state)
{
    struct world *w = *state;
    struct pod *p;

    w->node.sources_ready = false; /* it is not admitted */
    WANT(w, "d1");
    script_turn(w);
    p = pods_find(&w->node, "default", "web");
    assert_int_equal(p->n_ctrs, 2);
    WANT(w, "d1", "d2");
    assert_int_equal(p->n_ctrs, 3);
    w->node.sources_ready = true;
    pod_wake(p, "test");
    script_answer_all(w, NULL);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(p->ctrs[i]->state, CTR_RUNNING);
}

static void none_can_be_removed(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w);

    WANT(w, "d1");
    WANT(w, "d2");
    assert_int_equal(p->n_ctrs, 2);
    assert_string_equal(p->ctrs[1]->spec->name, "d1");
    assert_non_null(strstr(p->api->json, "d1"));
}

static void there_is_room_for_so_many(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w);
    char texts[POD_EPHEMERAL_MAX + 1][8];
    const char *names[POD_EPHEMERAL_MAX + 1];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(texts[i], sizeof(texts[i]), "d%zu", i);
        names[i] = texts[i];
    }
    want(w, names, POD_EPHEMERAL_MAX + 1);
    assert_int_equal(p->n_ctrs, 1);
    want(w, names, POD_EPHEMERAL_MAX);
    assert_int_equal(p->n_ctrs, 1 + POD_EPHEMERAL_MAX);
}

static void an_ending_pod_gets_none(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w);

    pod_begin_termination(p, 30, false, "test");
    WANT(w, "d1");
    script_turn(w);
    assert_int_equal(p->n_ctrs, 1);
    assert_non_null(strstr(p->api->json, "d1"));
}

static void it_ends_with_the_pod(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w);

    WANT(w, "d1");
    script_answer_all(w, NULL);
    pod_begin_termination(p, 30, false, "test");
    pod_wake(p, "test");
    script_turn(w);
    assert_int_equal(script_ctr(p->ctrs[1]->cur.id)->last_signal, SIGTERM);
    for (size_t i = 0; i < p->n_ctrs; i++)
        script_exit(w, p->ctrs[i], 0);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_TERMINATED);
    assert_true(p->ctrs[1]->cur.ended);
}

static void it_runs_once(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w);
    struct err e = { 0 };
    json_t *runs;

    WANT(w, "d1", "d2");
    script_answer_all(w, NULL);
    script_exit(w, p->ctrs[1], 0);
    script_exit(w, p->ctrs[2], 1);
    script_pass(w, 600 * SCRIPT_SECOND);
    script_answer_all(w, NULL);
    assert_true(p->ctrs[1]->cur.ended && p->ctrs[2]->cur.ended);
    assert_int_equal(p->ctrs[1]->cur.attempt + p->ctrs[2]->cur.attempt, 0);
    /* nor when a restart is asked for, or the sandbox is lost */
    runs = restart_ask(p, NULL, &e);
    assert_int_equal(json_array_size(runs), 1);
    json_decref(runs);
    containers_begin_anew(p);
    script_turn(w);
    script_exit(w, p->ctrs[0], 137);
    script_pass(w, 600 * SCRIPT_SECOND);
    script_answer_all(w, NULL);
    assert_int_equal(p->ctrs[0]->state, CTR_RUNNING);
    assert_int_equal(p->ctrs[0]->cur.attempt, 1);
    assert_true(p->ctrs[1]->cur.ended && p->ctrs[2]->cur.ended);
    assert_int_equal(p->ctrs[1]->cur.attempt + p->ctrs[2]->cur.attempt, 0);
    assert_int_equal(p->ctrs[2]->cur.exit_code, 1);
}

static void the_pods_end_does_not_wait_for_it(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w);

    WANT(w, "d1");
    script_answer_all(w, NULL);
    p->api->spec.restart_policy = API_RESTART_NEVER;
    script_exit(w, p->ctrs[0], 0);
    assert_int_equal(p->state, POD_TERMINATING);
    script_exit(w, p->ctrs[1], 0);
    script_answer_all(w, NULL);
    assert_string_equal(pod_phase(p), "Succeeded");
}

static void phase_and_readiness_are_those_of_the_others(void **state)
{
    struct world *w = *state;
    struct pod *p = running(w);
    json_auto_t *o = NULL, *again = NULL;
    const json_t *status, *one;

    WANT(w, "d1");
    o = pod_status_json(p);
    status = json_object_get(o, "status");
    one = json_array_get(json_object_get(status, "ephemeralContainerStatuses"), 0);
    assert_string_equal(json_str(status, "phase"), "Running");
    assert_string_equal(json_str(one, "name"), "d1");
    assert_false(json_flag(one, "ready"));
    assert_null(json_object_get(one, "started"));
    assert_non_null(json_object_get(json_object_get(one, "state"), "waiting"));
    assert_int_equal(json_array_size(json_object_get(status, "containerStatuses")), 1);
    one = json_array_get(json_object_get(status, "conditions"), 2);
    assert_string_equal(json_str(one, "type"), "Ready");
    assert_string_equal(json_str(one, "status"), "True");
    script_answer_all(w, NULL);
    script_exit(w, p->ctrs[1], 3);
    again = pod_status_json(p);
    status = json_object_get(again, "status");
    assert_string_equal(json_str(status, "phase"), "Running");
    one = json_array_get(json_object_get(status, "ephemeralContainerStatuses"), 0);
    one = json_object_get(json_object_get(one, "state"), "terminated");
    assert_int_equal(json_int(one, "exitCode", -1), 3);
}

/* ---- a pod of the manifest folder ---- */

/* A version of its file: with this image, and a second container or none. */
static void put(struct world *w, const char *image, bool second)
{
    json_auto_t *o =
        json_pack("{s:s, s:s, s:{s:s}, s:{s:[{s:s, s:s}]}}", "apiVersion", "v1", "kind", "Pod", "metadata",
                  "name", "web", "spec", "containers", "name", "main", "image", image);
    struct api_problems problems = { 0 };
    struct api_pod *made = NULL;
    struct err e = { 0 };

    if (second)
        json_array_append_new(json_object_get(json_object_get(o, "spec"), "containers"),
                              json_pack("{s:s, s:s}", "name", "side", "image", "b:1"));
    assert_int_equal(api_decode_pod(o, &made, &problems, &e), ERR_OK);
    assert_non_null(made);
    pods_want(&w->node, made);
    api_pod_unref(made);
    api_problems_done(&problems);
}

static struct pod *of_folder(struct world *w)
{
    struct pod *p;

    put(w, "a:1", false);
    p = pods_find(&w->node, "default", "web");
    assert_non_null(p);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    return p;
}

static enum err_code debug(struct pod *p, const char *name, const char *field, const char *value,
                           struct err *e)
{
    json_auto_t *c = json_pack("{s:s, s:s, s:s}", "name", name, "image", "tools:1", field, value);

    *e = (struct err){ 0 };
    return pods_debug(p, c, e);
}

static void one_is_added_to_a_pod_of_the_folder(void **state)
{
    struct world *w = *state;
    struct pod *p = of_folder(w);
    struct ctr *first = p->ctrs[0];
    struct err e;

    assert_int_equal(debug(p, "d1", "imagePullPolicy", "Always", &e), ERR_OK);
    assert_int_equal(p->n_ctrs, 2);
    script_answer_all(w, NULL);
    assert_int_equal(p->ctrs[1]->state, CTR_RUNNING);
    assert_int_equal(debug(p, "d2", "imagePullPolicy", "Always", &e), ERR_OK);
    assert_int_equal(p->n_ctrs, 3);
    assert_ptr_equal(p->ctrs[0], first);
    assert_int_equal(first->restarts + first->cur.attempt, 0);
    assert_null(p->successor);
}

static void an_edit_of_the_file_keeps_it(void **state)
{
    struct world *w = *state;
    struct pod *p = of_folder(w);
    struct err e;

    assert_int_equal(debug(p, "d1", "imagePullPolicy", "Always", &e), ERR_OK);
    script_answer_all(w, NULL);
    put(w, "a:1", false); /* read again, as after a start of the agent */
    assert_null(p->successor);
    put(w, "a:2", false);
    assert_null(p->successor);
    assert_int_equal(p->n_ctrs, 2);
    assert_string_equal(p->ctrs[0]->spec->image, "a:2");
    assert_int_equal(p->ctrs[1]->state, CTR_RUNNING);
    assert_true(p->ctrs[0]->replace);
    put(w, "a:2", true); /* a new pod, without it */
    assert_non_null(p->successor);
    assert_int_equal(p->successor->spec.n_ephemeral_containers, 0);
}

static void what_is_wrong_is_told(void **state)
{
    struct world *w = *state;
    struct pod *p = of_folder(w);
    struct err e;

    assert_int_equal(debug(p, "main", "imagePullPolicy", "Always", &e), ERR_INVALID);
    assert_string_equal(e.text,
                        "spec.ephemeralContainers[0].name: \"main\" is the name of another container of "
                        "this pod, too");
    assert_int_equal(debug(p, "d1", "targetContainerName", "none", &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "there is no container \"none\" in this pod"));
    assert_int_equal(debug(p, "d1", "restartPolicy", "Always", &e), ERR_INVALID);
    assert_int_equal(p->n_ctrs, 1);
    for (int i = 0; i < POD_EPHEMERAL_MAX; i++) {
        char name[8];

        snprintf(name, sizeof(name), "d%d", i);
        assert_int_equal(debug(p, name, "imagePullPolicy", "Always", &e), ERR_OK);
    }
    assert_int_equal(debug(p, "more", "imagePullPolicy", "Always", &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "pod default/web already has 32 ephemeral containers, the maximum");
    pods_unwant(&w->node, "default", "web");
    assert_int_equal(debug(p, "late", "imagePullPolicy", "Always", &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "pod default/web has ended, or is about to");
}

static void the_clusters_pod_takes_none_from_here(void **state)
{
    struct pod *p = running(*state);
    struct err e;

    assert_int_equal(debug(p, "d1", "imagePullPolicy", "Always", &e), ERR_PRECONDITION);
    assert_non_null(strstr(e.text, "kubectl debug"));
}

static void a_pending_one_gets_it_at_once(void **state)
{
    struct world *w = *state;
    struct pod *p;
    struct err e;

    put(w, "a:1", false);
    p = pods_find(&w->node, "default", "web");
    assert_int_equal(p->state, POD_PENDING);
    assert_int_equal(debug(p, "d1", "imagePullPolicy", "Always", &e), ERR_OK);
    assert_int_equal(p->n_ctrs, 2);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(p->ctrs[1]->state, CTR_RUNNING);
}

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        JOINED_TEST(they_are_added_and_nothing_else_changes),
        JOINED_TEST(a_pending_pod_gets_them_too),
        JOINED_TEST(none_can_be_removed),
        JOINED_TEST(there_is_room_for_so_many),
        JOINED_TEST(an_ending_pod_gets_none),
        JOINED_TEST(it_ends_with_the_pod),
        JOINED_TEST(it_runs_once),
        JOINED_TEST(the_pods_end_does_not_wait_for_it),
        JOINED_TEST(phase_and_readiness_are_those_of_the_others),
        FOLDER_TEST(one_is_added_to_a_pod_of_the_folder),
        FOLDER_TEST(an_edit_of_the_file_keeps_it),
        FOLDER_TEST(what_is_wrong_is_told),
        JOINED_TEST(the_clusters_pod_takes_none_from_here),
        FOLDER_TEST(a_pending_one_gets_it_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
