/* SPDX-License-Identifier: Apache-2.0 */
/* A pod and its devices until it starts: it gets them, waits, or is rejected in kubelet's words. */
#include "tests/unit/agent_pod/script_parts.h"

#include "tests/unit/agent_pod/device/provider.h"

#include "agent/pod/placement/internal.h"

#include "base/codec/json.h"

#define ONE "containers: [{name: main, image: x, resources: {limits: {" DEV ": 1}}}]"
#define TWO "containers: [{name: main, image: x, resources: {limits: {" DEV ": 2}}}]"
#define THREE "containers: [{name: main, image: x, resources: {limits: {" DEV ": 3}}}]"
#define BOTH "containers: [{name: main, image: x, resources: {limits: {" DEV ": 1, " NET ": 1}}}]"

#define PLAIN ((struct dp_options){ 0 })
#define SHORTAGE(n, m)                                                                                       \
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for " DEV              \
    ". Requested: " n ", Available: " m ", which is unexpected"
#define NO_HEALTHY                                                                                           \
    "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy "        \
    "devices " DEV ", which is unexpected"

static const char *owner(struct world *w, const char *resource, const char *id)
{
    const char *uid = dp_holdings_owner(devices_holdings(&w->node), resource, id);
    const struct pod *p = uid != NULL ? pods_by_uid(&w->node, uid) : NULL;

    return uid == NULL ? "" : p != NULL ? p->api->meta.name : "?";
}

static void assert_rejected(const struct pod *p, const char *reason, const char *message)
{
    assert_int_equal(p->state, POD_TERMINATED);
    assert_string_equal(p->phase, "Failed");
    assert_string_equal(p->reason, reason);
    assert_string_equal(p->message, message);
}

static struct pod *find(struct world *w, const char *name)
{
    return pods_find(&w->node, "default", name);
}

static unsigned count_events(struct world *w, const char *reason)
{
    json_auto_t *events = events_json(&w->node);
    const json_t *v;
    unsigned n = 0;
    size_t i;

    json_array_foreach (events, i, v)
        if (str_eq(json_str(v, "reason"), reason))
            n += (unsigned)json_int(v, "count", 0);
    return n;
}

static void a_pod_starts_when_its_devices_are_allocated(void **state)
{
    struct world *w = *state;
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1 dev-2", PLAIN);
    p = script_pod(w, "a", TWO);
    script_turn(w);
    assert_int_equal(p->state, POD_PENDING);
    assert_string_equal(provider.ids, "dev-0,dev-1");
    assert_string_equal(owner(w, DEV, "dev-0"), "a"); /* reserved before the answer */
    provider_allocates(w, NULL);
    assert_int_equal(p->state, POD_STARTING);
    assert_null(p->message);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(provider.n_allocate, 1);
    assert_string_equal(owner(w, DEV, "dev-2"), "");
}

static void each_resource_of_each_container_is_a_call_of_its_own(void **state)
{
    struct world *w = *state;
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", PLAIN);
    provider_comes(w, &provider_two, NET, "net-0", PLAIN);
    p = script_pod(w, "a",
                   "containers: [{name: one, image: x, resources: {limits: {" NET ": 1, " DEV
                   ": 1}}}, {name: "
                   "two, image: x, resources: {limits: {" DEV ": 1}}}]");
    script_turn(w);
    assert_string_equal(provider.ids, "dev-0"); /* by name, not as the manifest has them */
    provider_allocates(w, NULL);
    assert_string_equal(provider.ids, "net-0");
    provider_allocates(w, NULL);
    assert_string_equal(provider.ids, "dev-1");
    provider_allocates(w, NULL);
    assert_int_equal(p->state, POD_STARTING);
}

static void devices_of_an_init_container_are_used_again(void **state)
{
    struct world *w = *state;
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1 dev-2", PLAIN);
    p = script_pod(w, "a",
                   "initContainers: [{name: init, image: x, resources: {limits: {" DEV ": 2}}}, {name: side, "
                   "image: x, restartPolicy: Always, resources: {limits: {" DEV
                   ": 1}}}], containers: [{name: "
                   "main, image: x, resources: {limits: {" DEV ": 2}}}]");
    script_turn(w);
    assert_string_equal(provider.ids, "dev-0,dev-1");
    provider_allocates(w, NULL);
    assert_string_equal(provider.ids, "dev-0");
    provider_allocates(w, NULL);
    assert_string_equal(provider.ids, "dev-1,dev-2"); /* the sidecar keeps dev-0 */
    provider_allocates(w, NULL);
    assert_int_equal(p->state, POD_STARTING);
}

