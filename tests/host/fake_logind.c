/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_logind DELAY_USEC - as much of org.freedesktop.login1 as takes part in a shutdown, on the bus that
 * DBUS_SYSTEM_BUS_ADDRESS names.  A line "shutdown" or "cancel" on standard input is a PrepareForShutdown;
 * standard output tells "ready", "inhibit <what> <who> <mode>" and "released".  test_shutdown.py builds it.
 */
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

struct logind {
    uint64_t delay_us;
    int preparing, lock; /* our end of the newest lock; -1: none is held */
};

static int on_inhibit(sd_bus_message *m, void *arg, sd_bus_error *error)
{
    struct logind *l = arg;
    const char *what, *who, *why, *mode;
    int fds[2], r = sd_bus_message_read(m, "ssss", &what, &who, &why, &mode);

    if (r < 0)
        return r;
    if (l->preparing)
        return sd_bus_error_set(error, "org.freedesktop.login1.OperationInProgress",
                                "The operation inhibition has been requested for is already running");
    if (pipe(fds) != 0)
        return -1;
    if (l->lock >= 0)
        close(l->lock);
    l->lock = fds[0];
    printf("inhibit %s %s %s\n", what, who, mode);
    r = sd_bus_reply_method_return(m, "h", fds[1]);
    close(fds[1]);
    return r;
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Inhibit", "ssss", "h", on_inhibit, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_PROPERTY("InhibitDelayMaxUSec", "t", NULL, offsetof(struct logind, delay_us),
                    SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("PreparingForShutdown", "b", NULL, offsetof(struct logind, preparing), 0),
    SD_BUS_SIGNAL("PrepareForShutdown", "b", 0),
    SD_BUS_VTABLE_END,
};

static void take_command(struct logind *l, sd_bus *bus, const char *line)
{
    l->preparing = strncmp(line, "shutdown", 8) == 0;
    sd_bus_emit_signal(bus, "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PrepareForShutdown",
                       "b", l->preparing);
    sd_bus_flush(bus);
}

int main(int argc, char **argv)
{
    struct logind l = { .delay_us = strtoull(argc > 1 ? argv[1] : "0", NULL, 10), .lock = -1 };
    sd_bus *bus = NULL;
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (sd_bus_open_system(&bus) < 0 ||
        sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
                                 vtable, &l) < 0 ||
        sd_bus_request_name(bus, "org.freedesktop.login1", 0) < 0) {
        fprintf(stderr, "fake_logind: no bus\n");
        return 1;
    }
    puts("ready");
    for (;;) {
        struct pollfd fds[3];

        while (sd_bus_process(bus, NULL) > 0)
            ;
        fds[0] = (struct pollfd){ sd_bus_get_fd(bus), (short)sd_bus_get_events(bus), 0 };
        fds[1] = (struct pollfd){ STDIN_FILENO, POLLIN, 0 };
        fds[2] = (struct pollfd){ l.lock, 0, 0 }; /* POLLHUP: its other end is closed */
        if (poll(fds, 3, -1) < 0)
            return 1;
        if (fds[2].revents != 0) {
            puts("released");
            close(l.lock);
            l.lock = -1;
        }
        if (fds[1].revents != 0) {
            ssize_t n = read(STDIN_FILENO, line, sizeof(line) - 1);
            if (n <= 0)
                return 0;
            line[n] = '\0';
            take_command(&l, bus, line);
        }
    }
}
