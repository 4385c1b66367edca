/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends against gRPC's core (python3-grpcio), which shares no code with ours: interop.py. */
#include "pair.h"

#include <limits.h>

#define SCRIPT "tests/unit/base/grpc/interop.py"

struct other { /* the process with the other end */
    struct proc proc;
    bool ended;
    struct err result;
};

static void on_other_ended(struct op *op, const struct err *result)
{
    struct other *o = op->owner;

    o->ended = true;
    o->result = *result;
    if (result->code != ERR_OK && result->code != ERR_CANCELLED)
        print_message("%s\n", o->proc.err_out.p);
}

static void other_start(struct other *o, struct pair *p, const char *role)
{
    const char *const argv[] = { "/usr/bin/python3", "-B", SCRIPT, role, p->path, NULL };
    char here[PATH_MAX];
    struct proc_spec spec = { .name = "interop",
                              .argv = argv,
                              .cwd = getcwd(here, sizeof(here)),
                              .stdout_max = 10000,
                              .deadline_ms = 60000,
                              .cgroup_fd = -1 };

    *o = (struct other){ .ended = false };
    proc_start(&o->proc, &spec, &p->loop, on_other_ended, o);
}

static void other_stop(struct other *o, struct pair *p)
{
    op_cancel(&o->proc.op);
    AWAIT(p, o->ended);
    proc_forget(&p->loop);
    unlink(p->path);
}

#define NEEDS_PYTHON()                                                                                       \
    do {                                                                                                     \
        if (system("/usr/bin/python3 -c 'import grpc' 2>/dev/null") != 0)                                    \
            SKIP("python3-grpcio is not installed");                                                         \
    } while (0)

static void our_client_asks_their_server(void **state)
{
    const struct grpc_metadata m[] = { { "x-plain", "v", 1 }, { "x-test-bin", "a\nb", 3 } };
    struct asked a = { 0 }, b = { 0 };
    struct other o;
    struct pair p;

    (void)state;
    NEEDS_PYTHON();
    pair_make(&p);
    other_start(&o, &p, "serve");
    pair_connect(&p, &(struct grpc_channel_options){ .user_agent = "coracle" });
    ask(&a, &p, "/test.Interop/Echo", "hello", 20000, false);
    await(&p, &a);
    assert_string_equal(a.result.text, "");
    assert_string_equal(a.response.p, "hello");
    buf_done(&a.response);

    ask(&a, &p, "/test.Interop/Count", "1000", 20000, true);
    await(&p, &a);
    assert_string_equal(a.result.text, "");
    assert_int_equal(a.messages, 1000);
    buf_done(&a.response);

    ask(&a, &p, "/test.Interop/Remaining", "", 5000, false);
    await(&p, &a);
    assert_in_range(atoi(a.response.p), 20, 50); /* tenths of a second; the machine may be busy */
    buf_done(&a.response);

    ask(&a, &p, "/test.Interop/Large", "4194304", 20000, false);
    await(&p, &a);
    assert_string_equal(a.result.text, "");
    assert_int_equal(a.response.n, 4194304);
    buf_done(&a.response);
    ask(&a, &p, "/test.Interop/Large", "5000000", 20000, false);
    await(&p, &a);
    assert_string_equal(a.result.text,
                        "rpc error: code = ResourceExhausted desc = grpc: received message larger "
                        "than max (5000000 vs. 4194304)");

    ask(&a, &p, "/test.Interop/Zipped", "", 20000, false);
    await(&p, &a);
    assert_string_equal(a.result.text,
                        "rpc error: code = Internal desc = grpc: Decompressor is not installed for "
                        "grpc-encoding \"gzip\"");

    ask(&a, &p, "/test.Interop/Fail", "", 20000, false);
    await(&p, &a);
    assert_string_equal(a.result.text, "rpc error: code = FailedPrecondition desc = 100% \xc3\xa9?no");
    assert_int_equal(a.status.details.n, 10);
    assert_memory_equal(a.details,
                        "\x08\x09\x00"
                        "details",
                        10);

    ask_options(
        &a, &p,
        (struct grpc_call_options){ .path = "/test.Interop/Metadata", .metadata = m, .n_metadata = 2 },
        false);
    await(&p, &a);
    assert_string_equal(a.response.p, "v a\nb coracle");
    buf_done(&a.response);

    ask(&a, &p, "/test.Interop/Nothing", "", 20000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_UNIMPLEMENTED);

    ask(&a, &p, "/test.Interop/Hold", "", 200, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_DEADLINE);
    ask(&b, &p, "/test.Interop/WasCancelled", "", 20000, false);
    await(&p, &b);
    assert_string_equal(b.response.p, "yes");
    buf_done(&b.response);
    other_stop(&o, &p);
    pair_done(&p);
}

