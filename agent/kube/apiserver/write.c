/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/apiserver/write.h"

#include "agent/api/serve/stored.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* ---- the end ---- */

static void job_gone(struct caller *c)
{
    struct api_job *j = c->job;

    ask_close(j->ask);
    job_wipe(j->body);
    job_wipe(j->live);
    job_wipe(j->object);
    json_decref(j->added);
    json_decref(j->list);
    job_wipe(j->shown);
    free(j->kept);
    json_decref(j->warnings);
    json_decref(j->strict);
    free(j->manager);
    free(j->user);
    free(j);
}

static const struct caller_source job_source = { .gone = job_gone };

/* One line for each write, regardless of its outcome: "deployments.apps/scale", "default/web". */
static void audit(const struct api_job *j, int http)
{
    const struct api_target *t = &j->r.target;
    char resource[200], object[330];

    snprintf(resource, sizeof(resource), "%s%s%s%s%s", t->kind->plural, t->kind->group[0] != '\0' ? "." : "",
             t->kind->group, t->sub != NULL ? "/" : "", t->sub != NULL ? t->sub->name : "");
    snprintf(object, sizeof(object), "%s%s%s", t->namespace, t->namespace[0] != '\0' ? "/" : "", j->name);
    log_info(j->dry ? "local API dry run" : "local API write", F_STR("user", j->user),
             F_STR("verb", j->verb_name), F_STR("resource", resource), F_STR("object", object),
             F_STR("file", j->file), F_I64("code", http), F_U64("ms", (uv_hrtime() - j->began_ns) / 1000000));
}

static void job_end(struct api_job *j, int http)
{
    struct caller *c = j->r.caller;

    if (j->verb_name != NULL)
        audit(j, http);
    c->source = NULL;
    job_gone(c);
}

void job_fail(struct api_job *j, json_t *status)
{
    struct caller *c = j->r.caller;

    job_end(j, (int)json_int(status, "code", 500));
    api_answer_status(c, status);
}

