/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"
#include "base/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line is built on the stack and written with one write(), so that threads do not mix their lines and
 * logging works without memory. Long lines are truncated but stay well formed: TAIL bytes are reserved for
 * closing quotes and braces. */
enum { LINE_MAX_BYTES = 8192, TAIL = 32 };

struct line {
    char p[LINE_MAX_BYTES];
    size_t n;
    bool full; /* truncated: only closing text may follow */
};

static enum log_level min_level = LOG_LVL_INFO;
static enum log_format format = LOG_FMT_TEXT;
/* the process that logs to the journal's socket; its children would be attributed to another unit */
static pid_t journal_pid;
static _Thread_local struct log_context context;
static void (*sink)(enum log_level level, const char *message, const struct log_field *fields, size_t n,
                    void *arg);
static void *sink_arg;

void log_init(enum log_level level, enum log_format f)
{
    min_level = level;
    format = f;
    journal_pid = f == LOG_FMT_JOURNAL && log_format_default() == LOG_FMT_JOURNAL ? getpid() : 0;
}

void log_set_sink(void (*fn)(enum log_level level, const char *message, const struct log_field *fields,
                             size_t n, void *arg),
                  void *arg)
{
    sink = fn;
    sink_arg = arg;
}

struct log_context log_context_set(const struct log_context *c)
{
    struct log_context before = context;

    context = *c;
    return before;
}

enum log_format log_format_default(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long dev, ino;
    struct stat st;

    /* "device:inode" of the journal's socket: the inherited variable alone proves nothing. */
    if (stream == NULL || sscanf(stream, "%llu:%llu", &dev, &ino) != 2 || fstat(STDERR_FILENO, &st) != 0)
        return LOG_FMT_TEXT;
    return st.st_dev == dev && st.st_ino == ino ? LOG_FMT_JOURNAL : LOG_FMT_TEXT;
}

bool log_enabled(enum log_level level)
{
    return level <= min_level;
}

/* All or nothing, so that an escape sequence is never cut. */
static void log_put(struct line *l, const char *p, size_t n)
{
    if (l->full || l->n + n > sizeof(l->p) - TAIL) {
        l->full = true;
        return;
    }
    memcpy(l->p + l->n, p, n);
    l->n += n;
}

static void puts_(struct line *l, const char *s)
{
    log_put(l, s, strlen(s));
}

static void close_with(struct line *l, const char *s) /* from the reserve */
{
    size_t n = strlen(s);

    memcpy(l->p + l->n, s, n);
    l->n += n;
}

/* Escapes characters that a terminal would act on, and invalid UTF-8. */
static void put_escaped(struct line *l, const char *s, bool json)
{
    size_t n = strlen(s), i = 0;
    char esc[8];

    while (i < n && !l->full) {
        uint32_t c = 0;
        size_t len = utf8_decode(s + i, n - i, &c);

        if (len == 0) {
            if (json) {
                puts_(l, "\\ufffd");
            } else {
                snprintf(esc, sizeof(esc), "\\x%02x", (unsigned char)s[i]);
                puts_(l, esc);
            }
            i++;
            continue;
        }
        if (c == '"' || c == '\\') {
            log_put(l, (char[]){ '\\', (char)c }, 2);
        } else if (c == '\n') {
            puts_(l, "\\n");
        } else if (c == '\t') {
            puts_(l, "\\t");
        } else if (!utf8_is_drawn(c)) {
            snprintf(esc, sizeof(esc), json || c > 0x7f ? "\\u%04x" : "\\x%02x", c);
            puts_(l, esc);
        } else {
            log_put(l, s + i, len);
        }
        i += len;
    }
}

static bool plain(const char *s)
{
    if (*s == '\0' || strlen(s) > 1024) /* only quoted values can be truncated */
        return false;
    for (; *s != '\0'; s++)
        if (*s <= ' ' || *s == '"' || *s == '=' || *s == '\\' || *s == 0x7f) /* also all of UTF-8 */
            return false;
    return true;
}

