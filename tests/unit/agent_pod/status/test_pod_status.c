/* SPDX-License-Identifier: Apache-2.0 */
/* Phase, conditions and container statuses from what the worker knows. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/status/internal.h"
#include "agent/pod/status/status.h"
#include "agent/pod/volume/internal.h"
#include "tests/unit/agent_pod/world.h"

#include "base/codec/json.h"

static const char two[] =
    "initContainers: [{name: i, image: x}], containers: [{name: b, image: x}, {name: a, image: x}]";

static void run(struct ctr *c)
{
    memset(c->cur.id, 'a', 64);
    c->cur.started_ns = c->cur.created_ns = 1;
    c->state = CTR_RUNNING;
}

static void end(struct ctr *c, int code)
{
    memset(c->cur.id, 'a', 64);
    c->cur.ended = true;
    c->cur.exit_code = code;
    c->cur.finished_ns = 1;
    snprintf(c->cur.reason, sizeof(c->cur.reason), code == 0 ? "Completed" : "Error");
    c->state = CTR_NONE;
}

/* A new run that has not started, after one that ended. */
static void again(struct ctr *c)
{
    end(c, 1);
    c->last = c->cur;
    c->cur = (struct instance){ .attempt = 1 };
    memset(c->cur.id, 'b', 64);
    c->state = CTR_CREATED;
}

static struct pod *started(struct world *w, const char *spec)
{
    struct pod *p = world_pod(w, "p", spec);

    p->admitted = true;
    p->state = POD_STARTING;
    return p;
}

static const json_t *condition(const json_t *pod, const char *type)
{
    const json_t *list = json_object_get(json_object_get(pod, "status"), "conditions");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (str_eq(json_str(json_array_get(list, i), "type"), type))
            return json_array_get(list, i);
    fail_msg("no condition %s", type);
    return NULL;
}

/* A generation that nobody counts would say that an edit was not seen. */
static void the_generation_observed_is_that_of_the_manifest_or_absent(void **state)
{
    static const char given[] = "{apiVersion: v1, kind: Pod, metadata: {name: q, generation: 7}, "
                                "spec: {containers: [{name: a, image: x}]}}";
    struct pod *p = started(*state, "containers: [{name: a, image: x}]"), *q = world_add(*state, given);
    json_auto_t *without = pod_status_json(p), *with = NULL;

    q->admitted = true;
    q->state = POD_STARTING;
    with = pod_status_json(q);
    assert_null(json_object_get(json_object_get(without, "status"), "observedGeneration"));
    assert_null(json_object_get(condition(without, "Ready"), "observedGeneration"));
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(with, "status"), "observedGeneration")), 7);
    assert_int_equal(json_integer_value(json_object_get(condition(with, "Ready"), "observedGeneration")), 7);
}

static void phase_is_pending_until_init_is_done_and_all_regular_ones_have_run(void **state)
{
    struct pod *p = started(*state, two);

    assert_string_equal(pod_phase(p), "Pending");
    run(p->ctrs[0]);
    assert_string_equal(pod_phase(p), "Pending");
    end(p->ctrs[0], 0);
    run(p->ctrs[1]);
    assert_string_equal(pod_phase(p), "Pending"); /* one waits without a past */
    run(p->ctrs[2]);
    assert_string_equal(pod_phase(p), "Running");
}

static void phase_stays_running_between_two_runs(void **state)
{
    struct pod *p = started(*state, "containers: [{name: a, image: x}]");

    p->state = POD_RUNNING;
    p->initialized = true;
    end(p->ctrs[0], 1);
    assert_string_equal(pod_phase(p), "Running");
    again(p->ctrs[0]);
    assert_string_equal(pod_phase(p), "Running");
}

static void final_phase_shows_only_when_all_is_gone(void **state)
{
    struct pod *p = started(*state, "containers: [{name: a, image: x}]");

    end(p->ctrs[0], 0);
    snprintf(p->phase, sizeof(p->phase), "Succeeded");
    p->state = POD_TERMINATING;
    assert_string_equal(pod_phase(p), "Running");
    p->state = POD_TERMINATED;
    assert_string_equal(pod_phase(p), "Succeeded");
}