static void pods_are_allocated_side_by_side(void **state)
{
    struct world *w = *state;
    struct pod *a, *b, *plain;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", PLAIN);
    a = script_pod(w, "a", ONE);
    b = script_pod(w, "b", ONE);
    plain = script_pod(w, "plain", "containers: [{name: main, image: x}]");
    script_turn(w);
    assert_int_equal(provider.n_allocate, 2);
    assert_int_equal(plain->state, POD_STARTING);
    assert_string_equal(owner(w, DEV, "dev-0"), "a");
    assert_string_equal(owner(w, DEV, "dev-1"), "b");
    provider_allocates(w, NULL);
    provider_allocates(w, NULL);
    assert_int_equal(a->state, POD_STARTING);
    assert_int_equal(b->state, POD_STARTING);
}

static void too_few_devices_reject_at_once(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", PLAIN);
    script_pod(w, "a", THREE);
    script_turn(w);
    assert_rejected(find(w, "a"), "UnexpectedAdmissionError", SHORTAGE("3", "2"));
    assert_int_equal(provider.n_allocate, 0);
    script_pod(w, "b", ONE);
    script_turn(w);
    provider_allocates(w, NULL);
    script_pod(w, "c", TWO);
    script_turn(w);
    assert_rejected(find(w, "c"), "UnexpectedAdmissionError", SHORTAGE("2", "1"));
    assert_string_equal(owner(w, DEV, "dev-1"), "");
}

static void a_pod_that_was_refused_starts_when_devices_come_free(void **state)
{
    struct world *w = *state;
    struct pod *a;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    a = script_pod(w, "a", ONE);
    script_turn(w);
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    script_pod(w, "b", ONE);
    script_turn(w);
    assert_rejected(find(w, "b"), "UnexpectedAdmissionError", SHORTAGE("1", "0"));
    a->wanted = false;
    pod_wake(a, "test");
    script_turn(w);
    assert_string_equal(owner(w, DEV, "dev-0"), "a"); /* until it is gone */
    script_exit(w, a->ctrs[0], 0);
    script_answer_all(w, "Allocate");
    assert_null(find(w, "a"));
    assert_string_equal(owner(w, DEV, "dev-0"), "b");
    provider_allocates(w, NULL);
    assert_int_equal(find(w, "b")->state, POD_STARTING);
}

static void a_finished_pod_holds_nothing_and_still_shows_what_it_had(void **state)
{
    struct world *w = *state;
    struct pod *a;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    a = script_pod(w, "a", "restartPolicy: Never, " ONE);
    script_turn(w);
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    script_exit(w, a->ctrs[0], 0);
    script_answer_all(w, NULL);
    assert_string_equal(a->phase, "Succeeded");
    assert_string_equal(owner(w, DEV, "dev-0"), "");
    json_auto_t *status = devices_status(a->ctrs[0]);
    str_auto text = json_text(status);
    assert_string_equal(text, "[{\"name\":\"" DEV
                              "\",\"resources\":[{\"resourceID\":\"dev-0\",\"health\":\"Healthy\"}]}]");
}

static void an_error_of_the_plugin_rejects_for_good(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    script_pod(w, "a", ONE);
    script_turn(w);
    provider_fails(w, "Allocate", ERR_INTERNAL, "rpc error: code = Internal desc = no");
    assert_rejected(find(w, "a"), "UnexpectedAdmissionError",
                    "Pod was rejected: Allocate failed due to rpc error: code = Internal desc = no, which is "
                    "unexpected");
    assert_string_equal(owner(w, DEV, "dev-0"), "");
    provider_goes(w, &provider_one, DEV);
    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", PLAIN);
    assert_int_equal(provider.n_allocate, 1);
    assert_true(find(w, "a")->rejected);
}

/* ---- waiting ---- */

