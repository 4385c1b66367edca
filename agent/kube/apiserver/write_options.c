/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a writing request: its body, by its media type, and its query. */
#include "agent/kube/apiserver/json_look.h"
#include "agent/kube/apiserver/proto.h"
#include "agent/kube/apiserver/write.h"

#include "agent/api/check.h"
#include "agent/api/serve/words.h"
#include "agent/api/yaml/yaml.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MANAGER_MAX 128
#define NO_DOCUMENT "there is no document"

static bool is_type(const char *header, const char *type)
{
    size_t n = strlen(type);

    return strncasecmp(header, type, n) == 0 && (header[n] == '\0' || header[n] == ';' || header[n] == ' ');
}

static json_t *unsupported(const struct api_job *j)
{
    if (j->verb == JOB_PATCH)
        return api_status(415, "UnsupportedMediaType", json_object(), "415: Unsupported Media Type");
    return api_status(415, "UnsupportedMediaType", NULL,
                      "the body of the request was in an unknown format - accepted media types include: "
                      "application/json, application/yaml, application/vnd.kubernetes.protobuf");
}

/* ---- the body ---- */

/* As an apiserver: the last of two members counts. NULL with *e. */
static json_t *read_json(const struct buf *body, json_t *twice, struct err *e)
{
    json_error_t error;
    json_t *v = json_loadb(body->p != NULL ? body->p : "", body->n, JSON_DECODE_ANY, &error);
    char why[160];

    if (v != NULL) {
        json_look(body->p, body->n, why, sizeof(why), twice);
        return v;
    }
    json_look(body->p, body->n, why, sizeof(why), NULL);
    err_set(e, ERR_INVALID, "%s", why[0] != '\0' ? why : error.text); /* no UTF-8, or a number too large */
    return v;
}

/* Duplicate fields, and extra members of a JSON patch operation, are reported like unknown fields. */
static void note_strict(struct api_job *j, const json_t *twice)
{
    static const char *const members[] = { "op", "path", "from", "value" };
    const bool operations = j->verb == JOB_PATCH && j->type == API_WRITE_JSON;
    json_t *one, *v;
    const char *name;
    size_t i;

    json_array_foreach ((json_t *)(uintptr_t)twice, i, one)
        json_array_append_new(j->strict,
                              json_sprintf("%sduplicate field \"%s\"", operations ? "json patch " : "",
                                           json_string_value(one)));
    if (!operations)
        return;
    json_array_foreach (j->body, i, one)
        json_object_foreach (one, name, v) {
            bool known = false;

            for (size_t m = 0; m < ARRAY_LEN(members); m++)
                known = known || strcmp(name, members[m]) == 0;
            if (!known && json_array_size(j->strict) < JSON_LOOK_TWICE_MAX)
                json_array_append_new(j->strict,
                                      json_sprintf("json patch unknown field \"[%zu].%s\"", i, name));
        }
}

static json_t *read_json_body(struct api_job *j, struct err *e)
{
    json_auto_t *twice = json_array();

    j->body = read_json(&j->r.caller->body, twice, e);
    note_strict(j, twice);
    return j->body;
}

static json_t *read_yaml(const struct buf *body, struct err *e)
{
    json_t *v = NULL;

    if (yaml_first_to_json(body->p != NULL ? body->p : "", body->n, &v, e) == ERR_OK && v == NULL)
        err_set(e, ERR_INVALID, NO_DOCUMENT);
    return v;
}

static const char *go_type(const json_t *v)
{
    return json_is_object(v)    ? "object"
           : json_is_array(v)   ? "array"
           : json_is_string(v)  ? "string"
           : json_is_boolean(v) ? "bool"
                                : "number";
}

/* An apiserver shows the beginning of the text, or its first bytes in hexadecimal if it is no object. */
static void unrecognized(struct api_job *j, const char *why)
{
    const struct buf *body = &j->r.caller->body;
    const char *type = go_type(j->body);
    buf_auto text = BUF_INIT(4096);

    if (j->body != NULL)
        buf_addf(&text,
                 "json: cannot unmarshal %s into Go value of type struct { APIVersion string "
                 "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
                 type);
    else
        buf_adds(&text, why);
    buf_adds(&text, " (");
    if (body->n == 0)
        buf_adds(&text, "<empty>");
    else if (body->p[0] == '{')
        buf_addf(&text, "%.*s", (int)(body->n < 1024 ? body->n : 1024), body->p);
    else
        for (size_t i = 0; i < body->n && i < 1024; i++)
            buf_addf(&text, "%02x", (unsigned char)body->p[i]);
    buf_adds(&text, ")");
    job_fail(j, text.failed
                    ? NULL
                    : api_status(400, "BadRequest", NULL,
                                 "the object provided is unrecognized (must be of type %s): couldn't get "
                                 "version/kind; json parse error: %s",
                                 j->r.target.kind->kind, text.p));
}