static void conditions_name_what_is_not_ready(void **state)
{
    struct pod *p = started(*state, two);
    json_t *o = pod_status_json(p);

    assert_string_equal(json_str(condition(o, "Initialized"), "message"),
                        "containers with incomplete status: [i]");
    assert_string_equal(json_str(condition(o, "Ready"), "reason"), "ContainersNotReady");
    assert_string_equal(json_str(condition(o, "ContainersReady"), "message"),
                        "containers with unready status: [b a]");
    assert_string_equal(json_str(condition(o, "PodScheduled"), "status"), "True");
    json_decref(o);
}

/* As pod_ending_step() leaves one that was removed. */
static json_t *removed(struct pod *p)
{
    p->deletion_ns = 1;
    p->state = POD_TERMINATED;
    snprintf(p->phase, sizeof(p->phase), "Failed");
    return pod_status_json(p);
}

static void a_pod_removed_while_an_init_container_runs_is_not_ready_rather_than_failed(void **state)
{
    struct pod *p = started(*state, two);
    json_t *o;

    end(p->ctrs[0], 137);
    o = removed(p);
    assert_string_equal(json_str(json_object_get(o, "status"), "phase"), "Failed");
    assert_string_equal(json_str(condition(o, "Initialized"), "reason"), "ContainersNotInitialized");
    assert_string_equal(json_str(condition(o, "Ready"), "reason"), "ContainersNotReady");
    assert_string_equal(json_str(condition(o, "Ready"), "message"), "containers with unready status: [b a]");
    assert_string_equal(json_str(condition(o, "ContainersReady"), "reason"), "ContainersNotReady");
    json_decref(o);

    end(p->ctrs[0], 0); /* it had done its work, and the next ones were not started */
    o = removed(p);
    assert_string_equal(json_str(condition(o, "Ready"), "reason"), "ContainersNotReady");
    json_decref(o);
}

static void a_pod_removed_when_its_containers_had_run_or_may_not_run_has_failed(void **state)
{
    struct pod *p = started(*state, "restartPolicy: Never, initContainers: [{name: i, image: x}], "
                                    "containers: [{name: a, image: x}]");
    json_t *o;

    end(p->ctrs[0], 137); /* and is not started again: kubelet calls the pod Failed then */
    o = removed(p);
    assert_string_equal(json_str(condition(o, "Ready"), "reason"), "PodFailed");
    assert_null(json_str(condition(o, "Ready"), "message"));
    json_decref(o);

    end(p->ctrs[0], 0);
    p->initialized = true;
    end(p->ctrs[1], 137);
    o = removed(p);
    assert_string_equal(json_str(condition(o, "ContainersReady"), "reason"), "PodFailed");
    json_decref(o);
}

static void transition_time_is_that_of_the_change(void **state)
{
    struct pod *p = started(*state, "containers: [{name: a, image: x}]");
    json_t *o;

    run(p->ctrs[0]);
    p->initialized = true;
    pod_note_conditions(p);
    assert_false(p->record_dirty); /* amid a start: what follows takes it along */
    for (size_t i = 0; i < ARRAY_LEN(shown_of(p)->conditions); i++)
        shown_of(p)->conditions[i].since_ns = 1000000000;
    o = pod_status_json(p);
    assert_string_equal(json_str(condition(o, "Ready"), "status"), "True");
    assert_string_equal(json_str(condition(o, "Ready"), "lastTransitionTime"), "1970-01-01T00:00:01Z");
    json_decref(o);
    p->state = POD_RUNNING;
    end(p->ctrs[0], 1);
    pod_note_conditions(p);
    assert_true(p->record_dirty);
    assert_true(shown_of(p)->conditions[2].since_ns > 1000000000);
}

