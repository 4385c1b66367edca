/* SPDX-License-Identifier: Apache-2.0 */
/* What clients cost: how many there may be, whose turn it is, and what is held for them. */
#include "harness.h"

#include "agent/status/internal.h"

#include <sys/resource.h>
#include <sys/stat.h>

static void too_many_connections_are_turned_away(void **state)
{
    struct fixture *f = *state;
    struct client c[STATUS_CONNS_MAX + 1];
    size_t n = geteuid() == 0 ? STATUS_CONNS_MAX : STATUS_CONNS_OTHERS;

    for (size_t i = 0; i < n; i++) {
        c[i] = dial(f);
        settle_for(f, &c[i], 0);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    c[n] = dial(f);
    to_see(f, &c[n], "503 Service Unavailable");
    to_see(f, &c[n], "too many connections");
    to_see(f, &c[n], NULL);
    hang_up(&c[n]);
    hang_up(&c[0]);
    for (int i = 0; i < 3; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    c[0] = dial(f);
    send_text(&c[0], "GET /healthz HTTP/1.1\r\n\r\n");
    to_see(f, &c[0], "\r\n\r\nok");
    for (size_t i = 0; i < n; i++)
        hang_up(&c[i]);
}

static void a_client_that_is_slow_with_its_request_or_takes_no_answer_is_closed(void **state)
{
    struct fixture *f = *state;
    char *filler = malloc(3000001);
    struct client c;
    json_t *pod;

    f->server->head_ms = f->server->idle_ms = f->server->write_ms = 50;
    c = dial(f); /* says nothing */
    to_see(f, &c, NULL);
    assert_string_equal(c.got.p, "");
    hang_up(&c);

    c = dial(f);
    send_text(&c, "GET /heal");
    to_see(f, &c, "408 Request Timeout");
    to_see(f, &c, NULL);
    hang_up(&c);

    c = dial(f); /* newlines before a request are allowed, but gain no time */
    for (int i = 0; !c.closed; i++) {
        assert_true(i < 200);
        (void)!send(c.fd, "\r\n", 2, MSG_NOSIGNAL);
        settle_for(f, &c, 10);
    }
    hang_up(&c);

    c = dial(f); /* idle after an answer */
    send_text(&c, "GET /healthz HTTP/1.1\r\n\r\n");
    to_see(f, &c, NULL);
    assert_non_null(strstr(c.got.p, "\r\n\r\nok"));
    hang_up(&c);

    memset(filler, 'x', 3000000);
    filler[3000000] = '\0';
    pod = fake_pod("default", "big", filler);
    json_array_append_new(f->pods, pod);
    c = dial(f);
    send_text(&c, "GET /api/v1/pods HTTP/1.1\r\n\r\n");
    for (int i = 0; f->server->n_conns > 0 || i == 0; i++) { /* reads nothing */
        assert_true(i < 200);
        poll(NULL, 0, 10);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    hang_up(&c);
    free(filler);
}

/* ---- fair turns, and a bound on what is held ---------------------------------------------------- */

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

static void a_client_that_pipelines_has_one_turn_like_any_other(void **state)
{
    struct fixture *f = *state;
    struct client many = dial(f), one = dial(f);

    struct buf all = BUF_INIT(SIZE_MAX - 1);

    for (int i = 0; i < 300; i++)
        buf_adds(&all, "GET /version HTTP/1.1\r\n\r\n");
    send_text(&many, all.p); /* at once: many small messages fill the socket */
    buf_done(&all);
    send_text(&one, "GET /healthz HTTP/1.1\r\n\r\n");
    to_see(f, &one, "\r\n\r\nok");
    take(&many);
    assert_true(count(many.got.p, "200 OK") < 20);
    for (int i = 0; i < 2000 && count(many.got.p, "200 OK") < 300; i++)
        turn(f, &many);
    assert_int_equal(count(many.got.p, "200 OK"), 300);
    hang_up(&many);
    hang_up(&one);
}

static char *filler_of(size_t n)
{
    char *filler = malloc(n + 1);

    memset(filler, 'x', n);
    filler[n] = '\0';
    return filler;
}

static void a_list_is_made_as_its_client_takes_it(void **state)
{
    struct fixture *f = *state;
    char *filler = filler_of(100000), name[20];
    struct client c, other;

    for (int i = 0; i < 80; i++) {
        snprintf(name, sizeof(name), "p%02d", i);
        json_array_append_new(f->pods, fake_pod("default", name, filler));
    }
    c = dial(f);
    other = dial(f);
    send_text(&c, "GET /api/v1/pods?pretty=1 HTTP/1.1\r\n\r\n");
    for (int i = 0; i < 500; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_in_range(f->server->held, 1, 4 * STATUS_PIECE); /* of 8 MB */
    send_text(&other, "GET /healthz HTTP/1.1\r\n\r\n");
    to_see(f, &other, "\r\n\r\nok");
    json_array_remove(f->pods, 40); /* "p37": it is gone when its turn comes */
    to_see(f, &c, "\r\n0\r\n\r\n");
    assert_non_null(strstr(c.got.p, "Transfer-Encoding: chunked"));
    assert_int_equal(count(c.got.p, "\"kind\": \"Pod\""), 82);
    assert_null(strstr(c.got.p, "\"p37\""));
    send_text(&c, "GET /healthz HTTP/1.1\r\n\r\n"); /* the connection goes on */
    to_see(f, &c, "\r\n\r\nok");
    uv_run(&f->loop, UV_RUN_NOWAIT); /* what was sent is freed a turn later */
    assert_int_equal(f->server->held, 0);
    hang_up(&c);
    hang_up(&other);
    free(filler);
}

static void a_pretty_list_is_what_its_json_would_be(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);
    json_t *list;
    char *text;

    send_text(&c, "GET /api/v1/pods?pretty=1 HTTP/1.1\r\nConnection: close\r\n\r\n");
    to_see(f, &c, NULL);
    list = json_loads(strstr(c.got.p, "\r\n\r\n"), 0, NULL);
    assert_non_null(list);
    text = json_dumps(list, JSON_INDENT(2));
    assert_non_null(strstr(c.got.p, text));
    free(text);
    json_decref(list);
    hang_up(&c);
}

static void clients_that_never_read_hold_so_much_together_and_the_slowest_goes(void **state)
{
    struct fixture *f = *state;
    char *filler = filler_of(3000000);
    struct client deaf[10], quick;

    json_array_append_new(f->events,
                          json_pack("{s:s, s:{s:s}}", "filler", filler, "metadata", "namespace", "x"));
    for (size_t i = 0; i < ARRAY_LEN(deaf); i++) {
        deaf[i] = dial(f);
        send_text(&deaf[i], "GET /api/v1/events HTTP/1.1\r\n\r\n");
        for (int n = 0; n < 5; n++)
            uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_true(f->server->held <= STATUS_HELD_MAX + 1000);
    }
    assert_true(f->server->count.cut_off >= 4);
    quick = dial(f);
    send_text(&quick, "GET /api/v1/events HTTP/1.1\r\nConnection: close\r\n\r\n");
    to_see(f, &quick, NULL);
    assert_true(quick.got.n > 3000000);
    for (int i = 0; i < 200 && !deaf[0].closed; i++) /* the first one waited longest */
        turn(f, &deaf[0]);
    assert_true(deaf[0].closed && deaf[0].got.n < 3000000);
    hang_up(&quick);
    for (size_t i = 0; i < ARRAY_LEN(deaf); i++)
        hang_up(&deaf[i]);
    free(filler);
}

static void a_long_list_of_events_comes_in_pieces(void **state)
{
    struct fixture *f = *state;
    char *filler = filler_of(1000), *answer;

    for (int i = 0; i < 500; i++)
        json_array_append_new(f->events, json_pack("{s:s, s:{s:s}, s:i}", "filler", filler, "metadata",
                                                   "namespace", i % 2 == 0 ? "even" : "odd", "number", i));
    answer = ask(f, "GET /api/v1/namespaces/even/events");
    assert_non_null(strstr(answer, "Transfer-Encoding: chunked"));
    assert_non_null(
        strstr(answer, "{\"kind\":\"EventList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceV"));
    assert_non_null(strstr(answer, "\"number\":498}"));
    assert_null(strstr(answer, "\"number\":499}"));
    free(answer);
    expect(
        f, "GET /api/v1/configmaps?pretty=1", "200 OK",
        "{\n  \"kind\": \"ConfigMapList\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"items\": [\n"
        "    {\n      \"metadata\": {\n");
    free(filler);
}

static void few_descriptors_are_kept_for_pods(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, few;
    struct client c;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 24; /* a quarter is kept; the test, its loop and the client have more than the others */
    c = dial(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 24; i++)
        (void)!dup(c.fd);
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 34; i++)
        (void)!dup(c.fd);
    to_see(f, &c, "503 Service Unavailable");
    to_see(f, &c, "reserved for pods");
    assert_int_equal(f->server->count.few_files, 1);
    for (int fd = c.fd + 1; fd < 64; fd++) {
        struct stat a, b;

        if (fstat(fd, &a) == 0 && fstat(c.fd, &b) == 0 && a.st_ino == b.st_ino)
            close(fd);
    }
    hang_up(&c);
    c = dial(f);
    send_text(&c, "GET /healthz HTTP/1.1\r\n\r\n");
    to_see(f, &c, "\r\n\r\nok");
    hang_up(&c);
    setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(too_many_connections_are_turned_away),
        T(a_client_that_is_slow_with_its_request_or_takes_no_answer_is_closed),
        T(a_client_that_pipelines_has_one_turn_like_any_other),
        T(a_list_is_made_as_its_client_takes_it),
        T(a_pretty_list_is_what_its_json_would_be),
        T(clients_that_never_read_hold_so_much_together_and_the_slowest_goes),
        T(a_long_list_of_events_comes_in_pieces),
        T(few_descriptors_are_kept_for_pods),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
