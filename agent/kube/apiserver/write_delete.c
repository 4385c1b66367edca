/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE of one object. */
#include "agent/kube/apiserver/proto.h"
#include "agent/kube/apiserver/write.h"

#include "base/codec/json.h"
#include "base/parse.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

static json_t *bad_type(const char *field, const char *what)
{
    return api_status(400, "BadRequest", NULL,
                      "json: cannot unmarshal %s into Go struct field DeleteOptions.%s of type int64", what,
                      field);
}

/* Of the body or the query: "Background", ...; *ret NULL: not given. False: answered. */
static bool check_policy(struct api_job *j, const char *policy, const json_t *options)
{
    if (policy != NULL && policy[0] != '\0' &&
        json_is_boolean(json_object_get(options, "orphanDependents"))) {
        job_fail(j, api_status_invalid(
                        "meta.k8s.io", "DeleteOptions", "",
                        json_pack("[o]", api_status_cause("FieldValueInvalid", "propagationPolicy",
                                                          "Invalid value: \"%s\": orphanDependents and "
                                                          "deletionPropagation cannot be both set",
                                                          policy))));
        return false;
    }
    if (policy == NULL || policy[0] == '\0' || strcmp(policy, "Background") == 0 ||
        strcmp(policy, "Foreground") == 0)
        return true;
    if (strcmp(policy, "Orphan") == 0) {
        if (!api_kind_is_workload(j->r.target.kind->id))
            return true; /* nothing depends on it */
        job_fail(j,
                 api_status(400, "BadRequest", NULL,
                            "propagationPolicy Orphan: pods of a node without a control plane end with the "
                            "object that made them"));
        return false;
    }
    job_fail(j, api_status_invalid(
                    "meta.k8s.io", "DeleteOptions", "",
                    json_pack("[o]", api_status_cause("FieldValueNotSupported", "propagationPolicy",
                                                      "Unsupported value: \"%s\": supported values: "
                                                      "\"Foreground\", \"Background\", \"Orphan\", "
                                                      "\"nil\"",
                                                      policy))));
    return false;
}

/* A body of another kind is no DeleteOptions; without a kind it is one. */
static bool check_options_kind(struct api_job *j)
{
    const char *kind = json_str(j->body, "kind"), *version = json_str(j->body, "apiVersion");

    if (kind == NULL || kind[0] == '\0' || strcmp(kind, "DeleteOptions") == 0)
        return true;
    job_fail(j, api_status(400, "BadRequest", NULL,
                           "no kind \"%s\" is registered for version \"%s\" in scheme "
                           "\"pkg/apis/meta/internalversion/scheme/register.go:27\"",
                           kind, version != NULL ? version : ""));
    return false;
}

static bool read_grace(struct api_job *j, const json_t *options, const char *query)
{
    const json_t *v = json_object_get(options, "gracePeriodSeconds");
    struct err e = { 0 };
    int64_t number;

    if (v != NULL && !json_is_null(v) && !json_is_integer(v)) {
        job_fail(j, bad_type("gracePeriodSeconds", json_is_string(v) ? "string" : "object"));
        return false;
    }
    if (json_is_integer(v))
        j->grace_s = json_integer_value(v) < 0 ? 1 : json_integer_value(v); /* the API's rule */
    else if (query != NULL && query[0] != '\0' &&
             parse_i64(query, INT32_MIN, INT32_MAX, &number, "gracePeriodSeconds", &e) == ERR_OK)
        j->grace_s = number < 0 ? 1 : number;
    return true;
}

bool job_read_delete(struct api_job *j)
{
    const struct caller *c = j->r.caller;
    json_error_t error = { .text = "" };
    struct err e = { 0 };

    if (strncmp(c->type, API_PROTOBUF, strlen(API_PROTOBUF)) == 0)
        ERR_IGNORE(proto_to_json(c->body.p, c->body.n, &j->body, &e)); /* *e has it */
    else
        j->body = c->body.n > 0 ? json_loadb(c->body.p, c->body.n, 0, &error) : json_object();
    if (json_is_object(j->body))
        return check_options_kind(j) && job_read_options(j);
    job_fail(j, api_status(400, "BadRequest", NULL, "the DeleteOptions of the body cannot be read: %s",
                           e.code != ERR_OK ? e.text : error.text));
    return false;
}

bool job_read_options(struct api_job *j)
{
    const struct http_request *http = &j->r.caller->parser.request;
    json_t *options = j->body;
    const json_t *before = json_object_get(options, "preconditions"),
                 *dry = json_array_get(json_object_get(options, "dryRun"), 0);
    const char *policy = json_str(options, "propagationPolicy"), *uid = json_str(before, "uid"),
               *version = json_str(before, "resourceVersion"), *query_dry = http_param(http, "dryRun"),
               *all = json_is_string(dry) ? json_string_value(dry) : query_dry;

    if (!read_grace(j, options, http_param(http, "gracePeriodSeconds")) ||
        !check_policy(j, policy != NULL ? policy : http_param(http, "propagationPolicy"), options))
        return false;
    if (all != NULL && all[0] != '\0' && strcmp(all, "All") != 0) {
        job_fail(
            j, api_status_invalid("meta.k8s.io", "DeleteOptions", "",
                                  json_pack("[o]", api_status_cause("FieldValueNotSupported", "dryRun",
                                                                    "Unsupported value: [\"%s\"]: supported "
                                                                    "values: \"All\"",
                                                                    all))));
        return false;
    }
    j->dry = all != NULL && all[0] != '\0';
    snprintf(j->uid, sizeof(j->uid), "%s", uid != NULL ? uid : "");
    snprintf(j->version, sizeof(j->version), "%s", version != NULL ? version : "");
    return true;
}

