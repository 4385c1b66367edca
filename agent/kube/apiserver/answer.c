/* SPDX-License-Identifier: Apache-2.0 */
/* answer - objects and failures as the client wants to have them. */
#include "agent/kube/apiserver/internal.h"

#include "agent/api/yaml/yaml.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* ---- long answers: a piece when the client took the one before ---- */

struct long_answer {
    struct buf body;
    size_t sent;
};

static void long_gone(struct caller *c)
{
    struct long_answer *l = c->job;

    buf_wipe(&l->body);
    free(l);
}

static void long_drained(struct caller *c)
{
    struct long_answer *l = c->job;

    while (!c->high && l->sent < l->body.n) {
        size_t n = l->body.n - l->sent < API_PIECE ? l->body.n - l->sent : API_PIECE;

        l->sent += n;
        caller_piece(c, l->body.p + l->sent - n, n);
        if (c->source == NULL)
            return; /* it closed, and `l` is gone */
    }
    if (l->sent < l->body.n)
        return;
    c->source = NULL;
    long_gone(c);
    caller_end(c);
}

static const struct caller_source long_source = { .gone = long_gone, .drained = long_drained };

static void answer_text(struct caller *c, int http, const char *type, const char *head, struct buf *body)
{
    buf_auto all = BUF_INIT(128 * 1024);

    struct long_answer *l = NULL;

    if (body->failed || (body->n > API_SMALL && (l = calloc(1, sizeof(*l))) == NULL)) {
        buf_wipe(body);
        api_answer_status(c, api_status(500, "InternalError", NULL, "out of memory"));
        return;
    }
    if (l == NULL) {
        buf_addf(&all, "Cache-Control: no-cache, private\r\n%s", head);
        caller_answer(c, http, type, all.failed ? NULL : all.p, body->p, body->n);
        buf_wipe(body);
        return;
    }
    l->body = *body;
    *body = (struct buf)BUF_INIT(0);
    c->state = CALLER_SERVED;
    caller_begin(c, http, type, (int64_t)l->body.n);
    if (c->state == CALLER_CLOSING) {
        buf_wipe(&l->body);
        free(l);
        return;
    }
    c->source = &long_source;
    c->job = l;
    long_drained(c);
}

void api_answer_text(struct caller *c, int http, const char *type, struct buf *body)
{
    answer_text(c, http, type, "", body);
}

/* ---- failures ---- */

void api_answer_status(struct caller *c, json_t *status)
{
    const json_int_t retry_s = json_int(json_object_get(status, "details"), "retryAfterSeconds", 0);
    const int code = (int)json_int(status, "code", 500);
    str_auto text = NULL;
    str_auto head = NULL;

    if (retry_s > 0 && (text = json_text(status)) != NULL &&
        (head = str_printf("Retry-After: %lld\r\n", (long long)retry_s)) != NULL) {
        json_decref(status);
        caller_answer(c, code, "application/json", head, text, strlen(text));
        return;
    }
    caller_json(c, code, status);
}

void api_answer_err(struct caller *c, const struct err *e)
{
    if (e->code == ERR_INVALID)
        api_answer_status(c, api_status(400, "BadRequest", NULL, "%s", e->text));
    else if (e->code == ERR_NOT_FOUND)
        api_answer_status(c, api_status(404, "NotFound", NULL, "%s", e->text));
    else if (e->code == ERR_UNAVAILABLE || e->code == ERR_DEADLINE)
        api_answer_status(c, api_status(503, "ServiceUnavailable", NULL, "%s", e->text));
    else
        api_answer_status(c, api_status(500, "InternalError", NULL, "%s", e->text));
}

void api_not_found(const struct api_request *r)
{
    api_answer_status(r->caller,
                      api_status_not_found(r->target.kind->group, r->target.kind->plural, r->target.name));
}

/* ---- objects ---- */

/* kube-apiserver converts a core Event so (pkg/apis/events/v1/conversion.go). */
static void event_rename(json_t *o)
{
    static const char *const names[][2] = { { "involvedObject", "regarding" },
                                            { "message", "note" },
                                            { "source", "deprecatedSource" },
                                            { "firstTimestamp", "deprecatedFirstTimestamp" },
                                            { "lastTimestamp", "deprecatedLastTimestamp" },
                                            { "count", "deprecatedCount" },
                                            { "reportingComponent", "reportingController" } };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_t *value = json_object_get(o, names[i][0]);

        if (value == NULL)
            continue;
        json_object_set(o, names[i][1], value);
        json_object_del(o, names[i][0]);
    }
    if (json_object_get(o, "eventTime") == NULL)
        json_object_set_new(o, "eventTime", json_null());
}

json_t *api_as_kind(const struct api_kind_row *row, json_t *object)
{
    json_t *copy;
    char version[128];

    if (stock_row(row) == row)
        return json_incref(object);
    copy = json_copy(object);
    snprintf(version, sizeof(version), "%s%s%s", row->group, row->group[0] != '\0' ? "/" : "", row->version);
    if (copy == NULL || json_object_set_new(copy, "apiVersion", json_string(version)) != 0) {
        json_decref(copy);
        return NULL;
    }
    if (strcmp(row->kind, "Event") == 0)
        event_rename(copy);
    return copy;
}

void api_answer_value(const struct api_request *r, int http, json_t *value)
{
    api_answer_with(r, http, "", value);
}

void api_answer_with(const struct api_request *r, int http, const char *head, json_t *value)
{
    const bool is_status = str_eq(json_str(value, "kind"), "Status");
    const struct api_form_options form = {
        .form = r->accept.form, .beta = r->accept.beta, .include = r->include, .now_ns = clock_wall_ns()
    };
    json_auto_t *status = NULL;
    json_auto_t *shown = value == NULL ? NULL
                         : is_status   ? json_incref(value)
                                       : api_form_of(r->target.kind, value, &form, &status);
    struct buf text = BUF_SECRET(SIZE_MAX - 1);
    secret_auto yaml = NULL;

    json_decref(value);
    if (shown == NULL) {
        api_answer_status(r->caller, json_incref(status));
        return;
    }
    if (r->accept.yaml) {
        yaml = yaml_from_json(shown);
        buf_adds(&text, yaml != NULL ? yaml : "");
        text.failed = text.failed || yaml == NULL;
        answer_text(r->caller, http, "application/yaml", head, &text);
        return;
    }
    json_add_text(&text, shown, r->accept.pretty, 0);
    buf_addc(&text, '\n');
    answer_text(r->caller, http, "application/json", head, &text);
}
