/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "agent/status/internal.h"

#define BRING "POST /images?source=docker://x&progress=1 HTTP/1.1\r\nHost: x\r\n\r\n"

static bool only_root_may(void)
{
    if (geteuid() == 0)
        return false;
    print_message("skipped: only root may bring images\n");
    return true;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        n++;
    }
    return n;
}

static void a_line_comes_for_each_change_and_the_answer_is_the_last_one(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    if (only_root_may())
        skip();
    f->step = "asking";
    send_text(&c, BRING);
    to_see(f, &c, "Content-Type: application/x-ndjson\r\n");
    to_see(f, &c, "{\"step\":\"asking\",\"bytes\":0}\n");
    f->step = "pulling";
    f->bytes = 5;
    to_see(f, &c, "{\"step\":\"pulling\",\"bytes\":5}\n");
    for (unsigned looks = f->looks + 3; f->looks < looks;)
        turn(f, &c);
    assert_int_equal(count(c.got.p, "pulling"), 1);

    status_reply_json(f->reply, 200, json_pack("{s:s}", "id", "sha256:1"));
    to_see(f, &c, "{\"id\":\"sha256:1\"}\n\r\n0\r\n\r\n");
    forget(&c);
    send_text(&c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); /* the connection goes on */
    to_see(f, &c, "\r\n\r\nok");
    hang_up(&c);
}

static void a_failure_is_a_status_object_in_the_last_line(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);
    struct err e = { 0 };

    if (only_root_may())
        skip();
    send_text(&c, BRING);
    to_see(f, &c, "200 OK");
    err_set(&e, ERR_NOT_FOUND, "pull x: manifest unknown");
    status_reply_err(f->reply, &e);
    to_see(f, &c, "0\r\n\r\n");
    assert_non_null(strstr(c.got.p, "\"kind\":\"Status\""));
    assert_non_null(strstr(c.got.p, "\"code\":404"));
    assert_non_null(strstr(c.got.p, "pull x: manifest unknown"));
    hang_up(&c);
}

static void who_left_is_not_looked_for_and_the_answer_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f), other = dial(f);
    unsigned looks;

    if (only_root_may())
        skip();
    f->step = "pulling";
    send_text(&c, BRING);
    to_see(f, &c, "pulling");
    hang_up(&c);
    send_text(&other,
              "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); /* after it: the server knows that it left */
    to_see(f, &other, "\r\n\r\nok");
    settle_for(f, &other, 10);
    looks = f->looks;
    settle_for(f, &other, 3 * STATUS_PROGRESS_MS);
    assert_int_equal(f->looks, looks);
    status_reply_json(f->reply, 200, json_object());
    hang_up(&other);
}

static void without_asking_for_it_there_is_one_answer_as_ever(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    if (only_root_may())
        skip();
    f->step = "pulling";
    send_text(&c, "POST /images?source=docker://x HTTP/1.1\r\nHost: x\r\n\r\n");
    while (f->reply == NULL)
        turn(f, &c);
    settle_for(f, &c, 2 * STATUS_PROGRESS_MS);
    assert_int_equal(f->looks, 0);
    assert_int_equal(c.got.n, 0);
    status_reply_json(f->reply, 200, json_pack("{s:s}", "id", "sha256:1"));
    to_see(f, &c, "\r\n\r\n{\"id\":\"sha256:1\"}");
    assert_non_null(strstr(c.got.p, "Content-Length: "));
    hang_up(&c);
    expect(f, "POST /images?source=docker://x&progress=perhaps", "400 Bad Request", "progress");
}

static void the_end_of_the_server_ends_what_streams(void **state)
{
    struct fixture *f = *state;
    struct client c = dial(f);

    if (only_root_may())
        skip();
    f->step = "pulling";
    send_text(&c, BRING);
    to_see(f, &c, "pulling");
    status_server_close(f->server);
    f->server = NULL;
    to_see(f, &c, NULL);
    status_reply_json(f->reply, 200, json_object());
    hang_up(&c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_line_comes_for_each_change_and_the_answer_is_the_last_one),
        T(a_failure_is_a_status_object_in_the_last_line),
        T(who_left_is_not_looked_for_and_the_answer_is_dropped),
        T(without_asking_for_it_there_is_one_answer_as_ever),
        T(the_end_of_the_server_ends_what_streams),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