static void a_pod_waits_for_a_provider_that_is_away(void **state)
{
    struct world *w = *state;
    struct pod *a, *other;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    provider_comes(w, &provider_two, NET, "net-0", PLAIN);
    provider_goes(w, &provider_one, DEV);
    a = script_pod(w, "a", BOTH);
    script_turn(w);
    assert_int_equal(a->state, POD_PENDING);
    assert_non_null(strstr(a->message, "waits for " DEV ": its device plugin is gone"));
    assert_int_equal(count_events(w, "WaitingForDevices"), 1);
    assert_string_equal(owner(w, NET, "net-0"), ""); /* who waits holds nothing */
    other = script_pod(w, "plain", "containers: [{name: main, image: x}]");
    script_pass(w, 60 * SCRIPT_SECOND);
    assert_int_equal(other->state, POD_STARTING);
    assert_int_equal(count_events(w, "WaitingForDevices"), 1);
    provider_comes(w, &provider_one, DEV, NULL, PLAIN);
    assert_non_null(strstr(a->message, "its provider has not listed its devices yet"));
    provider_list(w, &provider_one, DEV, "dev-0");
    provider_allocates(w, NULL);
    provider_allocates(w, NULL);
    assert_int_equal(a->state, POD_STARTING);
}

static void the_wait_ends_with_kubelets_verdict(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    provider_goes(w, &provider_one, DEV);
    script_pod(w, "a", ONE);
    script_pass(w, 200 * SCRIPT_SECOND);
    assert_int_equal(find(w, "a")->state, POD_PENDING);
    script_pass(w, 101 * SCRIPT_SECOND);
    assert_int_equal(find(w, "a")->state, POD_TERMINATED);
    assert_string_equal(find(w, "a")->reason, "UnexpectedAdmissionError");
}

static void without_a_wait_it_is_as_in_kubelet(void **state)
{
    struct world *w = *state;
    struct pod *b;

    w->node.o.device_plugin_wait_ms = 0;
    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    provider_goes(w, &provider_one, DEV);
    script_pod(w, "a", ONE);
    script_turn(w);
    assert_rejected(find(w, "a"), "UnexpectedAdmissionError", NO_HEALTHY);
    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    assert_rejected(find(w, "a"), "UnexpectedAdmissionError", NO_HEALTHY); /* for good */
    b = script_pod(w, "b", "containers: [{name: main, image: x, resources: {limits: {" NET ": 1}}}]");
    script_turn(w);
    assert_int_equal(b->state, POD_STARTING); /* nobody ever offered it */
}

static void a_resource_that_nobody_offers_is_awaited_for_a_while_and_then_ignored(void **state)
{
    struct world *w = *state;
    struct pod *a = script_pod(w, "a", ONE);

    script_pass(w, 9 * SCRIPT_SECOND);
    assert_int_equal(a->state, POD_PENDING);
    assert_non_null(strstr(a->message, "waits for " DEV ": nothing has offered it"));
    script_pass(w, 2 * SCRIPT_SECOND);
    assert_int_equal(a->state, POD_STARTING);
    assert_int_equal(count_events(w, "DeviceIgnored"), 1);
    assert_null(devices_status(a->ctrs[0]));
}

static void unhealthy_devices_of_a_provider_that_is_there_reject_at_once(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0-", PLAIN);
    script_pod(w, "a", ONE);
    script_turn(w);
    assert_rejected(find(w, "a"), "UnexpectedAdmissionError", NO_HEALTHY);
}

static void a_plugin_that_dies_in_the_call_is_awaited(void **state)
{
    struct world *w = *state;
    struct pod *a;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    a = script_pod(w, "a", ONE);
    script_turn(w);
    provider_fails(w, "Allocate", ERR_UNAVAILABLE, "rpc error: code = Unavailable desc = gone");
    assert_int_equal(a->state, POD_PENDING);
    assert_string_equal(owner(w, DEV, "dev-0"), "");
    assert_int_equal(provider.n_allocate, 1); /* not in a hurry: it is woken by a change */
    script_pass(w, 10 * SCRIPT_SECOND);
    assert_int_equal(provider.n_allocate, 1);
    provider_goes(w, &provider_one, DEV);
    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    assert_int_equal(provider.n_allocate, 2);
    provider_allocates(w, NULL);
    assert_int_equal(a->state, POD_STARTING);
}

static void a_plugin_that_hangs_in_the_call_is_asked_again_until_the_wait_is_over(void **state)
{
    static const char text[] = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    struct world *w = *state;
    struct pod *a;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    a = script_pod(w, "a", ONE);
    script_turn(w);
    for (unsigned i = 1; i <= 10; i++) {
        assert_int_equal(provider.n_allocate, i);
        assert_int_equal(a->state, POD_PENDING);
        script_pass(w, 30 * SCRIPT_SECOND);
        provider_fails(w, "Allocate", ERR_DEADLINE, text);
    }
    script_pass(w, 31 * SCRIPT_SECOND);
    if (find(w, "a")->state == POD_PENDING)
        provider_fails(w, "Allocate", ERR_DEADLINE, text);
    assert_rejected(find(w, "a"), "UnexpectedAdmissionError",
                    "Pod was rejected: Allocate failed due to rpc error: code = DeadlineExceeded desc = "
                    "context deadline exceeded, which is unexpected");
}

