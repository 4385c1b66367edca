/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/plugin/plugin.h"
#include "tests/unit/deviceplugin/fake_plugin.h"

/* ---- who serves ---- */

static void the_end_of_the_stream_withdraws_the_resource(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    grpc_end(take_ptr(&p.stream), NULL);
    WAIT(f, resource_of(f)->provider == NULL);
    assert_int_equal(dp_resource_capacity(resource_of(f)), 4);
    assert_int_equal(allocatable(f), 0);
    assert_string_equal(f->problem, R ": ListAndWatch ended for device plugin");
    assert_string_equal(register_now(f, "v1beta1", "p.sock", R), "");
    WAIT(f, allocatable(f) == 2);
    fake_die(&p);
}

static void a_plugin_that_dies_is_withdrawn_and_may_come_back(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    for (int i = 0; i < 3; i++) {
        fake_register(f, &p, "p.sock");
        assert_int_equal(allocatable(f), 2);
        fake_die(&p);
        WAIT(f, resource_of(f)->provider == NULL && !dp_plugins_busy(f->plugins));
        assert_int_equal(allocatable(f), 0);
        assert_non_null(strstr(f->problem,
                               "ListAndWatch ended unexpectedly for device plugin: rpc error: code = "
                               "Unavailable desc = error reading from server: EOF"));
    }
}

static void a_later_registration_replaces_the_earlier_whose_end_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct fake p1, p2;

    fixture_open(f);
    fake_register(f, &p1, "p1.sock");
    fake_register(f, &p2, "p2.sock");
    WAIT(f, p1.stream == NULL); /* its connection is closed */
    assert_int_equal(allocatable(f), 2);
    f->changes = 0;
    fake_die(&p1);
    assert_non_null(strstr(register_now(f, "v1beta1", "none.sock", "example.com/x/y"), "is invalid"));
    assert_int_equal(f->changes, 0);
    assert_non_null(p2.stream);
    fake_die(&p2);
    WAIT(f, resource_of(f)->provider == NULL);
}

/* The socket of the first process is replaced by the second one's. */
static void two_processes_may_use_one_name_for_their_sockets(void **state)
{
    struct fixture *f = *state;
    struct fake p1, p2;

    fixture_open(f);
    fake_register(f, &p1, "same.sock");
    fake_register(f, &p2, "same.sock");
    WAIT(f, p1.stream == NULL);
    fake_die(&p1);
    assert_int_equal(allocatable(f), 2);
    assert_non_null(p2.stream);
    fake_die(&p2);
}

/* ... also if the earlier one answers last. */
static void the_later_of_two_registrations_wins(void **state)
{
    struct fixture *f = *state;
    struct registers r1, r2;
    struct fake p1, p2;

    fixture_open(f);
    fake_begin(f, &p1, "p1.sock", false);
    fake_begin(f, &p2, "p2.sock", false);
    p1.on_options = HANGS;
    register_begin(f, &r1, "v1beta1", "p1.sock", R);
    WAIT(f, p1.held != NULL);
    register_begin(f, &r2, "v1beta1", "p2.sock", R);
    WAIT(f, r2.over && is_listed(f));
    grpc_reply(take_ptr(&p1.held), WIRE(options_both));
    WAIT(f, r1.over);
    assert_string_equal(r1.result.text,
                        "rpc error: code = Unknown desc = a later registration of " R " is in effect");
    assert_non_null(p2.stream);
    assert_int_equal(f->problems, 0);
    fake_die(&p1);
    fake_die(&p2);
}

static void nothing_is_due_while_nothing_happens(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    grpc_channel_close(take_ptr(&f->client)); /* not the agent's */
    WAIT(f, true);
    for (int i = 0; i < 100 && uv_backend_timeout(&f->loop) >= 0; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_backend_timeout(&f->loop), -1); /* no timer runs */
    fake_die(&p);
}

/* ---- lists ---- */

static void of_many_lists_the_newest_is_used(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    f->changes = 0;
    for (int i = 0; i < 500; i++) {
        assert_true(grpc_send(p.stream, WIRE(list_none)));
        assert_true(grpc_send(p.stream, WIRE(list)));
    }
    assert_true(grpc_send(p.stream, WIRE(list_none)));
    WAIT(f, dp_resource_capacity(resource_of(f)) == 0);
    assert_in_range(f->changes, 1, 200); /* not each of a thousand */
    assert_int_equal(f->problems, 0);
    fake_die(&p);
}

/* Each change of a list is work for all pods that ask for the resource. */
static void a_plugin_that_toggles_is_looked_at_ten_times_a_second(void **state)
{
    struct fixture *f = *state;
    struct fake p;
    uint64_t from;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    from = uv_hrtime();
    for (unsigned i = 1; i <= 6; i++) {
        unsigned before = f->changes;
        assert_true(grpc_send(p.stream, i % 2 != 0 ? WIRE(list_none) : WIRE(list)));
        WAIT(f, f->changes > before);
    }
    assert_true(uv_hrtime() - from >= UINT64_C(500) * 1000 * 1000);
    fake_die(&p);
}

