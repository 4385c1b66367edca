/* SPDX-License-Identifier: Apache-2.0 */
/* Which messages about devices count, and from whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/declared/uevent.h"
#include "base/clock.h"
#include "base/scope.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_MS = 5000, QUIET_MS = 200 };

#define ADD "add@/devices/x\0ACTION=add\0DEVPATH=/devices/x\0SUBSYSTEM=tty\0DEVNAME=ttyUSB0\0SEQNUM=7"
#define MATTERS(message) uevent_matters(message, sizeof(message))

static void messages_about_nodes_matter(void **state)
{
    (void)state;
    assert_true(MATTERS(ADD));
    assert_true(MATTERS("remove@/devices/x\0ACTION=remove\0DEVNAME=bus/usb/001/002"));
    assert_true(MATTERS("bind@/devices/x\0DEVNAME=bus/usb/001/002\0ACTION=bind"));
    assert_false(MATTERS("change@/devices/x\0ACTION=change\0DEVNAME=loop0"));
    assert_false(MATTERS("add@/devices/x\0ACTION=add\0SUBSYSTEM=net\0INTERFACE=veth0"));
    assert_false(MATTERS("add@/devices/x\0XACTION=add\0DEVNAME=x"));
    assert_false(MATTERS(""));
    assert_false(uevent_matters(ADD, sizeof(ADD) - 3)); /* cut */
    assert_false(uevent_matters(NULL, 0));
}

/* ---- from whom ---- */

struct scene {
    uv_loop_t loop;
    uv_timer_t tick;
    unsigned events;
};

static void on_event(void *arg)
{
    ((struct scene *)arg)->events++;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void run_until(struct scene *s, unsigned events, uint64_t ms)
{
    uint64_t deadline = clock_mono_ms() + ms;

    uv_timer_start(&s->tick, on_tick, 20, 20);
    while (s->events < events && clock_mono_ms() < deadline)
        uv_run(&s->loop, UV_RUN_ONCE);
    uv_timer_stop(&s->tick);
}

/* As another process would, straight to the socket and to all that listen. */
static void forge(uint32_t port, uint32_t group)
{
    const struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_pid = port, .nl_groups = group };
    fd_auto fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);

    assert_true(fd >= 0);
    if (sendto(fd, ADD, sizeof(ADD), 0, (const struct sockaddr *)&to, sizeof(to)) != (ssize_t)sizeof(ADD))
        print_message("the kernel refuses a forged message\n"); /* as well */
}

static bool kernel_says_add(void)
{
    fd_auto fd = open("/sys/class/mem/null/uevent", O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, "add", 3) == 3;
}

static void begin_to_listen(struct scene *s, struct uevents **ret)
{
    struct err e = { 0 };

    uv_loop_init(&s->loop);
    uv_timer_init(&s->loop, &s->tick);
    assert_int_equal(uevents_open(ret, &s->loop, on_event, s, &e), ERR_OK);
}

static void stop(struct scene *s, struct uevents *u)
{
    uevents_close(u);
    uv_close((uv_handle_t *)&s->tick, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
}

static void a_message_of_a_process_is_ignored(void **state)
{
    struct scene s = { 0 };
    struct uevents *u = NULL;
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) { /* in a user namespace of its own the kernel's events do not arrive */
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
            _exit(77);
        begin_to_listen(&s, &u);
        forge((uint32_t)getpid(), 0); /* the port of a process's first socket */
        forge(0, 1);
        run_until(&s, 1, QUIET_MS);
        _exit(s.events > 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("no user namespaces\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void an_event_of_the_kernel_is_heard(void **state)
{
    struct scene s = { 0 };
    struct uevents *u = NULL;
    bool kernel;

    (void)state;
    begin_to_listen(&s, &u);
    kernel = kernel_says_add();
    if (kernel)
        run_until(&s, 1, DEADLINE_MS);
    stop(&s, u);
    if (!kernel) {
        print_message("only root can have the kernel send an event\n");
        skip();
    }
    assert_true(s.events > 0);
}

/* More than the socket's buffer holds (212,992 bytes, of which each takes some hundred). */
static void after_lost_events_others_are_still_heard(void **state)
{
    struct scene s = { 0 };
    struct uevents *u = NULL;
    bool kernel = true;

    (void)state;
    begin_to_listen(&s, &u);
    for (int i = 0; i < 800 && kernel; i++)
        kernel = kernel_says_add();
    if (kernel)
        run_until(&s, 1, DEADLINE_MS);
    if (kernel)
        run_until(&s, UINT_MAX, QUIET_MS); /* all that arrived is read */
    s.events = 0;
    if (kernel && kernel_says_add())
        run_until(&s, 1, DEADLINE_MS);
    stop(&s, u);
    if (!kernel) {
        print_message("only root can have the kernel send an event\n");
        skip();
    }
    assert_true(s.events > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_about_nodes_matter),
        cmocka_unit_test(a_message_of_a_process_is_ignored),
        cmocka_unit_test(an_event_of_the_kernel_is_heard),
        cmocka_unit_test(after_lost_events_others_are_still_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
