/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/stream/internal.h"
#include "base/array.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (1u << 20) /* longer lines are passed on in pieces */

static bool copy_spec(struct log_stream_spec *to, const char *url, const char *name, bool prefixed)
{
    *to = (struct log_stream_spec){ strdup(url), strdup(name), prefixed };
    if (to->url != NULL && to->name != NULL)
        return true;
    free(to->url);
    free(to->name);
    return false;
}

bool log_streams_add(struct log_streams *s, const char *url, const char *name, bool prefixed)
{
    if (!array_room(s->v, s->n) || !copy_spec(&s->v[s->n], url, name, prefixed))
        return false;
    s->n++;
    return true;
}

void log_streams_done(struct log_streams *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].url);
        free(s->v[i].name);
    }
    free(s->v);
}

/* Shared by the streams; protected by the lock. */
struct output {
    struct cli *cli;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t running;
    int code;
    struct buf failed; /* names of the failed ones */
    bool unread;       /* the output's reader is gone */
};

struct stream {
    struct output *out;
    const struct log_stream_spec *spec;
    bool whole_lines;
    struct buf line; /* the beginning of a line, with its prefix */
};

static void log_streams_give(struct stream *s, const char *data, size_t n)
{
    struct output *out = s->out;

    if (n == 0)
        return;
    pthread_mutex_lock(&out->lock);
    if (!out->unread && !cli_write(out->cli, data, n)) {
        out->unread = true;
        pthread_cond_signal(&out->changed);
    }
    pthread_mutex_unlock(&out->lock);
}

static void log_streams_give_line(struct stream *s)
{
    log_streams_give(s, s->line.p, s->line.n);
    buf_reset(&s->line);
}

static void take_lines(struct stream *s, const char *data, size_t n)
{
    while (n > 0) {
        const char *newline = memchr(data, '\n', n);
        size_t part = newline != NULL ? (size_t)(newline - data) + 1 : n;

        if (s->line.n == 0 && s->spec->prefixed)
            buf_addf(&s->line, "[%s] ", s->spec->name);
        if (s->line.n + part > LINE_MAX_BYTES) {
            log_streams_give_line(s);
            log_streams_give(s, data, part);
        } else {
            buf_add(&s->line, data, part);
            if (newline != NULL || s->line.failed)
                log_streams_give_line(s);
        }
        data += part;
        n -= part;
    }
}

static bool log_streams_on_data(const char *data, size_t n, void *arg)
{
    struct stream *s = arg;
    bool unread;

    if (s->whole_lines)
        take_lines(s, data, n);
    else
        log_streams_give(s, data, n);
    pthread_mutex_lock(&s->out->lock);
    unread = s->out->unread;
    pthread_mutex_unlock(&s->out->lock);
    return !unread;
}

static int log_streams_print_one(struct output *out, const struct log_stream_spec *spec, bool whole_lines)
{
    struct stream s = { .out = out,
                        .spec = spec,
                        .whole_lines = whole_lines || spec->prefixed,
                        .line = BUF_INIT(LINE_MAX_BYTES * 2) };
    struct cli_response r = CLI_RESPONSE_INIT;
    struct err e = { 0 };
    int code = EXIT_OK;
    enum err_code asked = cli_request(out->cli, "GET", spec->url, true, log_streams_on_data, &s, &r, &e);

    log_streams_give_line(&s);
    buf_done(&s.line);
    pthread_mutex_lock(&out->lock);
    if (asked != ERR_OK)
        code = cli_failed(out->cli, &e);
    else if (r.code != 200)
        code = cli_server_error(out->cli, &r);
    pthread_mutex_unlock(&out->lock);
    buf_done(&r.body);
    return code;
}

/* ---- one after the other ---- */

static int print_in_turn(struct output *out, const struct log_streams *s, bool ignore_errors)
{
    for (size_t i = 0; i < s->n && !out->unread; i++) {
        int code = log_streams_print_one(out, &s->v[i], false);

        if (code != EXIT_OK && !ignore_errors)
            return code;
    }
    return EXIT_OK;
}

/* ---- side by side ---- */

struct follower {
    struct output *out;
    struct log_stream_spec spec;
    bool ignore_errors;
};

static void *log_streams_follow(void *arg)
{
    struct follower *f = arg;
    struct output *out = f->out;
    int code = log_streams_print_one(out, &f->spec, true);

    pthread_mutex_lock(&out->lock);
    if (code != EXIT_OK && !f->ignore_errors) {
        cli_keep_first(&out->code, code);
        buf_addf(&out->failed, "%s%s", out->failed.n > 0 ? ", " : "", f->spec.name);
    }
    out->running--;
    pthread_cond_signal(&out->changed);
    pthread_mutex_unlock(&out->lock);
    free(f->spec.url);
    free(f->spec.name);
    free(f);
    return NULL;
}

static bool log_streams_start(struct output *out, const struct log_stream_spec *spec, bool ignore_errors)
{
    struct follower *f = calloc(1, sizeof(*f));
    pthread_t thread;

    if (f == NULL)
        return false;
    *f = (struct follower){ .out = out, .ignore_errors = ignore_errors };
    if (!copy_spec(&f->spec, spec->url, spec->name, spec->prefixed)) {
        free(f);
        return false;
    }
    if (pthread_create(&thread, NULL, log_streams_follow, f) != 0) {
        free(f->spec.url);
        free(f->spec.name);
        free(f);
        return false;
    }
    pthread_detach(thread);
    return true;
}

/* A thread waiting for a silent container does not notice that the output's reader is gone: then it is
 * abandoned, with the output, and ends with the process. */
static int print_side_by_side(struct output *out, const struct log_streams *s, bool ignore_errors,
                              bool *ret_left)
{
    pthread_mutex_lock(&out->lock);
    for (size_t i = 0; i < s->n; i++) {
        if (log_streams_start(out, &s->v[i], ignore_errors))
            out->running++;
        else
            cli_keep_first(&out->code, cli_error(out->cli, "cannot follow %s: out of memory", s->v[i].name));
    }
    while (out->running > 0 && !out->unread)
        pthread_cond_wait(&out->changed, &out->lock);
    *ret_left = out->running > 0;
    if (out->failed.n > 0 && !out->unread)
        cli_error(out->cli, "not all logs were followed to their end: %s", out->failed.p);
    pthread_mutex_unlock(&out->lock);
    return out->code;
}

int log_streams_print(struct cli *cli, const struct log_streams *s, bool side_by_side, bool ignore_errors)
{
    struct output *out = calloc(1, sizeof(*out));
    bool left = false;
    int code;

    if (out == NULL)
        return cli_error(cli, "out of memory");
    out->cli = cli;
    buf_init(&out->failed, 64 * 1024);
    pthread_mutex_init(&out->lock, NULL);
    pthread_cond_init(&out->changed, NULL);
    code = side_by_side && s->n > 1 ? print_side_by_side(out, s, ignore_errors, &left)
                                    : print_in_turn(out, s, ignore_errors);
    if (!left) {
        pthread_cond_destroy(&out->changed);
        pthread_mutex_destroy(&out->lock);
        buf_done(&out->failed);
        free(out);
    }
    return code;
}
