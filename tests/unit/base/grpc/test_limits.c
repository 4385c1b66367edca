/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that flood, hang, hoard and leave, on real sockets; what an idle connection costs. */
#include "pair.h"

#include "base/grpc/serving.h"

#include <malloc.h>
#include <sys/socket.h>

static struct sockaddr_un address_of(const struct pair *p)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };

    strcpy(a.sun_path, p->path);
    return a;
}

/* A client that speaks no gRPC. */
static int raw_connect(const struct pair *p)
{
    struct sockaddr_un a = address_of(p);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

/* A server that speaks none; the loop does not know it. */
static int raw_listen(const struct pair *p)
{
    struct sockaddr_un a = address_of(p);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static bool at_end(int fd)
{
    char in[4096];
    ssize_t n;

    while ((n = recv(fd, in, sizeof(in), 0)) > 0)
        continue;
    return n == 0 || errno == ECONNRESET;
}

static void a_client_that_never_greets_is_closed(void **state)
{
    struct pair p;
    int fd;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    p.server->greeting_ms = 50;
    fd = raw_connect(&p);
    AWAIT(&p, at_end(fd));
    uv_run(&p.loop, UV_RUN_NOWAIT); /* its handle closes */
    assert_int_equal(uv_backend_timeout(&p.loop), -1);
    close(fd);
    fd = raw_connect(&p);
    assert_int_equal(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    AWAIT(&p, at_end(fd));
    close(fd);
    pair_done(&p);
}

static void a_client_that_floods_is_closed(void **state)
{
    static const char greeting[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    static const uint8_t ping[17] = { 0, 0, 8, 6 };
    struct pair p;
    int fd, n = 0;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    fd = raw_connect(&p);
    assert_int_equal(send(fd, greeting, sizeof(greeting) - 1, MSG_NOSIGNAL), sizeof(greeting) - 1);
    while (send(fd, ping, sizeof(ping), MSG_NOSIGNAL) == sizeof(ping) && n++ < 100000)
        uv_run(&p.loop, UV_RUN_NOWAIT);
    AWAIT(&p, at_end(fd));
    assert_true(n < 3000);
    close(fd);
    pair_done(&p);
}

static void the_longest_idle_connection_makes_room(void **state)
{
    struct grpc_channel *channels[3];
    struct asked a = { 0 }, held[2] = { { .ended = false } };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, &(struct grpc_server_options){ .max_connections = 2 });
    for (int i = 0; i < 3; i++) {
        pair_connect(&p, &(struct grpc_channel_options){ .once = i < 2 });
        channels[i] = p.channel;
        ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
        await(&p, &a);
        assert_int_equal(a.result.code, ERR_OK);
        buf_done(&a.response);
    }
    assert_int_equal(p.server->n_conns, 2);
    p.channel = channels[0];
    ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE); /* it made room for the third */
    grpc_channel_close(channels[0]);
    for (int i = 0; i < 2; i++) { /* with a call they stay, and nobody else comes in */
        p.channel = channels[i + 1];
        ask(&held[i], &p, "/test.Pair/Hold", "", 0, false);
        AWAIT(&p, p.held != NULL);
        p.held = NULL;
    }
    pair_connect(&p, &(struct grpc_channel_options){ .once = true });
    ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    grpc_channel_close(channels[1]);
    grpc_channel_close(channels[2]);
    await(&p, &held[0]);
    await(&p, &held[1]);
    pair_done(&p);
}

static void calls_have_a_rate(void **state)
{
    struct asked a = { 0 };
    struct pair p;
    int n;

    (void)state;
    pair_make(&p);
    pair_serve(&p, &(struct grpc_server_options){ .calls_per_s = 1, .burst = 3 });
    pair_connect(&p, NULL);
    for (n = 0; n < 1000; n++) {
        ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
        await(&p, &a);
        buf_done(&a.response);
        if (a.result.code != ERR_OK)
            break;
    }
    assert_in_range(n, 3, 100);
    assert_string_equal(a.result.text, "rpc error: code = ResourceExhausted desc = rejected by rate limit");
    pair_done(&p);
}

static int call_as_nobody(const struct pair *parent)
{
    struct asked a = { 0 };
    struct pair p = { .held = NULL };

    memcpy(p.target, parent->target, sizeof(p.target));
    if (setgid(65534) != 0 || setuid(65534) != 0 || uv_loop_init(&p.loop) != 0)
        return 2;
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
    await(&p, &a);
    return strcmp(a.result.text, "rpc error: code = PermissionDenied desc = only root may call") == 0 ? 0 : 3;
}

static void only_root_may_call_if_so_asked(void **state)
{
    struct asked a = { 0 };
    int status = 0;
    struct pair p;
    pid_t child;

    (void)state;
    if (getuid() != 0)
        SKIP("needs root");
    pair_make(&p);
    assert_int_equal(chmod(p.folder, 0755), 0);
    pair_serve(&p, &(struct grpc_server_options){ .root_only = true });
    assert_int_equal(chmod(p.path, 0666), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(call_as_nobody(&p));
    AWAIT(&p, p.server->n_conns == 1);
    AWAIT(&p, p.server->n_conns == 0); /* it has ended */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_OK);
    buf_done(&a.response);
    pair_done(&p);
}

static void pause_it(struct asked *a)
{
    grpc_call_pause(&a->call, true);
}

static void a_client_that_does_not_read_loses_its_stream(void **state)
{
    mem_auto char *large = calloc(1, 1 << 20);
    struct grpc_bytes message = { (const uint8_t *)large, 1 << 20 };
    struct asked a = { .on_message = pause_it };
    struct pair p;
    int sent = 0;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Open", "", 0, true);
    AWAIT(&p, p.stream != NULL);
    assert_true(grpc_send(p.stream, bytes_of("first")));
    AWAIT(&p, a.messages == 1);
    while (grpc_send(p.stream, message))
        sent++;
    assert_true(sent >= 3 && sent <= 5);
    assert_int_equal(p.cancelled, 0); /* it was told by the result */
    a.on_message = NULL;
    grpc_call_pause(&a.call, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_EXHAUSTED);
    assert_int_equal(a.messages, 1 + sent);
    buf_done(&a.response);
    pair_done(&p);
}

static void a_client_that_takes_nothing_is_closed(void **state)
{
    mem_auto char *large = calloc(1, 1 << 20);
    struct grpc_bytes message = { (const uint8_t *)large, 1 << 20 };
    struct asked a = { .on_message = pause_it };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    p.server->stall_ms = 100;
    pair_connect(&p, &(struct grpc_channel_options){ .once = true });
    ask(&a, &p, "/test.Pair/Open", "", 0, true);
    AWAIT(&p, p.stream != NULL);
    assert_true(grpc_send(p.stream, bytes_of("first")));
    AWAIT(&p, a.messages == 1);
    assert_int_equal(uv_backend_timeout(&p.loop), -1);
    assert_true(grpc_send(p.stream, message));
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    assert_int_equal(p.cancelled, 1);
    buf_done(&a.response);
    pair_done(&p);
}

static void a_server_that_says_nothing_is_given_up(void **state)
{
    struct asked a = { 0 };
    struct pair p;
    int fd;

    (void)state;
    pair_make(&p);
    fd = raw_listen(&p);
    pair_connect(&p, &(struct grpc_channel_options){ .once = true, .connect_ms = 50 });
    ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
    await(&p, &a);
    assert_string_equal(a.result.text,
                        "rpc error: code = Unavailable desc = connection error: desc = \"error "
                        "reading server preface: context deadline exceeded\"");
    grpc_channel_close(take_ptr(&p.channel));
    /* A call that waits hears at its deadline why. */
    pair_connect(&p, &(struct grpc_channel_options){ .connect_ms = 50 });
    ask(&a, &p, "/test.Pair/Echo", "x", 200, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_DEADLINE);
    assert_string_equal(a.result.text,
                        "rpc error: code = DeadlineExceeded desc = latest balancer error: connection "
                        "error: desc = \"error reading server preface: context deadline exceeded\"");
    assert_false(a.call.sent);
    close(fd);
    unlink(p.path);
    pair_done(&p);
}

/* A listener that takes nobody's greeting is tried again, with pauses that grow up to their maximum. */
static void connects_are_repeated_with_pauses(void **state)
{
    uint64_t began = clock_mono_ms(), took;
    struct asked a = { 0 };
    int fd, conn, n = 0;
    uv_timer_t tick;
    struct pair p;

    (void)state;
    pair_make(&p);
    fd = raw_listen(&p);
    pair_connect(&p, &(struct grpc_channel_options){ .backoff_max_ms = 40 });
    ask(&a, &p, "/test.Pair/Echo", "x", 500, false);
    uv_timer_init(&p.loop, &tick); /* the loop does not know the listener */
    uv_timer_start(&tick, on_tick, 2, 2);
    while (!a.ended) {
        uv_run(&p.loop, UV_RUN_ONCE);
        while ((conn = accept(fd, NULL, NULL)) >= 0) {
            n++;
            close(conn);
        }
    }
    took = clock_mono_ms() - began;
    uv_close((uv_handle_t *)&tick, NULL);
    assert_int_equal(a.result.code, ERR_DEADLINE);
    assert_true(n >= 2);
    assert_true((uint64_t)n <= took / 32 + 1); /* 40 ms, less a fifth */
    uv_run(&p.loop, UV_RUN_NOWAIT);
    assert_false(uv_loop_alive(&p.loop)); /* and not without a call */
    close(fd);
    unlink(p.path);
    pair_done(&p);
}

/* It greets, then never answers. */
static void a_server_that_hangs_is_found_by_pings(void **state)
{
    static const uint8_t settings[9] = { 0, 0, 0, 4 };
    struct asked a = { 0 };
    struct pair p;
    int fd, conn = -1;

    (void)state;
    pair_make(&p);
    fd = raw_listen(&p);
    pair_connect(&p,
                 &(struct grpc_channel_options){ .once = true, .keepalive_ms = 50, .keepalive_out_ms = 50 });
    ask(&a, &p, "/test.Pair/Open", "", 0, true);
    AWAIT(&p, (conn = accept(fd, NULL, NULL)) >= 0);
    assert_int_equal(send(conn, settings, sizeof(settings), MSG_NOSIGNAL), sizeof(settings));
    await(&p, &a);
    assert_string_equal(a.result.text,
                        "rpc error: code = Unavailable desc = error reading from server: keepalive "
                        "ping failed to receive ACK within timeout");
    close(conn);
    close(fd);
    unlink(p.path);
    pair_done(&p);
}

/* The keep-alive of a server that answers ends nothing. */
static void pings_keep_a_stream(void **state)
{
    struct asked a = { 0 };
    uint64_t end = clock_mono_ms() + 300;
    uv_timer_t tick;
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, &(struct grpc_channel_options){ .keepalive_ms = 20, .keepalive_out_ms = 5000 });
    ask(&a, &p, "/test.Pair/Open", "", 0, true);
    uv_timer_init(&p.loop, &tick);
    uv_timer_start(&tick, on_tick, 20, 20);
    AWAIT(&p, clock_mono_ms() >= end);
    uv_close((uv_handle_t *)&tick, NULL);
    assert_false(a.ended);
    grpc_end(p.stream, NULL);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_OK);
    assert_int_equal(uv_backend_timeout(&p.loop), -1); /* and without a call none is sent */
    pair_done(&p);
}

