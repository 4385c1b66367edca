/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - structured lines on standard error: a constant, searchable message and typed fields.
 *
 *     log_info("volume published", F_STR("pod", key), F_STR("volume", name), F_U64("bytes", n));
 *
 * Formats: "text" (time level message key=value ...), "json" (one object per line), "journal" (text without
 * the time but with systemd's <N> level prefix; the default when JOURNAL_STREAM refers to our standard error:
 * lines then go to the journal's own socket, with the fields CORACLE_POD, CORACLE_POD_UID, CORACLE_CONTAINER,
 * CORACLE_CONTAINER_ID and CORACLE_OPERATION). Field names follow Kubernetes: pod, podUID, containerName,
 * err. Secrets and environment values are never logged. Callable from any thread.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LVL_ERROR = 3, LOG_LVL_WARN = 4, LOG_LVL_INFO = 6, LOG_LVL_DEBUG = 7 };
enum log_format { LOG_FMT_TEXT, LOG_FMT_JSON, LOG_FMT_JOURNAL };

struct log_field {
    const char *key;
    enum { LOG_T_STR, LOG_T_I64, LOG_T_U64 } type;
    union {
        const char *s; /* NULL prints as "" */
        int64_t i;
        uint64_t u;
    } v;
};

#define F_STR(k, x) ((struct log_field){ .key = (k), .type = LOG_T_STR, .v.s = (x) })
#define F_I64(k, x) ((struct log_field){ .key = (k), .type = LOG_T_I64, .v.i = (x) })
#define F_U64(k, x) ((struct log_field){ .key = (k), .type = LOG_T_U64, .v.u = (x) })
#define F_ERR(e) F_STR("err", (e)->text)

/* The level is one of the few globals; set it before threads start. */
void log_init(enum log_level level, enum log_format format);
enum log_format log_format_default(void); /* journal under systemd, else text */
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t n);

/* For a process whose log lines are written by another process: fn gets each line instead of standard error.
 * NULL: standard error again. Set on the thread that logs. */
void log_set_sink(void (*fn)(enum log_level level, const char *message, const struct log_field *fields,
                             size_t n, void *arg),
                  void *arg);

/* The context of this thread's lines, for the journal's fields; a line's own fields take precedence. Applies
 * until changed; returns the previous context so that the caller can restore it. pod and pod_uid are
 * borrowed, operation is copied. */
struct log_context {
    const char *pod, *pod_uid; /* NULL: none */
    char operation[64];        /* "": none */
};
struct log_context log_context_set(const struct log_context *c);

/* The newest warnings and errors (a few dozen, identical ones merged), oldest first. Any thread. */
struct log_recent {
    enum log_level level;
    int64_t at_ns; /* wall clock, of the newest occurrence */
    unsigned times;
    const char *text; /* "message key=value ...", truncated when long; borrowed while fn runs */
};
void log_recent_each(void (*fn)(const struct log_recent *line, void *arg), void *arg);

#define log_at(level, message, ...)                                                                          \
    do {                                                                                                     \
        if (log_enabled(level)) {                                                                            \
            const struct log_field fields_[] = { { 0 }, ##__VA_ARGS__ };                                     \
            log_write(level, message, fields_ + 1, sizeof(fields_) / sizeof(fields_[0]) - 1);                \
        }                                                                                                    \
    } while (0)
#define log_error(message, ...) log_at(LOG_LVL_ERROR, message, ##__VA_ARGS__)
#define log_warn(message, ...) log_at(LOG_LVL_WARN, message, ##__VA_ARGS__)
#define log_info(message, ...) log_at(LOG_LVL_INFO, message, ##__VA_ARGS__)
#define log_debug(message, ...) log_at(LOG_LVL_DEBUG, message, ##__VA_ARGS__)
#endif
