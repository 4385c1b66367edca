/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/internal.h"

#include "base/codec/json.h"

#include <string.h>

static const char *const pod_fields[] = { "metadata.name",
                                          "metadata.namespace",
                                          "spec.nodeName",
                                          "spec.restartPolicy",
                                          "status.phase",
                                          "status.podIP",
                                          NULL };
static const char *const event_fields[] = { "metadata.name",
                                            "metadata.namespace",
                                            "involvedObject.kind",
                                            "involvedObject.name",
                                            "involvedObject.namespace",
                                            "involvedObject.uid",
                                            "involvedObject.fieldPath",
                                            "reason",
                                            "type",
                                            NULL };

static const char *const object_fields[] = { "metadata.name", "metadata.namespace", NULL };

static bool selectable(const char *path, enum select_kind kind)
{
    const char *const *fields = kind == SELECT_PODS     ? pod_fields
                                : kind == SELECT_EVENTS ? event_fields
                                                        : object_fields;

    for (; *fields != NULL; fields++)
        if (strcmp(*fields, path) == 0)
            return true;
    return false;
}

/* "path=value", "path==value" or "path!=value". */
static enum err_code parse_field(struct selection *s, char *term, enum select_kind kind, struct err *e)
{
    char *value = strchr(term, '='), *end;
    bool differs;

    if (value == NULL || value == term)
        return err_set(e, ERR_INVALID, "invalid field selector \"%.64s\": want field=value or field!=value",
                       term);
    differs = value[-1] == '!';
    end = differs ? value - 1 : value;
    value += value[1] == '=' && !differs ? 2 : 1;
    *end = '\0';
    if (!selectable(term, kind))
        return err_set(e, ERR_INVALID, "field label not supported: %.64s", term);
    if (s->n_fields == SELECT_FIELDS_MAX)
        return err_set(e, ERR_INVALID, "more than %d field selectors", SELECT_FIELDS_MAX);
    s->fields[s->n_fields].path = strdup(term);
    s->fields[s->n_fields].value = strdup(value);
    s->fields[s->n_fields].differs = differs;
    s->n_fields++;
    if (s->fields[s->n_fields - 1].path == NULL || s->fields[s->n_fields - 1].value == NULL)
        return err_nomem(e);
    return ERR_OK;
}

static enum err_code parse_fields(struct selection *s, const char *text, enum select_kind kind, struct err *e)
{
    str_auto copy = strdup(text);
    char *next;

    if (copy == NULL)
        return err_nomem(e);
    for (char *term = copy; term != NULL; term = next) {
        next = strchr(term, ',');
        if (next != NULL)
            *next++ = '\0';
        if (term[0] != '\0' && parse_field(s, term, kind, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

enum err_code selection_parse(const struct http_request *r, enum select_kind kind, const char *namespace_,
                              struct selection *ret, struct err *e)
{
    const char *labels = http_param(r, "labelSelector"), *fields = http_param(r, "fieldSelector");
    struct selection s = { 0 };

    if (namespace_ != NULL && (s.namespace_ = strdup(namespace_)) == NULL)
        return err_nomem(e);
    if ((labels != NULL && labels[0] != '\0' && api_selector_parse(labels, &s.labels, e) != ERR_OK) ||
        (fields != NULL && parse_fields(&s, fields, kind, e) != ERR_OK)) {
        selection_done(&s);
        return e->code;
    }
    *ret = s;
    return ERR_OK;
}

void selection_done(struct selection *s)
{
    api_selector_free(s->labels);
    free(s->namespace_);
    for (size_t i = 0; i < s->n_fields; i++) {
        free(s->fields[i].path);
        free(s->fields[i].value);
    }
    *s = (struct selection){ 0 };
}

static const char *field_of(const json_t *object, const char *path)
{
    const char *dot = strchr(path, '.');
    const char *text;
    char first[32];

    if (dot == NULL)
        text = json_str(object, path);
    else {
        memcpy(first, path, (size_t)(dot - path)); /* from the tables above, hence short */
        first[dot - path] = '\0';
        text = json_str(json_object_get(object, first), dot + 1);
    }
    return text != NULL ? text : "";
}

static int status_select_by_key(const void *a, const void *b)
{
    return strcmp(((const struct api_kv *)a)->key, ((const struct api_kv *)b)->key);
}

static bool labels_match(struct selection *s, json_t *labels)
{
    struct api_kvs kvs = { 0 };
    const char *key;
    json_t *value;
    bool matches;

    kvs.v = calloc(json_object_size(labels) + 1, sizeof(*kvs.v));
    if (kvs.v == NULL) {
        s->failed = true;
        return false;
    }
    json_object_foreach (labels, key, value) {
        if (!json_is_string(value))
            continue;
        kvs.v[kvs.n].key = (char *)(uintptr_t)key; /* not modified */
        kvs.v[kvs.n++].value = (char *)(uintptr_t)json_string_value(value);
    }
    qsort(kvs.v, kvs.n, sizeof(*kvs.v), status_select_by_key);
    matches = api_selector_matches(s->labels, &kvs);
    free(kvs.v);
    return matches;
}

bool selection_matches(struct selection *s, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    const char *namespace_ = json_str(meta, "namespace");

    if (s->namespace_ != NULL && (namespace_ == NULL || strcmp(namespace_, s->namespace_) != 0))
        return false;
    for (size_t i = 0; i < s->n_fields; i++)
        if ((strcmp(field_of(object, s->fields[i].path), s->fields[i].value) == 0) == s->fields[i].differs)
            return false;
    return s->labels == NULL || labels_match(s, json_object_get(meta, "labels"));
}