static bool read_object(struct api_job *j)
{
    const struct caller *c = j->r.caller;
    struct err e = { 0 };

    j->type = j->verb == JOB_CREATE ? API_WRITE_CREATE : API_WRITE_UPDATE;
    if (c->type[0] == '\0' || is_type(c->type, "application/json"))
        read_json_body(j, &e);
    else if (is_type(c->type, "application/yaml"))
        j->body = read_yaml(&c->body, &e);
    else if (is_type(c->type, API_PROTOBUF))
        ERR_IGNORE(proto_to_json(c->body.p, c->body.n, &j->body, &e)); /* *e has it */
    else {
        job_fail(j, unsupported(j));
        return false;
    }
    if (json_is_object(j->body))
        return true;
    unrecognized(j, e.text);
    return false;
}

static bool read_patch(struct api_job *j)
{
    static const struct {
        const char *type;
        enum api_write_type write;
    } types[] = { { "application/json-patch+json", API_WRITE_JSON },
                  { "application/merge-patch+json", API_WRITE_MERGE },
                  { "application/strategic-merge-patch+json", API_WRITE_STRATEGIC },
                  { "application/apply-patch+yaml", API_WRITE_APPLY } };
    const struct caller *c = j->r.caller;
    struct err e = { 0 };
    size_t i = 0;

    while (i < ARRAY_LEN(types) && !is_type(c->type, types[i].type))
        i++;
    if (i == ARRAY_LEN(types)) {
        job_fail(j, unsupported(j));
        return false;
    }
    j->type = types[i].write;
    if (j->type == API_WRITE_APPLY)
        j->verb_name = "apply";
    j->body = j->type == API_WRITE_APPLY ? read_yaml(&c->body, &e) : read_json_body(j, &e);
    if (j->body != NULL)
        return true;
    if (j->type == API_WRITE_APPLY && strcmp(e.text, NO_DOCUMENT) == 0) {
        job_fail(j, api_status(400, "BadRequest", NULL, "invalid object type: /, Kind="));
        return false;
    }
    if (j->type == API_WRITE_STRATEGIC) {
        job_fail(j, api_status(400, "BadRequest", NULL, "%s", e.text));
        return false;
    }
    job_fail(j, api_status(400, "BadRequest", NULL, "error decoding %s: %s",
                           j->type == API_WRITE_APPLY ? "YAML" : "patch", e.text));
    return false;
}

/* ---- the query ---- */

static bool read_manager(struct api_job *j, const char *given)
{
    const char *agent = j->r.caller->agent;
    size_t n = strcspn(agent, "/");

    if (given != NULL && given[0] != '\0')
        j->manager = strdup(given);
    else
        j->manager = n > 0 ? strndup(agent, n < MANAGER_MAX ? n : MANAGER_MAX) : strdup("unknown");
    return j->manager != NULL;
}

static bool read_query(struct api_job *j)
{
    const struct http_request *http = &j->r.caller->parser.request;
    const char *manager = http_param(http, "fieldManager"), *validation = http_param(http, "fieldValidation"),
               *dry = http_param(http, "dryRun"), *force = http_param(http, "force");
    json_t *status = NULL;
    struct err e = { 0 };

    if (dry != NULL && dry[0] == '\0')
        dry = NULL;
    if (api_patch_options_check(manager, validation, dry, j->verb == JOB_PATCH ? force : NULL,
                                j->type == API_WRITE_APPLY, &status, &e) != ERR_OK) {
        job_fail(j, status);
        return false;
    }
    j->dry = dry != NULL;
    j->force = force != NULL && (strcasecmp(force, "true") == 0 || strcmp(force, "1") == 0);
    j->validation = str_eq(validation, "Strict")   ? API_FIELDS_STRICT
                    : str_eq(validation, "Ignore") ? API_FIELDS_IGNORE
                                                   : API_FIELDS_WARN;
    if (read_manager(j, manager))
        return true;
    job_fail(j, NULL);
    return false;
}

/* ---- the name of a new object ---- */

