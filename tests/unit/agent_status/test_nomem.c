/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the server can fail: the client gets its answer, a 500, or a closed connection; nothing
 * leaks. */
#include "harness.h"

#include "agent/status/internal.h"

#include "tests/unit/base/nomem.h"

/* One request, from the connection to its end; what came back, NUL-terminated. No allocation of its own. */
static void exchange(struct fixture *f, const char *request, char *ret, size_t size)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t got = 0;

    strcpy(address.sun_path, f->path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
        abort();
    for (int i = 0; i < 20; i++) {
        ssize_t n;

        uv_run(&f->loop, UV_RUN_NOWAIT);
        n = recv(fd, ret + got, size - got - 1, MSG_DONTWAIT);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0)
            break;
    }
    ret[got] = '\0';
    close(fd);
    for (int i = 0; i < 5; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void answer_or_fail(struct fixture *f, const char *url, const char *want)
{
    char request[300], text[8000];
    bool ok = false;

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nConnection: close\r\n\r\n", url);
    exchange(f, request, text, sizeof(text)); /* libuv and the server's tables have their room now */
    assert_non_null(strstr(text, want));
    NOMEM_EACH(ok, {
        exchange(f, request, text, sizeof(text));
        ok = strstr(text, want) != NULL;
        if (!ok && text[0] != '\0' && strstr(text, " 500 ") == NULL && strstr(text, " 503 ") == NULL &&
            strstr(text, " 507 ") == NULL && strstr(text, "chunked") == NULL) {
            print_error("%s: %s\n", url, text);
            abort();
        }
        /* A client that there was no memory for waits until somebody else goes. */
        if (!uv_is_active((uv_handle_t *)&f->server->listener))
            exchange(f, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", text, sizeof(text));
    });
}

static void requests_are_answered_completely_or_with_an_error(void **state)
{
    struct fixture *f = *state;

    answer_or_fail(f, "/healthz", "\r\n\r\nok");
    answer_or_fail(f, "/version", "gitVersion");
    answer_or_fail(f, "/metrics", "fake_metric 1\n");
    answer_or_fail(
        f, "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb&fieldSelector=metadata.name%3Dweb",
        "\"name\":\"web\"");
    answer_or_fail(f, "/api/v1/namespaces/default/pods/absent", "pods \\\"absent\\\" not found");
    answer_or_fail(f, "/debug/operations", "{\"operations\":[]}");
    answer_or_fail(f, "/nothing", "could not find");
}

static void a_watch_begins_completely_or_ends(void **state)
{
    struct fixture *f = *state;

    answer_or_fail(f, "/api/v1/namespaces/other/pods?watch=1", "{\"type\":\"ADDED\"");
}

/* ---- exec ------------------------------------------------------------------------------------ */

struct status_exec {
    struct status_exec_spec spec;
    int in, out;
    bool live, started;
};

static struct status_exec process;

static enum err_code exec_check(void *arg, const char *namespace_, const char *name, const char *container,
                                bool attach, struct err *e)
{
    (void)arg;
    (void)attach;
    (void)namespace_;
    (void)name;
    (void)container;
    (void)e;
    return ERR_OK;
}

static struct status_exec *exec_start(void *arg, const struct status_exec_spec *spec, struct err *e)
{
    (void)arg;
    (void)e;
    process = (struct status_exec){
        .spec = *spec, .in = dup(spec->stdin_fd), .out = dup(spec->stdout_fd), .live = true
    };
    return &process;
}

static void exec_cancel(struct status_exec *x)
{
    (void)x;
}

static void end_process(int exit_code)
{
    const struct err fine = { 0 };

    close(process.in);
    close(process.out);
    process.live = false;
    process.spec.on_done(&fine, exit_code, process.spec.owner);
}

/* The whole life of an exec: 5 in, 5 out, exit code 7.  True when the client got all of it. */
static bool exec_exchange(struct fixture *f)
{
    static const char request[] =
        "GET /api/v1/namespaces/default/pods/web/exec?command=x&stdin=1&stdout=1 HTTP/1.1\r\nConnection: "
        "Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
        "\x82\x86\0\0\0\0\0hello\x82\x82\0\0\0\0\xff\0\x89\x80\0\0\0\0";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[4000];
    size_t got = 0;

    strcpy(address.sun_path, f->path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
        abort();
    for (int i = 0; i < 30; i++) {
        ssize_t n;

        uv_run(&f->loop, UV_RUN_NOWAIT);
        if (process.live && !process.started) {
            process.started = true;
            process.spec.on_started(process.spec.owner);
            if (write(process.out, "world", 5) != 5 &&
                errno != EPIPE) /* EPIPE: the connection did not live */
                abort();
        } else if (process.live && i > 10) {
            end_process(7);
        }
        n = recv(fd, text + got, sizeof(text) - got, MSG_DONTWAIT);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0)
            break;
    }
    close(fd);
    if (process.live)
        end_process(7);
    for (int i = 0; i < 5; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    return memmem(text, got, "\x82\x06\x01world", 8) != NULL &&
           memmem(text, got, "NonZeroExitCode", 15) != NULL;
}

static void an_exec_comes_through_or_ends_and_nothing_is_left(void **state)
{
    struct fixture *f = *state;
    bool ok = false;

    f->server->provider.exec_check = exec_check;
    f->server->provider.exec = exec_start;
    f->server->provider.exec_cancel = exec_cancel;
    assert_true(exec_exchange(f));
    NOMEM_EACH(ok, {
        ok = exec_exchange(f);
        if (f->server->n_execs != 0)
            abort();
        if (!uv_is_active((uv_handle_t *)&f->server->listener)) /* whoever there was no memory for waits until
                                                                   somebody else goes */
            ok = exec_exchange(f) && false;
    });
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(requests_are_answered_completely_or_with_an_error),
        T(a_watch_begins_completely_or_ends),
        T(an_exec_comes_through_or_ends_and_nothing_is_left),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return NOMEM_RUN(tests);
}
