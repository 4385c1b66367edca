/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs - sends a container's log as text to one client. All file access happens on the worker pool, one piece
 * at a time and only when the client has accepted the previous one: a client that pauses (a pager) costs a
 * connection, but no memory. Following watches the log's folder, where growth, rotation and the end are
 * visible. A rotated file is read to its end before the new one.
 */
#include "agent/status/internal.h"

#include "agent/status/cri_log.h"
#include "agent/status/log_walk.h"
#include "base/files/watches.h"
#include "base/log.h"
#include "base/work.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum { PIECE = 128 * 1024 };

struct log_stream {
    LIST_ENTRY(log_stream) all;
    struct status_server *server;
    struct conn *conn; /* NULL: the client has disconnected */
    char namespace_[64], name[256], container[64];
    bool has_container;
    struct status_log_options options;
    char path[PATH_MAX];
    struct watch_set *folder; /* NULL: not watched */
    bool running;             /* the container runs, so more output may follow */
    bool changed;             /* an event since the last read began */
    bool caught_up;           /* the client has been up to date before */
    enum { LOG_OPENING, LOG_READING, LOG_SENDING, LOG_WAITING, LOG_OVER } state;

    /* owned by the worker while `work` runs */
    struct work work;
    bool working;
    struct log_walk walk;
    struct cri_log_reader reader;
    struct buf out;
    bool at_end, limit_reached;

    /* measures independently how far the client is behind */
    struct work look;
    bool looking, look_again; /* look_again: the log changed meanwhile */
    uint64_t had;             /* bytes read for the client when the measurement began */
    off_t size;               /* the log's; owned by the worker while `looking` */
};

static void status_logs_step(struct log_stream *l);
static void check_backlog(struct log_stream *l);

/* ---- the end ---- */

static void status_logs_maybe_free(struct log_stream *l)
{
    struct status_server *s = l->server;

    if (l->conn != NULL || l->working || l->looking)
        return;
    log_walk_done(&l->walk);
    cri_log_reader_done(&l->reader);
    buf_done(&l->out);
    LIST_REMOVE(l, all);
    s->n_logs--;
    free(l);
    server_maybe_free(s);
}

static void unwatch(struct log_stream *l)
{
    watch_set_close(take_ptr(&l->folder));
}

static void logs_gone(struct conn *c)
{
    struct log_stream *l = c->log;

    c->log = NULL;
    c->source = NULL;
    l->conn = NULL;
    l->state = LOG_OVER;
    unwatch(l);
    status_logs_maybe_free(l);
}

static void status_logs_over(struct log_stream *l)
{
    struct conn *c = l->conn;

    logs_gone(c);
    conn_stream_end(c);
}

/* ---- on the worker pool ---- */

static enum err_code open_and_seek(void *arg, struct err *e)
{
    struct log_stream *l = arg;

    return log_walk_seek(&l->walk, l->options.has_tail ? l->options.tail_lines : UINT64_MAX,
                         l->options.since_ns, e);
}

static enum err_code status_logs_read_piece(void *arg, struct err *e)
{
    struct log_stream *l = arg;
    mem_auto char *piece = malloc(PIECE);
    size_t n;

    if (piece == NULL)
        return err_nomem(e);
    buf_reset(&l->out);
    if (log_walk_read(&l->walk, piece, PIECE, &n, e) != ERR_OK)
        return e->code;
    l->at_end = n == 0;
    l->limit_reached = !cri_log_reader_feed(&l->reader, piece, n, &l->out);
    return buf_check(&l->out, e);
}

/* ---- on the loop ---- */

