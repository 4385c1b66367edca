/* SPDX-License-Identifier: Apache-2.0 */
/* The WebSocket of exec against a provider that plays the process. */
#include "harness.h"

#include "agent/status/internal.h"
#include "base/codec/json.h"
#include "base/codec/websocket.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#define PATH "/api/v1/namespaces/default/pods/web/exec"

/* The process, as the provider sees it: its ends of the streams. */
struct status_exec {
    struct status_exec_spec spec;
    struct fixture *fixture;
    char command[256], container[64];
    int in, out, err;
    bool cancelled;
};

static struct status_exec process; /* the one under way */
static unsigned begun;

static enum err_code exec_check(void *arg, const char *namespace_, const char *name, const char *container,
                                bool attach, struct err *e)
{
    (void)arg;
    (void)attach;
    (void)namespace_;
    if (strcmp(name, "web") != 0)
        return err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", name);
    if (container != NULL && strcmp(container, "gone") == 0)
        return err_set(e, ERR_PRECONDITION, "container \"gone\" in pod \"web\" is not running: Completed");
    return ERR_OK;
}

static struct status_exec *exec_start(void *arg, const struct status_exec_spec *spec, struct err *e)
{
    if (spec->command[0][0] == '!') {
        err_set(e, ERR_UNAVAILABLE, "the agent is shutting down");
        return NULL;
    }
    process = (struct status_exec){ .spec = *spec, .fixture = arg };
    begun++;
    for (size_t i = 0; spec->command[i] != NULL; i++)
        snprintf(process.command + strlen(process.command), sizeof(process.command) - strlen(process.command),
                 "[%s]", spec->command[i]);
    snprintf(process.container, sizeof(process.container), "%s",
             spec->container != NULL ? spec->container : "-");
    process.in = spec->stdin_fd >= 0 ? dup(spec->stdin_fd) : -1;
    process.out = spec->stdout_fd >= 0 ? dup(spec->stdout_fd) : -1;
    process.err = spec->stderr_fd >= 0 ? dup(spec->stderr_fd) : -1;
    return &process;
}

static void exec_cancel(struct status_exec *x)
{
    x->cancelled = true;
}

static void close_all(struct status_exec *x)
{
    int *fds[] = { &x->in, &x->out, &x->err };

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (*fds[i] >= 0) {
            close(*fds[i]);
            *fds[i] = -1;
        }
}

static void end(enum err_code code, const char *text, int exit_code)
{
    struct err e = { 0 };

    if (code != ERR_OK)
        err_set(&e, code, "%s", text);
    close_all(&process);
    process.spec.on_done(&e, exit_code, process.spec.owner);
}

/* The next read() of a pipe fails. */
static int pipe_errno;

ssize_t read(int fd, void *to, size_t n)
{
    struct stat st;

    if (pipe_errno != 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
        errno = pipe_errno;
        pipe_errno = 0;
        return -1;
    }
    return syscall(SYS_read, fd, to, n);
}

static int setup_exec(void **state)
{
    struct fixture *f;

    if (setup(state) != 0)
        return -1;
    f = *state;
    f->provider.exec_check = exec_check;
    f->provider.exec = exec_start;
    f->provider.exec_cancel = exec_cancel;
    status_server_close(f->server);
    while (uv_run(&f->loop, UV_RUN_NOWAIT) != 0)
        ;
    begun = 0;
    return open_server(f, &f->server, &(struct err){ 0 }) == ERR_OK ? 0 : -1;
}

/* ---- the client ------------------------------------------------------------------------------ */

static void ask_exec(struct client *c, const char *query, const char *subprotocols)
{
    char request[2048];

    snprintf(request, sizeof(request),
             "GET " PATH
             "?%s HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
             "Sec-WebSocket-Protocol: %s\r\n\r\n",
             query, subprotocols);
    send_text(c, request);
}

static struct client open_exec(struct fixture *f, const char *query)
{
    struct client c = dial(f);

    ask_exec(&c, query, "v5.channel.k8s.io");
    to_see(f, &c, "\r\n\r\n");
    assert_int_equal(strncmp(c.got.p, "HTTP/1.1 101 Switching Protocols\r\n", 34), 0);
    forget(&c);
    return c;
}

