/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "agent/status/internal.h"

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void the_socket_has_its_mode_and_goes_with_the_server(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    status_server_close(f->server);
    f->server = NULL;
    assert_int_equal(stat(f->path, &st), -1);
}

static void a_second_daemon_is_refused_and_the_first_is_not_disturbed(void **state)
{
    struct fixture *f = *state;
    struct status_server *second = NULL;
    struct err e = { 0 };
    char text[200];

    assert_int_equal(open_server(f, &second, &e), ERR_EXISTS);
    snprintf(text, sizeof(text), "another coracle is running on %s", f->path);
    assert_string_equal(e.text, text);
    expect(f, "GET /healthz", "200 OK", "\r\n\r\nok");
}

static void a_socket_that_a_dead_daemon_left_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct err e = { 0 };
    int fd;

    status_server_close(f->server);
    strcpy(address.sun_path, f->path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    assert_int_equal(open_server(f, &f->server, &e), ERR_OK);
    expect(f, "GET /healthz", "200 OK", "ok");
}

static void a_socket_that_only_a_child_of_a_dead_daemon_holds_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct err e = { 0 };
    int hold[2];
    pid_t daemon;

    status_server_close(f->server);
    strcpy(address.sun_path, f->path);
    assert_int_equal(pipe(hold), 0);
    daemon = fork();
    if (daemon == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char end;

        close(hold[1]);
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 5) != 0)
            _exit(1);
        if (fork() == 0)
            (void)!read(hold[0], &end, 1);
        _exit(0);
    }
    close(hold[0]);
    assert_int_equal(waitpid(daemon, NULL, 0), daemon);
    assert_int_equal(open_server(f, &f->server, &e), ERR_OK);
    expect(f, "GET /healthz", "200 OK", "ok");
    close(hold[1]);
}

static void what_is_no_socket_is_not_replaced_and_a_long_path_is_refused(void **state)
{
    struct fixture *f = *state;
    struct status_server *second = NULL;
    struct err e = { 0 };
    char text[200];

    snprintf(f->path, sizeof(f->path), "%s/file", f->dir);
    close(open(f->path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(open_server(f, &second, &e), ERR_PRECONDITION);
    snprintf(text, sizeof(text), "status socket %s: exists and is not a socket", f->path);
    assert_string_equal(e.text, text);

    memset(f->path, 'x', 110);
    memcpy(f->path, "/tmp/", 5);
    f->path[110] = '\0';
    e = (struct err){ 0 };
    assert_int_equal(open_server(f, &second, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "its path is longer than 103 bytes"));
}

/* As another user, from a child: 200, 403, ... or 0 when the socket cannot be reached. */
static int ask_as(struct fixture *f, uid_t uid, gid_t supplementary, const char *line)
{
    int ends[2], code = -1;
    pid_t child;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    if (child == 0) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0), got = 0;
        char text[400];

        strcpy(address.sun_path, f->path);
        snprintf(text, sizeof(text), "%s HTTP/1.1\r\n\r\n", line);
        if (setgroups(1, &supplementary) == 0 && setresgid(uid, uid, uid) == 0 &&
            setresuid(uid, uid, uid) == 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
            write(fd, text, strlen(text)) > 0 && read(fd, text, sizeof(text)) > 12)
            got = atoi(text + strlen("HTTP/1.1 "));
        _exit(write(ends[1], &got, sizeof(got)) != sizeof(got));
    }
    close(ends[1]);
    for (uint64_t until = clock_mono_ms() + DEADLINE_MS; code < 0 && clock_mono_ms() < until;) {
        struct pollfd fd = { ends[0], POLLIN, 0 };

        uv_run(&f->loop, UV_RUN_NOWAIT);
        if (poll(&fd, 1, 5) == 1 && read(ends[0], &code, sizeof(code)) != sizeof(code))
            code = -2;
    }
    close(ends[0]);
    waitpid(child, NULL, 0);
    return code;
}

