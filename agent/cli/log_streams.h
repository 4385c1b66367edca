/* SPDX-License-Identifier: Apache-2.0 */
/* log_streams - prints the logs of several containers: one after the other, or side by side when following,
 * each with a thread and a connection. Lines are never mixed. */
#ifndef AGENT_CLI_LOG_STREAMS_H
#define AGENT_CLI_LOG_STREAMS_H
#include "agent/cli/internal.h"

struct log_stream_spec {
    char *url;
    char *name;    /* "pod/web/main" */
    bool prefixed; /* each line is prefixed with it */
};

struct log_streams {
    struct log_stream_spec *v;
    size_t n;
};

/* False when out of memory. */
bool log_streams_add(struct log_streams *s, const char *url, const char *name, bool prefixed);
void log_streams_done(struct log_streams *s);
/* Prints until all logs, or the output, end. Returns the exit code of the first that failed, unless errors
 * are ignored. One after the other, the first failure ends it; side by side the others continue, and failures
 * are listed at the end. */
int log_streams_print(struct cli *cli, const struct log_streams *s, bool side_by_side, bool ignore_errors);
#endif
