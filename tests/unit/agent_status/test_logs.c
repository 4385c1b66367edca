/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "agent/status/internal.h"

#define T0 "2026-01-02T03:04:05.5Z "
#define URL "/api/v1/namespaces/default/pods/web/log"

static void write_log(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static struct client follow(struct fixture *f, const char *url)
{
    struct client c = dial(f);
    char request[400];

    snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", url); /* no chunks: easier to read */
    send_text(&c, request);
    return c;
}

static void assert_body(struct fixture *f, const char *line, const char *body)
{
    struct client c = follow(f, line);
    const char *got;

    to_see(f, &c, NULL);
    assert_non_null(strstr(c.got.p, "200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    got = strstr(c.got.p, "\r\n\r\n") + 4;
    assert_string_equal(got, body);
    hang_up(&c);
}

static void a_log_is_given_as_asked_for(void **state)
{
    struct fixture *f = *state;

    write_log(f->log, T0 "stdout P on\n" T0 "stdout F e\n" T0 "stderr F two\n");
    assert_body(f, URL, "one\ntwo\n");
    assert_body(f, URL "?container=c&tailLines=1", "two\n");
    assert_body(f, URL "?tailLines=0", "");
    assert_body(f, URL "?timestamps=true&tailLines=1", "2026-01-02T03:04:05.500000000Z two\n");
    assert_body(f, URL "?limitBytes=5", "one\nt");
    assert_body(f, URL "?sinceSeconds=1", "");
    assert_body(f, URL "?sinceTime=2026-01-02T03:04:05Z", "one\ntwo\n");
    f->running = true;
    assert_body(f, URL, "one\ntwo\n"); /* without following, the end is the end */
    expect(f, "GET " URL, "200 OK",
           "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n8\r\none\ntwo\n\r\n0\r\n\r\n");
}

static void what_cannot_be_given_is_said_before_it_begins(void **state)
{
    struct fixture *f = *state;

    expect(f, "GET /api/v1/namespaces/default/pods/absent/log", "404 Not Found",
           "pods \\\"absent\\\" not found");
    expect(f, "GET " URL "?container=x", "400 Bad Request", "container x is not valid for pod web");
    expect(f, "GET " URL "?previous=true", "400 Bad Request",
           "previous terminated container \\\"c\\\" in pod \\\"web\\\" not found");
    expect(f, "GET " URL "?tailLines=many", "400 Bad Request", "tailLines");
    assert_body(f, URL, ""); /* nothing was written so far */
    snprintf(f->log, sizeof(f->log), "/dev/zero");
    expect(f, "GET " URL, "400 Bad Request", "log /dev/zero is not a regular file");
}

static void a_long_log_comes_completely(void **state)
{
    struct fixture *f = *state;
    struct buf log = BUF_INIT(64 << 20), want = BUF_INIT(64 << 20);

    for (int i = 0; i < 100000; i++) {
        buf_addf(&log, T0 "stdout F line %d\n", i);
        buf_addf(&want, "line %d\n", i);
    }
    write_log(f->log, log.p);
    assert_body(f, URL, want.p);
    buf_done(&log);
    buf_done(&want);
}

static void a_follower_sees_what_is_written_through_rotation_until_the_end(void **state)
{
    struct fixture *f = *state;
    char rotated[200];
    struct client c;
    int old;

    f->running = true;
    write_log(f->log, T0 "stdout F one\n");
    c = follow(f, URL "?follow=true");
    to_see(f, &c, "one\n");
    write_log(f->log, T0 "stdout F two\n");
    to_see(f, &c, "one\ntwo\n");

    /* As the rotation goes: away with the old name, a last line into the old file, then the new one. */
    old = open(f->log, O_WRONLY | O_APPEND | O_CLOEXEC);
    snprintf(rotated, sizeof(rotated), "%s.20260102-030405", f->log);
    assert_int_equal(rename(f->log, rotated), 0);
    assert_int_equal(write(old, T0 "stdout F three\n", strlen(T0 "stdout F three\n")),
                     strlen(T0 "stdout F three\n"));
    close(old);
    write_log(f->log, T0 "stdout F four\n");
    to_see(f, &c, "one\ntwo\nthree\nfour\n");

    settle_for(f, &c, 50);
    assert_false(c.closed);
    write_log(f->log, T0 "stdout F five\n");
    f->running = false;
    status_server_log_event(f->server, "default", "web");
    to_see(f, &c, NULL);
    assert_non_null(strstr(c.got.p, "\r\n\r\none\ntwo\nthree\nfour\nfive\n"));
    hang_up(&c);
}

static void a_follower_of_a_log_that_is_not_there_yet_waits_for_it(void **state)
{
    struct fixture *f = *state;
    struct client c;

    f->running = true;
    c = follow(f, URL "?follow=true");
    to_see(f, &c, "200 OK");
    write_log(f->log, T0 "stdout F first\n");
    to_see(f, &c, "first\n");
    hang_up(&c);
}

static void the_next_instance_ends_the_follower_of_the_one_before(void **state)
{
    struct fixture *f = *state;
    struct client c;

    f->running = true;
    write_log(f->log, T0 "stdout F one\n");
    c = follow(f, URL "?follow=true");
    to_see(f, &c, "one\n");
    snprintf(f->log, sizeof(f->log), "%s/1.log", f->dir);
    write_log(f->log, T0 "stdout F of the next\n");
    status_server_log_event(f->server, "default", "web");
    to_see(f, &c, NULL);
    assert_null(strstr(c.got.p, "of the next"));
    hang_up(&c);
}

/* The log goes on, and nobody reads. */
static void write_until_dropped(struct fixture *f, const struct client *c)
{
    const uint64_t until = clock_mono_ms() + DEADLINE_MS;
    struct pollfd fds[2] = { { uv_backend_fd(&f->loop), POLLIN, 0 }, { c->fd, POLLRDHUP, 0 } };

    while (fds[1].revents == 0) {
        assert_true(clock_mono_ms() < until);
        write_log(f->log, T0 "stdout F the last\n");
        poll(fds, 2, 5);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
}

/* One that reads is never behind for long: a look that was late, as the pool was busy, finds it further on.
 */
static void a_follower_that_reads_is_not_dropped_however_much_is_written(void **state)
{
    struct fixture *f = *state;
    struct buf log = BUF_INIT(64 << 20);
    struct client c;

    f->running = true;
    write_log(f->log, T0 "stdout F one\n");
    c = follow(f, URL "?follow=true");
    to_see(f, &c, "one\n");
    for (int i = 0; i < 50000; i++)
        buf_addf(&log, T0 "stdout F this is line number %d\n", i);
    for (int i = 0; i < 4; i++) {
        write_log(f->log, log.p); /* 3 MB each time */
        turn(f, &c);
    }
    write_log(f->log, T0 "stdout F the last\n");
    to_see(f, &c, "the last\n");
    hang_up(&c);
    buf_done(&log);
}

static void a_follower_far_behind_is_dropped_but_a_pager_is_not(void **state)
{
    struct fixture *f = *state;
    struct buf log = BUF_INIT(64 << 20);
    struct client pager, slow;

    f->running = true;
    write_log(f->log, T0 "stdout F one\n");
    slow = follow(f, URL "?follow=true");
    to_see(f, &slow, "one\n");
    write_log(f->log, T0 "stdout F two\n");
    to_see(f, &slow, "two\n");
    for (int i = 0; op_count() > 0 || i < 3; i++) /* until it waits for more */
        turn(f, &slow);
    for (int i = 0; i < 200000; i++)
        buf_addf(&log, T0 "stdout F this is line number %d\n", i);
    write_log(f->log, log.p); /* 11 MB */
    pager = follow(f, URL);
    write_until_dropped(f, &slow);
    to_see(f, &slow, NULL);
    assert_null(strstr(slow.got.p, "the last"));
    to_see(f, &pager, NULL);
    assert_non_null(strstr(pager.got.p, "this is line number 199999\n"));
    hang_up(&slow);
    hang_up(&pager);
    buf_done(&log);
}

static void clients_may_leave_at_any_time(void **state)
{
    struct fixture *f = *state;
    struct client c;

    f->running = true;
    write_log(f->log, T0 "stdout F one\n");
    for (int turns = 0; turns < 8; turns++) {
        c = follow(f, URL "?follow=true");
        for (int i = 0; i < turns; i++)
            uv_run(&f->loop, UV_RUN_NOWAIT);
        hang_up(&c);
    }
    c = follow(f, URL "?follow=true");
    to_see(f, &c, "one\n");
    status_server_close(f->server);
    f->server = NULL;
    to_see(f, &c, NULL);
    hang_up(&c);
}

/* A turn of the server while the client reads nothing. */
static void turn_unread(struct fixture *f)
{
    struct pollfd p = { uv_backend_fd(&f->loop), POLLIN, 0 };

    poll(&p, 1, 10);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void requests_behind_that_of_a_log_wait_for_its_end_however_long_they_are(void **state)
{
    enum { REQUESTS = 4, HEADER = 30 * 1024 };
    struct fixture *f = *state;
    struct buf log = BUF_INIT(64 << 20), requests = BUF_INIT(64 << 20);
    const uint64_t until = clock_mono_ms() + DEADLINE_MS;
    struct client c = dial(f);
    size_t answers = 0;

    for (int i = 0; i < 100000; i++)
        buf_addf(&log, T0 "stdout F line %d\n", i);
    write_log(f->log, log.p);
    for (int i = 0; i < REQUESTS; i++) {
        buf_adds(&requests, "GET /healthz HTTP/1.1\r\nX: ");
        for (int k = 0; k < HEADER; k++)
            buf_addc(&requests, 'x');
        buf_adds(&requests, "\r\n\r\n");
    }
    send_text(&c, "GET " URL " HTTP/1.1\r\n\r\n");
    while (f->server->held == 0 && clock_mono_ms() < until) /* the log fills the socket */
        turn_unread(f);
    send_text(&c, requests.p);
    while (!LIST_EMPTY(&f->server->conns) && !LIST_FIRST(&f->server->conns)->stopped &&
           clock_mono_ms() < until)
        turn_unread(f);
    assert_false(LIST_EMPTY(&f->server->conns));
    to_see(f, &c, "line 99999\n\r\n0\r\n\r\n");
    to_see(f, &c, "\r\n\r\nok");
    while (answers < REQUESTS && clock_mono_ms() < until) {
        answers = 0;
        turn(f, &c);
        for (const char *at = c.got.p; (at = strstr(at, "\r\n\r\nok")) != NULL; at++)
            answers++;
    }
    assert_int_equal(answers, REQUESTS);
    hang_up(&c);
    buf_done(&log);
    buf_done(&requests);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_log_is_given_as_asked_for),
        T(what_cannot_be_given_is_said_before_it_begins),
        T(a_long_log_comes_completely),
        T(a_follower_sees_what_is_written_through_rotation_until_the_end),
        T(a_follower_of_a_log_that_is_not_there_yet_waits_for_it),
        T(the_next_instance_ends_the_follower_of_the_one_before),
        T(a_follower_that_reads_is_not_dropped_however_much_is_written),
        T(a_follower_far_behind_is_dropped_but_a_pager_is_not),
        T(clients_may_leave_at_any_time),
        T(requests_behind_that_of_a_log_wait_for_its_end_however_long_they_are),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