static void send_frame(struct client *c, unsigned char opcode, const void *data, size_t n)
{
    static const unsigned char mask[4] = { 0x11, 0x22, 0x33, 0x44 };
    size_t extra = n < 126 ? 0 : n < 65536 ? 2 : 8, head = 2 + extra;
    unsigned char *frame = malloc(head + 4 + n);

    frame[0] = 0x80 | opcode;
    frame[1] = 0x80 | (unsigned char)(extra == 0 ? n : extra == 2 ? 126 : 127);
    for (size_t i = 0; i < extra; i++)
        frame[2 + i] = (unsigned char)(n >> (8 * (extra - 1 - i)));
    memcpy(frame + head, mask, 4);
    for (size_t i = 0; i < n; i++)
        frame[head + 4 + i] = ((const unsigned char *)data)[i] ^ mask[i % 4];
    assert_int_equal(send(c->fd, frame, head + 4 + n, MSG_NOSIGNAL), head + 4 + n);
    free(frame);
}

#define SEND(c, text) send_frame(c, WSLAY_BINARY_FRAME, text, sizeof(text) - 1)

struct reading {
    struct buf text;
    int wanted, now;
};

static void read_piece(const struct ws_piece *piece, void *arg)
{
    struct reading *r = arg;
    size_t skip = piece->first && piece->n > 0;

    if (skip > 0)
        r->now = (unsigned char)*piece->p;
    if (r->now == r->wanted)
        buf_add(&r->text, piece->p + skip, piece->n - skip);
}

/* All messages of a channel that have come, joined; `*ret_closed`: the code of a close frame, 0: none. */
static char *channel(struct client *c, int wanted, unsigned *ret_closed)
{
    struct reading r = { .text = BUF_INIT(64 << 20), .wanted = wanted, .now = -1 };
    struct ws ws;

    assert_true(ws_init(&ws, WS_CLIENT, 1024, read_piece, &r));
    assert_true(ws_receive(&ws, c->got.p, c->got.n) || ws.close_code != 0);
    *ret_closed = ws.close_code;
    ws_done(&ws);
    return buf_detach(&r.text);
}

static void expect_channel(struct client *c, int wanted, const char *text, unsigned code)
{
    unsigned closed;
    str_auto got = channel(c, wanted, &closed);

    assert_string_equal(got, text);
    assert_int_equal(closed, code);
}

