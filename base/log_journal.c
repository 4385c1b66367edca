/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats lines for the journal in its native protocol (systemd: docs/JOURNAL_NATIVE_PROTOCOL): one datagram
 * of KEY=value lines. The text is the same as elsewhere; the additional fields can be queried:
 *
 *     journalctl -u coracle CORACLE_POD=default/web
 */
#include "base/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static const struct {
    const char *field, *key;
} keys[] = {
    { "pod", "CORACLE_POD" },
    { "podUID", "CORACLE_POD_UID" },
    { "containerName", "CORACLE_CONTAINER" },
    { "containerID", "CORACLE_CONTAINER_ID" },
    { "operation", "CORACLE_OPERATION" },
};
enum { POD, POD_UID, OPERATION = 4, N_KEYS };

static size_t log_journal_put(char *at, size_t room, const char *key, const char *value)
{
    int n;

    if (value == NULL || value[0] == '\0' || strchr(value, '\n') != NULL)
        return 0;
    n = snprintf(at, room, "%s=%s\n", key, value);
    return n > 0 && (size_t)n < room ? (size_t)n : 0; /* omitted if it does not fit */
}

size_t log_journal_format(enum log_level level, const char *text, const struct log_field *fields, size_t n,
                          const struct log_context *context, char *out, size_t size)
{
    const char *values[N_KEYS] = { NULL };
    char priority[2] = { (char)('0' + (int)level), '\0' };
    size_t used = log_journal_put(out, size, "PRIORITY", priority);

    used += log_journal_put(out + used, size - used, "SYSLOG_IDENTIFIER", "coracle");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < N_KEYS; k++)
            if (fields[i].type == LOG_T_STR && strcmp(fields[i].key, keys[k].field) == 0)
                values[k] = fields[i].v.s;
    if (context->pod != NULL && (values[POD] == NULL || strcmp(values[POD], context->pod) == 0)) {
        values[POD] = context->pod;
        if (values[POD_UID] == NULL)
            values[POD_UID] = context->pod_uid;
    }
    if (values[OPERATION] == NULL)
        values[OPERATION] = context->operation;
    for (size_t k = 0; k < N_KEYS; k++)
        used += log_journal_put(out + used, size - used, keys[k].key, values[k]);
    return used + log_journal_put(out + used, size - used, "MESSAGE", text);
}

/* No descriptor is kept: none can leak into a forked child, and a restarted journald is found. */
bool log_journal_send(const char *datagram, size_t n)
{
    const struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool sent;

    if (fd < 0)
        return false;
    sent = sendto(fd, datagram, n, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to, sizeof(to)) ==
           (ssize_t)n;
    close(fd);
    return sent;
}
