/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/cri_log.h"

#include "base/clock.h"
#include "base/scope.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CHUNK = 64 * 1024,   /* read backwards in pieces of this size */
    HEAD = 64,           /* "<35 of time> stderr F " is shorter */
    TIMESTAMP_MIN = 20,  /* 2026-01-02T03:04:05Z */
    TIMESTAMP_MAX = 35,  /* ...05.123456789+00:00 */
    FALLBACK_FACTOR = 64 /* a line with one byte of text has 46 bytes in the file */
};

/* Splits the first word off `rest`. */
static bool cri_log_next_word(struct str *rest, struct str *ret)
{
    const char *blank = memchr(rest->p, ' ', rest->n);

    if (blank == NULL)
        return false;
    *ret = (struct str){ rest->p, (size_t)(blank - rest->p) };
    rest->n -= ret->n + 1;
    rest->p = blank + 1;
    return true;
}

static bool cri_log_is_word(struct str s, const char *word)
{
    return s.n == strlen(word) && memcmp(s.p, word, s.n) == 0;
}

static bool looks_like_time(struct str s)
{
    if (s.n < TIMESTAMP_MIN || s.n > TIMESTAMP_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] < '0' || s.p[i] > '9') && strchr("-:.TZ+", s.p[i]) == NULL)
            return false;
    return true;
}

bool cri_log_parse(struct str line, struct cri_log_line *ret)
{
    struct str timestamp, stream, tag;
    bool is_stderr;

    if (!cri_log_next_word(&line, &timestamp) || !looks_like_time(timestamp) ||
        !cri_log_next_word(&line, &stream) || !cri_log_next_word(&line, &tag))
        return false;
    is_stderr = cri_log_is_word(stream, "stderr");
    if (!is_stderr && !cri_log_is_word(stream, "stdout"))
        return false;
    /* More tags may follow after a colon; none are defined so far. */
    if (tag.n == 0 || (tag.p[0] != 'P' && tag.p[0] != 'F') || (tag.n > 1 && tag.p[1] != ':'))
        return false;
    *ret = (struct cri_log_line){
        .timestamp = timestamp,
        .is_stderr = is_stderr,
        .partial = tag.p[0] == 'P',
        .text = line,
    };
    return true;
}

/* ---- backwards ---- */

/* A window of the file that moves towards its beginning. */
struct window {
    int fd;
    char *bytes; /* CHUNK of them */
    uint64_t at; /* offset of bytes[0] */
    size_t n;
};

static enum err_code read_at(int fd, void *bytes, size_t n, uint64_t at, size_t *ret, struct err *e)
{
    size_t got = 0;

    while (got < n) {
        ssize_t r = pread(fd, (char *)bytes + got, n - got, (off_t)(at + got));

        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_sys(e, errno, "read the log");
        if (r == 0) /* truncated meanwhile */
            break;
        got += (size_t)r;
    }
    *ret = got;
    return ERR_OK;
}

/* Offset after the last newline before `end`; 0 if there is none. */
static enum err_code line_start(struct window *w, uint64_t end, uint64_t *ret, struct err *e)
{
    while (end > 0) {
        const char *newline;

        if (end <= w->at || end > w->at + w->n) {
            size_t want = end < CHUNK ? (size_t)end : CHUNK;

            if (read_at(w->fd, w->bytes, want, end - want, &w->n, e) != ERR_OK)
                return e->code;
            w->at = end - want;
            if (w->n < want)
                return err_set(e, ERR_ABORTED, "read the log: it was truncated");
        }
        newline = memrchr(w->bytes, '\n', (size_t)(end - w->at));
        if (newline != NULL) {
            *ret = w->at + (uint64_t)(newline - w->bytes) + 1;
            return ERR_OK;
        }
        end = w->at;
    }
    *ret = 0;
    return ERR_OK;
}