static void container_statuses_are_sorted_and_say_what_ended(void **state)
{
    struct pod *p = started(*state, two);
    const json_t *list, *s;
    json_t *o;

    end(p->ctrs[0], 0);
    again(p->ctrs[1]);
    snprintf(p->ctrs[1]->waiting_reason, sizeof(p->ctrs[1]->waiting_reason), "CrashLoopBackOff");
    end(p->ctrs[2], 3);
    p->ctrs[2]->cur.message = strdup("caf\xc3\xa9 \xff");
    o = pod_status_json(p);
    list = json_object_get(json_object_get(o, "status"), "containerStatuses");
    s = json_array_get(list, 0);
    assert_string_equal(json_str(s, "name"), "a");
    s = json_object_get(json_object_get(s, "state"), "terminated");
    assert_int_equal(json_int(s, "exitCode", -1), 3);
    assert_string_equal(json_str(s, "message"), "caf\xc3\xa9 \xef\xbf\xbd");
    s = json_array_get(list, 1);
    assert_string_equal(json_str(json_object_get(json_object_get(s, "state"), "waiting"), "reason"),
                        "CrashLoopBackOff");
    assert_int_equal(json_int(json_object_get(json_object_get(s, "lastState"), "terminated"), "exitCode", -1),
                     1);
    json_decref(o);
}

static void what_never_ran_is_unknown_in_a_pod_that_is_over(void **state)
{
    struct pod *p = started(*state, "containers: [{name: a, image: x}]");
    const json_t *s;
    json_t *o;

    memset(p->ctrs[0]->cur.id, 'a', 64); /* created, and removed before its start */
    p->state = POD_TERMINATED;
    snprintf(p->phase, sizeof(p->phase), "Failed");
    o = pod_status_json(p);
    s = json_array_get(json_object_get(json_object_get(o, "status"), "containerStatuses"), 0);
    s = json_object_get(json_object_get(s, "state"), "terminated");
    assert_string_equal(json_str(s, "reason"), "ContainerStatusUnknown");
    assert_int_equal(json_int(s, "exitCode", -1), 137);
    json_decref(o);
}

static void the_network_is_told_when_the_volumes_are_there(void **state)
{
    struct pod *p = started(*state, "containers: [{name: a, image: x}]");
    json_t *o;

    sandbox_of(p)->net = NET_READY;
    snprintf(sandbox_of(p)->net_result.ips[0], sizeof(sandbox_of(p)->net_result.ips[0]), "10.0.0.5");
    sandbox_of(p)->net_result.n_ips = 1;
    o = pod_status_json(p);
    assert_null(json_object_get(json_object_get(o, "status"), "podIP"));
    assert_string_equal(json_str(condition(o, "PodReadyToStartContainers"), "status"), "False");
    json_decref(o);
    volumes_of(p)->vols = VOLS_READY;
    o = pod_status_json(p);
    assert_string_equal(json_str(json_object_get(o, "status"), "podIP"), "10.0.0.5");
    assert_string_equal(json_str(condition(o, "PodReadyToStartContainers"), "status"), "True");
    json_decref(o);
}

static void the_node_s_addresses_stay_in_a_pod_that_has_ended(void **state)
{
    struct pod *p = started(*state, "hostNetwork: true, containers: [{name: a, image: x}]");
    const json_t *status;
    json_t *o;

    p->state = POD_TERMINATED;
    snprintf(p->phase, sizeof(p->phase), "Succeeded");
    o = pod_status_json(p);
    status = json_object_get(o, "status");
    assert_string_equal(json_str(status, "hostIP"), "192.0.2.7");
    assert_string_equal(json_str(status, "podIP"), "192.0.2.7");
    assert_string_equal(json_str(json_array_get(json_object_get(status, "podIPs"), 0), "ip"), "192.0.2.7");
    json_decref(o);
}

static void a_verdict_is_told_when_nothing_runs_any_more(void **state)
{
    struct pod *p = started(*state, "containers: [{name: a, image: x}]");
    json_t *o;

    run(p->ctrs[0]);
    snprintf(p->phase, sizeof(p->phase), "Failed");
    snprintf(p->reason, sizeof(p->reason), "DeadlineExceeded");
    p->deletion_ns = 1;
    p->grace_seconds = 30;
    p->state = POD_TERMINATING;
    o = pod_status_json(p);
    assert_null(json_object_get(json_object_get(o, "status"), "reason"));
    assert_int_equal(json_int(json_object_get(o, "metadata"), "deletionGracePeriodSeconds", -1), 30);
    json_decref(o);
    end(p->ctrs[0], 0);
    p->state = POD_TERMINATED;
    o = pod_status_json(p);
    assert_string_equal(json_str(json_object_get(o, "status"), "reason"), "DeadlineExceeded");
    assert_int_equal(json_int(json_object_get(o, "metadata"), "deletionGracePeriodSeconds", -1), 0);
    json_decref(o);
}