static void expect_end(struct fixture *f, struct fake *p, struct grpc_bytes list, const char *why)
{
    fake_register(f, p, "p.sock");
    assert_true(grpc_send(p->stream, list));
    WAIT(f, resource_of(f)->provider == NULL);
    assert_non_null(strstr(f->problem, why));
    assert_int_equal(allocatable(f), 0);
    WAIT(f, p->stream == NULL);
    fake_die(p);
}

static void a_wrong_list_ends_its_plugin_by_name(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    expect_end(
        f, &p, (struct grpc_bytes){ (const uint8_t *)"\x0a\x04\x0a\x02\x61\xff", 6 },
        R ": ListAndWatch: v1beta1.ListAndWatchResponse: devices[0].ID: string field contains invalid UTF-8");
    expect_end(f, &p, (struct grpc_bytes){ (const uint8_t *)"\xff\xff", 2 }, "not a message");
}

static void a_list_that_is_too_large_ends_its_plugin(void **state)
{
    enum { SIZE = 16 * 1024 * 1024, MANY = 2 * 1000 * 1000 };
    struct fixture *f = *state;
    mem_auto uint8_t *bytes = calloc(1, SIZE);
    struct fake p;

    fixture_open(f);
    for (size_t i = 0; i < SIZE; i += 2)
        bytes[i] = 0x0a;
    expect_end(f, &p, (struct grpc_bytes){ bytes, MANY }, "devices[65536]: more than 65536 elements");
    expect_end(
        f, &p, (struct grpc_bytes){ bytes, SIZE },
        "code = ResourceExhausted desc = grpc: received message larger than max (16777216 vs. 4194304)");
}

struct silent {
    unsigned n;
};

static void count_problem(const char *what, const char *text, void *arg)
{
    (void)what;
    (void)text;
    ((struct silent *)arg)->n++;
}

static void problems_are_kept_until_the_plugin_is_back(void **state)
{
    struct fixture *f = *state;
    struct silent s = { 0 };
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    fake_die(&p);
    WAIT(f, resource_of(f)->provider == NULL);
    dp_plugins_problems(f->plugins, count_problem, &s);
    assert_int_equal(s.n, 1);
    fake_register(f, &p, "p.sock");
    s.n = 0;
    dp_plugins_problems(f->plugins, count_problem, &s);
    assert_int_equal(s.n, 0);
    fake_die(&p);
}

static void reports_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct silent s = { 0 };
    char name[32];

    fixture_open(f);
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof(name), "bad-%d", i);
        assert_non_null(strstr(register_now(f, "v1beta1", "p.sock", name), "is invalid"));
    }
    assert_in_range(f->problems, 20, 40);
    dp_plugins_problems(f->plugins, count_problem, &s);
    assert_int_equal(s.n, 64);
}

/* ---- calls ---- */

static const char *const ids[] = { "dev-0", "dev-1", "dev-10" };

struct asking {
    struct dp_ask ask;
    bool over;
    struct err result;
};

static void on_asked(struct op *op, const struct err *result)
{
    struct asking *a = op->owner;

    a->over = true;
    a->result = *result;
}

static void allocate(struct fixture *f, struct asking *a)
{
    struct dp_provider *p = resource_of(f)->provider;

    *a = (struct asking){ 0 };
    p->allocate(p, &a->ask, ids, 3, on_asked, a);
}

static void asking_done(struct asking *a)
{
    free(a->ask.answer);
    free(a->ask.raw);
    free(a->ask.preferred);
}

static void calls_send_and_read_what_is_on_the_wire(void **state)
{
    struct fixture *f = *state;
    struct dp_provider *provider;
    struct asking a;
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    provider = resource_of(f)->provider;
    allocate(f, &a);
    WAIT(f, a.over);
    assert_string_equal(a.result.text, "");
    assert_int_equal(p.n_request, wire_allocate_n);
    assert_memory_equal(p.request, wire_allocate, p.n_request);
    assert_string_equal(a.ask.answer->envs[0].value, "dev-0");
    assert_int_equal(a.ask.n_raw, wire_answer_n);
    assert_memory_equal(a.ask.raw, wire_answer, a.ask.n_raw);
    asking_done(&a);
    assert_int_equal(dp_plugins_counts(f->plugins)->v[0].allocations, 1);

    a = (struct asking){ 0 };
    p.answer = WIRE(preferred_answer);
    provider->preferred(provider, &a.ask, ids, 3, ids, 1, 2, on_asked, &a);
    WAIT(f, a.over);
    assert_memory_equal(p.request, wire_preferred, wire_preferred_n);
    assert_string_equal(a.ask.preferred[0], "dev-1");
    assert_string_equal(a.ask.preferred[1], "dev-10");
    assert_null(a.ask.preferred[2]);
    asking_done(&a);

    a = (struct asking){ 0 };
    provider->pre_start(provider, &a.ask, ids, 3, on_asked, &a);
    WAIT(f, a.over);
    assert_int_equal(a.result.code, ERR_OK);
    assert_memory_equal(p.request, wire_pre_start, wire_pre_start_n);
    asking_done(&a);
    fake_die(&p);
}