/* Until the close frame has come. */
static void to_close(struct fixture *f, struct client *c)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;
    unsigned closed = 0;

    while (closed == 0) {
        assert_true(clock_mono_ms() < until && !c->closed);
        turn(f, c);
        free(channel(c, 1, &closed));
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void handshake_answers_and_passes_the_command_on(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    ask_exec(&c, "container=c&command=sh&command=-c&command=a%20b%26&stdin=1&stdout=true&stderr=1",
             "foo, v4.channel.k8s.io");
    to_see(f, &c, "\r\n\r\n");
    assert_non_null(strstr(c.got.p, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert_non_null(strstr(c.got.p, "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"));
    assert_string_equal(process.command, "[sh][-c][a b&]");
    assert_string_equal(process.container, "c");
    assert_true(process.in >= 0 && process.out >= 0 && process.err >= 0);
    forget(&c);
    process.spec.on_started(process.spec.owner);
    end(ERR_OK, "", 0);
    to_close(f, &c);
    expect_channel(&c, 3, "{\"metadata\":{},\"status\":\"Success\"}", 1000);
    hang_up(&c);
}

static void what_is_not_asked_for_is_not_there(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stderr=true");

    assert_string_equal(process.container, "-");
    assert_true(process.in < 0 && process.out < 0 && process.err >= 0);
    process.spec.on_started(process.spec.owner);
    SEND(&c, "\0nobody's"); /* no standard input was asked for */
    assert_int_equal(write(process.err, "oops", 4), 4);
    settle_for(f, &c, 20);
    end(ERR_OK, "", 1);
    to_close(f, &c);
    expect_channel(&c, 2, "oops", 1000);
    hang_up(&c);
}

static void output_waits_for_the_start_and_a_failed_start_has_none(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=nosuch&stdout=1&stderr=1");

    assert_int_equal(write(process.err, "runtime's own words\n", 20), 20);
    settle_for(f, &c, 30);
    assert_int_equal(c.got.n, 0);
    end(ERR_NOT_FOUND, "exec: nosuch: not found", 127);
    to_close(f, &c);
    expect_channel(&c, 2, "coracle: cannot start the process: exec: nosuch: not found\n", 1000);
    expect_channel(
        &c, 3,
        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated with non-zero exit code: "
        "exit status 127\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":"
        "\"ExitCode\",\"message\":\"127\"}]}}",
        1000);
    hang_up(&c);
}

static void failure_of_the_agent_is_an_internal_error(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdout=1&stderr=1");

    end(ERR_INTERNAL, "out of everything", 0);
    to_close(f, &c);
    expect_channel(&c, 2, "", 1000);
    expect_channel(
        &c, 3,
        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Internal error occurred: error executing "
        "command in container: out of everything\",\"reason\":\"InternalError\",\"code\":500}",
        1000);
    hang_up(&c);
}

static void output_that_cannot_be_read_is_no_success(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdout=1&stderr=1");

    process.spec.on_started(process.spec.owner);
    pipe_errno = ENOMEM;
    assert_int_equal(write(process.out, "words\n", 6), 6);
    settle_for(f, &c, 30);
    assert_int_equal(pipe_errno, 0);
    end(ERR_OK, "", 0);
    to_close(f, &c);
    expect_channel(
        &c, 3,
        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Internal error occurred: error executing "
        "command in container: a part of its output is lost: read: Cannot allocate memory\",\"reason\":"
        "\"InternalError\",\"code\":500}",
        1000);
    hang_up(&c);
}

static void input_goes_through_and_half_close_ends_it(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdin=1&stdout=1");
    char text[64];

    SEND(&c, "\0one ");
    SEND(&c, "\0two");
    SEND(&c, "\xff\x05"); /* of a channel that there is not */
    SEND(&c, "\xff");
    SEND(&c, "\x09nobody's");
    process.spec.on_started(process.spec.owner);
    settle_for(f, &c, 20);
    assert_int_equal(read(process.in, text, sizeof(text)), 7);
    assert_memory_equal(text, "one two", 7);
    SEND(&c, "\xff\x00");
    SEND(&c, "\0late");
    settle_for(f, &c, 20);
    assert_int_equal(read(process.in, text, sizeof(text)), 0);
    end(ERR_OK, "", 0);
    to_close(f, &c);
    hang_up(&c);
}

static void process_that_does_not_read_stops_the_client_and_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdin=1&stdout=1");
    struct status_server *s = f->server;
    char block[4097];
    size_t sent = 0, got = 0, max = 0;

    process.spec.on_started(process.spec.owner);
    block[0] = 0;
    memset(block + 1, 'x', 4096);
    fcntl(c.fd, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 5000; i++) {
        struct pollfd p = { c.fd, POLLOUT, 0 };
        const struct conn *conn = LIST_FIRST(&s->conns);

        if (poll(&p, 1, 0) == 1 && sent < 500) {
            int room = 0;

            ioctl(c.fd, TIOCOUTQ, &room);
            if (room < 60000) {
                send_frame(&c, WSLAY_BINARY_FRAME, block, sizeof(block));
                sent++;
            }
        }
        uv_run(&f->loop, UV_RUN_NOWAIT);
        if (conn != NULL && conn->in.n > max)
            max = conn->in.n;
    }
    assert_true(sent < 200); /* 4 KiB each: what pipe, socket and daemon hold */
    assert_true(max < 200 * 1024);
    SEND(&c, "\xff\x00");
    fcntl(process.in, F_SETFL, O_NONBLOCK);
    for (uint64_t until = clock_mono_ms() + DEADLINE_MS;;) {
        char text[65536];
        ssize_t n = read(process.in, text, sizeof(text));

        if (n == 0)
            break;
        got += n > 0 ? (size_t)n : 0;
        uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_true(clock_mono_ms() < until);
    }
    assert_int_equal(got, sent * 4096);
    end(ERR_OK, "", 0);
    to_close(f, &c);
    hang_up(&c);
}

static void client_that_leaves_ends_the_process_even_while_it_is_not_read(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdin=1&stdout=1"), other;
    static char block[100 * 1024];

    process.spec.on_started(process.spec.owner);
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            send_frame(&c, WSLAY_BINARY_FRAME, block, sizeof(block));
        settle_for(f, &c, 20);
    }
    assert_false(process.cancelled);
    close(c.fd);
    other = dial(f);
    settle_for(f, &other, 50);
    assert_true(process.cancelled);
    end(ERR_CANCELLED, "cancelled", 0);
    hang_up(&other);
    buf_done(&c.got);
}

static void client_that_does_not_read_stops_the_output(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdout=1"), other = dial(f);
    static char block[16 * 1024];
    unsigned closed;
    size_t written = 0;

    process.spec.on_started(process.spec.owner);
    fcntl(process.out, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 2000; i++) {
        ssize_t n = write(process.out, block, sizeof(block));

        written += n > 0 ? (size_t)n : 0;
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_true(written < 2 << 20);
    end(ERR_OK, "", 0);
    settle_for(f, &other, 300); /* longer than a grandchild is waited for */
    to_close(f, &c);
    str_auto got = channel(&c, 1, &closed);
    unsigned count = 0;
    for (size_t i = 0; i < c.got.n; i++)
        count += c.got.p[i] == '\0';
    assert_true(count >= written); /* all of it came */
    assert_non_null(got);
    hang_up(&c);
    hang_up(&other);
}

static void grandchild_with_the_pipe_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdout=1");
    int kept;

    process.spec.on_started(process.spec.owner);
    kept = dup(process.out);
    assert_int_equal(write(kept, "last words", 10), 10);
    end(ERR_OK, "", 0);
    to_close(f, &c);
    expect_channel(&c, 1, "last words", 1000);
    close(kept);
    hang_up(&c);
}

static void terminal_gets_its_size_also_when_it_comes_first(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=sh&stdin=1&stdout=1&stderr=1&tty=1");
    struct winsize size = { 0 };
    char text[64];
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    assert_true(process.spec.tty && process.in < 0 && process.out < 0 && process.err < 0);
    SEND(&c, "\x04{\"Width\":91,\"Height\":17}");
    SEND(&c, "\0typed\n");
    settle_for(f, &c, 20);
    process.spec.on_terminal(master, process.spec.owner);
    process.spec.on_started(process.spec.owner);
    ioctl(slave, TIOCGWINSZ, &size);
    assert_int_equal(size.ws_col, 91);
    assert_int_equal(size.ws_row, 17);
    assert_int_equal(read(slave, text, sizeof(text)), 6);
    SEND(&c, "\x04{\"Width\":5,\"Height\":6}");
    SEND(&c, "\x04{\"Width\":0,\"Height\":6}");
    SEND(&c, "\x04{\"Width\":\"5\"}");
    SEND(&c, "\x04{{{");
    SEND(&c, "\xff\x00");
    settle_for(f, &c, 20);
    ioctl(slave, TIOCGWINSZ, &size);
    assert_int_equal(size.ws_col, 5);
    assert_int_equal(read(slave, text, sizeof(text)), 0); /* the end of the input, as by Ctrl-D */
    assert_int_equal(write(slave, "out\n", 4), 4);
    settle_for(f, &c, 20);
    close(slave);
    end(ERR_OK, "", 130);
    to_close(f, &c);
    expect_channel(&c, 1, "typed\r\nout\r\n", 1000);
    hang_up(&c);
}

static void pings_are_answered_and_a_close_ends_the_process(void **state)
{
    static const char code[] = { 0x03, (char)0xe9 };
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdout=1");

    send_frame(&c, WSLAY_PING, "are you there", 13);
    to_see(f, &c,
           "\x8a\x0d"
           "are you there");
    forget(&c);
    send_frame(&c, WSLAY_CONNECTION_CLOSE, code, 2);
    to_see(f, &c, NULL);
    assert_int_equal(c.got.n, 4);
    assert_memory_equal(c.got.p, "\x88\x02\x03\xe9", 4);
    assert_true(process.cancelled);
    end(ERR_CANCELLED, "cancelled", 0);
    hang_up(&c);
}

static void broken_frames_close_the_connection_with_a_code(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        unsigned code;
    } cases[] = {
        { "\x82\x01x", 3, 1002 },
        { "\xf2\x80mask", 6, 1002 },
        { "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffmask", 14, 1002 },
        { "GET / HTTP/1.1\r\n\r\n", 18, 1002 },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct client c = open_exec(f, "command=x&stdin=1&stdout=1");

        assert_int_equal(send(c.fd, cases[i].bytes, cases[i].n, MSG_NOSIGNAL), cases[i].n);
        to_see(f, &c, NULL);
        assert_true(c.got.n >= 4);
        assert_int_equal((unsigned char)c.got.p[2] << 8 | (unsigned char)c.got.p[3], cases[i].code);
        assert_true(process.cancelled);
        end(ERR_CANCELLED, "cancelled", 0);
        hang_up(&c);
    }
}