/* Parses the beginning of the line at [start, end): stream and tag. */
static enum err_code parse_head(struct window *w, uint64_t start, uint64_t end, struct cri_log_line *ret,
                                bool *ret_is_line, struct err *e)
{
    size_t n = end - start < HEAD ? (size_t)(end - start) : HEAD;
    char head[HEAD];

    if (start >= w->at && start + n <= w->at + w->n)
        memcpy(head, w->bytes + (start - w->at), n);
    else if (read_at(w->fd, head, n, start, &n, e) != ERR_OK)
        return e->code;
    *ret_is_line = cri_log_parse((struct str){ head, n }, ret);
    return ERR_OK;
}

enum err_code cri_log_tail_find(int fd, struct cri_log_tail *t, uint64_t *ret, struct err *e)
{
    mem_auto char *bytes = NULL;
    struct window w = { .fd = fd };
    struct stat st;
    uint64_t end;

    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "read the log");
    w.bytes = bytes = malloc(CHUNK);
    if (bytes == NULL)
        return err_nomem(e);

    /* Bytes after the last newline are still being written: they follow the offset in any case. */
    if (line_start(&w, (uint64_t)st.st_size, &end, e) != ERR_OK)
        return e->code;
    while (end > 0) {
        struct cri_log_line line;
        bool is_line = false;
        uint64_t start;

        if (line_start(&w, end - 1, &start, e) != ERR_OK ||
            parse_head(&w, start, end - 1, &line, &is_line, e) != ERR_OK)
            return e->code;
        if (is_line) {
            if ((!line.partial || !t->seen[line.is_stderr]) && ++t->found > t->lines) {
                t->enough = true;
                break;
            }
            t->seen[line.is_stderr] = true;
        }
        end = start;
    }
    *ret = end;
    return ERR_OK;
}

enum err_code cri_log_tail_offset(int fd, uint64_t lines, uint64_t *ret, struct err *e)
{
    struct cri_log_tail t = { .lines = lines };

    return cri_log_tail_find(fd, &t, ret, e);
}

enum err_code cri_log_tail(const char *path, unsigned lines, size_t max, char **ret, struct err *e)
{
    struct cri_log_reader reader;
    mem_auto char *bytes = NULL;
    buf_auto text = BUF_INIT(SIZE_MAX - 1);
    struct stat st;
    uint64_t from, window;
    size_t n, skip = 0;
    fd_auto fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return err_sys(e, errno, "open log %s", path);
    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "read log %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "log %s is not a regular file", path);
    if (cri_log_tail_offset(fd, lines, &from, e) != ERR_OK)
        return err_wrap(e, "log %s", path);

    /* Lines may have any length, so only bytes that can belong to the last `max` bytes of text are read. */
    window = (uint64_t)max * FALLBACK_FACTOR + (uint64_t)lines * FALLBACK_FACTOR + CRI_LOG_LINE_MAX;
    if ((uint64_t)st.st_size > from && (uint64_t)st.st_size - from > window)
        from = (uint64_t)st.st_size - window;
    else
        window = (uint64_t)st.st_size > from ? (uint64_t)st.st_size - from : 0;

    bytes = malloc(window + 1);
    if (bytes == NULL)
        return err_nomem(e);
    if (read_at(fd, bytes, window, from, &n, e) != ERR_OK)
        return err_wrap(e, "log %s", path);
    cri_log_reader_init(&reader);
    cri_log_reader_feed(&reader, bytes, n, &text);
    cri_log_reader_finish(&reader, &text);
    cri_log_reader_done(&reader);
    if (buf_check(&text, e) != ERR_OK)
        return e->code;

    if (text.n > max)
        skip = text.n - max;
    for (size_t i = skip; i < text.n; i++)
        if (text.p[i] == '\0') /* a NUL would end the string */
            text.p[i] = ' ';
    *ret = strndup(text.p + skip, text.n - skip);
    return *ret == NULL ? err_nomem(e) : ERR_OK;
}

/* ---- forwards ---- */