static void a_server_that_comes_back_is_found(void **state)
{
    struct asked a = { 0 }, held = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    for (int i = 0; i < 5; i++) {
        ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
        await(&p, &a);
        assert_int_equal(a.result.code, ERR_OK);
        buf_done(&a.response);
        ask(&held, &p, "/test.Pair/Hold", "", 10000, false);
        AWAIT(&p, p.held != NULL);
        grpc_server_close(take_ptr(&p.server));
        await(&p, &held); /* it may have had its effect: it is not sent again */
        assert_int_equal(held.result.code, ERR_UNAVAILABLE);
        assert_true(held.call.sent);
        pair_serve(&p, NULL);
    }
    pair_done(&p);
}

static void a_socket_belongs_to_its_last_maker(void **state)
{
    struct grpc_server *first;
    struct asked a = { 0 };
    struct stat st;
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    first = p.server;
    pair_serve(&p, NULL);
    grpc_server_close(first);
    assert_int_equal(stat(p.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Echo", "x", 10000, false);
    await(&p, &a);
    assert_int_equal(a.result.code, ERR_OK);
    buf_done(&a.response);
    pair_done(&p);
}

static void bad_addresses_are_named(void **state)
{
    static const char *const bad[] = {
        "",      "x",       "unix:relative", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", "localhost:80",
        "[::1]", "[::1:80", "::1:80",        "[x]:80"
    };
    static const char *const good[] = { "unix:/a", "unix:///a", "10.0.0.1:80", "[::1]:80" };
    struct grpc_server_options so = { .path = "/nowhere/at/all", .mode = 0600 };
    struct grpc_server *server = NULL;
    struct err e = { 0 };
    uv_loop_t loop;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad) + ARRAY_LEN(good); i++) {
        const char *target = i < ARRAY_LEN(bad) ? bad[i] : good[i - ARRAY_LEN(bad)];
        struct grpc_address address;
        struct err why = { 0 };
        assert_int_equal(grpc_address_parse(target, &address, &why) == ERR_OK, i >= ARRAY_LEN(bad));
    }
    uv_loop_init(&loop);
    so.loop = &loop;
    assert_int_equal(grpc_server_open(&server, &so, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text,
                        "gRPC socket /nowhere/at/all: bind /nowhere/at/all.new: No such file or directory");
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* Both ends of an open stream: no timer, and the memory that base/grpc/README.md states. */
static void an_idle_connection_costs_little(void **state)
{
    enum { N = 50 };
    struct grpc_channel *channels[N];
    static struct asked a[N];
    size_t before, after;
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    before = mallinfo2().uordblks;
    for (int i = 0; i < N; i++) {
        a[i].on_message = NULL;
        pair_connect(&p, NULL);
        channels[i] = p.channel;
        ask(&a[i], &p, "/test.Pair/Open", "", 0, true);
        AWAIT(&p, p.stream != NULL);
        assert_true(grpc_send(take_ptr(&p.stream), bytes_of("list")));
        AWAIT(&p, a[i].messages == 1);
    }
    after = mallinfo2().uordblks;
    assert_int_equal(uv_backend_timeout(&p.loop), -1);
    print_message("%zu bytes for both ends of a connection with a stream\n", (after - before) / N);
    if (after > before) /* a sanitizer's allocator does not count */
        assert_true((after - before) / N < 96 * 1024);
    for (int i = 0; i < N; i++) {
        grpc_channel_close(channels[i]);
        await(&p, &a[i]);
        buf_done(&a[i].response);
    }
    p.channel = NULL;
    pair_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_never_greets_is_closed),
        cmocka_unit_test(a_client_that_floods_is_closed),
        cmocka_unit_test(the_longest_idle_connection_makes_room),
        cmocka_unit_test(calls_have_a_rate),
        cmocka_unit_test(only_root_may_call_if_so_asked),
        cmocka_unit_test(a_client_that_does_not_read_loses_its_stream),
        cmocka_unit_test(a_client_that_takes_nothing_is_closed),
        cmocka_unit_test(a_server_that_says_nothing_is_given_up),
        cmocka_unit_test(connects_are_repeated_with_pauses),
        cmocka_unit_test(a_server_that_hangs_is_found_by_pings),
        cmocka_unit_test(pings_keep_a_stream),
        cmocka_unit_test(a_server_that_comes_back_is_found),
        cmocka_unit_test(a_socket_belongs_to_its_last_maker),
        cmocka_unit_test(bad_addresses_are_named),
        cmocka_unit_test(an_idle_connection_costs_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
