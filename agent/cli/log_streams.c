#include "agent/cli/log_streams.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (1u << 20) /* what is longer is given in pieces */

bool log_streams_add(struct log_streams *s, const char *url, const char *prefix)
{
    struct log_stream_spec *grown = reallocarray(s->v, s->n + 1, sizeof(*grown)), *one;

    if (grown == NULL)
        return false;
    s->v = grown;
    one = &grown[s->n];
    *one = (struct log_stream_spec){ strdup(url), prefix != NULL ? strdup(prefix) : NULL };
    if (one->url == NULL || (prefix != NULL && one->prefix == NULL)) {
        free(one->url);
        free(one->prefix);
        return false;
    }
    s->n++;
    return true;
}

void log_streams_done(struct log_streams *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].url);
        free(s->v[i].prefix);
    }
    free(s->v);
}

/* What the streams share; only under the lock. */
struct output {
    struct cli *cli;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t running;
    int code;
    bool unread; /* nobody reads the output any more */
};

struct stream {
    struct output *out;
    const struct log_stream_spec *spec;
    bool whole_lines;
    struct buf line; /* the beginning of one, with its prefix */
};

static void give(struct stream *s, const char *data, size_t n)
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

static void give_line(struct stream *s)
{
    give(s, s->line.p, s->line.n);
    buf_reset(&s->line);
}

static void take_lines(struct stream *s, const char *data, size_t n)
{
    while (n > 0) {
        const char *newline = memchr(data, '\n', n);
        size_t part = newline != NULL ? (size_t)(newline - data) + 1 : n;

        if (s->line.n == 0 && s->spec->prefix != NULL)
            buf_adds(&s->line, s->spec->prefix);
        if (s->line.n + part > LINE_MAX_BYTES) {
            give_line(s);
            give(s, data, part);
        } else {
            buf_add(&s->line, data, part);
            if (newline != NULL || s->line.failed)
                give_line(s);
        }
        data += part;
        n -= part;
    }
}

static bool on_data(const char *data, size_t n, void *arg)
{
    struct stream *s = arg;
    bool unread;

    if (s->whole_lines)
        take_lines(s, data, n);
    else
        give(s, data, n);
    pthread_mutex_lock(&s->out->lock);
    unread = s->out->unread;
    pthread_mutex_unlock(&s->out->lock);
    return !unread;
}

static int print_one(struct output *out, const struct log_stream_spec *spec, bool whole_lines)
{
    struct stream s = { .out = out,
                        .spec = spec,
                        .whole_lines = whole_lines || spec->prefix != NULL,
                        .line = BUF_INIT(LINE_MAX_BYTES * 2) };
    struct cli_response r = CLI_RESPONSE_INIT;
    struct err e = { 0 };
    int code = EXIT_OK;
    enum err_code asked = cli_request(out->cli, "GET", spec->url, true, on_data, &s, &r, &e);

    give_line(&s);
    buf_done(&s.line);
    pthread_mutex_lock(&out->lock);
    if (asked != ERR_OK)
        code = cli_error(out->cli, "%s", e.text);
    else if (r.code != 200)
        code = cli_server_error(out->cli, &r);
    pthread_mutex_unlock(&out->lock);
    buf_done(&r.body);
    return code;
}

/* ---- one after the other --------------------------------------------------------------------- */

static int print_in_turn(struct output *out, const struct log_streams *s, bool ignore_errors)
{
    for (size_t i = 0; i < s->n && !out->unread; i++) {
        int code = print_one(out, &s->v[i], false);

        if (code != EXIT_OK && !ignore_errors)
            return code;
    }
    return EXIT_OK;
}

/* ---- side by side ---------------------------------------------------------------------------- */

struct follower {
    struct output *out;
    struct log_stream_spec spec;
    bool ignore_errors;
};

static void *follow(void *arg)
{
    struct follower *f = arg;
    struct output *out = f->out;
    int code = print_one(out, &f->spec, true);

    free(f->spec.url);
    free(f->spec.prefix);
    pthread_mutex_lock(&out->lock);
    if (code != EXIT_OK && !f->ignore_errors)
        out->code = code;
    out->running--;
    pthread_cond_signal(&out->changed);
    pthread_mutex_unlock(&out->lock);
    free(f);
    return NULL;
}

static bool start(struct output *out, const struct log_stream_spec *spec, bool ignore_errors)
{
    struct follower *f = calloc(1, sizeof(*f));
    pthread_t thread;

    if (f == NULL)
        return false;
    *f = (struct follower){ .out = out, .ignore_errors = ignore_errors };
    f->spec.url = strdup(spec->url);
    f->spec.prefix = spec->prefix != NULL ? strdup(spec->prefix) : NULL;
    if (f->spec.url == NULL || (spec->prefix != NULL && f->spec.prefix == NULL) ||
        pthread_create(&thread, NULL, follow, f) != 0) {
        free(f->spec.url);
        free(f->spec.prefix);
        free(f);
        return false;
    }
    pthread_detach(thread);
    return true;
}

/*
 * Who waits for a container that writes nothing does not notice that nobody reads the output any more: then
 * it is left alone, with the output, and ends with the process.
 */
static int print_side_by_side(struct output *out, const struct log_streams *s, bool ignore_errors,
                              bool *ret_left)
{
    pthread_mutex_lock(&out->lock);
    for (size_t i = 0; i < s->n && out->code == EXIT_OK; i++) {
        if (start(out, &s->v[i], ignore_errors))
            out->running++;
        else
            out->code = cli_error(out->cli, "a further log cannot be followed: out of memory");
    }
    while (out->running > 0 && !out->unread)
        pthread_cond_wait(&out->changed, &out->lock);
    *ret_left = out->running > 0;
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
    pthread_mutex_init(&out->lock, NULL);
    pthread_cond_init(&out->changed, NULL);
    code = side_by_side && s->n > 1 ? print_side_by_side(out, s, ignore_errors, &left)
                                    : print_in_turn(out, s, ignore_errors);
    if (!left) {
        pthread_cond_destroy(&out->changed);
        pthread_mutex_destroy(&out->lock);
        free(out);
    }
    return code;
}
