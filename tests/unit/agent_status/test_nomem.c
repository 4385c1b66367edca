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
        if (f->server->unaccepted)
            exchange(f, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", text, sizeof(text));
    });
}

static void need_nomem(void)
{
    if (!NOMEM_USABLE) {
        print_message("skipped: the sanitizer's malloc cannot be replaced\n");
        skip();
    }
}

static void requests_are_answered_completely_or_with_an_error(void **state)
{
    struct fixture *f = *state;

    need_nomem();
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

    need_nomem();
    answer_or_fail(f, "/api/v1/namespaces/other/pods?watch=1", "{\"type\":\"ADDED\"");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(requests_are_answered_completely_or_with_an_error),
        T(a_watch_begins_completely_or_ends),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