static void expect_failure(struct fixture *f, struct fake *p, enum behaviour b, const char *text)
{
    struct asking a;

    p->on_call = b;
    allocate(f, &a);
    WAIT(f, a.over);
    if (strstr(a.result.text, text) == NULL)
        assert_string_equal(a.result.text, text);
    assert_null(a.ask.answer);
    assert_null(a.ask.raw);
}

static void failures_of_calls_are_named(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    expect_failure(f, &p, FAILS, "rpc error: code = Internal desc = it does not work");
    expect_failure(f, &p, ANSWERS_NOTHING, "no containers return in allocation response");
    expect_failure(f, &p, ANSWERS_GARBAGE,
                   "rpc error: code = Internal desc = grpc: failed to unmarshal the received message: "
                   "v1beta1.AllocateResponse: not a message: it is truncated, or its fields are damaged");
    assert_non_null(resource_of(f)->provider); /* it goes on */
    expect_failure(f, &p, DIES, "rpc error: code = Unavailable desc = error reading from server: EOF");
    WAIT(f, resource_of(f)->provider == NULL);
}

static void a_call_that_hangs_holds_up_no_other(void **state)
{
    struct fixture *f = *state;
    struct asking hanging, other;
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    p.on_call = HANGS;
    allocate(f, &hanging);
    WAIT(f, p.held != NULL);
    p.on_call = ANSWERS;
    allocate(f, &other);
    WAIT(f, other.over);
    assert_int_equal(other.result.code, ERR_OK);
    asking_done(&other);
    assert_false(hanging.over);
    assert_in_range(uv_timer_get_due_in(&((struct plugin_call *)hanging.ask.run)->call.op.deadline), 1,
                    DP_CALL_MS);
    op_cancel(&hanging.ask.op);
    WAIT(f, hanging.over && p.held == NULL); /* the plugin is told */
    assert_int_equal(hanging.result.code, ERR_CANCELLED);
    fake_die(&p);
}

static void a_call_in_progress_outlives_the_end_of_its_stream(void **state)
{
    struct fixture *f = *state;
    struct asking a;
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    p.on_call = HANGS;
    allocate(f, &a);
    WAIT(f, p.held != NULL);
    grpc_end(take_ptr(&p.stream), NULL);
    WAIT(f, resource_of(f)->provider == NULL);
    assert_false(a.over);
    grpc_reply(take_ptr(&p.held), WIRE(allocated));
    WAIT(f, a.over);
    assert_int_equal(a.result.code, ERR_OK);
    asking_done(&a);
    WAIT(f, !dp_plugins_busy(f->plugins));
    fake_die(&p);
}

static void a_cancel_ends_everything(void **state)
{
    struct fixture *f = *state;
    struct asking a;
    struct fake p;

    fixture_open(f);
    fake_register(f, &p, "p.sock");
    p.on_call = HANGS;
    allocate(f, &a);
    WAIT(f, p.held != NULL);
    fixture_close(f);
    assert_true(a.over);
    assert_int_equal(a.result.code, ERR_CANCELLED);
    assert_null(resource_of(f)->provider);
    fake_die(&p);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(the_end_of_the_stream_withdraws_the_resource),
        T(a_plugin_that_dies_is_withdrawn_and_may_come_back),
        T(a_later_registration_replaces_the_earlier_whose_end_changes_nothing),
        T(two_processes_may_use_one_name_for_their_sockets),
        T(the_later_of_two_registrations_wins),
        T(nothing_is_due_while_nothing_happens),
        T(of_many_lists_the_newest_is_used),
        T(a_plugin_that_toggles_is_looked_at_ten_times_a_second),
        T(a_wrong_list_ends_its_plugin_by_name),
        T(a_list_that_is_too_large_ends_its_plugin),
        T(problems_are_kept_until_the_plugin_is_back),
        T(reports_are_bounded),
        T(calls_send_and_read_what_is_on_the_wire),
        T(failures_of_calls_are_named),
        T(a_call_that_hangs_holds_up_no_other),
        T(a_call_in_progress_outlives_the_end_of_its_stream),
        T(a_cancel_ends_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