static void long_size_is_refused(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdin=1&stdout=1&tty=1");
    char text[2000];

    memset(text, ' ', sizeof(text));
    text[0] = 4;
    send_frame(&c, WSLAY_BINARY_FRAME, text, sizeof(text));
    to_see(f, &c, NULL);
    assert_non_null(strstr(c.got.p, "the message is too long"));
    end(ERR_CANCELLED, "cancelled", 0);
    hang_up(&c);
}

static void frames_sent_with_the_request_are_not_lost(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);
    char text[16];

    ask_exec(&c, "command=x&stdin=1&stdout=1", "v5.channel.k8s.io");
    SEND(&c, "\0early");
    SEND(&c, "\xff\x00");
    to_see(f, &c, "\r\n\r\n");
    settle_for(f, &c, 20);
    assert_int_equal(read(process.in, text, sizeof(text)), 5);
    assert_int_equal(read(process.in, text, sizeof(text)), 0);
    forget(&c);
    process.spec.on_started(process.spec.owner);
    end(ERR_OK, "", 0);
    to_close(f, &c);
    hang_up(&c);
}

static void questions_that_cannot_be_answered_are_refused_before_the_upgrade(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *query, *subprotocols, *want;
    } cases[] = {
        { "command=x", "v5.channel.k8s.io", "you must specify at least 1 of stdin, stdout, stderr" },
        { "stdout=1", "v5.channel.k8s.io", "you must specify at least one command for the container" },
        { "command=x&stdout=2", "v5.channel.k8s.io", "stdout: \\\"2\\\" is neither true nor false" },
        { "command=x&stdout=1&container=gone", "nothing",
          "container \\\"gone\\\" in pod \\\"web\\\" is not running" },
        { "command=x&stdout=1", "v3.channel.k8s.io", "no subprotocol that is served here" },
        { "command=!&stdout=1", "v5.channel.k8s.io", "the agent is shutting down" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct client c = dial(f);

        ask_exec(&c, cases[i].query, cases[i].subprotocols);
        to_see(f, &c, cases[i].want);
        assert_null(strstr(c.got.p, " 101 "));
        to_see(f, &c, NULL);
        hang_up(&c);
    }
    expect(f, "GET " PATH "?command=x&stdout=1", "400 Bad Request", "Upgrade request required");
    expect(f, "POST " PATH "?command=x&stdout=1", "400 Bad Request", "Upgrade request required");
    expect(f, "DELETE " PATH "?command=x&stdout=1", "405 Method Not Allowed", "not allowed");
    expect(f, "GET /api/v1/namespaces/default/pods/absent/exec?command=x&stdout=1", "404 Not Found",
           "pods \\\"absent\\\" not found");
    assert_int_equal(begun, 0);
}

