/* SPDX-License-Identifier: Apache-2.0 */
/* exec_internal - one client's process, shared by exec.c (the process, its output, the end), exec_begin.c and
 * exec_input.c (the client's data). Loop thread only. */
#ifndef AGENT_STATUS_EXEC_INTERNAL_H
#define AGENT_STATUS_EXEC_INTERNAL_H
#include "agent/status/internal.h"
#include "base/codec/websocket.h"

#include <sys/ioctl.h>

enum {
    EXEC_CHANNEL_STDIN,
    EXEC_CHANNEL_STDOUT,
    EXEC_CHANNEL_STDERR,
    EXEC_CHANNEL_ERROR,
    EXEC_CHANNEL_RESIZE,
    EXEC_CHANNEL_CLOSE = 255
};

enum {
    EXEC_SMALL_MAX = 1024,     /* bytes of a message on channel 4 or 255 */
    EXEC_OUT_MAX = 256 * 1024, /* framed data at a time: a piece of output, or answers to pings */
};

struct exec_end { /* our end of one of the process's streams */
    struct exec_stream *stream;
    int fd; /* -1: closed */
    uv_poll_t poll;
    int channel;
    bool polling;
};

struct exec_stream {
    struct status_server *server;
    struct conn *conn;           /* NULL: disconnected */
    struct status_exec *process; /* NULL: ended */
    int protocol;
    bool wants_stdin, wants_stdout, wants_stderr, tty;
    struct ws ws;
    int channel;      /* of the current message; -1: unknown */
    struct buf small; /* content of channels 4 and 255 so far */
    struct exec_end in, out[2];
    struct exec_end hangup; /* watches the connection while it is not read */
    struct buf pending;     /* input that the process has not accepted yet */
    bool input_over;        /* end of the client's input: close when `pending` is written */
    struct winsize size;    /* the last one received; no rows: none */
    bool attached;          /* out[0] is conmon's socket: packets; `in` is the same socket */
    size_t piece_max;       /* maximum size of an input write; 0: any */
    int control;            /* for the size of an attached terminal; -1: none */
    bool forwards;          /* a connection: the client is notified when the other side closes its half */
    bool plain;             /* its result is not an exit code: forward, archive */
    bool started, ended;
    bool closing; /* our close frame is being sent */
    bool linger;  /* waiting for the client's close frame */
    int unread;   /* errno of a read by which a part of the output was lost; 0: none */
    struct err result;
    int exit_code;
    uv_timer_t timer;
    bool has_timer;
    int open_handles;
};

bool exec_open_end(struct exec_stream *x, struct exec_end *end, int fd,
                   int channel); /* takes ownership of the descriptor */
void exec_close_end(struct exec_end *end);

/* Callbacks of the connection: struct conn_source. */
void exec_gone(struct conn *c);
void exec_written(struct conn *c);
void exec_input(struct conn *c); /* exec_input.c */

/* Sends the framed data. */
void exec_flush(struct exec_stream *x);
/* Sends our close frame; with `linger` waits for the client's, as needed if we close first. */
void exec_close(struct exec_stream *x, uint16_t code, const char *reason, bool linger);

/* Callbacks of the process, from the provider. */
void exec_on_terminal(int master, void *owner);
void exec_on_started(void *owner);
void exec_on_done(const struct err *result, int exit_code, void *owner);

/* ---- exec_input.c ---- */

void exec_take_piece(const struct ws_piece *piece, void *owner);
void exec_pump_input(struct exec_stream *x); /* writes as much of `pending` as the process accepts */
/* Whether the process does not read, so that we do not read from the client. */
bool exec_blocked(const struct exec_stream *x);
#endif
