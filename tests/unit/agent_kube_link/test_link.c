/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "agent/kube/link/link.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <sys/socket.h>

struct end {
    struct kube_link *link;
    size_t n; /* messages */
    char last[256];
    char file[64]; /* content of the last descriptor */
    struct err lost;
    struct end *closes; /* upon a message */
};

struct pair {
    uv_loop_t loop;
    struct end a, b;
    int raw; /* the other end of a's, when there is no b */
};

static void on_message(json_t *message, int fd, void *arg)
{
    struct end *end = arg;
    fd_auto taken = fd;
    ssize_t n = 0;

    end->n++;
    snprintf(end->last, sizeof(end->last), "%s",
             json_str(message, "text") != NULL ? json_str(message, "text") : "");
    if (taken >= 0)
        n = pread(taken, end->file, sizeof(end->file) - 1, 0);
    end->file[n > 0 ? n : 0] = '\0';
    if (end->closes != NULL) {
        kube_link_close(end->closes->link);
        end->closes->link = NULL;
    }
}

static void on_lost(const struct err *why, void *arg)
{
    struct end *end = arg;

    end->lost = *why;
}

static void end_open(struct pair *p, struct end *end, int fd)
{
    struct err e = { 0 };
    const struct kube_link_options o = {
        .loop = &p->loop, .fd = fd, .on_message = on_message, .on_lost = on_lost, .arg = end
    };

    assert_int_equal(kube_link_open(&end->link, &o, &e), ERR_OK);
}

static int pair_make(void **state)
{
    struct pair *p = calloc(1, sizeof(*p));
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    uv_loop_init(&p->loop);
    end_open(p, &p->a, fds[0]);
    end_open(p, &p->b, fds[1]);
    p->raw = -1;
    *state = p;
    return 0;
}

static int pair_raw(void **state)
{
    struct pair *p = calloc(1, sizeof(*p));
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    uv_loop_init(&p->loop);
    end_open(p, &p->a, fds[0]);
    p->raw = fds[1];
    *state = p;
    return 0;
}

static int pair_free(void **state)
{
    struct pair *p = *state;

    kube_link_close(p->a.link);
    kube_link_close(p->b.link);
    if (p->raw >= 0)
        close(p->raw);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&p->loop), 0);
    free(p);
    return 0;
}

static void turns(struct pair *p, int n)
{
    for (int i = 0; i < n; i++)
        uv_run(&p->loop, UV_RUN_NOWAIT);
}

static void say(struct end *from, const char *text)
{
    struct err e = { 0 };

    assert_int_equal(
        kube_link_send(from->link, json_pack("{s:s, s:s}", "type", "note", "text", text), -1, &e), ERR_OK);
}

static void messages_arrive_in_order(void **state)
{
    struct pair *p = *state;

    say(&p->a, "first");
    say(&p->a, "second");
    say(&p->b, "back");
    turns(p, 8);
    assert_int_equal(p->b.n, 2);
    assert_string_equal(p->b.last, "second");
    assert_string_equal(p->a.last, "back");
    assert_int_equal(kube_link_backlog(p->a.link), 0);
}

static void one_turn_hands_over_a_bounded_number(void **state)
{
    struct pair *p = *state;

    for (int i = 0; i < 3 * KUBE_LINK_TURN; i++)
        say(&p->a, "x");
    uv_run(&p->loop, UV_RUN_NOWAIT); /* a writes */
    uv_run(&p->loop, UV_RUN_NOWAIT);
    assert_true(p->b.n > 0 && p->b.n <= 2 * KUBE_LINK_TURN);
    turns(p, 10);
    assert_int_equal(p->b.n, 3 * KUBE_LINK_TURN);
}

static void a_long_message_arrives_whole(void **state)
{
    struct pair *p = *state;
    size_t n = KUBE_LINK_MESSAGE_MAX - 1000;
    char *text = malloc(n + 1);
    struct err e = { 0 };

    memset(text, 'a', n);
    text[n] = '\0';
    assert_int_equal(kube_link_send(p->a.link, json_pack("{s:s, s:s}", "type", "note", "text", text), -1, &e),
                     ERR_OK);
    free(text);
    for (int i = 0; i < 10000 && p->b.n == 0; i++)
        uv_run(&p->loop, UV_RUN_NOWAIT);
    assert_int_equal(p->b.n, 1);
}

