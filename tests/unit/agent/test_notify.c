/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd is told arrives, also where its queue was full. */
#include "agent/notify.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static int listen_at(struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *at = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(at->sun_path, sizeof(at->sun_path), "/tmp/notify-test-%d", (int)getpid());
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof(*at)), 0);
    setenv("NOTIFY_SOCKET", at->sun_path, 1);
    return fd;
}

static void expect(int fd, const char *text)
{
    char got[128] = "";

    (void)!recv(fd, got, sizeof(got) - 1, 0);
    assert_string_equal(got, text);
}

static void what_a_full_queue_refused_is_sent_in_order(void **state)
{
    struct sockaddr_un at;
    struct notify n;
    uv_loop_t loop;
    fd_auto fd = listen_at(&at), other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    size_t filled = 0;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    notify_open(&n);
    notify_start(&n, &loop);
    while (sendto(other, "x", 1, 0, (struct sockaddr *)&at, sizeof(at)) == 1)
        filled++;
    notify_send(&n, "RELOADING=1");
    notify_send(&n, "READY=1");
    for (; filled > 0; filled--)
        expect(fd, "x");
    expect(fd, "");
    uv_run(&loop, UV_RUN_DEFAULT); /* until nothing is left to be sent */
    expect(fd, "RELOADING=1");
    expect(fd, "READY=1");

    notify_close(&n);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    unlink(at.sun_path);
}

static void one_that_is_gone_is_left(void **state)
{
    struct sockaddr_un at;
    struct notify n;
    uv_loop_t loop;
    int fd = listen_at(&at);

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    notify_open(&n);
    notify_start(&n, &loop);
    close(fd);
    notify_send(&n, "READY=1");
    assert_int_equal(n.n_unsent, 0);
    uv_run(&loop, UV_RUN_DEFAULT);

    notify_close(&n);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    unlink(at.sun_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_full_queue_refused_is_sent_in_order),
        cmocka_unit_test(one_that_is_gone_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
