/* SPDX-License-Identifier: Apache-2.0 */
/* A client and a server on one socket: calls, streams, deadlines, what ends them. */
#include "pair.h"

static void a_call_is_answered(void **state)
{
    struct asked a = { 0 };
    pid_t pid = 0;
    uid_t uid = 1;
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    for (int i = 0; i < 3; i++) {
        ask(&a, &p, "/test.Pair/Echo", "hello", 1000, false);
        await(&p, &a);
        assert_string_equal(a.result.text, "");
        assert_string_equal(a.response.p, "hello");
        buf_done(&a.response);
    }
    assert_true(grpc_channel_peer(p.channel, &pid, &uid));
    assert_int_equal(pid, getpid());
    assert_int_equal(uid, getuid());
    ask(&a, &p, "/test.Pair/Echo", "", 1000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_OK);
    assert_int_equal(a.response.n, 0);
    pair_done(&p);
}

static void a_stream_brings_its_messages_in_order(void **state)
{
    struct asked a = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Count", "9", 0, true);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_OK);
    assert_string_equal(a.response.p, "0 1 2 3 4 5 6 7 8 ");
    buf_done(&a.response);
    ask(&a, &p, "/test.Pair/Open", "", 0, true);
    AWAIT(&p, p.stream != NULL);
    assert_true(grpc_send(p.stream, bytes_of("one")));
    AWAIT(&p, a.messages == 1);
    assert_true(grpc_send(p.stream, bytes_of("two")));
    AWAIT(&p, a.messages == 2);
    grpc_end(p.stream, NULL);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_OK);
    assert_string_equal(a.response.p, "one two ");
    buf_done(&a.response);
    pair_done(&p);
}

static void a_status_comes_with_text_and_details(void **state)
{
    struct asked a = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Fail", "\x08\x09 details", 1000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_PRECONDITION);
    assert_string_equal(a.result.text, "rpc error: code = FailedPrecondition desc = 100% \xc3\xa9?no");
    assert_int_equal(a.status.details.n, 10);
    assert_string_equal(a.details, "\x08\x09 details");
    ask(&a, &p, "/test.Pair/Nothing", "", 1000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_UNIMPLEMENTED);
    assert_string_equal(
        a.result.text, "rpc error: code = Unimplemented desc = unknown method Nothing for service test.Pair");
    ask(&a, &p, "/test.Pai/Echo", "", 1000, false);
    await(&p, &a);
    assert_string_equal(a.result.text, "rpc error: code = Unimplemented desc = unknown service test.Pai");
    ask(&a, &p, "/Echo", "", 1000, false);
    await(&p, &a);
    assert_string_equal(a.result.text,
                        "rpc error: code = Unimplemented desc = malformed method name: \"/Echo\"");
    pair_done(&p);
}

static void a_deadline_ends_both_sides(void **state)
{
    struct asked a = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Echo", "", 10000, false); /* connected */
    await(&p, &a);
    ask(&a, &p, "/test.Pair/Hold", "", 100, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_DEADLINE);
    assert_string_equal(a.result.text, "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
    AWAIT(&p, p.cancelled == 1);
    assert_null(p.held);
    pair_done(&p);
}

static void a_cancel_reaches_the_server(void **state)
{
    struct asked a = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Hold", "", 0, false);
    AWAIT(&p, p.held != NULL);
    op_cancel(&a.call.op);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_CANCELLED);
    assert_string_equal(a.result.text, "rpc error: code = Canceled desc = context canceled");
    AWAIT(&p, p.cancelled == 1);
    pair_done(&p);
}

static void closing_ends_what_is_open(void **state)
{
    struct asked a = { 0 }, b = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Hold", "", 0, false);
    AWAIT(&p, p.held != NULL);
    grpc_channel_close(take_ptr(&p.channel));
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_CANCELLED);
    AWAIT(&p, p.cancelled == 1);
    pair_connect(&p, &(struct grpc_channel_options){ .once = true });
    ask(&b, &p, "/test.Pair/Open", "", 0, true);
    AWAIT(&p, p.stream != NULL);
    grpc_server_close(take_ptr(&p.server));
    assert_int_equal(p.cancelled, 2);
    await(&p, &b);
    assert_int_equal(b.result.code, ERR_UNAVAILABLE);
    assert_string_equal(b.result.text, "rpc error: code = Unavailable desc = error reading from server: EOF");
    ask(&b, &p, "/test.Pair/Open", "", 0, true);
    await(&p, &b);
    assert_int_equal(b.result.code, ERR_UNAVAILABLE);
    pair_done(&p);
}

static void nobody_listens(void **state)
{
    struct asked a = { 0 };
    char text[300];
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_connect(&p, &(struct grpc_channel_options){ .once = true });
    ask(&a, &p, "/test.Pair/Echo", "", 1000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    snprintf(
        text, sizeof(text),
        "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: "
        "dial unix %s: connect: no such file or directory\"",
        p.path);
    assert_string_equal(a.result.text, text);
    grpc_channel_close(take_ptr(&p.channel));
    /* Without `once` the call waits for a server. */
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Echo", "late", 10000, false);
    uv_run(&p.loop, UV_RUN_NOWAIT);
    pair_serve(&p, NULL);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_OK);
    assert_string_equal(a.response.p, "late");
    buf_done(&a.response);
    pair_done(&p);
}

static void metadata_arrives(void **state)
{
    const struct grpc_metadata m[] = { { "x-plain", "v", 1 }, { "x-test-bin", "a\nb", 3 } };
    struct asked a = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask_options(&a, &p,
                (struct grpc_call_options){ .path = "/test.Pair/Metadata", .metadata = m, .n_metadata = 2 },
                false);
    await(&p, &a);
    assert_string_equal(a.response.p, "a\nb");
    buf_done(&a.response);
    pair_done(&p);
}

static void a_message_has_a_limit(void **state)
{
    mem_auto char *large = calloc(1, 5000001);
    struct asked a = { 0 };
    struct pair p;

    (void)state;
    memset(large, 'x', 5000000);
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Echo", large, 10000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_EXHAUSTED);
    assert_string_equal(a.result.text,
                        "rpc error: code = ResourceExhausted desc = grpc: received message larger "
                        "than max (5000000 vs. 4194304)");
    large[4194304] = '\0';
    ask(&a, &p, "/test.Pair/Echo", large, 10000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_OK);
    assert_int_equal(a.response.n, 4194304);
    assert_memory_equal(a.response.p, large, 4194304);
    buf_done(&a.response);
    pair_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered),
        cmocka_unit_test(a_stream_brings_its_messages_in_order),
        cmocka_unit_test(a_status_comes_with_text_and_details),
        cmocka_unit_test(a_deadline_ends_both_sides),
        cmocka_unit_test(a_cancel_reaches_the_server),
        cmocka_unit_test(closing_ends_what_is_open),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(metadata_arrives),
        cmocka_unit_test(a_message_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
