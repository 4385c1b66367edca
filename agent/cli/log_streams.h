/*
 * log_streams - the logs of several containers on one output: one after the other, or, while they are
 * followed, side by side, each with a thread and a connection.  Lines are whole then, whoever's they are.
 */
#ifndef AGENT_CLI_LOG_STREAMS_H
#define AGENT_CLI_LOG_STREAMS_H
#include "agent/cli/internal.h"

struct log_stream_spec {
    char *url;
    char *prefix; /* of each line; NULL: none */
};

struct log_streams {
    struct log_stream_spec *v;
    size_t n;
};

bool log_streams_add(struct log_streams *s, const char *url, const char *prefix); /* false: no memory */
void log_streams_done(struct log_streams *s);
/* To the end of all of them, or of the output: the exit code.  One after the other: the first that fails is
 * the last, unless errors are ignored. */
int log_streams_print(struct cli *cli, const struct log_streams *s, bool side_by_side, bool ignore_errors);
#endif
