/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/internal.h"
#include "base/codec/json.h"

/* Log lines are worth less than messages that the daemon needs: they stop early when it does not read. */
#define LOG_BACKLOG_MAX ((size_t)1 << 20)

static const char *level_word(enum log_level level)
{
    switch (level) {
    case LOG_LVL_ERROR:
        return "error";
    case LOG_LVL_WARN:
        return "warn";
    case LOG_LVL_INFO:
        return "info";
    case LOG_LVL_DEBUG:
        return "debug";
    }
    return "info";
}

static json_t *value_of(const struct log_field *f)
{
    switch (f->type) {
    case LOG_T_STR:
        return json_string_of(f->v.s != NULL ? f->v.s : "");
    case LOG_T_I64:
        return json_integer(f->v.i);
    case LOG_T_U64:
        return json_integer(f->v.u < INT64_MAX ? (json_int_t)f->v.u : INT64_MAX);
    }
    return NULL;
}

static void kube_log_line(enum log_level level, const char *message, const struct log_field *fields, size_t n,
                          void *arg)
{
    struct kube_link *link = arg;
    json_t *list, *m;

    if (kube_link_backlog(link) > LOG_BACKLOG_MAX)
        return;
    list = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(list, fields[i].key, value_of(&fields[i]));
    m = json_pack("{s:s,s:s,s:s,s:o}", "type", "log", "level", level_word(level), "message", message,
                  "fields", list);
    if (m != NULL)
        ERR_IGNORE(kube_link_send(link, m, -1, ERR_IGNORED));
}

void kube_log_to(struct kube_link *link)
{
    log_set_sink(link != NULL ? kube_log_line : NULL, link);
}