/* A server that leaves says so by a GOAWAY: the call that follows goes to the next one. */
static void our_client_follows_a_restart(void **state)
{
    struct asked a = { 0 }, held = { 0 };
    struct other o;
    struct pair p;

    (void)state;
    NEEDS_PYTHON();
    pair_make(&p);
    other_start(&o, &p, "serve");
    pair_connect(&p, NULL);
    for (int i = 0; i < 3; i++) {
        ask(&a, &p, "/test.Interop/Echo", "again", 20000, false);
        await(&p, &a);
        assert_string_equal(a.result.text, "");
        assert_string_equal(a.response.p, "again");
        buf_done(&a.response);
        ask(&held, &p, "/test.Interop/Hold", "", 0, false);
        ask(&a, &p, "/test.Interop/Leave", "", 20000, false);
        await(&p, &a);
        assert_string_equal(a.result.text, "");
        assert_false(held.ended); /* it goes on where it began */
        ask(&a, &p, "/test.Interop/Echo", "next", 20000, false);
        op_cancel(&held.call.op);
        await(&p, &held);
        await(&p, &a);
        assert_string_equal(a.response.p, "next");
        buf_done(&a.response);
    }
    other_stop(&o, &p);
    pair_done(&p);
}

static void pause_at_first(struct asked *a)
{
    if (a->messages == 1)
        grpc_call_pause(&a->call, true);
}

static void a_paused_stream_holds_their_server(void **state)
{
    struct asked a = { .on_message = pause_at_first }, b = { 0 };
    struct other o;
    struct pair p;

    (void)state;
    NEEDS_PYTHON();
    pair_make(&p);
    other_start(&o, &p, "serve");
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Interop/Flood", "300", 0, true);
    AWAIT(&p, a.messages == 1);
    for (int i = 0; i < 50; i++) { /* other calls go on */
        ask(&b, &p, "/test.Interop/Large", "100000", 20000, false);
        await(&p, &b);
        assert_int_equal(b.response.n, 100000);
        buf_done(&b.response);
    }
    assert_int_equal(a.messages, 1);
    grpc_call_pause(&a.call, false);
    await(&p, &a);
    assert_string_equal(a.result.text, "");
    assert_int_equal(a.messages, 300);
    buf_done(&a.response);
    other_stop(&o, &p);
    pair_done(&p);
}

static void their_client_asks_our_server(void **state)
{
    struct other o;
    struct pair p;

    (void)state;
    NEEDS_PYTHON();
    pair_make(&p);
    pair_serve(&p, NULL);
    other_start(&o, &p, "call");
    AWAIT(&p, o.ended);
    assert_string_equal(o.result.text, "");
    assert_int_equal(p.cancelled, 2); /* the stream that was cancelled, the call past its deadline */
    proc_forget(&p.loop);
    pair_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_client_asks_their_server),
        cmocka_unit_test(our_client_follows_a_restart),
        cmocka_unit_test(a_paused_stream_holds_their_server),
        cmocka_unit_test(their_client_asks_our_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