static void on_work_done(struct op *op, const struct err *result)
{
    struct log_stream *l = op->owner;
    struct conn *c = l->conn;

    l->working = false;
    if (c == NULL) {
        status_logs_maybe_free(l);
        return;
    }
    if (l->state == LOG_OPENING) {
        if (result->code != ERR_OK) {
            logs_gone(c);
            conn_err(c, result);
            return;
        }
        if (c->eof) { /* only the lines that exist now */
            l->options.follow = false;
            c->finite = true;
        }
        conn_stream_begin(c, "text/plain; charset=utf-8");
        if (c->state == CONN_CLOSING)
            return;
        l->state = LOG_SENDING;
        if (c->parser.request.method == METHOD_HEAD)
            status_logs_over(l);
        return; /* logs_written() continues */
    }
    if (result->code != ERR_OK) {
        log_warn("cannot continue reading a log", F_STR("pod", l->name), F_ERR(result));
        conn_close(c); /* the answer has begun: closing is the only way to notify the client */
        return;
    }
    status_logs_step(l);
}

static void status_logs_start_read(struct log_stream *l)
{
    l->state = LOG_READING;
    l->changed = false;
    l->working = true;
    work_start(&l->work, "read log", l->name, status_logs_read_piece, l, l->server->loop, on_work_done, l);
}

/* After a piece was read. */
static void status_logs_step(struct log_stream *l)
{
    bool more = !l->at_end || (l->options.follow && (l->running || l->changed));
    struct conn *c = l->conn;

    if (!more)
        cri_log_reader_finish(&l->reader, &l->out);
    if (l->out.n > 0) {
        l->state = LOG_SENDING;
        conn_stream(c, l->out.p, l->out.n);
        if (c->state == CONN_CLOSING)
            return;
        if (more && !l->limit_reached) {
            if (l->state == LOG_SENDING && l->look_again)
                check_backlog(l);
            return; /* logs_written() continues */
        }
    }
    if (!more || l->limit_reached) {
        status_logs_over(l);
    } else if (l->at_end && !l->changed) {
        l->state = LOG_WAITING;
        l->caught_up = true;
    } else {
        status_logs_start_read(l);
    }
}

static void logs_written(struct conn *c)
{
    struct log_stream *l = c->log;

    if (c->writes == 0 && c->state == CONN_STREAMING && l->state == LOG_SENDING)
        status_logs_start_read(l);
}

/* ---- following ---- */

static enum err_code status_logs_read_size(void *arg, struct err *e)
{
    struct log_stream *l = arg;
    struct stat st;

    if (stat(l->path, &st) != 0)
        return err_sys(e, errno, "stat %s", l->path);
    l->size = st.st_size;
    return ERR_OK;
}

static void on_size(struct op *op, const struct err *result)
{
    struct log_stream *l = op->owner;
    const bool behind = result->code == ERR_OK && (uint64_t)l->size > l->had + STATUS_BACKLOG_MAX;

    l->looking = false;
    if (l->conn == NULL) {
        status_logs_maybe_free(l);
    } else if (l->state == LOG_WAITING) {
        return; /* it is up to date */
    } else if (l->state != LOG_SENDING) {
        l->look_again |=
            behind; /* the client accepted data since; repeated with the next piece, in status_logs_step() */
    } else if (behind && l->walk.offset == l->had) {
        log_info("disconnecting a client that follows a log: it fell too far behind", F_STR("pod", l->name));
        l->server->count.dropped++;
        conn_close(l->conn);
    } else if (l->look_again || behind) {
        check_backlog(l);
    }
}

/* Checks a client that was up to date and now accepts no data, while the log grows and no read is in
 * progress. */
static void check_backlog(struct log_stream *l)
{
    l->look_again = l->looking;
    if (l->looking)
        return;
    l->looking = true;
    l->had = l->walk.offset;
    work_start(&l->look, "look at log", l->name, status_logs_read_size, l, l->server->loop, on_size, l);
}

static void status_logs_look_again(struct log_stream *l)
{
    l->changed = true;
    if (l->state == LOG_WAITING)
        status_logs_start_read(l);
    else if (l->state == LOG_SENDING && l->caught_up)
        check_backlog(l);
}

static void status_logs_on_folder_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct log_stream *l = arg;
    const char *slash = strrchr(l->path, '/');

    (void)wd;
    (void)mask;
    if (name[0] == '\0' || strcmp(name, slash + 1) == 0)
        status_logs_look_again(l);
}