static void put_value(struct line *l, const struct log_field *f, bool json)
{
    const char *s = f->v.s == NULL ? "" : f->v.s;
    char number[24];

    switch (f->type) {
    case LOG_T_I64:
        snprintf(number, sizeof(number), "%" PRId64, f->v.i);
        puts_(l, number);
        return;
    case LOG_T_U64:
        snprintf(number, sizeof(number), "%" PRIu64, f->v.u);
        puts_(l, number);
        return;
    case LOG_T_STR:
        if (!json && plain(s)) {
            puts_(l, s);
            return;
        }
        puts_(l, "\"");
        if (l->full)
            return;
        put_escaped(l, s, json);
        close_with(l, l->full ? "...\"" : "\"");
        return;
    }
}

/* Keys are our constants and need no escaping. A field that does not fit is omitted, except that a long
 * string is truncated. */
static void put_field(struct line *l, const struct log_field *f, bool json)
{
    size_t before = l->n;
    bool string = f->type == LOG_T_STR;

    puts_(l, json ? ",\"" : " ");
    puts_(l, f->key);
    puts_(l, json ? "\":" : "=");
    if (!l->full) {
        size_t start = l->n;

        put_value(l, f, json);
        if (!l->full || (string && l->n > start))
            return;
    }
    l->n = before;
}

static const char *level_name(enum log_level level, bool json)
{
    switch (level) {
    case LOG_LVL_ERROR:
        return json ? "error" : "ERROR";
    case LOG_LVL_WARN:
        return json ? "warn" : "WARN ";
    case LOG_LVL_INFO:
        return json ? "info" : "INFO ";
    case LOG_LVL_DEBUG:
        return json ? "debug" : "DEBUG";
    }
    return "?";
}

static void remember(enum log_level level, const char *message, const struct log_field *fields, size_t n)
{
    struct line l = { .n = 0 };

    put_escaped(&l, message, false);
    for (size_t i = 0; i < n && !l.full; i++)
        put_field(&l, &fields[i], false);
    close_with(&l, "");
    l.p[l.n] = '\0';
    log_recent_add(level, clock_wall_ns(), l.p);
}

void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t n)
{
    bool json = format == LOG_FMT_JSON;
    char now[CLOCK_RFC3339_SIZE];
    int saved = errno;
    struct line l;
    size_t i, done = 0;

    if (sink != NULL) {
        sink(level, message, fields, n, sink_arg);
        errno = saved;
        return;
    }
    l.n = 0;
    l.full = false;
    clock_format_us(clock_wall_ns(), now);
    switch (format) {
    case LOG_FMT_JSON:
        puts_(&l, "{\"ts\":\"");
        puts_(&l, now);
        puts_(&l, "\",\"level\":\"");
        puts_(&l, level_name(level, true));
        puts_(&l, "\",\"msg\":\"");
        put_escaped(&l, message, true);
        close_with(&l, "\"");
        break;
    case LOG_FMT_TEXT:
        puts_(&l, now);
        puts_(&l, " ");
        puts_(&l, level_name(level, false));
        puts_(&l, " ");
        put_escaped(&l, message, false);
        break;
    case LOG_FMT_JOURNAL:
        log_put(&l, (char[]){ '<', (char)('0' + (int)level), '>' }, 3);
        put_escaped(&l, message, false);
        break;
    }
    for (i = 0; i < n && !l.full; i++)
        put_field(&l, &fields[i], json);
    if (format == LOG_FMT_JOURNAL && journal_pid != 0 && journal_pid == getpid()) {
        char datagram[LINE_MAX_BYTES + 2048];
        size_t size;

        l.p[l.n] = '\0';
        size = log_journal_format(level, l.p + 3, fields, n, &context, datagram, sizeof(datagram));
        if (log_journal_send(datagram, size)) {
            if (level <= LOG_LVL_WARN)
                remember(level, message, fields, n);
            errno = saved;
            return;
        }
    }
    close_with(&l, json ? "}\n" : "\n");

    /* When a non-blocking pipe is full, the line is lost: the daemon does not wait for the reader of its
     * log. */
    while (done < l.n) {
        ssize_t got = write(STDERR_FILENO, l.p + done, l.n - done);

        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            break;
    }
    if (level <= LOG_LVL_WARN)
        remember(level, message, fields, n);
    errno = saved;
}
