/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inhibit.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_FD 3
#define PAUSE_MIN_MS 1000   /* kubelet's delay before it reconnects */
#define PAUSE_MAX_MS 300000 /* for machines without logind */
#define BUS_VARIABLE "DBUS_SYSTEM_BUS_ADDRESS"
#define BUS_SOCKET "/run/dbus/system_bus_socket"

enum inhibit_word inhibit_parse(const char *line, uint64_t *ret_value, const char **ret_text)
{
    if (strncmp(line, "held ", 5) == 0 &&
        parse_u64(line + 5, 0, UINT64_MAX, ret_value, "held", ERR_IGNORED) == ERR_OK)
        return INHIBIT_HELD;
    if (strncmp(line, "preparing ", 10) == 0 &&
        parse_u64(line + 10, 0, 1, ret_value, "preparing", ERR_IGNORED) == ERR_OK)
        return INHIBIT_PREPARING;
    if (strncmp(line, "warn ", 5) == 0) {
        *ret_text = line + 5;
        return INHIBIT_WARN;
    }
    return INHIBIT_NONSENSE;
}

static void inhibit_start(struct inhibit *i);

static void inhibit_on_timer(uv_timer_t *timer)
{
    inhibit_start(timer->data);
}

static void inhibit_failed(struct inhibit *i, const char *why)
{
    char text[256];

    if (i->closing)
        return;
    snprintf(text, sizeof(text), "not held: %.200s", why);
    if (strcmp(i->said, why) != 0)
        log_warn("a shutdown of the machine will not wait for pods; retrying", F_STR("err", why));
    snprintf(i->said, sizeof(i->said), "%s", why);
    i->o.on_state(true, text, i->o.arg);
    uv_timer_start(&i->timer, inhibit_on_timer, i->pause_ms, 0);
    i->pause_ms = backoff_next_ms(i->pause_ms, PAUSE_MIN_MS, PAUSE_MAX_MS);
}

static void inhibit_take_line(struct inhibit *i, const char *line)
{
    const char *text = NULL;
    uint64_t value = 0;
    char state[128];

    switch (inhibit_parse(line, &value, &text)) {
    case INHIBIT_HELD:
        i->pause_ms = PAUSE_MIN_MS;
        i->said[0] = '\0';
        snprintf(state, sizeof(state), "held, logind waits %llus at most",
                 (unsigned long long)value / 1000000);
        log_info("a shutdown of the machine waits for the pods", F_U64("atMostSeconds", value / 1000000));
        i->o.on_state(false, state, i->o.arg);
        return;
    case INHIBIT_PREPARING:
        i->o.on_preparing(value == 1, i->o.arg);
        return;
    case INHIBIT_WARN:
        log_warn("shutdown inhibitor", F_STR("err", text));
        return;
    case INHIBIT_NONSENSE:
        log_error("invalid message from coracle-shutdown: a bug", F_STR("line", line));
        return;
    }
}

/* ---- the connection ---- */

static void close_line(struct inhibit *i)
{
    if (i->line_open)
        uv_close((uv_handle_t *)&i->line, NULL);
    i->line_open = false;
}

static void inhibit_on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct inhibit *i = handle->data;

    (void)suggested;
    *buf = uv_buf_init(i->in + i->in_n, (unsigned)(sizeof(i->in) - i->in_n));
}

static void inhibit_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct inhibit *i = stream->data;
    char *end;

    (void)buf;
    if (n == 0)
        return;
    if (n < 0) { /* the process ended, or is about to: inhibit_on_ended() has its message */
        uv_read_stop(stream);
        if (n != UV_EOF)
            proc_cancel(&i->proc);
        return;
    }
    i->in_n += (size_t)n;
    while (i->line_open && (end = memchr(i->in, '\n', i->in_n)) != NULL) {
        size_t used = (size_t)(end - i->in) + 1;

        *end = '\0';
        inhibit_take_line(i, i->in);
        memmove(i->in, i->in + used, i->in_n - used);
        i->in_n -= used;
    }
    if (i->in_n == sizeof(i->in)) {
        uv_read_stop(stream);
        proc_cancel(&i->proc);
    }
}

static void inhibit_on_ended(struct op *op, const struct err *result)
{
    struct inhibit *i = op->owner;

    close_line(i);
    inhibit_failed(i, result->code == ERR_OK ? "coracle-shutdown ended" : result->text);
}

/* ---- the process ---- */

static void inhibit_start(struct inhibit *i)
{
    const char *bus = getenv(BUS_VARIABLE);
    str_auto variable = bus != NULL ? str_printf(BUS_VARIABLE "=%s", bus) : NULL;
    const char *env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", variable, NULL };
    char wait_us[32];
    const char *argv[] = { i->o.program, wait_us, NULL };
    int pair[2];
    struct proc_fd fd;
    struct proc_spec spec = { .name = "coracle-shutdown",
                              .argv = argv,
                              .env = env,
                              .fds = &fd,
                              .n_fds = 1,
                              .cgroup_fd = i->o.cgroup_fd,
                              .cgroup_procs = i->o.cgroup_procs,
                              .no_rights = true };

    if (bus == NULL && access(BUS_SOCKET, F_OK) != 0) {
        inhibit_failed(i, "there is no system bus (" BUS_SOCKET ")");
        return;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        inhibit_failed(i, strerror(errno));
        return;
    }
    snprintf(wait_us, sizeof(wait_us), "%llu", (unsigned long long)i->o.wait_ms * 1000);
    uv_pipe_init(i->o.loop, &i->line, 0);
    i->line.data = i;
    i->line_open = true;
    i->in_n = 0;
    if (uv_pipe_open(&i->line, pair[0]) != 0) { /* can only fail for a descriptor that is not a socket */
        close(pair[0]);
        close(pair[1]);
        close_line(i);
        inhibit_failed(i, "cannot open the connection to coracle-shutdown");
        return;
    }
    fd = (struct proc_fd){ .parent_fd = pair[1], .child_fd = LINE_FD };
    proc_start(&i->proc, &spec, i->o.loop, inhibit_on_ended, i);
    close(pair[1]);
    uv_read_start((uv_stream_t *)&i->line, inhibit_on_room, inhibit_on_read);
}

void inhibit_open(struct inhibit *i, const struct inhibit_options *o)
{
    *i = (struct inhibit){ .o = *o, .pause_ms = PAUSE_MIN_MS, .open = true };
    uv_timer_init(o->loop, &i->timer);
    i->timer.data = i;
    inhibit_start(i);
}

void inhibit_release(struct inhibit *i)
{
    char text[] = "release\n";
    uv_buf_t buf = uv_buf_init(text, sizeof(text) - 1);

    if (!i->line_open || i->closing)
        return;
    if (uv_try_write((uv_stream_t *)&i->line, &buf, 1) != sizeof(text) - 1)
        proc_cancel(&i->proc); /* which also releases the lock */
    i->o.on_state(false, "released: pods have ended", i->o.arg);
}

void inhibit_close(struct inhibit *i)
{
    if (!i->open || i->closing)
        return;
    i->closing = true;
    uv_close((uv_handle_t *)&i->timer, NULL);
    if (op_live(&i->proc.op))
        proc_cancel(&i->proc);
    else
        close_line(i);
}