void cri_log_reader_init(struct cri_log_reader *r)
{
    *r = (struct cri_log_reader){ 0 };
    buf_init(&r->rest, CRI_LOG_LINE_MAX);
}

void cri_log_reader_done(struct cri_log_reader *r)
{
    buf_done(&r->rest);
}

/* Appends within the limit; false when it is reached. */
static bool cri_log_give(struct cri_log_reader *r, const char *p, size_t n, struct buf *out)
{
    if (r->limit_bytes != 0 && n > r->limit_bytes - r->given)
        n = (size_t)(r->limit_bytes - r->given);
    buf_add(out, p, n);
    r->given += n;
    return r->limit_bytes == 0 || r->given < r->limit_bytes;
}

/* Always nine digits, for aligned columns; an invalid time is shown as written. */
static bool give_timestamp(struct cri_log_reader *r, struct str written, int64_t ns, bool valid,
                           struct buf *out)
{
    char fixed[CLOCK_RFC3339_SIZE], text[CLOCK_RFC3339_SIZE + 16];
    int n;

    if (!valid)
        return cri_log_give(r, written.p, written.n, out) && cri_log_give(r, " ", 1, out);
    clock_format_s(ns, fixed);
    fixed[strlen(fixed) - 1] = '\0'; /* the Z */
    n = snprintf(text, sizeof(text), "%s.%09dZ ", fixed, (int)(ns % 1000000000));
    return cri_log_give(r, text, (size_t)n, out);
}

static bool cri_log_give_line(struct cri_log_reader *r, struct str raw, struct buf *out)
{
    struct cri_log_line line;
    char written[TIMESTAMP_MAX + 1];
    bool valid = false;
    int64_t ns = 0;

    if (!cri_log_parse(raw, &line) ||
        (r->streams != CRI_LOG_BOTH && line.is_stderr != (r->streams == CRI_LOG_STDERR)))
        return true;
    if (r->timestamps || r->since_ns > 0) {
        memcpy(written, line.timestamp.p, line.timestamp.n);
        written[line.timestamp.n] = '\0';
        valid = clock_parse(written, &ns, ERR_IGNORED) == ERR_OK && ns >= 0;
    }
    if (r->since_ns > 0 && valid && ns < r->since_ns)
        return true;
    if (r->timestamps && !r->in_line && !give_timestamp(r, line.timestamp, ns, valid, out))
        return false;
    r->in_line = line.partial;
    return cri_log_give(r, line.text.p, line.text.n, out) && (line.partial || cri_log_give(r, "\n", 1, out));
}

bool cri_log_reader_feed(struct cri_log_reader *r, const void *data, size_t n, struct buf *out)
{
    const char *p = data;

    if (r->limit_bytes != 0 && r->given >= r->limit_bytes)
        return false;
    while (n > 0) {
        const char *newline = memchr(p, '\n', n);
        size_t line = newline != NULL ? (size_t)(newline - p) : n;
        bool more = true;

        if (newline != NULL && r->rest.n == 0 && !r->skipping) { /* the usual case: no copy */
            if (line <= CRI_LOG_LINE_MAX)
                more = cri_log_give_line(r, (struct str){ p, line }, out);
        } else {
            if (!r->skipping)
                buf_add(&r->rest, p, line);
            if (r->rest.failed)
                r->skipping = true;
            if (newline != NULL) {
                if (!r->skipping)
                    more = cri_log_give_line(r, (struct str){ r->rest.p, r->rest.n }, out);
                r->skipping = false;
                buf_reset(&r->rest);
            }
        }
        if (!more)
            return false;
        if (newline == NULL)
            break;
        p += line + 1;
        n -= line + 1;
    }
    return true;
}

void cri_log_reader_finish(struct cri_log_reader *r, struct buf *out)
{
    if (r->rest.n > 0 && !r->skipping)
        cri_log_give_line(r, (struct str){ r->rest.p, r->rest.n }, out);
    buf_reset(&r->rest);
    r->skipping = false;
}