/* ---- preconditions ---- */

static bool keeps(struct api_job *j, const char *what, const char *wanted, const char *own, const char *why)
{
    const char *kind = j->r.target.kind->kind;

    if (wanted[0] == '\0' || str_eq(wanted, own))
        return true;
    job_fail(
        j, api_status(409, "Conflict", json_pack("{s:s, s:s}", "name", j->name, "kind", kind),
                      "Operation cannot be fulfilled on %s \"%s\": the %s in the precondition (%s) does not "
                      "match the %s in record (%s). %s",
                      kind, j->name, what, wanted, what, own != NULL ? own : "", why));
    return false;
}

void job_delete(struct api_job *j)
{
    const json_t *meta = json_object_get(j->live, "metadata");
    const struct api_kind_row *k = j->r.target.kind;

    if (j->live == NULL && j->list != NULL) {
        job_collection_next(j); /* it disappeared meanwhile */
        return;
    }
    if (j->live == NULL) {
        job_lacks(j);
        return;
    }
    if (!keeps(j, "UID", j->uid, json_str(meta, "uid"),
               "The object might have been deleted and then recreated") ||
        !keeps(j, "ResourceVersion", j->version, json_str(meta, "resourceVersion"),
               "The object might have been modified"))
        return;
    json_decref(j->object);
    j->object = json_pack("{s:o, s:s, s:{s:s, s:s*}}", "apiVersion",
                          json_sprintf("%s%s%s", k->group, k->group[0] != '\0' ? "/" : "", k->version),
                          "kind", k->kind, "metadata", "name", j->name, "namespace",
                          k->namespaced ? j->r.target.namespace : NULL);
    if (j->object == NULL)
        job_fail(j, NULL);
    else
        job_store(j, true);
}

/* What the clients see of it: gone, or ending. */
static void take_end(struct api_job *j, json_t *object)
{
    struct kube_api *a = j->r.api;
    const struct api_kind_row *k = j->r.target.kind;
    const json_t *meta = json_object_get(object, "metadata");
    const char *version = json_str(meta, "resourceVersion");
    struct stock_object *o = stock_find(&a->stock, k, j->r.target.namespace, j->name);
    const struct stock_change *change = NULL;
    const bool ends =
        json_object_get(meta, "deletionTimestamp") != NULL && (!j->released || k->id == API_KIND_POD);

    if (!j->dry && ends) {
        if (stock_put(&a->stock, object, a->set, &change) && change != NULL)
            api_changed(a);
    } else if (!j->dry && o != NULL && k->id != API_KIND_POD && !api_namespace_stays(a, o)) {
        stock_remove(&a->stock, o, version != NULL ? strtoull(version, NULL, 10) : 0, object);
        api_changed(a);
        api_namespace_check(a, k->id == API_KIND_NAMESPACE ? j->name : j->r.target.namespace);
    }
}

/* The answer is the object without its last finalizer, as it never was in the store. */
void job_released(struct api_job *j, json_t *object)
{
    static const char *const kept[] = { "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
                                        "deletionGracePeriodSeconds" };
    json_t *made = json_deep_copy(j->shown), *to = json_object_get(made, "metadata"),
           *from = json_object_get(j->live, "metadata");

    for (size_t i = 0; made != NULL && i < ARRAY_LEN(kept); i++)
        if (json_object_get(from, kept[i]) != NULL)
            json_object_set_new(to, kept[i],
                                json_deep_copy(json_object_get(from, kept[i]))); /* that is wiped */
    take_end(j, object);
    job_answer(j, 200, made);
}

void job_deleted(struct api_job *j, json_t *object)
{
    const struct api_kind_row *k = j->r.target.kind;
    const json_t *meta = json_object_get(object, "metadata");

    take_end(j, object);
    if (j->list != NULL) {
        job_collection_next(j);
        return;
    }
    if (j->evict) {
        job_answer(j, 201,
                   json_pack("{s:s, s:s, s:{}, s:s, s:i}", "kind", "Status", "apiVersion", "v1", "metadata",
                             "status", "Success", "code", 201));
        return;
    }
    if (j->held || k->id == API_KIND_POD || k->id == API_KIND_SERVICE) { /* the others: a Status */
        job_answer(j, 200, json_incref(object));
        return;
    }
    json_auto_t *status =
        json_pack("{s:s, s:s, s:{}, s:s, s:{s:s, s:s*, s:s, s:s*}}", "kind", "Status", "apiVersion", "v1",
                  "metadata", "status", "Success", "details", "name", j->name, "group",
                  k->group[0] != '\0' ? k->group : NULL, "kind", k->plural, "uid", json_str(meta, "uid"));

    job_answer(j, 200, json_incref(status));
}