static void others_than_root_are_refused(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    settle_for(f, &c, 20);
    LIST_FIRST(&f->server->conns)->role = PEER_READER;
    f->server->n_others++;
    ask_exec(&c, "command=x&stdout=1", "v5.channel.k8s.io");
    to_see(f, &c, "only root may run something in containers through this socket");
    assert_int_equal(strncmp(c.got.p, "HTTP/1.1 403 ", 13), 0);
    assert_int_equal(begun, 0);
    hang_up(&c);
}

static void server_that_closes_cancels_and_waits_for_the_process(void **state)
{
    struct fixture *f = *state;
    struct client c = open_exec(f, "command=x&stdin=1&stdout=1");

    process.spec.on_started(process.spec.owner);
    status_server_close(f->server);
    settle_for(f, &c, 30);
    assert_true(process.cancelled);
    end(ERR_CANCELLED, "cancelled", 0);
    assert_int_equal(open_server(f, &f->server, &(struct err){ 0 }), ERR_OK);
    hang_up(&c);
}

static void words_of_a_helper_need_not_be_utf8(void **state)
{
    struct err e = { 0 }, ignored = { 0 };
    json_auto_t *status = NULL;
    char *text;

    (void)state;
    err_set(&e, ERR_INTERNAL, "open tmp/\xff: no");
    text = forward_status(&e);
    assert_non_null(text);
    assert_int_equal(json_parse(text, strlen(text), 4096, &status, "status", &ignored), ERR_OK);
    assert_string_equal(json_str(status, "message"), "open tmp/\xef\xbf\xbd: no");
    assert_string_equal(json_str(status, "status"), "Failure");
    free(text);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_exec, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(handshake_answers_and_passes_the_command_on),
        T(what_is_not_asked_for_is_not_there),
        T(output_waits_for_the_start_and_a_failed_start_has_none),
        T(failure_of_the_agent_is_an_internal_error),
        T(output_that_cannot_be_read_is_no_success),
        T(input_goes_through_and_half_close_ends_it),
        T(process_that_does_not_read_stops_the_client_and_loses_nothing),
        T(client_that_leaves_ends_the_process_even_while_it_is_not_read),
        T(client_that_does_not_read_stops_the_output),
        T(grandchild_with_the_pipe_is_not_waited_for),
        T(terminal_gets_its_size_also_when_it_comes_first),
        T(pings_are_answered_and_a_close_ends_the_process),
        T(broken_frames_close_the_connection_with_a_code),
        T(long_size_is_refused),
        T(frames_sent_with_the_request_are_not_lost),
        T(questions_that_cannot_be_answered_are_refused_before_the_upgrade),
        T(others_than_root_are_refused),
        T(server_that_closes_cancels_and_waits_for_the_process),
        cmocka_unit_test(words_of_a_helper_need_not_be_utf8),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