static void resources_of_the_pod_are_the_sums_of_its_containers(void **state)
{
    struct pod *p =
        started(*state, "initContainers: [{name: i, image: x, resources: {requests: {cpu: 90m}}}],"
                        "containers: [{name: a, image: x, resources: {requests: {cpu: 20m, memory: 16M}}},"
                        "{name: b, image: x, resources: {limits: {memory: 16M}}}]");
    const json_t *s, *b;
    json_t *o;

    run(p->ctrs[2]);
    o = pod_status_json(p);
    s = json_object_get(o, "status");
    assert_string_equal(json_str(json_object_get(s, "allocatedResources"), "cpu"), "90m");
    assert_string_equal(json_str(json_object_get(s, "allocatedResources"), "memory"), "32M");
    assert_string_equal(json_str(json_object_get(json_object_get(s, "resources"), "limits"), "memory"),
                        "16M");
    b = json_array_get(json_object_get(s, "containerStatuses"),
                       1); /* runs: in force is what the cgroup has */
    assert_string_equal(json_str(json_object_get(json_object_get(b, "resources"), "limits"), "memory"),
                        "15625Ki");
    json_decref(o);
}

/* Kubelet reports the bytes of the cgroup; what an API server shows of them is read again. */
static void bytes_of_the_cgroup_are_shown_in_their_canonical_form(void **state)
{
    static const struct {
        const char *spec, *shown;
    } limits[] = { { "16M", "15625Ki" },       { "100M", "100M" },   { "16Mi", "16Mi" },
                   { "10000001", "10000001" }, { "1500k", "1500k" }, { "1e9", "1G" } };

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        char name[16], spec[200];
        const json_t *c;
        struct pod *p;
        json_t *o;

        snprintf(spec, sizeof(spec), "containers: [{name: a, image: x, resources: {limits: {memory: %s}}}]",
                 limits[i].spec);
        snprintf(name, sizeof(name), "p%zu", i);
        p = world_pod(*state, name, spec);
        p->admitted = true;
        p->state = POD_STARTING;
        run(p->ctrs[0]);
        o = pod_status_json(p);
        c = json_array_get(json_object_get(json_object_get(o, "status"), "containerStatuses"), 0);
        assert_string_equal(json_str(json_object_get(json_object_get(c, "resources"), "limits"), "memory"),
                            limits[i].shown);
        json_decref(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(phase_is_pending_until_init_is_done_and_all_regular_ones_have_run),
        WORLD_TEST(phase_stays_running_between_two_runs),
        WORLD_TEST(final_phase_shows_only_when_all_is_gone),
        WORLD_TEST(the_generation_observed_is_that_of_the_manifest_or_absent),
        WORLD_TEST(conditions_name_what_is_not_ready),
        WORLD_TEST(a_pod_removed_while_an_init_container_runs_is_not_ready_rather_than_failed),
        WORLD_TEST(a_pod_removed_when_its_containers_had_run_or_may_not_run_has_failed),
        WORLD_TEST(transition_time_is_that_of_the_change),
        WORLD_TEST(container_statuses_are_sorted_and_say_what_ended),
        WORLD_TEST(the_network_is_told_when_the_volumes_are_there),
        WORLD_TEST(the_node_s_addresses_stay_in_a_pod_that_has_ended),
        WORLD_TEST(a_verdict_is_told_when_nothing_runs_any_more),
        WORLD_TEST(resources_of_the_pod_are_the_sums_of_its_containers),
        WORLD_TEST(bytes_of_the_cgroup_are_shown_in_their_canonical_form),
        WORLD_TEST(what_never_ran_is_unknown_in_a_pod_that_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
