/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/status.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API_STATUS_TEXT_MAX (16 * 1024 * 1024) /* a 422 may show a whole object, escaped twice */

/* "<fmt>" as a JSON string; NULL: out of memory. */
PRINTF_LIKE(1, 0) static json_t *format_text(const char *fmt, va_list ap)
{
    str_auto text = NULL;

    if (vasprintf(&text, fmt, ap) < 0) {
        text = NULL;
        return NULL;
    }
    return json_string_of(text);
}

static json_t *failure(int code, const char *reason, json_t *details, json_t *message)
{
    json_t *s = json_pack("{s:s, s:s, s:{}, s:s, s:o*}", "kind", "Status", "apiVersion", "v1", "metadata",
                          "status", "Failure", "message", message);

    if (s != NULL && reason != NULL && json_object_set_new(s, "reason", json_string(reason)) != 0) {
        json_decref(s);
        s = NULL;
    }
    if (s != NULL && details != NULL && json_object_set(s, "details", details) != 0) {
        json_decref(s);
        s = NULL;
    }
    json_decref(details);
    if (s != NULL && json_object_set_new(s, "code", json_integer(code)) != 0) {
        json_decref(s);
        s = NULL;
    }
    return s;
}

json_t *api_status(int code, const char *reason, json_t *details, const char *fmt, ...)
{
    json_t *message;
    va_list ap;

    va_start(ap, fmt);
    message = format_text(fmt, ap);
    va_end(ap);
    return failure(code, reason, details, message);
}

json_t *api_status_cause(const char *reason, const char *field, const char *fmt, ...)
{
    json_t *message;
    va_list ap;

    va_start(ap, fmt);
    message = format_text(fmt, ap);
    va_end(ap);
    return json_pack("{s:s, s:o, s:o}", "reason", reason, "message", message, "field", json_string_of(field));
}

static json_t *details_of(const char *group, const char *kind, const char *name, json_t *causes)
{
    json_t *d = json_object();

    if (d == NULL || !json_put_str(d, "name", name) || !json_put_str(d, "group", group) ||
        !json_put_str(d, "kind", kind) ||
        (causes != NULL && json_array_size(causes) > 0 && json_object_set(d, "causes", causes) != 0)) {
        json_decref(d);
        d = NULL;
    }
    json_decref(causes);
    return d;
}

/* "Deployment.apps" */
static void add_qualified(struct buf *b, const char *kind, const char *group)
{
    buf_adds(b, kind);
    if (group != NULL && group[0] != '\0')
        buf_addf(b, ".%s", group);
}

/* "field: message" of each cause, the same text once. */
static json_t *cause_texts(const json_t *causes)
{
    json_t *list = json_array(), *cause;
    size_t i;

    json_array_foreach ((json_t *)causes, i, cause) {
        buf_auto b = BUF_INIT(API_STATUS_TEXT_MAX);
        const char *field = json_str(cause, "field"), *message = json_str(cause, "message");

        buf_addf(&b, "%s%s%s", field != NULL ? field : "", field != NULL && field[0] != '\0' ? ": " : "",
                 message != NULL ? message : "");
        if (!b.failed && !json_has(list, b.p))
            ERR_IGNORE(json_array_append_new(list, json_string_of(b.p)));
    }
    return list;
}

json_t *api_status_invalid(const char *group, const char *kind, const char *name, json_t *causes)
{
    json_t *texts = cause_texts(causes), *text, *s = NULL;
    buf_auto b = BUF_INIT(API_STATUS_TEXT_MAX);
    size_t i;

    add_qualified(&b, kind, group);
    buf_addf(&b, " \"%s\" is invalid: %s", name, json_array_size(texts) > 1 ? "[" : "");
    json_array_foreach (texts, i, text)
        buf_addf(&b, "%s%s", i > 0 ? ", " : "", json_string_value(text));
    buf_adds(&b, json_array_size(texts) > 1 ? "]" : "");
    json_decref(texts);
    if (!b.failed)
        s = failure(422, "Invalid", details_of(group, kind, name, causes), json_string_of(b.p));
    else
        json_decref(causes);
    return s;
}

json_t *api_status_not_found(const char *group, const char *plural, const char *name)
{
    bool core = group == NULL || group[0] == '\0';

    return api_status(404, "NotFound", details_of(group, plural, name, NULL), "%s%s%s \"%s\" not found",
                      plural, core ? "" : ".", core ? "" : group, name);
}

json_t *api_status_conflict(const char *group, const char *plural, const char *name, const char *why)
{
    bool core = group == NULL || group[0] == '\0';

    return api_status(409, "Conflict", details_of(group, plural, name, NULL),
                      "Operation cannot be fulfilled on %s%s%s \"%s\": %s", plural, core ? "" : ".",
                      core ? "" : group, name,
                      why != NULL ? why
                                  : "the object has been modified; please apply your changes to the latest "
                                    "version and try again");
}

/* Go's %q of a text, as far as JSON text needs it. */
static char *quoted(const char *text)
{
    json_t *v = json_string_of(text);
    char *s = v != NULL ? json_dumps(v, JSON_ENCODE_ANY) : NULL;

    json_decref(v);
    return s;
}

json_t *api_status_undecodable(const char *shown, const char *why)
{
    str_auto q = quoted(shown);
    json_t *causes = json_array();

    if (q == NULL || causes == NULL ||
        json_array_append_new(
            causes, api_status_cause("FieldValueInvalid", "patch", "Invalid value: %s: %s", q, why)) != 0) {
        json_decref(causes);
        return NULL;
    }
    return api_status(422, "Invalid", json_pack("{s:o}", "causes", causes),
                      " \"\" is invalid: patch: Invalid value: %s: %s", q, why);
}

json_t *api_status_not_applicable(void)
{
    return api_status(422, "Invalid", json_object(),
                      "the server rejected our request due to an error in our request");
}