static void a_descriptor_travels_with_its_message(void **state)
{
    struct pair *p = *state;
    fd_auto fd = memfd_create("test", MFD_CLOEXEC);
    struct err e = { 0 };

    assert_int_equal(write(fd, "content", 7), 7);
    say(&p->a, "before");
    assert_int_equal(kube_link_send(p->a.link, json_pack("{s:s}", "type", "file"), take_fd(&fd), &e), ERR_OK);
    turns(p, 8);
    assert_int_equal(p->b.n, 2);
    assert_string_equal(p->b.file, "content");
}

static void the_end_of_the_other_is_reported(void **state)
{
    struct pair *p = *state;
    struct err e = { 0 };

    kube_link_close(p->b.link);
    p->b.link = NULL;
    turns(p, 4);
    assert_int_equal(p->a.lost.code, ERR_UNAVAILABLE);
    assert_string_equal(p->a.lost.text, "the other end closed the connection");
    assert_int_equal(kube_link_send(p->a.link, json_pack("{s:s}", "type", "x"), -1, &e), ERR_UNAVAILABLE);
}

static void a_link_may_be_closed_within_a_message(void **state)
{
    struct pair *p = *state;

    p->b.closes = &p->b;
    say(&p->a, "one");
    say(&p->a, "two");
    turns(p, 4);
    assert_int_equal(p->b.n, 1);
}

static void raw_ends(struct pair *p, const void *bytes, size_t n, const char *text)
{
    assert_int_equal(write(p->raw, bytes, n), (ssize_t)n);
    turns(p, 4);
    assert_int_equal(p->a.n, 0);
    assert_string_equal(p->a.lost.text, text);
}

static void a_frame_beyond_the_limit_ends_the_link(void **state)
{
    raw_ends(*state, "\xff\xff\xff\x7f", 4, "a message of 2147483647 bytes; at most 4194304 are allowed");
}

static void a_message_without_a_type_ends_the_link(void **state)
{
    raw_ends(*state, "\2\0\0\0{}", 6, "a message without a type");
}

static void a_promised_descriptor_must_be_there(void **state)
{
    raw_ends(*state, "\x18\0\0\0{\"type\":\"x\", \"fd\": true}", 28, "a message without its descriptor");
}

static void half_a_frame_waits(void **state)
{
    struct pair *p = *state;

    assert_int_equal(write(p->raw, "\x0c\0\0\0{\"ty", 8), 8);
    turns(p, 4);
    assert_int_equal(p->a.n, 0);
    assert_int_equal(p->a.lost.code, ERR_OK);
    assert_int_equal(write(p->raw, "pe\":\"x\"}", 8), 8);
    turns(p, 4);
    assert_int_equal(p->a.n, 1);
}

static void a_peer_that_does_not_read_is_bounded(void **state)
{
    struct pair *p = *state;
    struct err e = { 0 };
    size_t n = (size_t)1 << 20;
    char *text = malloc(n + 1);
    int sent = 0;

    memset(text, 'a', n);
    text[n] = '\0';
    while (e.code == ERR_OK && sent < 1000) {
        if (kube_link_send(p->a.link, json_pack("{s:s, s:s}", "type", "note", "text", text), -1, &e) ==
            ERR_OK)
            sent++;
        turns(p, 1);
    }
    free(text);
    assert_int_equal(e.code, ERR_EXHAUSTED);
    assert_true(kube_link_backlog(p->a.link) <= KUBE_LINK_BACKLOG_MAX);
    assert_int_equal(p->a.lost.code, ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_arrive_in_order, pair_make, pair_free),
        cmocka_unit_test_setup_teardown(one_turn_hands_over_a_bounded_number, pair_make, pair_free),
        cmocka_unit_test_setup_teardown(a_long_message_arrives_whole, pair_make, pair_free),
        cmocka_unit_test_setup_teardown(a_descriptor_travels_with_its_message, pair_make, pair_free),
        cmocka_unit_test_setup_teardown(the_end_of_the_other_is_reported, pair_make, pair_free),
        cmocka_unit_test_setup_teardown(a_link_may_be_closed_within_a_message, pair_make, pair_free),
        cmocka_unit_test_setup_teardown(a_frame_beyond_the_limit_ends_the_link, pair_raw, pair_free),
        cmocka_unit_test_setup_teardown(a_message_without_a_type_ends_the_link, pair_raw, pair_free),
        cmocka_unit_test_setup_teardown(a_promised_descriptor_must_be_there, pair_raw, pair_free),
        cmocka_unit_test_setup_teardown(half_a_frame_waits, pair_raw, pair_free),
        cmocka_unit_test_setup_teardown(a_peer_that_does_not_read_is_bounded, pair_raw, pair_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
