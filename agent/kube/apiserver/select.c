/* SPDX-License-Identifier: Apache-2.0 */
/* select - the objects of a kind that a request selects: namespace, name, labels, fields. */
#include "agent/kube/apiserver/internal.h"
#include "agent/kube/apiserver/selector_words.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* As the apiserver: metadata.name and metadata.namespace of every kind, and these. */
static const struct {
    const char *kind;
    const char *fields[12];
} fields_of[] = {
    { "Pod",
      { "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName" } },
    { "Event",
      { "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type" } },
    { "Secret", { "type" } },
    { "Node", { "spec.unschedulable" } },
    { "Namespace", { "status.phase" } },
    { "Service", { "spec.clusterIP", "spec.type" } },
    { "Job", { "status.successful" } },
};

static bool selectable(const struct api_kind_row *kind, const char *path)
{
    if (strcmp(path, "metadata.name") == 0 || (strcmp(path, "metadata.namespace") == 0 &&
                                               kind->id != API_KIND_NAMESPACE && kind->id != API_KIND_NODE))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(fields_of); i++)
        for (size_t k = 0; strcmp(fields_of[i].kind, kind->kind) == 0 && k < 12; k++)
            if (fields_of[i].fields[k] != NULL && strcmp(fields_of[i].fields[k], path) == 0)
                return true;
    return false;
}

static enum err_code not_selectable(const struct api_kind_row *kind, const char *path, struct err *e)
{
    if (kind->id == API_KIND_JOB)
        return err_set(e, ERR_INVALID, "field label \"%.128s\" not supported for Job", path);
    for (size_t i = 0; i < ARRAY_LEN(fields_of); i++)
        if (strcmp(fields_of[i].kind, kind->kind) == 0)
            return err_set(e, ERR_INVALID, "field label not supported: %.128s", path);
    return err_set(e, ERR_INVALID,
                   "\"%.128s\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                   path);
}

/* The end of a term; a backslash takes the comma, the equals sign or the backslash behind it as it is. */
static char *term_end(char *term)
{
    while (*term != '\0' && *term != ',')
        term += term[0] == '\\' && term[1] != '\0' ? 2 : 1;
    return term;
}

/* False: a backslash before something else, or an equals sign without one. */
static bool unescape(char *value)
{
    char *to = value;

    for (const char *from = value; *from != '\0'; from++) {
        if (*from == '=')
            return false;
        if (*from == '\\' && strchr("\\,=", from[1]) != NULL && *++from == '\0')
            return false;
        *to++ = *from;
    }
    *to = '\0';
    return true;
}

/* "path=value", "path==value" or "path!=value"; term is changed. */
static enum err_code read_field(struct api_selection *s, char *term, struct err *e)
{
    char *value = strchr(term, '=');
    bool differs;

    if (value == NULL || value == term)
        return err_set(e, ERR_INVALID, "invalid selector: '%.128s'; can't understand '%.128s'", term, term);
    differs = value[-1] == '!';
    *(differs ? value - 1 : value) = '\0';
    value += value[1] == '=' && !differs ? 2 : 1;
    if (!selectable(s->kind, term))
        return not_selectable(s->kind, term, e);
    if (!unescape(value))
        return err_set(e, ERR_INVALID, "invalid field selector: %.128s: invalid escape sequence", value);
    if (s->n_fields == API_FIELDS_MAX)
        return err_set(e, ERR_INVALID, "more than %d field selectors", API_FIELDS_MAX);
    s->fields[s->n_fields].path = strdup(term);
    s->fields[s->n_fields].value = strdup(value);
    s->fields[s->n_fields++].differs = differs;
    return s->fields[s->n_fields - 1].path != NULL && s->fields[s->n_fields - 1].value != NULL ? ERR_OK
                                                                                               : err_nomem(e);
}

static enum err_code read_fields(struct api_selection *s, const char *text, struct err *e)
{
    str_auto copy = strdup(text);
    char *next;