static void a_plugin_that_says_at_once_that_its_deadline_passed_is_not_asked_in_a_loop(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    script_pod(w, "a", ONE);
    script_turn(w);
    provider_fails(w, "Allocate", ERR_DEADLINE, "rpc error: code = DeadlineExceeded desc = busy");
    script_pass(w, 10 * SCRIPT_SECOND);
    assert_int_equal(provider.n_allocate, 1);
    assert_int_equal(find(w, "a")->state, POD_PENDING);
    provider_list(w, &provider_one, DEV, "dev-0 dev-1");
    assert_int_equal(provider.n_allocate, 2);
    provider_allocates(w, NULL);
    assert_int_equal(find(w, "a")->state, POD_STARTING);
}

static void an_answer_that_comes_after_the_pod_went_changes_nothing(void **state)
{
    struct world *w = *state;
    struct pod *a;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    a = script_pod(w, "a", ONE);
    script_turn(w);
    script.hang = true;
    a->wanted = false;
    pod_wake(a, "test");
    script_turn(w);
    assert_non_null(find(w, "a")); /* its question is under way */
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    assert_null(find(w, "a"));
    assert_string_equal(owner(w, DEV, "dev-0"), "");
    script.hang = false;
}

/* ---- preferences ---- */

static void a_preference_is_asked_for_and_followed(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1 dev-2", (struct dp_options){ .preferred = true });
    script_pod(w, "a", TWO);
    script_turn(w);
    assert_string_equal(provider.ids, "dev-0,dev-1,dev-2");
    provider_prefers(w, "dev-2", "dev-1");
    assert_string_equal(provider.ids, "dev-1,dev-2");
    provider_allocates(w, NULL);
}

static void what_another_pod_took_meanwhile_is_not_preferred_any_more(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1 dev-2", (struct dp_options){ .preferred = true });
    script_pod(w, "a", ONE);
    script_pod(w, "b", ONE);
    script_turn(w);
    assert_int_equal(provider.n_preferred, 2);
    provider_prefers(w, "dev-2", NULL);
    provider_prefers(w, "dev-2", NULL);
    assert_int_equal(provider.n_preferred, 3); /* asked again, with what is free now */
    assert_string_equal(provider.ids, "dev-0,dev-1");
    provider_prefers(w, "dev-1", NULL);
    assert_string_equal(owner(w, DEV, "dev-2"), "a");
    assert_string_equal(owner(w, DEV, "dev-1"), "b");
}

/* What the earlier process listed says nothing about the devices of the new one. */
static void a_plugin_that_comes_as_another_process_is_asked_once_it_has_listed(void **state)
{
    struct world *w = *state;
    struct pod *a;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", (struct dp_options){ .preferred = true });
    a = script_pod(w, "a", ONE);
    script_turn(w);
    provider_comes(w, &provider_two, DEV, NULL, PLAIN);
    provider_prefers(w, "dev-1", NULL);
    assert_int_equal(provider.n_allocate, 0);
    assert_non_null(strstr(a->message, "its provider has not listed its devices yet"));
    provider_list(w, &provider_two, DEV, "new-0");
    assert_string_equal(provider.ids, "new-0");
    provider_allocates(w, NULL);
    assert_int_equal(a->state, POD_STARTING);
}

static void a_failed_preference_rejects_in_kubelets_words(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", (struct dp_options){ .preferred = true });
    script_pod(w, "a", ONE);
    script_turn(w);
    provider_fails(w, "GetPreferredAllocation", ERR_INTERNAL, "rpc error: code = Internal desc = no");
    assert_rejected(
        find(w, "a"), "UnexpectedAdmissionError",
        "Pod was rejected: Allocate failed due to device plugin GetPreferredAllocation rpc failed "
        "with err: rpc error: code = Internal desc = no, which is unexpected");
}

/* ---- NUMA nodes ---- */