static void add_warnings(const struct api_job *j, struct buf *head)
{
    json_t *text;
    size_t i;

    json_array_foreach (j->warnings, i, text) {
        mem_auto char *quoted = json_dumps(text, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

        if (quoted != NULL)
            buf_addf(head, "Warning: 299 - %s\r\n", quoted);
    }
}

void job_answer(struct api_job *j, int http, json_t *value)
{
    const struct api_request r = j->r;
    buf_auto head = BUF_INIT(64 * 1024);

    if (j->r.target.sub != NULL && strcmp(j->r.target.sub->name, "scale") == 0) {
        json_t *scale = job_scale_of(value);

        json_decref(value);
        value = scale;
    }
    add_warnings(j, &head);
    job_end(j, http);
    api_answer_with(&r, http, head.failed ? "" : head.p, value);
}

void job_lacks(struct api_job *j)
{
    job_fail(j, api_status_not_found(j->r.target.kind->group, j->r.target.kind->plural, j->name));
}

/* ---- computing the object ---- */

/* The live object with its defaults: a file leaves some out. False: out of memory. */
static bool default_live(struct api_job *j)
{
    struct err e = { 0 };

    return j->live == NULL || api_object_default(&j->kind, j->live, &e) == ERR_OK;
}

void job_write(struct api_job *j)
{
    job_write_as(j, j->type, j->body);
}

void job_write_as(struct api_job *j, enum api_write_type type, const json_t *body)
{
    const struct api_kind_row *k = j->r.target.kind;
    char now[CLOCK_RFC3339_SIZE];
    const struct api_write w = { .type = type,
                                 .kind = &j->kind,
                                 .name = j->verb == JOB_CREATE ? NULL : j->name,
                                 .namespace = k->namespaced ? j->r.target.namespace : NULL,
                                 .by = { .name = j->manager,
                                         .subresource =
                                             j->r.target.sub != NULL ? j->r.target.sub->name : NULL,
                                         .now = now },
                                 .validation = j->validation,
                                 .strict = j->strict,
                                 .force = j->force };
    json_t *made = NULL, *status = NULL;
    struct err e = { 0 };
    bool same = false;

    clock_format_s(clock_wall_ns(), now);
    if (j->verb == JOB_CREATE && j->live != NULL) {
        const bool ends = json_object_get(json_object_get(j->live, "metadata"), "deletionTimestamp") != NULL;

        job_fail(j, api_status(409, "AlreadyExists",
                               json_pack("{s:s, s:s*, s:s}", "name", j->name, "group",
                                         k->group[0] != '\0' ? k->group : NULL, "kind", k->plural),
                               "%s%s%s%s \"%s\" already exists", ends ? "object is being deleted: " : "",
                               k->plural, k->group[0] != '\0' ? "." : "", k->group, j->name));
        return;
    }
    if (j->verb == JOB_UPDATE && j->live == NULL) {
        job_lacks(j);
        return;
    }
    if (j->live == NULL && (j->verb == JOB_CREATE || type == API_WRITE_APPLY) && !job_namespace_exists(j))
        return;
    json_array_clear(j->warnings);
    if (k->id == API_KIND_NODE)
        api_node_version(j->r.api, j->live, j->body);
    if (!default_live(j)) {
        job_fail(j, NULL);
        return;
    }
    if (api_write(&w, j->live, body, j->warnings, &made, &same, &status, &e) != ERR_OK) {
        job_fail(j, status);
        return;
    }
    if (same) {
        json_decref(made);
        job_answer(j, 200, json_incref(j->live));
        return;
    }
    job_wipe(take_ptr(&j->object));
    j->object = made;
    if (j->live == NULL && !api_stored_new(k, made)) {
        job_fail(j, NULL);
        return;
    }
    if (job_adds_ephemeral(j))
        return;
    job_wipe(take_ptr(&j->shown));
    if ((j->dry || json_object_get(json_object_get(j->live, "metadata"), "deletionTimestamp") != NULL) &&
        ((j->shown = json_deep_copy(made)) == NULL || (j->dry && !api_stored_try(k, j->shown)))) {
        job_fail(j, NULL);
        return;
    }
    if (!api_object_bare(&j->kind, made, body)) {
        job_fail(j, NULL);
        return;
    }
    api_stored_strip(k, made, j->live == NULL);
    job_store(j, false);
}

/* ---- the beginning ---- */

static void set_kind(struct api_job *j)
{
    const struct api_kind_row *k = j->r.target.kind;
    const struct api_patch_kind *known = api_patch_kind_find(k->api_version, k->kind);

    if (known != NULL)
        j->kind = *known;
    else
        j->kind = (struct api_patch_kind){ .row = k, .schema = k->schema, .zero = "{\"metadata\":{}}" };
}

static bool set_verb(struct api_job *j)
{
    static const struct {
        enum http_method method;
        bool named;
        enum api_verb_of verb;
        const char *name;
        unsigned needs;
    } verbs[] = { { METHOD_POST, false, JOB_CREATE, "create", API_VERB_CREATE },
                  { METHOD_PUT, true, JOB_UPDATE, "update", API_VERB_UPDATE },
                  { METHOD_PATCH, true, JOB_PATCH, "patch", API_VERB_PATCH },
                  { METHOD_DELETE, true, JOB_DELETE, "delete", API_VERB_DELETE },
                  { METHOD_DELETE, false, JOB_DELETE, "deletecollection", API_VERB_DELETECOLLECTION } };
    const struct api_target *t = &j->r.target;

    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (verbs[i].method == j->r.caller->parser.request.method && verbs[i].named == (t->name[0] != '\0') &&
            t->sub == NULL && (api_service_of(t->kind)->verbs & verbs[i].needs) &&
            (!t->kind->namespaced || t->namespace[0] != '\0')) {
            j->verb = verbs[i].verb;
            j->verb_name = verbs[i].name;
            return true;
        }
    return false;
}

/* kubectl's questions about its own user (auth can-i, auth whoami): nothing is written. */
static bool is_review(const struct api_job *j)
{
    const enum api_kind id = j->r.target.kind->id;

    return (id == API_KIND_SELF_REVIEW || id == API_KIND_ACCESS_REVIEW || id == API_KIND_RULES_REVIEW) &&
           j->r.target.name[0] == '\0' && j->r.caller->parser.request.method == METHOD_POST;
}

static void job_review(struct api_job *j)
{
    static const char *const groups[] = { API_ADMINS, "system:authenticated", NULL };
    const struct api_reviewed_user user = { .name = j->user != NULL ? j->user : "", .groups = groups };
    char now[CLOCK_RFC3339_SIZE];

    j->verb = JOB_UPDATE; /* it has no name */
    j->verb_name = NULL;
    clock_format_s(clock_wall_ns(), now);
    if (job_read(j))
        job_answer(j, 201, api_review_of(j->r.target.kind, j->body, &user, now));
}

static json_t *not_allowed(void)
{
    return api_status(405, "MethodNotAllowed", json_object(),
                      "the server does not allow this method on the requested resource");
}

void api_write_begin(const struct api_request *r)
{
    struct caller *c = r->caller;
    struct api_job *j = calloc(1, sizeof(*j));
    json_auto_t *who = NULL;
    struct err e = { 0 };

    if (j == NULL || (j->warnings = json_array()) == NULL || (j->strict = json_array()) == NULL) {
        if (j != NULL)
            json_decref(j->warnings);
        free(j);
        api_answer_status(c, NULL);
        return;
    }
    j->r = *r;
    j->began_ns = uv_hrtime();
    j->grace_s = -1;
    snprintf(j->name, sizeof(j->name), "%s", r->target.name);
    if (tls_identity(&c->tls, &who, &e) == ERR_OK && json_str(who, "user") != NULL)
        j->user = strdup(json_str(who, "user"));
    c->state = CALLER_SERVED;
    c->source = &job_source;
    c->job = j;
    j->verb_name = "other";
    set_kind(j);
    if (r->target.sub != NULL && job_sub(j))
        return;
    if (is_review(j)) {
        job_review(j);
        return;
    }
    if (!set_verb(j) || (r->target.kind->held == API_HELD_NOT && r->target.kind->id != API_KIND_NODE)) {
        job_fail(j, not_allowed());
        return;
    }
    j->looked = j->verb == JOB_DELETE ? job_delete : job_write;
    if (!(j->verb == JOB_DELETE ? job_read_delete(j) : job_read(j)))
        return;
    if (j->verb == JOB_DELETE && j->name[0] == '\0')
        job_collection(j);
    else if (j->verb == JOB_DELETE && j->r.target.kind->id == API_KIND_NAMESPACE)
        job_delete_namespace(j);
    else
        job_look(j);
}
