/* SPDX-License-Identifier: Apache-2.0 */
/* What probes and hooks mean for what is shown and done; one probe run against a real server. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/handler_resolve.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/probes.h"
#include "agent/pod/core/events.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/show/explain.h"
#include "agent/pod/status/status.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "tests/unit/agent_pod/world.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static int64_t tick(int64_t epoch, int64_t at)
{
    return probes_tick((struct boot_time){ epoch }, 10000, (struct boot_time){ at }).ns;
}

static void ticks_count_from_the_epoch(void **state)
{
    (void)state;
    assert_int_equal(tick(1000, -5), 1000);
    assert_int_equal(tick(1000, 1000), 1000);
    assert_int_equal(tick(1000, 1001), 11000);
    assert_int_equal(tick(1000, 11000), 11000);
    assert_int_equal(tick(1000, 1000000001), 1000001000);
}

static void a_verdict_counts_when_it_comes_often_enough_in_a_row(void **state)
{
    struct probe_count c = { 0 };

    (void)state;
    assert_false(probes_count(&c, false, 2, 3));
    assert_false(probes_count(&c, false, 2, 3));
    assert_false(probes_count(&c, true, 2, 3)); /* the row is broken */
    assert_true(probes_count(&c, true, 2, 3));
    assert_true(probes_count(&c, true, 2, 3));
    assert_false(probes_count(&c, false, 2, 3));
    assert_false(probes_count(&c, false, 2, 3));
    assert_true(probes_count(&c, false, 2, 3));
    assert_int_equal(c.run, 3);
}

static void ports_are_numbers_or_names_of_the_container(void **state)
{
    struct pod *p = world_pod(*state, "web",
                              "containers: [{name: c, image: x, ports: [{name: http, containerPort: "
                              "8080}]}]");
    struct err e = { 0 };
    unsigned port = 0;

    assert_int_equal(handler_resolve_port(p->ctrs[0]->spec, "81", &port, &e), ERR_OK);
    assert_int_equal(port, 81);
    assert_int_equal(handler_resolve_port(p->ctrs[0]->spec, "http", &port, &e), ERR_OK);
    assert_int_equal(port, 8080);
    assert_int_equal(handler_resolve_port(p->ctrs[0]->spec, "web", &port, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "strconv.Atoi: parsing \"web\": invalid syntax");
}

static void a_probes_command_knows_literal_variables_only(void **state)
{
    struct pod *p =
        world_pod(*state, "web",
                  "containers: [{name: c, image: x, env: [{name: A, value: one}, {name: B, value: $(A)}, "
                  "{name: F, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], livenessProbe: {exec: "
                  "{command: ['$(A)', '$(B)-$(F)-$(NONE)', '$$(A)']}}}]");
    struct arena arena = { 0 };
    const char *const *argv = NULL;
    struct err e = { 0 };

    assert_int_equal(
        handler_resolve_command(p->ctrs[0], &p->ctrs[0]->spec->liveness->handler, true, &arena, &argv, &e),
        ERR_OK);
    assert_string_equal(argv[0], "one");
    assert_string_equal(argv[1], "$(A)--$(NONE)");
    assert_string_equal(argv[2], "$(A)");
    assert_null(argv[3]);
    assert_int_equal(
        handler_resolve_command(p->ctrs[0], &p->ctrs[0]->spec->liveness->handler, false, &arena, &argv, &e),
        ERR_OK);
    assert_string_equal(argv[0], "$(A)"); /* a hook's: as it is */
    arena_done(&arena);
}

/* "failed: last check ..." */
static void explained(struct pod *p, const char *step, const char *wanted)
{
    json_t *o = explain_json(p), *v;
    str_auto text = NULL;
    size_t i;

    json_array_foreach (json_object_get(o, "steps"), i, v) {
        if (str_eq(json_str(v, "name"), step))
            text = str_printf("%s: %s", json_str(v, "state"), json_str(v, "detail"));
    }
    json_decref(o);
    assert_non_null(text);
    assert_string_equal(text, wanted);
}

static void run(struct ctr *c)
{
    worker_node(c->pod->node)->runner_active = true; /* pods are woken, but nobody looks at them */
    memset(c->cur.id, 'a', 64);
    c->cur.started_ns = clock_wall_ns();
    c->cur.started_at = clock_boot();
    c->state = CTR_RUNNING;
    c->pod->state = POD_STARTING;
    c->pod->admitted = true;
}

static const json_t *status_of(struct pod *p, json_t **ret, const char *list)
{
    json_t *o = pod_status_json(p);

    assert_non_null(o);
    *ret = o;
    return json_array_get(json_object_get(json_object_get(o, "status"), list), 0);
}

static void readiness_begins_as_a_failure_and_survives_the_agent(void **state)
{
    struct pod *p =
        world_pod(*state, "web", "containers: [{name: c, image: x, readinessProbe: {tcpSocket: {port: 1}}}]");
    struct ctr *c = p->ctrs[0];

    run(c);
    assert_true(ctr_started(c));
    assert_false(ctr_ready(c));
    own_of(c)->recovered = own_of(c)->was_ready = true; /* as its record said */
    assert_true(ctr_ready(c));
}

static void nothing_is_ready_before_the_startup_probe(void **state)
{
    struct pod *p =
        world_pod(*state, "web", "containers: [{name: c, image: x, startupProbe: {tcpSocket: {port: 1}}}]");
    struct ctr *c = p->ctrs[0];

    run(c);
    assert_false(ctr_started(c));
    assert_false(ctr_ready(c));
    own_of(c)->recovered = own_of(c)->was_started = true;
    assert_true(ctr_started(c));
    assert_true(ctr_ready(c));
}

static void a_container_in_its_post_start_hook_is_not_shown(void **state)
{
    struct pod *p = world_pod(
        *state, "web", "containers: [{name: c, image: x, lifecycle: {postStart: {sleep: {seconds: 1}}}}]");
    struct ctr *c = p->ctrs[0];
    json_t *o;
    const json_t *s;

    run(c);
    own_of(c)->post = POST_RUNNING;
    s = status_of(p, &o, "containerStatuses");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json_object_get(s, "state"), "waiting"), "reason")),
        "ContainerCreating");
    assert_true(json_is_false(json_object_get(s, "started")));
    assert_true(ctr_holds_others(c));
    json_decref(o);
    own_of(c)->post = POST_NONE;
    s = status_of(p, &o, "containerStatuses");
    assert_non_null(json_object_get(json_object_get(s, "state"), "running"));
    assert_false(ctr_holds_others(c));
    json_decref(o);
}