static void align_to_one_of_two_nodes(struct world *w, bool pod_scope)
{
    struct placement_node *part = placement_node(&w->node);

    part->machine = calloc(1, sizeof(*part->machine));
    assert_non_null(part->machine);
    for (unsigned i = 0; i < 2; i++) {
        cpus_add(&part->machine->cpus, i);
        part->machine->cpu[i].in[PL_NODE] = (int32_t)i;
        part->machine->node[i] = (struct pl_node){ .id = i };
    }
    part->machine->n_nodes = 2;
    pl_machine_count(part->machine);
    part->topology = (struct pl_topology){ .policy = PL_POLICY_SINGLE_NODE, .pod_scope = pod_scope };
    device_node(&w->node)->machine.nodes = 3;
}

static void a_container_gets_devices_of_one_node_if_the_policy_wants_it(void **state)
{
    struct world *w = *state;
    struct pod *a;

    align_to_one_of_two_nodes(w, false);
    provider_comes(w, &provider_one, DEV, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", PLAIN);
    a = script_pod(w, "a", TWO);
    script_turn(w);
    assert_string_equal(provider.ids, "dev-0,dev-2");
    provider_allocates(w, NULL);
    assert_int_equal(a->state, POD_STARTING);
    script_pod(w, "b", THREE);
    script_turn(w);
    assert_rejected(find(w, "b"), "TopologyAffinityError",
                    "Pod was rejected: Resources cannot be allocated with Topology locality");
    assert_int_equal(provider.n_allocate, 1);
}

static void with_the_scope_of_a_pod_its_sum_has_to_fit_into_one_node(void **state)
{
    static const char containers[] = "containers: [{name: one, image: x, resources: {limits: {" DEV
                                     ": 1}}}, {name: two, image: x, resources: {limits: {" DEV ": 1}}}]";
    struct world *w = *state;

    align_to_one_of_two_nodes(w, true);
    provider_comes(w, &provider_one, DEV, "dev-0@0 dev-1@1 dev-2@1", PLAIN);
    script_pod(w, "a", containers);
    script_turn(w);
    assert_string_equal(provider.ids, "dev-1");
    provider_allocates(w, NULL);
    assert_string_equal(provider.ids, "dev-2");
    provider_allocates(w, NULL);
    provider_list(w, &provider_one, DEV, "dev-0@0 dev-1@1 dev-2@1 dev-3@1");
    script_pod(w, "b", containers);
    script_turn(w);
    assert_string_equal(find(w, "b")->reason, "TopologyAffinityError");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROVIDER_TEST(a_pod_starts_when_its_devices_are_allocated),
        PROVIDER_TEST(each_resource_of_each_container_is_a_call_of_its_own),
        PROVIDER_TEST(devices_of_an_init_container_are_used_again),
        PROVIDER_TEST(pods_are_allocated_side_by_side),
        PROVIDER_TEST(too_few_devices_reject_at_once),
        PROVIDER_TEST(a_pod_that_was_refused_starts_when_devices_come_free),
        PROVIDER_TEST(a_finished_pod_holds_nothing_and_still_shows_what_it_had),
        PROVIDER_TEST(an_error_of_the_plugin_rejects_for_good),
        PROVIDER_TEST(a_pod_waits_for_a_provider_that_is_away),
        PROVIDER_TEST(the_wait_ends_with_kubelets_verdict),
        PROVIDER_TEST(without_a_wait_it_is_as_in_kubelet),
        PROVIDER_TEST(a_resource_that_nobody_offers_is_awaited_for_a_while_and_then_ignored),
        PROVIDER_TEST(unhealthy_devices_of_a_provider_that_is_there_reject_at_once),
        PROVIDER_TEST(a_plugin_that_dies_in_the_call_is_awaited),
        PROVIDER_TEST(a_plugin_that_says_at_once_that_its_deadline_passed_is_not_asked_in_a_loop),
        PROVIDER_TEST(a_plugin_that_hangs_in_the_call_is_asked_again_until_the_wait_is_over),
        PROVIDER_TEST(an_answer_that_comes_after_the_pod_went_changes_nothing),
        PROVIDER_TEST(a_preference_is_asked_for_and_followed),
        PROVIDER_TEST(what_another_pod_took_meanwhile_is_not_preferred_any_more),
        PROVIDER_TEST(a_plugin_that_comes_as_another_process_is_asked_once_it_has_listed),
        PROVIDER_TEST(a_failed_preference_rejects_in_kubelets_words),
        PROVIDER_TEST(a_container_gets_devices_of_one_node_if_the_policy_wants_it),
        PROVIDER_TEST(with_the_scope_of_a_pod_its_sum_has_to_fit_into_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
