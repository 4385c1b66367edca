/* SPDX-License-Identifier: Apache-2.0 */
/* Two sessions in memory: pieces, flow control, limits; no allocation has to succeed. */
#include "memory_pair.h"

#include "base/scope.h"

#include "../nomem.h"

static void open_pair(struct memory_pair *p)
{
    struct err e = { 0 };

    assert_true(mp_open(p, &e));
}

static void begin_call(struct memory_pair *p, struct answer *a, const void *request, size_t n)
{
    struct err e = { 0 };

    assert_int_equal(mp_ask(p, a, request, n, &e), ERR_OK);
}

static void close_pair(struct memory_pair *p)
{
    mp_done(p);
    assert_int_equal(p->client_budget.used, 0);
    assert_int_equal(p->server_budget.used, 0);
}

static void calls_work_in_any_pieces(void **state)
{
    static const size_t pieces[] = { 1, 2, 3, 5, 9, 17, 0, 0, 0, 100000 };
    static char large[200000];

    (void)state;
    memset(large, 'x', sizeof(large));
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        struct memory_pair p;
        struct answer a, b, c;
        open_pair(&p);
        begin_call(&p, &a, "hello", 5);
        begin_call(&p, &b, large, sizeof(large));
        begin_call(&p, &c, "", 0);
        mp_talk(&p, pieces[i]);
        assert_true(a.ended && b.ended && c.ended);
        assert_int_equal(a.status.code, ERR_OK);
        assert_string_equal(a.first, "hello");
        assert_int_equal(b.status.code, ERR_OK);
        assert_int_equal(b.bytes, sizeof(large));
        assert_int_equal(c.messages, 1);
        assert_int_equal(c.bytes, 0);
        assert_int_equal(grpc_session_streams(p.client) + grpc_session_streams(p.server), 0);
        close_pair(&p);
    }
}

static void a_paused_stream_takes_its_window_and_no_more(void **state)
{
    static const struct grpc_status fine = { .code = ERR_OK };
    static uint8_t message[10000];
    struct memory_pair p;
    struct answer a, b;
    struct err e = { 0 };
    uint64_t taken;

    (void)state;
    open_pair(&p);
    p.echo = false;
    begin_call(&p, &a, "go", 2);
    mp_talk(&p, 100000);
    assert_int_equal(p.n_calls, 1);
    p.pause = true;
    for (int i = 0; i < 50; i++)
        assert_int_equal(grpc_stream_send(p.calls[0], (struct grpc_bytes){ message, sizeof(message) }, &e),
                         ERR_OK);
    grpc_stream_finish(p.calls[0], &fine);
    forget_call(&p, p.calls[0]);
    mp_talk(&p, 100000);
    assert_int_equal(a.messages, 1);
    assert_true(p.client_budget.used <= 65535 + 16384);
    assert_true(grpc_session_queued(p.server, &taken) >= 400000);
    p.pause = false;
    p.echo = true;
    begin_call(&p, &b, "beside", 6); /* the connection is not held */
    mp_talk(&p, 100000);
    assert_string_equal(b.first, "beside");
    assert_int_equal(a.messages, 1);
    grpc_stream_pause(a.st, false);
    mp_talk(&p, 100000);
    assert_int_equal(a.messages, 50);
    assert_int_equal(a.bytes, 500000);
    assert_true(a.ended);
    assert_int_equal(a.status.code, ERR_OK);
    close_pair(&p);
}

static void what_a_slow_reader_leaves_is_bounded(void **state)
{
    static uint8_t message[100000];
    struct memory_pair p;
    struct answer a;
    struct err e = { 0 };
    uint64_t taken;
    int sent = 0;

    (void)state;
    open_pair(&p);
    p.echo = false;
    begin_call(&p, &a, "go", 2);
    mp_talk(&p, 100000);
    while (grpc_stream_send(p.calls[0], (struct grpc_bytes){ message, sizeof(message) }, &e) == ERR_OK)
        sent++;
    assert_int_equal(e.code, ERR_EXHAUSTED);
    assert_int_equal(sent, 10);
    assert_int_equal(grpc_session_queued(p.server, &taken), 10 * 100005);
    close_pair(&p);
}