static void the_rights_hold_for_real_peers(void **state)
{
    struct status_options o = { .loop = NULL, .group = "4242" };
    struct fixture *f = *state;
    struct err e = { 0 };
    struct stat st;

    if (geteuid() != 0) {
        print_message("skipped: needs other users, so root\n");
        skip();
    }
    status_server_close(f->server);
    o.loop = &f->loop;
    o.path = f->path;
    o.provider = &f->provider;
    assert_int_equal(status_server_open(&f->server, &o, &e), ERR_OK);
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0660);
    assert_int_equal(st.st_gid, 4242);
    chmod(f->dir, 0755);

    assert_int_equal(ask_as(f, 0, 0, "GET /healthz"), 200);
    assert_int_equal(ask_as(f, 0, 0, "DELETE /images?name=x"), 200);
    assert_int_equal(ask_as(f, 65534, 4242, "GET /healthz"), 200);
    assert_int_equal(ask_as(f, 65534, 4242, "DELETE /images?name=x"), 403);
    assert_int_equal(ask_as(f, 65534, 65534, "GET /healthz"), 0); /* the mode keeps it out */
    chmod(f->path, 0666);
    assert_int_equal(ask_as(f, 65534, 65534, "GET /healthz"), 403); /* and so do we */
}

static void a_group_that_does_not_exist_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct status_options o = {
        .loop = &f->loop, .path = f->path, .group = "no-such-group", .provider = &f->provider
    };
    struct status_server *s = NULL;
    struct err e = { 0 };

    assert_int_equal(status_server_open(&s, &o, &e), ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "group \"no-such-group\" does not exist"));
}

static void root_may_all_the_group_may_read_others_nothing(void **state)
{
    struct status_server s = { .has_group = true, .gid = 4242 };
    const gid_t groups[] = { 7, 4242 };

    (void)state;
    assert_int_equal(server_peer_role(&s, 0, 0, NULL, 0), PEER_ROOT);
    assert_int_equal(server_peer_role(&s, 54321, 4242, NULL, 0), PEER_READER);
    assert_int_equal(server_peer_role(&s, 54321, 1, groups, 2), PEER_READER);
    assert_int_equal(server_peer_role(&s, 54321, 1, groups, 1), PEER_NOBODY);
    s.has_group = false;
    assert_int_equal(server_peer_role(&s, 54321, 4242, groups, 2), PEER_NOBODY);
}

static void simple_paths_answer(void **state)
{
    struct fixture *f = *state;

    expect(f, "GET /healthz", "200 OK", "Content-Length: 2\r\n\r\nok");
    expect(f, "GET /readyz", "503 ", "{\"checks\":[]}");
    f->ready = true;
    expect(f, "GET /readyz", "200 OK", "{\"checks\":[]}");
    expect(f, "GET /version", "200 OK", "\"gitVersion\":\"v" CORACLE_VERSION "\"");
    expect(f, "GET /metrics", "200 OK", "coracle_status_requests_total 5\n");
    expect(f, "GET /metrics", "200 OK", "fake_metric 1\n");
    expect(f, "GET /metrics/cadvisor", "200 OK", "\r\n\r\nfake_cadvisor 2\n");
    expect(f, "GET /metrics/resource", "200 OK", "\r\n\r\nfake_resource 3\n");
    expect(f, "GET /metrics/probes", "200 OK", "\r\n\r\nfake_probes 4\n");
    expect(f, "GET /stats/summary", "200 OK", "{\"node\":{\"basic\":false}}");
    expect(f, "GET /stats/summary?only_cpu_and_memory=true", "200 OK", "{\"node\":{\"basic\":true}}");
    expect(f, "GET /stats/summary?only_cpu_and_memory=perhaps", "400 ", "only_cpu_and_memory");
    expect(f, "GET /manifests", "200 OK", "{\"items\":[{\"name\":\"web.yaml\"}]}");
    expect(f, "GET /api/v1/nodes", "200 OK",
           "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[{");
    expect(f, "GET /api/v1/namespaces/a/configmaps", "200 OK",
           "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}");
    expect(f, "GET /api/v1/namespaces/default/secrets/here", "200 OK", "{\"metadata\":{\"name\":\"here\"");
    expect(f, "GET /api/v1/namespaces/a/secrets/here", "404 Not Found", "secrets \\\"here\\\" not found");
    expect(f, "GET /apis/scheduling.k8s.io/v1/priorityclasses/x", "404 Not Found",
           "\"details\":{\"name\":\"x\",\"kind\":\"priorityclasses.scheduling.k8s.io\"}");
    expect(f, "DELETE /api/v1/nodes/here", "405 Method Not Allowed", "Allow: GET, HEAD");
    expect(f, "GET /images?name=here", "200 OK", "{\"items\":[{\"id\":\"sha256:1\"}]}");
    expect(f, "GET /images?name=no", "404 Not Found", "no such image: \\\"no\\\"");
    expect(f, "GET /configz", "200 OK", "{\"kubeletconfig\":{\"maxPods\":110}}");
    expect(f, "GET /images", "200 OK", "{\"items\":[{\"id\":\"sha256:1\"}]}");
    expect(f, "GET /debug/operations", "200 OK", "{\"operations\":[]}");
    expect(f, "GET /explain/default/web", "200 OK", "{\"pod\":\"web\",\"steps\":[]}");
    expect(f, "GET /readyz?pretty=true", "200 OK", "{\n  \"checks\": []\n}");
}