static void readiness_gates_hold_back_the_pod_alone(void **state)
{
    struct pod *p = world_pod(*state, "web",
                              "readinessGates: [{conditionType: a/b}, {conditionType: PodScheduled}, "
                              "{conditionType: c/d}], containers: [{name: c, image: x}]");
    json_t *o;
    const json_t *conditions;

    run(p->ctrs[0]);
    status_of(p, &o, "conditions");
    conditions = json_object_get(json_object_get(o, "status"), "conditions");
    assert_string_equal(json_string_value(json_object_get(json_array_get(conditions, 2), "reason")),
                        "ReadinessGatesNotReady");
    assert_string_equal(json_string_value(json_object_get(json_array_get(conditions, 2), "message")),
                        "corresponding condition of pod readiness gate \"a/b\" does not exist., "
                        "corresponding condition of pod readiness gate \"c/d\" does not exist.");
    assert_string_equal(json_string_value(json_object_get(json_array_get(conditions, 3), "status")), "True");
    json_decref(o);
}

/* ---- with a server ---- */

static int listening(unsigned *ret_port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 16) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static void turn_until(struct world *w, struct ctr *c, enum probe_type t, enum probe_result r)
{
    uint64_t until = clock_mono_ms() + 10000;

    while (probes_result(c, t) != r) {
        assert_true(clock_mono_ms() < until);
        uv_run(&w->loop, UV_RUN_ONCE);
    }
}

static void let_go(struct world *w, struct ctr *c)
{
    probes_stop(c);
    while (probes_live(c))
        uv_run(&w->loop, UV_RUN_ONCE);
}

static void results_follow_the_server(void **state)
{
    struct world *w = *state;
    unsigned port;
    int fd = listening(&port);
    str_auto spec =
        str_printf("containers: [{name: c, image: x, readinessProbe: {periodSeconds: 1, failureThreshold: 2, "
                   "tcpSocket: {port: %u}}, livenessProbe: {periodSeconds: 1, failureThreshold: 1, "
                   "tcpSocket: {port: 1}}}]",
                   port);
    struct pod *p = world_pod(w, "web", spec);
    struct ctr *c = p->ctrs[0];
    struct probe_view v;
    json_t *events;
    char text[200];

    snprintf(sandbox_of(p)->net_result.ips[0], sizeof(sandbox_of(p)->net_result.ips[0]), "127.0.0.1");
    sandbox_of(p)->net_result.n_ips = 1;
    run(c);
    c->cur.started_at.ns -= 5 * SECOND;
    probes_step(c);
    assert_false(ctr_ready(c));
    turn_until(w, c, PROBE_READINESS, RESULT_SUCCESS);
    assert_true(ctr_ready(c));
    turn_until(w, c, PROBE_LIVENESS, RESULT_FAILURE);
    assert_true(probes_view(c, PROBE_LIVENESS, &v));
    assert_true(v.held);
    assert_int_equal(v.due_ns, 0); /* nothing more until there is a new container */
    close(fd);
    turn_until(w, c, PROBE_READINESS, RESULT_FAILURE);
    assert_true(probes_view(c, PROBE_READINESS, &v));
    assert_int_equal(v.run, 2);
    snprintf(text, sizeof(text), "dial tcp 127.0.0.1:%u: connect: connection refused", port);
    assert_string_equal(v.last_text, text);
    snprintf(text, sizeof(text), "failed: last check failed (2 in a row): %s", v.last_text);
    explained(p, "Readiness probe of c", text);
    events = events_json(&w->node);
    snprintf(text, sizeof(text), "Readiness probe failed: dial tcp 127.0.0.1:%u: connect: connection refused",
             port);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(events, json_array_size(events) - 1), "message")),
        text);
    json_decref(events);
    /* A new container begins anew. */
    memset(c->cur.id, 'b', 64);
    probes_step(c);
    assert_int_equal(probes_result(c, PROBE_LIVENESS), RESULT_SUCCESS);
    let_go(w, c);
    c->state = CTR_NONE;
}