static void frames_that_carry_nothing_have_a_rate(void **state)
{
    static const uint8_t ping[17] = { 0, 0, 8, 6 };
    struct memory_pair p;
    const uint8_t *out;
    struct err e = { 0 };
    ssize_t n;
    int sent = 0;
    bool told = false;

    (void)state;
    open_pair(&p);
    mp_talk(&p, 100000);
    for (int i = 0; i < 5000; i++) { /* fifty a second */
        p.now_ms += 20;
        assert_int_equal(grpc_session_feed(p.server, ping, sizeof(ping), p.now_ms, &e), ERR_OK);
        while (grpc_session_output(p.server, &out) > 0)
            continue;
    }
    while (e.code == ERR_OK) { /* all at once */
        ERR_IGNORE(grpc_session_feed(p.server, ping, sizeof(ping), p.now_ms, &e));
        sent += e.code == ERR_OK;
        while (e.code == ERR_OK && grpc_session_output(p.server, &out) > 0)
            continue;
    }
    assert_int_equal(e.code, ERR_EXHAUSTED);
    assert_string_equal(e.text, "too many empty frames");
    assert_true(sent > 900 && sent <= GRPC_CONTROL_BURST);
    while ((n = grpc_session_output(p.server, &out)) > 0)
        told = told || (n >= 17 && out[3] == 7 && out[16] == 11); /* GOAWAY, ENHANCE_YOUR_CALM */
    assert_true(told);
    close_pair(&p);
}

/* CVE-2023-44487. */
static void calls_that_are_taken_back_have_a_rate(void **state)
{
    struct memory_pair p;
    struct answer a;
    int n = 0;

    (void)state;
    open_pair(&p);
    p.echo = false;
    mp_talk(&p, 100000);
    while (p.server_error.code == ERR_OK && n < 5000) {
        begin_call(&p, &a, "x", 1);
        mp_move(&p, p.client, p.server, &p.server_error, 100000);
        grpc_stream_cancel(a.st);
        mp_talk(&p, 100000);
        n++;
    }
    assert_int_equal(p.server_error.code, ERR_EXHAUSTED);
    assert_true(n <= GRPC_CONTROL_BURST);
    close_pair(&p);
}

static void messages_of_all_calls_have_a_budget(void **state)
{
    static uint8_t large[1 << 20];
    struct answer a[10];
    struct memory_pair p;
    int refused = 0;

    (void)state;
    open_pair(&p);
    p.server_budget.max = 300000;
    for (int i = 0; i < 10; i++)
        begin_call(&p, &a[i], large, sizeof(large));
    mp_talk(&p, 100000);
    for (int i = 0; i < 10; i++) {
        assert_true(a[i].ended);
        refused += a[i].status.code == ERR_EXHAUSTED;
    }
    assert_int_equal(refused, 10);
    assert_int_equal(p.server_budget.used, 0);
    assert_string_equal(a[0].status.text, "too much is received at once");
    begin_call(&p, &a[0], "small", 5); /* the connection goes on */
    mp_talk(&p, 100000);
    assert_int_equal(a[0].status.code, ERR_OK);
    close_pair(&p);
}

static void calls_at_once_have_a_limit(void **state)
{
    static const struct grpc_status fine = { .code = ERR_OK };
    struct answer a[30];
    struct memory_pair p;
    int ended = 0;

    (void)state;
    open_pair(&p);
    p.echo = false;
    mp_talk(&p, 100000);
    for (int i = 0; i < 30; i++)
        begin_call(&p, &a[i], "x", 1);
    for (int round = 0; round < 3; round++) {
        mp_talk(&p, 100000);
        assert_int_equal(p.n_calls, 10);
        while (p.n_calls > 0) {
            struct grpc_stream *st = p.calls[0];
            forget_call(&p, st);
            grpc_stream_finish(st, &fine);
        }
    }
    mp_talk(&p, 100000);
    for (int i = 0; i < 30; i++)
        ended += a[i].ended;
    assert_int_equal(ended, 30);
    assert_int_equal(p.begun, 30);
    close_pair(&p);
}

static void headers_have_a_size(void **state)
{
    static char value[8000];
    const struct grpc_metadata m[] = { { "x-a", value, sizeof(value) },
                                       { "x-b", value, sizeof(value) },
                                       { "x-c", value, sizeof(value) } };
    struct memory_pair p;
    struct answer a = { .ended = false };
    struct grpc_stream_options o = { .path = "/a/b", .authority = "localhost", .owner = &a };
    struct err e = { 0 };

    (void)state;
    memset(value, 'v', sizeof(value));
    for (size_t n = 1; n <= 3; n++) {
        open_pair(&p);
        o.metadata = m;
        o.n_metadata = n;
        assert_int_equal(grpc_stream_open(&a.st, p.client, &o, &e), ERR_OK);
        mp_talk(&p, 100000);
        assert_true(a.ended);
        assert_int_equal(a.status.code, n < 3 ? ERR_OK : ERR_INTERNAL);
        assert_int_equal(p.begun, n < 3 ? 1 : 0);
        close_pair(&p);
    }
}