static bool generate_name(struct api_job *j, json_t *meta, const char *base)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* no vowels: no words */
    char digits[11], suffix[6];

    id_random_hex(digits, sizeof(digits) - 1);
    for (size_t i = 0; i < 5; i++) {
        const char pair[3] = { digits[2 * i], digits[2 * i + 1], '\0' };

        suffix[i] = letters[strtoul(pair, NULL, 16) % (sizeof(letters) - 1)];
    }
    suffix[5] = '\0';
    snprintf(j->name, sizeof(j->name), "%.58s%s", base, suffix); /* names that fit into labels */
    return json_object_set_new(meta, "name", json_string_of(j->name)) == 0;
}

/* Metadata, or a name in it, of another type: an apiserver decodes before it asks for a name. */
static bool has_type(struct api_job *j, const json_t *v, bool right, const char *field, const char *type)
{
    const struct api_kind_row *k = j->r.target.kind;

    if (v == NULL || json_is_null(v) || right)
        return true;
    job_fail(j,
             api_status(400, "BadRequest", NULL,
                        "%s in version \"%s\" cannot be handled as a %s: json: cannot unmarshal %s into Go "
                        "struct field %s.%s of type %s",
                        k->kind, k->version, k->kind, go_type(v),
                        strchr(field, '.') != NULL ? "ObjectMeta" : k->kind, field, type));
    return false;
}

static void tell_name(const struct api_job *j, json_t *causes, const char *field, const char *name,
                      const char *rule)
{
    str_auto text = str_printf("%s %s", QUOTE(name), rule);

    if (text != NULL)
        words_add(causes, j->body, field, text);
}

/* A dash at the end becomes one inside of the name. */
static bool check_base(struct api_job *j, const char *base)
{
    const struct api_kind_row *k = j->r.target.kind;
    const size_t n = strlen(base);
    str_auto name = strdup(base);
    json_t *causes;
    const char *rule;

    if (name == NULL)
        return true;
    if (n > 1 && name[n - 1] == '-')
        name[n - 1] = 'a';
    rule = api_format_rule(API_FMT_SUBDOMAIN, name);
    if (rule == NULL)
        return true;
    causes = json_array();
    tell_name(j, causes, "metadata.generateName", base, rule);
    rule = api_format_rule(API_FMT_SUBDOMAIN, j->name);
    if (rule != NULL)
        tell_name(j, causes, "metadata.name", j->name, rule);
    job_fail(j, api_status_invalid(k->group, k->kind, j->name, causes));
    return false;
}

static bool read_name(struct api_job *j)
{
    json_t *meta = json_object_get(j->body, "metadata");
    const char *name = json_str(meta, "name"), *base = json_str(meta, "generateName"),
               *version = json_str(meta, "resourceVersion");
    const struct api_kind_row *k = j->r.target.kind;
    const json_t *given = json_object_get(meta, "name");

    if (!has_type(j, json_object_get(j->body, "metadata"), json_is_object(meta), "metadata",
                  "v1.ObjectMeta") ||
        !has_type(j, given, json_is_string(given), "metadata.name", "string"))
        return false;
    if (version != NULL && version[0] != '\0' && !j->dry) { /* found out when it is stored */
        job_fail(j,
                 api_status(500, NULL, NULL, "resourceVersion should not be set on objects to be created"));
        return false;
    }
    if (name != NULL && name[0] != '\0') {
        snprintf(j->name, sizeof(j->name), "%s", name);
        if (strlen(name) < sizeof(j->name))
            return true;
        job_fail(j, api_status_invalid(
                        k->group, k->kind, name,
                        json_pack("[o]", api_status_cause("FieldValueInvalid", "metadata.name",
                                                          "Invalid value: \"%s\": must be no more than 253 "
                                                          "characters",
                                                          name))));
        return false;
    }
    if (base != NULL && base[0] != '\0') {
        if (generate_name(j, meta, base))
            return check_base(j, base);
        job_fail(j, NULL);
        return false;
    }
    job_fail(j,
             api_status_invalid(k->group, k->kind, "",
                                json_pack("[o]", api_status_cause("FieldValueRequired", "metadata.name",
                                                                  "Required value: name or generateName is "
                                                                  "required"))));
    return false;
}

bool job_read(struct api_job *j)
{
    return (j->verb == JOB_PATCH ? read_patch(j) : read_object(j)) && read_query(j) &&
           (j->verb != JOB_CREATE || read_name(j));
}