static void pods_are_listed_and_selected(void **state)
{
    struct fixture *f = *state;
    char *answer = ask(f, "GET /api/v1/pods");

    assert_non_null(
        strstr(answer, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\""));
    assert_non_null(strstr(answer, "\"name\":\"db\""));
    assert_non_null(strstr(answer, "\"namespace\":\"other\""));
    free(answer);

    answer = ask(f, "GET /api/v1/namespaces/default/pods?labelSelector=app%3Dweb");
    assert_non_null(strstr(answer, "\"name\":\"web\""));
    assert_null(strstr(answer, "\"name\":\"db\""));
    assert_null(strstr(answer, "\"namespace\":\"other\""));
    free(answer);

    answer = ask(f, "GET /api/v1/pods?fieldSelector=metadata.name!%3Dweb,status.phase%3DRunning");
    assert_non_null(strstr(answer, "\"name\":\"db\""));
    assert_null(strstr(answer, "\"name\":\"web\""));
    free(answer);

    f->made = 0; /* the name alone excludes the others */
    answer = ask(f, "GET /api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Ddb");
    assert_non_null(strstr(answer, "\"name\":\"db\""));
    assert_null(strstr(answer, "\"name\":\"web\""));
    assert_int_equal(f->made, 1);
    free(answer);

    expect(f, "GET /api/v1/namespaces/other/pods/web", "200 OK", "\"namespace\":\"other\"");
    expect(f, "GET /api/v1/namespaces/other/events", "200 OK", "Killing");
    expect(f, "GET /api/v1/events?fieldSelector=involvedObject.name%3Dweb,reason%3DStarted", "200 OK",
           "Started");
}

static void errors_are_status_objects(void **state)
{
    struct fixture *f = *state;

    expect(f, "GET /api/v1/namespaces/default/pods/absent", "404 Not Found",
           "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
           "\"pods \\\"absent\\\" not "
           "found\",\"reason\":\"NotFound\",\"details\":{\"name\":\"absent\",\"kind\":\"pods\"},"
           "\"code\":404}");
    expect(f, "GET /explain/default/absent", "404 Not Found", "pods \\\"absent\\\" not found");
    expect(f, "GET /nothing", "404 Not Found", "the server could not find the requested resource");
    expect(f, "PUT /api/v1/pods", "405 Method Not Allowed", "Allow: GET, HEAD\r\n");
    expect(f, "PATCH /images", "405 Method Not Allowed", "Allow: GET, HEAD, POST, DELETE\r\n");
    expect(f, "GET /api/v1/pods?labelSelector=a%20b%20c", "400 Bad Request", "\"reason\":\"BadRequest\"");
    expect(f, "GET /api/v1/pods?fieldSelector=spec.secret%3D1", "400 Bad Request",
           "field label not supported: spec.secret");
    expect(f, "GET /api/v1/pods?watch=perhaps", "400 Bad Request",
           "watch: \\\"perhaps\\\" is neither true nor false");
    expect(f, "GET /%zz", "400 Bad Request", "the URL cannot be understood");
    json_decref(f->pods);
    f->pods = NULL;
    expect(f, "GET /api/v1/pods", "503 Service Unavailable", "not started yet");
}