static void a_server_that_leaves_says_so(void **state)
{
    static const struct grpc_status fine = { .code = ERR_OK };
    struct answer a, b;
    struct memory_pair p;
    struct err e = { 0 };

    (void)state;
    open_pair(&p);
    p.echo = false;
    begin_call(&p, &a, "x", 1);
    mp_talk(&p, 100000);
    grpc_session_goaway(p.server);
    begin_call(&p, &b, "y", 1); /* they cross */
    mp_talk(&p, 100000);
    assert_int_equal(p.leaving, 1);
    assert_true(b.ended && b.unseen);
    assert_int_equal(b.status.code, ERR_UNAVAILABLE);
    assert_false(grpc_session_can_ask(p.client));
    assert_false(a.ended);
    assert_false(grpc_session_over(p.server));
    grpc_stream_finish(p.calls[0], &fine);
    mp_talk(&p, 100000);
    assert_true(a.ended);
    assert_int_equal(a.status.code, ERR_OK);
    assert_true(grpc_session_over(p.server));
    assert_int_equal(e.code, ERR_OK);
    close_pair(&p);
}

static void pings_are_answered(void **state)
{
    struct memory_pair p;

    (void)state;
    open_pair(&p);
    mp_talk(&p, 100000);
    assert_true(grpc_session_greeted(p.client) && grpc_session_greeted(p.server));
    grpc_session_ping(p.client);
    mp_talk(&p, 100000);
    assert_int_equal(p.pongs, 1);
    close_pair(&p);
}

static void a_lost_connection_ends_its_calls(void **state)
{
    struct answer a, b;
    struct memory_pair p;

    (void)state;
    open_pair(&p);
    p.echo = false;
    begin_call(&p, &a, "x", 1);
    mp_talk(&p, 100000);
    begin_call(&p, &b, "y", 1); /* not a byte of it was sent */
    grpc_session_lost(p.client, "error reading from server: EOF");
    assert_true(a.ended && !a.unseen);
    assert_int_equal(a.status.code, ERR_UNAVAILABLE);
    assert_string_equal(a.status.text, "error reading from server: EOF");
    assert_true(b.ended && b.unseen);
    grpc_session_lost(p.server, "");
    assert_int_equal(p.ended, 1);
    close_pair(&p);
}

/* ---- nth allocation ---- */

static void any_allocation_may_fail(void **state)
{
    static const char large[20000] = "large";
    const struct grpc_metadata m[] = { { "x-plain", "v", 1 }, { "x-bin", "\0\1", 2 } };
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct memory_pair p;
        struct answer a = { .ended = false }, b = { .ended = false };
        struct grpc_stream_options o = { .path = "/a/b",
                                         .authority = "localhost",
                                         .metadata = m,
                                         .n_metadata = 2,
                                         .timeout_ms = 1000,
                                         .owner = &b };
        struct err e = { 0 };

        ok = mp_open(&p, &e);
        if (ok)
            ok = mp_ask(&p, &a, large, sizeof(large), &e) == ERR_OK;
        if (ok)
            ok = grpc_stream_open(&b.st, p.client, &o, &e) == ERR_OK;
        if (ok) {
            mp_talk(&p, 1000);
            grpc_session_lost(p.client, "EOF");
            grpc_session_lost(p.server, "EOF");
            if (!a.ended || !b.ended || p.n_calls != 0)
                abort();
            ok = a.status.code == ERR_OK && a.bytes == sizeof(large) && b.status.code == ERR_OK;
        }
        mp_done(&p);
        if (p.client_budget.used != 0 || p.server_budget.used != 0)
            abort();
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_work_in_any_pieces),
        cmocka_unit_test(a_paused_stream_takes_its_window_and_no_more),
        cmocka_unit_test(what_a_slow_reader_leaves_is_bounded),
        cmocka_unit_test(frames_that_carry_nothing_have_a_rate),
        cmocka_unit_test(calls_that_are_taken_back_have_a_rate),
        cmocka_unit_test(messages_of_all_calls_have_a_budget),
        cmocka_unit_test(calls_at_once_have_a_limit),
        cmocka_unit_test(headers_have_a_size),
        cmocka_unit_test(a_server_that_leaves_says_so),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(a_lost_connection_ends_its_calls),
    };
    const struct CMUnitTest memory[] = { cmocka_unit_test(any_allocation_may_fail) };

    return cmocka_run_group_tests(tests, NULL, NULL) + NOMEM_RUN(memory);
}
