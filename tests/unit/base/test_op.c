/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

/* An operation that waits for nothing but what the test tells it. */
struct probe {
    struct op op;
    uv_timer_t timer;
    int aborts;
    bool finish_on_abort;
};

static void abort_probe(struct op *op)
{
    struct probe *p = (struct probe *)op;

    p->aborts++;
    if (p->finish_on_abort)
        op_finish(op, NULL);
}

static void immediate_failure_is_deferred(void **state)
{
    struct ended *d = *state;
    struct err e = { 0 };
    struct probe p;

    op_init(&p.op, d->loop, "probe", 0, abort_probe, on_ended, d);
    assert_true(op_live(&p.op));
    err_set(&e, ERR_INVALID, "no good");
    op_finish(&p.op, &e);
    assert_int_equal(d->calls, 0);
    assert_true(op_live(&p.op));
    run_until_ended(d, 1);
    assert_false(op_live(&p.op));
    assert_int_equal(d->result.code, ERR_INVALID);
    assert_string_equal(d->result.text, "no good");
    uv_run(d->loop, UV_RUN_DEFAULT);
    assert_int_equal(d->calls, 1);
}

static void the_first_result_counts(void **state)
{
    struct ended *d = *state;
    struct err e = { 0 };
    struct probe p = { 0 };

    op_init(&p.op, d->loop, "probe", 0, abort_probe, on_ended, d);
    op_finish(&p.op, NULL);
    err_set(&e, ERR_INVALID, "late");
    op_finish(&p.op, &e);
    op_cancel(&p.op);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_int_equal(p.aborts, 0);
    op_finish(&p.op, &e); /* over: nothing happens */
    op_cancel(&p.op);
    uv_run(d->loop, UV_RUN_DEFAULT);
    assert_int_equal(d->calls, 1);
}

static void cancelling_aborts_once_and_replaces_the_result(void **state)
{
    struct ended *d = *state;
    struct probe p = { 0 };

    op_init(&p.op, d->loop, "probe", 60000, abort_probe, on_ended, d);
    op_cancel(&p.op);
    op_cancel(&p.op);
    assert_int_equal(p.aborts, 1);
    uv_run(d->loop, UV_RUN_NOWAIT);
    assert_int_equal(d->calls, 0); /* waits for the operation to stop */
    op_finish(&p.op, NULL);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
    assert_string_equal(d->result.text, "probe: cancelled");
}

static void a_deadline_aborts_and_names_the_time(void **state)
{
    struct ended *d = *state;
    struct probe p = { .finish_on_abort = true };

    op_init(&p.op, d->loop, "probe", 20, abort_probe, on_ended, d);
    run_until_ended(d, 1);
    assert_int_equal(p.aborts, 1);
    assert_int_equal(d->result.code, ERR_DEADLINE);
    assert_string_equal(d->result.text, "probe: not finished after 0.0 s");
}

static void without_abort_only_the_result_changes(void **state)
{
    struct ended *d = *state;
    struct probe p;

    op_init(&p.op, d->loop, "probe", 0, NULL, on_ended, d);
    op_cancel(&p.op);
    uv_run(d->loop, UV_RUN_NOWAIT);
    assert_int_equal(d->calls, 0);
    op_finish(&p.op, NULL);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
}

static void done_waits_for_open_handles(void **state)
{
    struct ended *d = *state;
    struct probe p;

    op_init(&p.op, d->loop, "probe", 0, abort_probe, on_ended, d);
    uv_timer_init(d->loop, &p.timer);
    p.op.open_handles++; /* one that somebody else closes later */
    op_finish(&p.op, NULL);
    uv_run(d->loop, UV_RUN_NOWAIT);
    uv_run(d->loop, UV_RUN_NOWAIT);
    uv_run(d->loop, UV_RUN_NOWAIT);
    assert_int_equal(d->calls, 0);
    p.op.open_handles--;
    op_close_handle(&p.op, (uv_handle_t *)&p.timer);
    run_until_ended(d, 1);
}

static void free_in_done(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;

    memset(op, 0xee, sizeof(struct probe));
    free(op);
    d->calls++;
    d->result = *result; /* still readable */
}

static void the_memory_is_the_callers_inside_done(void **state)
{
    struct ended *d = *state;
    struct probe *p = calloc(1, sizeof(*p));
    struct err e = { 0 };

    op_init(&p->op, d->loop, "probe", 0, abort_probe, free_in_done, d);
    err_set(&e, ERR_ABORTED, "as it was");
    op_finish(&p->op, &e);
    run_until_ended(d, 1);
    assert_string_equal(d->result.text, "as it was");
}

static void restart_in_done(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;

    d->result = *result;
    if (++d->calls < 5) {
        op_init(op, d->loop, "probe", 0, abort_probe, restart_in_done, d);
        op_finish(op, NULL);
    }
}

static void an_operation_may_start_anew_inside_done(void **state)
{
    struct ended *d = *state;
    struct probe p;

    op_init(&p.op, d->loop, "probe", 0, abort_probe, restart_in_done, d);
    op_finish(&p.op, NULL);
    run_until_ended(d, 5);
    assert_false(op_live(&p.op));
}

static void count_subject(const struct op *op, void *arg)
{
    if (strcmp(op->name, "probe") == 0 && strcmp(op->subject, "default/web") == 0)
        ++*(int *)arg;
}

static void live_operations_are_listed(void **state)
{
    struct ended *d = *state;
    struct probe a, b;
    struct op none = { 0 };
    int n = 0;

    assert_false(op_live(&none));
    op_init(&a.op, d->loop, "probe", 0, abort_probe, on_ended, d);
    op_init(&b.op, d->loop, "probe", 0, abort_probe, on_ended, d);
    op_set_subject(&a.op, "default/web");
    assert_int_equal(op_count(), 2);
    op_each(count_subject, &n);
    assert_int_equal(n, 1);
    op_finish(&b.op, NULL);
    run_until_ended(d, 1);
    assert_int_equal(op_count(), 1);
    op_finish(&a.op, NULL);
    run_until_ended(d, 2);
    assert_int_equal(op_count(), 0);
}

static void a_long_subject_is_cut(void **state)
{
    struct ended *d = *state;
    char text[300];
    struct probe p;

    memset(text, 's', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    op_init(&p.op, d->loop, "probe", 0, abort_probe, on_ended, d);
    op_set_subject(&p.op, text);
    assert_int_equal(strlen(p.op.subject), sizeof(p.op.subject) - 1);
    op_set_subject(&p.op, "a\nb");
    assert_string_equal(p.op.subject, "a?b");
    op_finish(&p.op, NULL);
    run_until_ended(d, 1);
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, loop_make, loop_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(immediate_failure_is_deferred),
        loop_test(the_first_result_counts),
        loop_test(cancelling_aborts_once_and_replaces_the_result),
        loop_test(a_deadline_aborts_and_names_the_time),
        loop_test(without_abort_only_the_result_changes),
        loop_test(done_waits_for_open_handles),
        loop_test(the_memory_is_the_callers_inside_done),
        loop_test(an_operation_may_start_anew_inside_done),
        loop_test(live_operations_are_listed),
        loop_test(a_long_subject_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