static void oversized_and_foreign_input_is_refused_with_its_own_code(void **state)
{
    struct fixture *f = *state;
    char *line = malloc(HTTP_URL_MAX + 100);
    struct client c = dial(f);

    sprintf(line, "GET /%0*d HTTP/1.1\r\n\r\n", HTTP_URL_MAX + 10, 0);
    send_text(&c, line);
    to_see(f, &c, "414 URI Too Long");
    to_see(f, &c, NULL);
    hang_up(&c);

    c = dial(f);
    send_text(&c, "POST /images?source=x HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n");
    for (int i = 0; i < 10; i++) {
        sprintf(line, "%08000d", 0);
        send_text(&c, line);
    }
    to_see(f, &c, "413 Content Too Large");
    to_see(f, &c, NULL);
    hang_up(&c);

    c = dial(f);
    send_text(&c, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < 6; i++) {
        sprintf(line, "X%d: %08000d\r\n", i, 0);
        send_text(&c, line);
    }
    to_see(f, &c, "431 Request Header Fields Too Large");
    to_see(f, &c, NULL);
    hang_up(&c);

    c = dial(f);
    send_text(&c, "\x16\x03\x01 this is TLS");
    to_see(f, &c, "400 Bad Request");
    to_see(f, &c, NULL);
    hang_up(&c);
    free(line);
}

static void a_connection_serves_many_requests_also_pipelined_ones(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    send_text(&c, "GET /healthz HTTP/1.1\r\n\r\nGET /explain/default/web HTTP/1.1\r\n\r\nHEAD /healthz "
                  "HTTP/1.1\r\n\r\nGET /he");
    to_see(f, &c, "\"steps\":[]}");
    assert_non_null(strstr(c.got.p, "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK"));
    to_see(f, &c,
           "steps\":[]}\nHTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: "
           "2\r\n\r\n");
    forget(&c);
    send_text(&c, "althz HTTP/1.1\r\nConnection: close\r\n\r\n");
    to_see(f, &c, NULL);
    assert_non_null(strstr(c.got.p, "Connection: close\r\nContent-Length: 2\r\n\r\nok"));
    hang_up(&c);
}

static void a_client_that_stops_sending_still_gets_its_answer(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    send_text(&c, "GET /healthz HTTP/1.1\r\n\r\n");
    shutdown(c.fd, SHUT_WR);
    to_see(f, &c, NULL);
    assert_non_null(strstr(c.got.p, "\r\n\r\nok"));
    hang_up(&c);
}

static void an_old_client_gets_no_chunks_and_the_end_is_the_end(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    f->running = false;
    send_text(&c, "GET /api/v1/namespaces/default/pods/web/log HTTP/1.0\r\n\r\n");
    to_see(f, &c, NULL);
    assert_null(strstr(c.got.p, "chunked"));
    assert_non_null(strstr(c.got.p, "200 OK"));
    hang_up(&c);
}

/* ---- images ---------------------------------------------------------------------------------- */

