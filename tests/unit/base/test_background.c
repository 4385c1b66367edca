/* SPDX-License-Identifier: Apache-2.0 */
#include "base/background.h"

#include "base/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

struct client {
    struct background_client turn;
    struct background *turns;
    char name;
    int left; /* pieces */
    uint64_t piece_ns;
    char *order;
};

static void run(struct background_client *t)
{
    struct client *c = (struct client *)t;
    const uint64_t until = uv_hrtime() + c->piece_ns;

    c->order[strlen(c->order)] = c->name;
    while (uv_hrtime() < until)
        ;
    if (--c->left > 0)
        background_ask(c->turns, t);
}

static struct client client(struct background *ts, char name, int pieces, bool first, char *order)
{
    return (struct client){
        .turn = { .run = run, .first = first }, .turns = ts, .name = name, .left = pieces, .order = order
    };
}

static void close_turns(uv_loop_t *loop, struct background *ts)
{
    background_close(ts, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

static void clients_have_turns_in_a_circle_and_the_first_before_the_others(void **state)
{
    char order[32] = "";
    struct background ts;
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    background_init(&ts, &loop);
    struct client a = client(&ts, 'a', 3, false, order), b = client(&ts, 'b', 2, false, order),
                  r = client(&ts, 'R', 2, true, order), gone = client(&ts, 'x', 1, false, order);
    background_ask(&ts, &a.turn);
    background_ask(&ts, &a.turn); /* waits already */
    background_ask(&ts, &b.turn);
    background_ask(&ts, &gone.turn);
    background_ask(&ts, &r.turn);
    background_withdraw(&ts, &gone.turn);
    uv_run(&loop, UV_RUN_NOWAIT); /* one piece a turn of the loop */
    assert_string_equal(order, "R");
    uv_run(&loop, UV_RUN_DEFAULT); /* ends: nobody keeps the loop awake for nothing */
    assert_string_equal(order, "RRababa");
    close_turns(&loop, &ts);
}

static void on_op_done(struct op *op, const struct err *result)
{
    (void)op;
    (void)result;
}

static uint64_t time_of(bool with_operation, bool first)
{
    char order[32] = "";
    struct err ok = { 0 };
    struct background ts;
    uv_loop_t loop;
    struct op op;
    uint64_t began;

    uv_loop_init(&loop);
    background_init(&ts, &loop);
    struct client a = client(&ts, 'a', 5, first, order);
    a.piece_ns = 4000000;
    if (with_operation)
        op_init(&op, &loop, "start", 0, NULL, on_op_done, NULL);
    background_ask(&ts, &a.turn);
    began = uv_hrtime();
    while (a.left > 0)
        uv_run(&loop, UV_RUN_ONCE);
    began = uv_hrtime() - began;
    if (with_operation)
        op_finish(&op, &ok);
    close_turns(&loop, &ts);
    return began;
}

static void beside_operations_others_have_a_quarter_of_the_time(void **state)
{
    (void)state;
    assert_true(time_of(true, false) >= 4 * (20000000 - 4000000)); /* no pause is waited for after the last */
    assert_int_equal(op_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_have_turns_in_a_circle_and_the_first_before_the_others),
        cmocka_unit_test(beside_operations_others_have_a_quarter_of_the_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