static void status_logs_watch_folder(struct log_stream *l)
{
    const uint32_t mask = IN_MODIFY | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ATTRIB |
                          IN_DELETE_SELF | IN_MOVE_SELF;
    char folder[PATH_MAX];
    struct err e = { 0 };

    strcpy(folder, l->path);
    *strrchr(folder, '/') = '\0';
    /* Without a watch, the log still advances on the provider's events. */
    if (watch_set_open(&l->folder, l->server->loop, status_logs_on_folder_event, l, &e) != ERR_OK ||
        watch_set_add(l->folder, folder, mask) < 0)
        log_debug("cannot watch a log's folder", F_STR("path", folder));
}

void status_server_log_event(struct status_server *s, const char *namespace_, const char *name)
{
    struct log_stream *l, *next;

    for (l = LIST_FIRST(&s->logs); l != NULL; l = next) {
        char path[PATH_MAX];
        struct err e = { 0 };
        bool running = false;

        next = LIST_NEXT(l, all);
        if (l->conn == NULL || !l->options.follow || strcmp(l->namespace_, namespace_) != 0 ||
            strcmp(l->name, name) != 0)
            continue;
        /* Another path belongs to another instance: ours has ended. */
        if (s->provider.log_path(s->provider.arg, namespace_, name, l->has_container ? l->container : NULL,
                                 l->options.previous, path, sizeof(path), &running, &e) != ERR_OK ||
            strcmp(path, l->path) != 0)
            running = false;
        l->running = running;
        status_logs_look_again(l);
    }
}

/* ---- the beginning ---- */

static const struct conn_source log_source = { .gone = logs_gone, .written = logs_written };

void logs_begin(struct conn *c, const char *namespace_, const char *name, const struct status_log_options *o)
{
    struct status_server *s = c->server;
    struct log_stream *l = calloc(1, sizeof(*l));
    struct err e = { 0 };

    if (l == NULL) {
        conn_json(c, 500, NULL);
        return;
    }
    l->has_container = o->container != NULL;
    if (snprintf(l->namespace_, sizeof(l->namespace_), "%s", namespace_) >= (int)sizeof(l->namespace_) ||
        snprintf(l->name, sizeof(l->name), "%s", name) >= (int)sizeof(l->name) ||
        snprintf(l->container, sizeof(l->container), "%s", l->has_container ? o->container : "") >=
            (int)sizeof(l->container)) {
        free(l);
        conn_status(c, 404, "NotFound", NULL, NULL, "no pod or container has a name of that length");
        return;
    }
    if (s->provider.log_path(s->provider.arg, namespace_, name, o->container, o->previous, l->path,
                             sizeof(l->path), &l->running, &e) != ERR_OK) {
        int http_code =
            e.code == ERR_PRECONDITION ? 400 : status_http_code(e.code); /* as in kubelet: not started yet */

        free(l);
        conn_status(c, http_code, status_reason(http_code), "pods", name, e.text);
        return;
    }
    l->server = s;
    l->conn = c;
    l->options = *o;
    l->options.container = NULL; /* borrowed from the request */
    log_walk_init(&l->walk, l->path);
    buf_init(&l->out,
             16 * PIECE); /* longer than the input because of timestamps, but by less than this factor */
    cri_log_reader_init(&l->reader);
    l->reader.streams = o->only_stdout ? CRI_LOG_STDOUT : o->only_stderr ? CRI_LOG_STDERR : CRI_LOG_BOTH;
    l->reader.timestamps = o->timestamps;
    l->reader.since_ns = o->since_ns;
    l->reader.limit_bytes = o->limit_bytes;
    LIST_INSERT_HEAD(&s->logs, l, all);
    s->n_logs++;
    c->log = l;
    c->source = &log_source;
    c->finite = !o->follow;
    if (o->follow && strrchr(l->path, '/') != NULL && strrchr(l->path, '/') != l->path)
        status_logs_watch_folder(l);
    l->state = LOG_OPENING;
    l->working = true;
    uv_timer_stop(&c->timer);
    work_start(&l->work, "open log", name, open_and_seek, l, s->loop, on_work_done, l);
}
