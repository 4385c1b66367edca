/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_streams - the logs of several containers on one output: one after the other, or, while they are
 * followed, side by side, each with a thread and a connection.  Lines are whole then, whoever's they are.
 */
#ifndef AGENT_CLI_LOG_STREAMS_H
#define AGENT_CLI_LOG_STREAMS_H
#include "agent/cli/internal.h"

struct log_stream_spec {
    char *url;
    char *name;    /* "pod/web/main" */
    bool prefixed; /* each line begins with it */
};

struct log_streams {
    struct log_stream_spec *v;
    size_t n;
};

/* False: no memory. */
bool log_streams_add(struct log_streams *s, const char *url, const char *name, bool prefixed);
void log_streams_done(struct log_streams *s);
/*
 * To the end of all of them, or of the output: the exit code of the first that failed, unless errors are
 * ignored. One after the other the first that fails is the last then; side by side the others go on, and at
 * the end it is said which failed.
 */
int log_streams_print(struct cli *cli, const struct log_streams *s, bool side_by_side, bool ignore_errors);
#endif