    if (copy == NULL)
        return err_nomem(e);
    for (char *term = copy; term != NULL; term = next) {
        next = term_end(term);
        if (*next != '\0')
            *next++ = '\0';
        else
            next = NULL;
        if (term[0] != '\0' && read_field(s, term, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

enum err_code api_selection_read(struct api_selection *ret, const struct http_request *r,
                                 const struct api_target *target, struct err *e)
{
    const char *labels = http_param(r, "labelSelector"), *fields = http_param(r, "fieldSelector");
    struct api_selection s = { .kind = target->kind };

    snprintf(s.namespace, sizeof(s.namespace), "%s", target->namespace);
    snprintf(s.name, sizeof(s.name), "%s", target->name);
    if (labels != NULL && labels[0] != '\0' && api_selector_parse(labels, &s.labels, e) != ERR_OK)
        selector_words(labels, e);
    if (e->code != ERR_OK || (fields != NULL && read_fields(&s, fields, e) != ERR_OK)) {
        api_selection_done(&s);
        return e->code;
    }
    *ret = s;
    return ERR_OK;
}

void api_selection_done(struct api_selection *s)
{
    api_selector_free(s->labels);
    for (size_t i = 0; i < s->n_fields; i++) {
        free(s->fields[i].path);
        free(s->fields[i].value);
    }
    *s = (struct api_selection){ 0 };
}

/* The text of a member below `object` by its path; "" if there is none. */
static const char *field_of(const json_t *object, const char *path, char number[32])
{
    const json_t *at = object;
    const char *rest = path;

    while (at != NULL && *rest != '\0') {
        size_t n = strcspn(rest, ".");
        char member[64];

        snprintf(member, sizeof(member), "%.*s", (int)n, rest);
        at = json_object_get(at, member);
        rest += n + (rest[n] == '.');
    }
    if (json_is_string(at))
        return json_string_value(at);
    if (json_is_integer(at))
        snprintf(number, 32, "%lld", (long long)json_integer_value(at));
    else
        snprintf(number, 32, "%s", json_is_true(at) ? "true" : json_is_false(at) ? "false" : "");
    return number;
}

/* A field that is left out where it is false. */
static bool field_has(const json_t *object, const char *path, const char *value)
{
    char number[32];
    const char *is = field_of(object, path, number);

    if (is[0] == '\0' && (strcmp(path, "spec.unschedulable") == 0 || strcmp(path, "spec.hostNetwork") == 0))
        is = "false";
    return strcmp(is, value) == 0;
}

static int by_label(const void *a, const void *b)
{
    return strcmp(((const struct api_kv *)a)->key, ((const struct api_kv *)b)->key);
}

static bool labels_match(const struct api_selector *selector, const json_t *labels)
{
    mem_auto struct api_kv *v = calloc(json_object_size(labels) + 1, sizeof(*v));
    struct api_kvs kvs = { .v = v };
    const char *key;
    json_t *value;

    if (v == NULL)
        return false;
    json_object_foreach ((json_t *)(uintptr_t)labels, key, value)
        if (json_is_string(value))
            v[kvs.n++] =
                (struct api_kv){ (char *)(uintptr_t)key, (char *)(uintptr_t)json_string_value(value) };
    qsort(v, kvs.n, sizeof(*v), by_label);
    return api_selector_matches(selector, &kvs);
}

bool api_selection_has(const struct api_selection *s, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");

    if ((s->namespace[0] != '\0' && !str_eq(json_str(meta, "namespace"), s->namespace)) ||
        (s->name[0] != '\0' && !str_eq(json_str(meta, "name"), s->name)))
        return false;
    for (size_t i = 0; i < s->n_fields; i++)
        if (field_has(object, s->fields[i].path, s->fields[i].value) == s->fields[i].differs)
            return false;
    return s->labels == NULL || labels_match(s->labels, json_object_get(meta, "labels"));
}