static void images_are_added_later_and_only_by_root(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    send_text(&c,
              "POST /images?source=docker%3A%2F%2Fbusybox%3A1 HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n");
    if (geteuid() != 0) {
        to_see(f, &c, "403 Forbidden");
        to_see(f, &c, "only root may change something through this socket");
        hang_up(&c);
        return;
    }
    for (int i = 0; f->reply == NULL && i < 100; i++)
        turn(f, &c);
    assert_string_equal(f->source, "docker://busybox:1");
    assert_string_equal(f->name, "(none)");
    settle_for(f, &c, 50);
    assert_string_equal(c.got.p, ""); /* the second request waits for the first */
    status_reply_json(f->reply, 201, json_pack("{s:s}", "id", "sha256:1"));
    to_see(f, &c, "201 Created");
    to_see(f, &c, "{\"id\":\"sha256:1\"}");
    to_see(f, &c, "\r\n\r\nok");
    hang_up(&c);

    expect(f, "POST /images", "400 Bad Request", "source: required");
    expect(f, "DELETE /images?name=old", "200 OK", "\"status\":\"Success\"");
    assert_string_equal(f->removed, "old");
    expect(f, "DELETE /images?name=used", "409 Conflict", "image used is in use by pod default/web");
    expect(f, "DELETE /images?name=absent", "404 Not Found", "image absent not found");
    expect(f, "DELETE /images", "400 Bad Request", "name: required");
}

static void an_answer_for_a_client_that_left_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    struct client c;

    if (geteuid() != 0) {
        print_message("skipped: only root may bring images\n");
        skip();
    }
    err_set(&e, ERR_DEADLINE, "pull image: too slow");
    c = dial(f);
    send_text(&c, "POST /images?source=x&name=y HTTP/1.1\r\n\r\n");
    for (int i = 0; f->reply == NULL && i < 100; i++)
        turn(f, &c);
    assert_string_equal(f->name, "y");
    status_reply_err(f->reply, &e);
    to_see(f, &c, "504 Gateway Timeout");
    to_see(f, &c, "pull image: too slow");
    f->reply = NULL;
    send_text(&c, "POST /images?source=x HTTP/1.1\r\n\r\n");
    for (int i = 0; f->reply == NULL && i < 100; i++)
        turn(f, &c);
    status_server_close(f->server);
    f->server = NULL;
    status_reply_err(f->reply, &e);
    hang_up(&c);
}

static void a_lent_connection_has_roots_rights(void **state)
{
    struct fixture *f = *state;
    struct client c = { .got = BUF_INIT(1 << 20) };
    struct err e = { 0 };

    assert_int_equal(status_server_lend(f->server, &c.fd, &e), ERR_OK);
    send_text(&c, "POST /images?source=x&name=y HTTP/1.1\r\n\r\n");
    for (int i = 0; f->reply == NULL && i < 100; i++)
        turn(f, &c);
    assert_non_null(f->reply);
    assert_false(status_reply_is_roots(f->reply)); /* it is not answered before others */
    status_reply_json(f->reply, 200, json_object());
    to_see(f, &c, "HTTP/1.1 200 OK");
    hang_up(&c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_lent_connection_has_roots_rights),
        T(the_socket_has_its_mode_and_goes_with_the_server),
        T(a_second_daemon_is_refused_and_the_first_is_not_disturbed),
        T(a_socket_that_a_dead_daemon_left_is_replaced),
        T(a_socket_that_only_a_child_of_a_dead_daemon_holds_is_replaced),
        T(what_is_no_socket_is_not_replaced_and_a_long_path_is_refused),
        T(a_group_that_does_not_exist_is_an_error),
        T(the_rights_hold_for_real_peers),
        cmocka_unit_test(root_may_all_the_group_may_read_others_nothing),
        T(simple_paths_answer),
        T(pods_are_listed_and_selected),
        T(errors_are_status_objects),
        T(oversized_and_foreign_input_is_refused_with_its_own_code),
        T(a_connection_serves_many_requests_also_pipelined_ones),
        T(a_client_that_stops_sending_still_gets_its_answer),
        T(an_old_client_gets_no_chunks_and_the_end_is_the_end),
        T(images_are_added_later_and_only_by_root),
        T(an_answer_for_a_client_that_left_is_dropped),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
