/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/cli/stream. */
#ifndef AGENT_CLI_STREAM_INTERNAL_H
#define AGENT_CLI_STREAM_INTERNAL_H
#include "agent/cli/client/client.h"
#include "agent/cli/command/command.h"
#include "agent/cli/print/print.h"
#include "agent/cli/stream/stream.h"

/* ---- exec_stream.c ---- */
struct exec_session {
    struct cli *cli;
    int input; /* to pass on; -1: none */
    /* A descriptor instead of standard output; -1: none; a socket is half-closed at its end. */
    int output;
    int terminal;     /* whose size is passed on; -1: none */
    bool detaches;    /* at ctrl-p, ctrl-q on the input */
    int fd;           /* exec_stream()'s own: speaks WebSocket */
    struct buf *rest; /* bytes of the connection that were already received */
};
/* Opens the URL and passes data until the process ends; returns its exit code, or one of ours after printing
 * an error. */
int exec_stream(const struct exec_session *s, const char *url);
/* The exit code for the Status on the error channel. */
int exec_outcome(struct cli *cli, const char *text, size_t n);

/* ---- attach.c ---- */
struct attach {
    const char *namespace_;
    const char *container; /* NULL: the default one */
    bool stdin_, tty;
};
/* To a container of this pod; the exit code. */
int attach_to(struct cli *cli, const struct attach *o, const char *name);

/* ---- debug_node.c ---- */
#define DEBUG_POD_SIZE 254
/* The labels of a pod of `debug node`: of all such pods, and of one, whose value is its name in the file. */
#define DEBUG_LABEL "app.kubernetes.io/managed-by"
#define DEBUG_INSTANCE "app.kubernetes.io/instance"
/* "debugger-" and five random characters, as kubectl makes them. */
void debug_name(const char *prefix, char *ret, size_t size);
/* Writes the manifest of a pod in the node's namespaces with this container, and prints a message. *ret: the
 * value of DEBUG_INSTANCE. Returns the exit code. */
int debug_node_make(struct cli *cli, const char *node, const char *namespace_, const json_t *container,
                    char ret[DEBUG_POD_SIZE]);

/* ---- log_streams.c: the logs of several containers ---- */
/* One after the other, or side by side when following, each with a thread and a connection. Lines are never
 * mixed. */
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
