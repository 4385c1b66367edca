/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that begin, pause, end and are cancelled by chance, on both ends, also from within events, while
 * channels and servers come and go. Every call ends once, and nothing is left. GRPC_SEED, GRPC_SECONDS. */
#include "pair.h"

#include "base/grpc/serving.h"

enum { CALLS = 24, LARGE = 300000, OPEN_MAX = 1024 };

static struct pair both;
static struct asked calls[CALLS];
static bool begun[CALLS];
static struct grpc_request *requests[OPEN_MAX]; /* not answered yet */
static size_t n_requests;
static uint8_t large[LARGE];

static bool one_in(long n)
{
    return random() % n == 0;
}

static struct grpc_bytes some_bytes(void)
{
    return (struct grpc_bytes){ large, one_in(4) ? (size_t)(random() % LARGE) : 5 };
}

/* ---- the server's side ---- */

static void forget(const struct grpc_request *r)
{
    for (size_t i = 0; i < n_requests; i++)
        if (requests[i] == r)
            requests[i] = requests[--n_requests];
}

static void answer(struct grpc_request *r)
{
    struct err e = { 0 };

    switch (random() % 6) {
    case 0:
        forget(r);
        grpc_end(r, NULL);
        return;
    case 1:
        forget(r);
        err_set(&e, ERR_ABORTED, "by chance");
        grpc_fail(r, &e);
        return;
    default:
        if (!grpc_send(r, some_bytes()))
            forget(r);
    }
}

static void on_gone(struct grpc_request *r, void *arg)
{
    (void)arg;
    forget(r);
    if (one_in(4) && n_requests > 0)
        answer(requests[random() % (long)n_requests]);
}

static void serve_by_chance(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    (void)arg;
    if (one_in(4) || n_requests == OPEN_MAX) {
        grpc_reply(r, message);
        return;
    }
    grpc_request_on_cancel(r, on_gone, NULL);
    requests[n_requests++] = r;
    if (one_in(4))
        answer(r);
}

static void serve(void)
{
    static const struct grpc_method method = { "/test.Random/Do", serve_by_chance };
    struct grpc_server_options o = { .loop = &both.loop,
                                     .path = both.path,
                                     .mode = 0600,
                                     .methods = &method,
                                     .n_methods = 1,
                                     .max_connections = 3 };
    struct err e = { 0 };

    if (grpc_server_open(&both.server, &o, &e) != ERR_OK)
        fail_msg("%s", e.text);
    both.server->stall_ms = 300;
}

/* ---- the client's side ---- */

static void on_any_message(struct asked *a)
{
    switch (random() % 200) {
    case 0:
        grpc_channel_close(take_ptr(&both.channel));
        break;
    case 1:
        grpc_server_close(take_ptr(&both.server));
        break;
    case 2 ... 19:
        grpc_call_pause(&a->call, true);
        break;
    case 20 ... 39:
        grpc_call_pause(&a->call, true);
        grpc_call_pause(&a->call, false);
        break;
    case 40 ... 49:
        op_cancel(&a->call.op);
        break;
    default:
        break;
    }
}

static void begin(struct asked *a)
{
    a->on_message = on_any_message;
    ask_options(a, &both,
                (struct grpc_call_options){ .path = "/test.Random/Do",
                                            .request = some_bytes(),
                                            .deadline_ms = one_in(3) ? 0 : 1 + (uint64_t)(random() % 80) },
                one_in(2));
}

static void disturb(struct asked *a)
{
    switch (random() % 8) {
    case 0:
        op_cancel(&a->call.op);
        break;
    case 1:
        grpc_call_pause(&a->call, true);
        break;
    case 2:
    case 3:
        grpc_call_pause(&a->call, false);
        break;
    default:
        break;
    }
}

static void step(void)
{
    int i = (int)(random() % CALLS);

    if (both.server == NULL && one_in(3))
        serve();
    if (both.channel == NULL)
        pair_connect(&both, &(struct grpc_channel_options){ .once = one_in(2),
                                                            .backoff_max_ms = 20,
                                                            .keepalive_ms = one_in(2) ? 0 : 5,
                                                            .keepalive_out_ms = 50 });
    if (!begun[i]) {
        begun[i] = true;
        begin(&calls[i]);
    } else if (calls[i].ended) {
        begun[i] = false;
        buf_done(&calls[i].response);
    } else {
        disturb(&calls[i]);
    }
    for (int k = 0; k < 3 && n_requests > 0; k++)
        answer(requests[random() % (long)n_requests]);
    if (one_in(400))
        grpc_channel_close(take_ptr(&both.channel));
    if (one_in(400))
        grpc_server_close(take_ptr(&both.server));
    uv_run(&both.loop, UV_RUN_NOWAIT);
}

static void every_call_ends_once(void **state)
{
    const char *seed = getenv("GRPC_SEED"), *seconds = getenv("GRPC_SECONDS");
    uint64_t end = clock_mono_ms() + (seconds != NULL ? strtoul(seconds, NULL, 10) : 2) * 1000;
    unsigned used = seed != NULL ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)getpid();

    (void)state;
    print_message("GRPC_SEED=%u\n", used);
    srandom(used);
    pair_make(&both);
    while (clock_mono_ms() < end)
        step();
    for (int i = 0; i < CALLS; i++) {
        if (!begun[i])
            continue;
        op_cancel(&calls[i].call.op);
        await(&both, &calls[i]);
        buf_done(&calls[i].response);
    }
    pair_done(&both);
    assert_int_equal(n_requests, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_call_ends_once) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