static void the_first_second_is_not_held_against_a_container(void **state)
{
    struct world *w = *state;
    struct pod *p =
        world_pod(w, "web", "containers: [{name: c, image: x, readinessProbe: {tcpSocket: {port: 1}}}]");
    struct ctr *c = p->ctrs[0];
    struct probe_view v;
    json_t *events;

    snprintf(sandbox_of(p)->net_result.ips[0], sizeof(sandbox_of(p)->net_result.ips[0]), "127.0.0.1");
    sandbox_of(p)->net_result.n_ips = 1;
    run(c);
    probes_step(c);
    do {
        uv_run(&w->loop, UV_RUN_ONCE);
        assert_true(probes_view(c, PROBE_READINESS, &v));
    } while (v.last_ns == 0);
    events = events_json(&w->node);
    if (clock_boot_since_ns(c->cur.started_at) < SECOND / 2) { /* unless this machine is very slow */
        assert_int_equal(json_array_size(events), 0);
        assert_int_equal(v.run, 0);
        explained(p, "Readiness probe of c",
                  "failed: last check failed: dial tcp 127.0.0.1:1: connect: connection refused");
        assert_true(v.due_ns < clock_wall_ns() + SECOND);
    }
    json_decref(events);
    let_go(w, c);
    c->state = CTR_NONE;
}

static void what_has_no_port_says_nothing_of_the_server(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "web",
                              "containers: [{name: c, image: x, livenessProbe: {periodSeconds: 1, "
                              "failureThreshold: 1, tcpSocket: {port: nobody}}}]");
    struct ctr *c = p->ctrs[0];
    uint64_t until = clock_mono_ms() + 10000;
    json_t *events = NULL;

    run(c);
    c->cur.started_at.ns -= 5 * SECOND;
    probes_step(c);
    do {
        json_decref(events);
        assert_true(clock_mono_ms() < until);
        uv_run(&w->loop, UV_RUN_ONCE);
        events = events_json(&w->node);
    } while (json_array_size(events) == 0);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(events, 0), "message")),
        "Liveness probe errored and resulted in unknown state: strconv.Atoi: parsing \"nobody\": "
        "invalid syntax");
    json_decref(events);
    assert_int_equal(probes_result(c, PROBE_LIVENESS), RESULT_SUCCESS);
    explained(
        p, "Liveness probe of c",
        "failed: last check could not be carried out: strconv.Atoi: parsing \"nobody\": invalid syntax");
    let_go(w, c);
    c->state = CTR_NONE;
}

static void ending_pods_are_probed_for_readiness_only(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "web",
                              "containers: [{name: c, image: x, readinessProbe: {tcpSocket: {port: 1}}, "
                              "livenessProbe: {initialDelaySeconds: 100, tcpSocket: {port: 1}}}]");
    struct ctr *c = p->ctrs[0];
    struct probe_view v;

    run(c);
    probes_step(c);
    assert_true(probes_view(c, PROBE_LIVENESS, &v));
    assert_true(v.due_ns > clock_wall_ns() + 90 * SECOND);
    p->state = POD_TERMINATING;
    probes_step(c);
    assert_true(probes_view(c, PROBE_LIVENESS, &v));
    assert_int_equal(v.due_ns, 0);
    assert_true(probes_view(c, PROBE_READINESS, &v));
    assert_true(v.running || v.due_ns > 0);
    let_go(w, c);
    c->state = CTR_NONE;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_count_from_the_epoch),
        cmocka_unit_test(a_verdict_counts_when_it_comes_often_enough_in_a_row),
        TEST(ports_are_numbers_or_names_of_the_container),
        TEST(a_probes_command_knows_literal_variables_only),
        TEST(readiness_begins_as_a_failure_and_survives_the_agent),
        TEST(nothing_is_ready_before_the_startup_probe),
        TEST(a_container_in_its_post_start_hook_is_not_shown),
        TEST(readiness_gates_hold_back_the_pod_alone),
        TEST(results_follow_the_server),
        TEST(the_first_second_is_not_held_against_a_container),
        TEST(what_has_no_port_says_nothing_of_the_server),
        TEST(ending_pods_are_probed_for_readiness_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
