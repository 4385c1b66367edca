/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coracle-shutdown USEC - holds a delay lock of logind against shutdowns, so that pods can end in order, and
 * notifies the agent when a shutdown begins (agent/inhibit.h describes the lines; the connection is
 * descriptor 3). USEC: how long logind should wait at most; if its InhibitDelayMaxSec is less, a drop-in
 * below /run raises it until the next boot. It is a separate process because it loads sd-bus and is only
 * needed if shutdowns have to wait. Exits when the connection closes, or with an error on standard error when
 * the bus or logind is lost.
 */
#include "base/parse.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#define LINE_FD 3
#define LOGIND "org.freedesktop.login1"
#define LOGIND_PATH "/org/freedesktop/login1"
/* kubelet writes below /etc; this drop-in lasts until the reboot and leaves the administrator's files
 * alone. */
#define LOGIND_MANAGER "org.freedesktop.login1.Manager"
#define DROP_IN_DIR "/run/systemd/logind.conf.d"
#define DROP_IN DROP_IN_DIR "/99-coracle.conf"
/* logind reloads its files some time after the request. */
#define RELOAD_TRIES 30
#define RELOAD_PAUSE_MS 100

struct holder {
    sd_bus *bus;
    int lock; /* -1: not held */
    uint64_t wanted_us;
    bool logind_came; /* logind was restarted: the lock has to be taken again */
};

static int inhibit_main_fail(const char *what, int r, const sd_bus_error *error)
{
    fprintf(stderr, "%s: %s\n", what,
            error != NULL && error->message != NULL ? error->message : strerror(r < 0 ? -r : r));
    return -1;
}

static void inhibit_main_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void inhibit_main_say(const char *fmt, ...)
{
    char line[400];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    n = n > (int)sizeof(line) - 2 ? (int)sizeof(line) - 2 : n;
    for (int k = 0; k < n; k++)
        if (line[k] == '\n')
            line[k] = ' ';
    line[n] = '\n';
    if (send(LINE_FD, line, (size_t)n + 1, MSG_NOSIGNAL) < 0)
        exit(EXIT_SUCCESS); /* the agent has ended */
}

/* ---- logind's delay ---- */

static int delay_max(struct holder *h, uint64_t *ret)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int r = sd_bus_get_property_trivial(h->bus, LOGIND, LOGIND_PATH, LOGIND_MANAGER, "InhibitDelayMaxUSec",
                                        &error, 't', ret);

    if (r < 0)
        inhibit_main_fail("ask logind for InhibitDelayMaxUSec", r, &error);
    sd_bus_error_free(&error);
    return r;
}

static int write_drop_in(uint64_t seconds)
{
    char text[128];
    int n = snprintf(text, sizeof(text),
                     "# Pods that Coracle runs need this long to end.\n[Login]\nInhibitDelayMaxSec=%llu\n",
                     (unsigned long long)seconds);

    if (mkdir(DROP_IN_DIR, 0755) != 0 && errno != EEXIST)
        return -errno;
    fd_auto fd = open(DROP_IN ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 || write(fd, text, (size_t)n) != n || rename(DROP_IN ".new", DROP_IN) != 0)
        return -errno;
    return 0;
}

/* Tries to make logind wait long enough; *us is the resulting delay. */
static int raise_delay(struct holder *h, uint64_t *us)
{
    const struct timespec pause = { 0, RELOAD_PAUSE_MS * 1000000 };
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int r = write_drop_in((h->wanted_us + 999999) / 1000000);

    if (r < 0) {
        inhibit_main_say("warn cannot write %s: %s", DROP_IN, strerror(-r));
        return 0;
    }
    r = sd_bus_call_method(h->bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", "KillUnit", &error, NULL, "ssi",
                           "systemd-logind.service", "main", SIGHUP);
    if (r < 0)
        inhibit_main_say("warn cannot make logind read " DROP_IN ": %s", error.message);
    sd_bus_error_free(&error);
    for (int i = 0; r >= 0 && i < RELOAD_TRIES; i++) {
        if (delay_max(h, us) < 0)
            return -EIO;
        if (*us >= h->wanted_us)
            return 0;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* ---- the lock ---- */

static void inhibit_main_release(struct holder *h)
{
    if (h->lock >= 0)
        close(h->lock);
    h->lock = -1;
}

static int inhibit_main_take(struct holder *h)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    int fd = -1, r;

    r = sd_bus_call_method(h->bus, LOGIND, LOGIND_PATH, LOGIND_MANAGER, "Inhibit", &error, &reply, "ssss",
                           "shutdown", "coracle", "Coracle ends this node's pods in order", "delay");
    if (r >= 0)
        r = sd_bus_message_read(reply, "h", &fd);
    if (r >= 0 && (fd = fcntl(fd, F_DUPFD_CLOEXEC, LINE_FD + 1)) < 0)
        r = -errno;
    if (r >= 0) {
        inhibit_main_release(h); /* releases the lock of the previous logind */
        h->lock = fd;
    } else if (sd_bus_error_has_name(&error, "org.freedesktop.login1.OperationInProgress")) {
        inhibit_main_say("warn a shutdown is already in progress and will not wait");
        r = 0;
    } else {
        inhibit_main_fail("take logind's shutdown lock", r, &error);
    }
    sd_bus_error_free(&error);
    sd_bus_message_unref(reply);
    return r;
}

static int is_preparing(struct holder *h, int *ret)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int r = sd_bus_get_property_trivial(h->bus, LOGIND, LOGIND_PATH, LOGIND_MANAGER, "PreparingForShutdown",
                                        &error, 'b', ret);

    if (r < 0)
        inhibit_main_fail("ask logind for PreparingForShutdown", r, &error);
    sd_bus_error_free(&error);
    return r;
}

