/* SPDX-License-Identifier: Apache-2.0 */
/* When a pod's devices come free, and who hears of it. */
#include "tests/unit/agent_pod/script_parts.h"

#include "tests/unit/agent_pod/device/provider.h"

#include "agent/pod/worker/internal.h"

#define LIMIT "containers: [{name: main, image: x, resources: {limits: {" DEV ": 1}}}]"
#define PLAIN ((struct dp_options){ 0 })

static struct pod *find(struct world *w, const char *name)
{
    return pods_find(&w->node, "default", name);
}

static const char *owner(struct world *w)
{
    const char *uid = dp_holdings_owner(devices_holdings(&w->node), DEV, "dev-0");
    const struct pod *p = uid != NULL ? pods_by_uid(&w->node, uid) : NULL;

    return uid == NULL ? "" : p != NULL ? p->api->meta.name : "?";
}

/* Pod "a" runs with the only device, and pod "b" was refused. */
static struct pod *two_pods(struct world *w, const char *spec)
{
    struct pod *a;

    worker_node(&w->node)->shutdown.state = SHUTDOWN_DONE;
    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    a = script_pod(w, "a", spec);
    script_turn(w);
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    assert_int_equal(a->state, POD_RUNNING);
    script_pod(w, "b", LIMIT);
    script_turn(w);
    assert_true(find(w, "b")->rejected);
    return a;
}

static void shut_down(struct world *w, struct pod *a)
{
    a->shutdown_ns = 1000;
    pod_begin_termination(a, 0, true, "test");
    pod_wake(a, "test");
    script_turn(w);
    script_exit(w, a->ctrs[0], 0);
    script_answer_all(w, "Allocate");
    assert_int_equal(a->state, POD_TERMINATED);
}

static void a_shutdown_takes_no_devices_from_a_pod_that_starts_again(void **state)
{
    struct world *w = *state;
    struct pod *a = two_pods(w, LIMIT);

    shut_down(w, a);
    assert_string_equal(owner(w), "a");
    worker_node(&w->node)->shutdown.state = SHUTDOWN_NO;
    pod_wake(a, "test");
    script_answer_all(w, NULL);
    assert_int_equal(a->state, POD_RUNNING);
    assert_string_equal(owner(w), "a");
    assert_int_equal(provider.n_allocate, 1);
}

static void others_have_them_when_such_a_pod_loses_its_manifest(void **state)
{
    struct world *w = *state;
    struct pod *a = two_pods(w, LIMIT);

    shut_down(w, a);
    a->wanted = false;
    pod_wake(a, "test");
    script_turn(w);
    script_answer_all(w, "Allocate");
    assert_null(find(w, "a"));
    assert_string_equal(owner(w), "b");
}

static void one_that_never_starts_again_holds_nothing(void **state)
{
    struct world *w = *state;
    struct pod *a = two_pods(w, "restartPolicy: Never, " LIMIT);

    shut_down(w, a);
    assert_string_equal(owner(w), "b");
}

static void a_pod_that_had_to_make_room_hears_of_new_devices(void **state)
{
    struct world *w = *state;
    struct pod *b;

    two_pods(w, LIMIT);
    b = find(w, "b");
    b->rejected = false;
    b->preempted_ns = 1000;
    provider_list(w, &provider_one, DEV, "dev-0 dev-1");
    assert_int_equal(find(w, "b")->state, POD_PENDING);
    assert_string_equal(provider.ids, "dev-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROVIDER_TEST(a_shutdown_takes_no_devices_from_a_pod_that_starts_again),
        PROVIDER_TEST(others_have_them_when_such_a_pod_loses_its_manifest),
        PROVIDER_TEST(one_that_never_starts_again_holds_nothing),
        PROVIDER_TEST(a_pod_that_had_to_make_room_hears_of_new_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