static int inhibit_main_attach(struct holder *h)
{
    uint64_t us = 0;
    int preparing = 0;

    if (delay_max(h, &us) < 0 || (us < h->wanted_us && raise_delay(h, &us) < 0))
        return -1;
    if (us < h->wanted_us)
        inhibit_main_say(
            "warn logind waits %llus, less than the %llus that pods may need (InhibitDelayMaxSec)",
            (unsigned long long)us / 1000000, (unsigned long long)h->wanted_us / 1000000);
    if (inhibit_main_take(h) < 0 || is_preparing(h, &preparing) < 0)
        return -1;
    if (h->lock >= 0)
        inhibit_main_say("held %llu", (unsigned long long)us);
    inhibit_main_say("preparing %d", preparing);
    return 0;
}

/* ---- events from the bus ---- */

static int on_prepare(sd_bus_message *m, void *arg, sd_bus_error *error)
{
    struct holder *h = arg;
    int preparing = 0;

    (void)error;
    if (sd_bus_message_read(m, "b", &preparing) < 0)
        return 0;
    if (preparing)
        inhibit_main_say("preparing 1");
    else
        h->logind_came = true; /* the shutdown was cancelled: the lock has to be taken again */
    return 0;
}

static int on_owner(sd_bus_message *m, void *arg, sd_bus_error *error)
{
    struct holder *h = arg;
    const char *name, *before, *now;

    (void)error;
    if (sd_bus_message_read(m, "sss", &name, &before, &now) >= 0 && now[0] != '\0')
        h->logind_came = true;
    return 0;
}

static int inhibit_main_watch(struct holder *h)
{
    int r = sd_bus_match_signal(h->bus, NULL, LOGIND, LOGIND_PATH, LOGIND_MANAGER, "PrepareForShutdown",
                                on_prepare, h);

    if (r >= 0)
        r = sd_bus_add_match(h->bus, NULL,
                             "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                             "member='NameOwnerChanged',arg0='" LOGIND "'",
                             on_owner, h);
    return r < 0 ? inhibit_main_fail("watch logind", r, NULL) : 0;
}

/* ---- the loop ---- */

/* False: the connection is closed. */
static bool read_line(struct holder *h)
{
    char text[64];
    ssize_t n = read(LINE_FD, text, sizeof(text) - 1);

    if (n <= 0)
        return n < 0 && errno == EINTR;
    text[n] = '\0';
    if (strstr(text, "release\n") != NULL) /* the only message */
        inhibit_main_release(h);
    return true;
}

static int wait_for_event(struct holder *h, struct pollfd fds[2])
{
    uint64_t at_us = UINT64_MAX;
    struct timespec now;
    int timeout = -1, events = sd_bus_get_events(h->bus);

    if (events < 0 || sd_bus_get_timeout(h->bus, &at_us) < 0)
        return inhibit_main_fail("the bus", events, NULL);
    if (at_us != UINT64_MAX) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
        timeout = at_us <= now_us             ? 0
                  : at_us - now_us > 60000000 ? 60000
                                              : (int)((at_us - now_us + 999) / 1000);
    }
    fds[0] = (struct pollfd){ .fd = sd_bus_get_fd(h->bus), .events = (short)events };
    fds[1] = (struct pollfd){ .fd = LINE_FD, .events = POLLIN };
    if (poll(fds, 2, timeout) < 0 && errno != EINTR)
        return inhibit_main_fail("poll", errno, NULL);
    return 0;
}

static int inhibit_main_run(struct holder *h)
{
    struct pollfd fds[2] = { 0 };
    int r;

    for (;;) {
        do {
            r = sd_bus_process(h->bus, NULL);
        } while (r > 0);
        if (r < 0)
            return inhibit_main_fail("the system bus is lost", r, NULL);
        if (h->logind_came) {
            h->logind_came = false;
            if (inhibit_main_attach(h) < 0)
                return -1;
            continue;
        }
        if (wait_for_event(h, fds) < 0)
            return -1;
        if (fds[1].revents != 0 && !read_line(h))
            return 0;
    }
}

int main(int argc, char **argv)
{
    struct holder h = { .lock = -1 };
    struct err e = { 0 };
    int r;

    if (argc != 2 || parse_u64(argv[1], 0, UINT64_MAX / 2, &h.wanted_us, "USEC", &e) != ERR_OK) {
        fprintf(stderr, "coracle-shutdown is started by coracle\n");
        return 2;
    }
    prctl(PR_SET_DUMPABLE, 0);
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    r = sd_bus_open_system(&h.bus);
    if (r < 0)
        r = inhibit_main_fail("connect to the system bus", r, NULL);
    else if (inhibit_main_watch(&h) >= 0 && inhibit_main_attach(&h) >= 0)
        r = inhibit_main_run(&h);
    else
        r = -1;
    inhibit_main_release(&h);
    sd_bus_flush_close_unref(h.bus);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
