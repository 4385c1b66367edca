/* SPDX-License-Identifier: Apache-2.0 */
/* Subresources that change an object: scale, resize, ephemeralcontainers, eviction. */
#include "agent/kube/apiserver/write.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* ---- scale ---- */

/* "a=1,b=2" of matchLabels. */
static void add_selector(const json_t *labels, struct buf *b)
{
    mem_auto const char **keys = json_sorted_keys(labels);

    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
        buf_addf(b, "%s%s=%s", i > 0 ? "," : "", keys[i], json_str(labels, keys[i]));
}

json_t *job_scale_of(const json_t *object)
{
    static const char *const kept[] = { "name", "namespace", "uid", "resourceVersion", "creationTimestamp" };
    const json_t *meta = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec"),
                 *labels = json_object_get(json_object_get(spec, "selector"), "matchLabels");
    buf_auto selector = BUF_INIT(64 * 1024);
    json_t *own = json_object();

    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        json_put_str(own, kept[i], json_str(meta, kept[i]));
    if (json_is_object(labels))
        add_selector(labels, &selector);
    return json_pack("{s:s, s:s, s:o, s:{s:I}, s:{s:I, s:s}}", "kind", "Scale", "apiVersion",
                     "autoscaling/v1", "metadata", own, "spec", "replicas", json_int(spec, "replicas", 1),
                     "status", "replicas", json_int(json_object_get(object, "status"), "replicas", 0),
                     "selector", selector.p);
}

static void scale_get(struct api_job *j)
{
    if (j->live == NULL)
        job_lacks(j);
    else
        job_answer(j, 200, json_incref(j->live));
}

/* The new Scale; NULL: it was answered. */
static json_t *scale_made(struct api_job *j)
{
    const struct api_patch_kind *kind = api_patch_kind_find("autoscaling/v1", "Scale");
    json_auto_t *before = job_scale_of(j->live);
    char now[CLOCK_RFC3339_SIZE];
    const struct api_write w = { .type = j->type,
                                 .kind = kind,
                                 .name = j->name,
                                 .namespace = j->r.target.namespace,
                                 .by = { .name = j->manager, .subresource = "scale", .now = now },
                                 .validation = j->validation,
                                 .force = j->force };
    json_t *made = NULL, *status = NULL;
    struct err e = { 0 };
    json_int_t n;
    bool same = false;

    clock_format_s(clock_wall_ns(), now);
    if (before == NULL || kind == NULL ||
        api_write(&w, before, j->body, j->warnings, &made, &same, &status, &e) != ERR_OK) {
        if (json_int(status, "code", 0) == 409 &&
            json_object_get(json_object_get(status, "details"), "causes") == NULL) {
            json_decref(status); /* it is the object that has changed */
            status = api_status_conflict(j->r.target.kind->group, j->r.target.kind->plural, j->name, NULL);
        }
        job_fail(j, status);
        return NULL;
    }
    n = json_int(json_object_get(made, "spec"), "replicas", 0);
    if (n >= 0)
        return made;
    json_decref(made);
    job_fail(j,
             api_status_invalid(
                 "autoscaling", "Scale", j->name,
                 json_pack("[o]", api_status_cause("FieldValueInvalid", "spec.replicas",
                                                   "Invalid value: %lld: must be greater than or equal to 0",
                                                   (long long)n))));
    return NULL;
}

/* The object with the replicas of the Scale is an update of it. */
static void scale_write(struct api_job *j)
{
    json_auto_t *scale = NULL, *body = NULL;
    json_t *replicas;

    if (j->live == NULL) {
        job_lacks(j);
        return;
    }
    scale = scale_made(j);
    if (scale == NULL)
        return;
    replicas = json_integer(json_int(json_object_get(scale, "spec"), "replicas", 0));
    body = json_deep_copy(j->live);
    if (body == NULL || json_object_set_new(json_object_get(body, "spec"), "replicas", replicas) != 0)
        job_fail(j, NULL);
    else
        job_write_as(j, API_WRITE_UPDATE, body);
}

/* ---- eviction ---- */

static bool eviction_read(struct api_job *j)
{
    const char *name;
    json_t *options;

    if (!job_read(j))
        return false;
    name = json_str(json_object_get(j->body, "metadata"), "name");
    if (name != NULL && name[0] != '\0' && strcmp(name, j->r.target.name) != 0) {
        job_fail(j,
                 api_status(400, "BadRequest", NULL, "name in URL does not match name in Eviction object"));
        return false;
    }
    options = json_incref(json_object_get(j->body, "deleteOptions"));
    json_decref(j->body);
    j->body = options != NULL ? options : json_object();
    return job_read_options(j);
}

/* ---- ephemeral containers ---- */

static void ephemeral_add(struct api_job *j);

static void ephemeral_on_added(int http, json_t *body, const struct err *e, void *owner)
{
    struct api_job *j = owner;

    if (http != 200) {
        job_refused(j, http, body, e);
        return;
    }
    json_array_remove(j->added, 0);
    if (json_array_size(j->added) > 0)
        ephemeral_add(j);
    else
        job_stored(j, 200, body);
}

static void ephemeral_add(struct api_job *j)
{
    buf_auto target = BUF_INIT(HTTP_URL_MAX);

    buf_adds(&target, "/api/v1/namespaces/");
    percent_add(&target, j->r.target.namespace);
    buf_adds(&target, "/pods/");
    percent_add(&target, j->name);
    buf_adds(&target, "/ephemeralcontainers");
    job_ask(j, "POST", target.p, json_array_get(j->added, 0), ephemeral_on_added);
}

bool job_adds_ephemeral(struct api_job *j)
{
    const json_t *before = json_object_get(json_object_get(j->live, "spec"), "ephemeralContainers");
    json_t *after = json_object_get(json_object_get(j->object, "spec"), "ephemeralContainers"), *v;
    size_t i;

    if (j->r.target.sub == NULL || strcmp(j->r.target.sub->name, "ephemeralcontainers") != 0)
        return false;
    j->added = json_array();
    json_array_foreach (after, i, v)
        if (json_named(before, json_str(v, "name")) == NULL)
            json_array_append(j->added, v);
    if (j->dry || json_array_size(j->added) == 0)
        job_stored(j, 200, j->object);
    else
        ephemeral_add(j);
    return true;
}

/* ---- which ---- */

bool job_sub(struct api_job *j)
{
    const char *sub = j->r.target.sub->name;
    const enum http_method method = j->r.caller->parser.request.method;

    if (strcmp(sub, "eviction") == 0 && method == METHOD_POST) {
        j->verb = JOB_UPDATE; /* until it is read: the name is the path's */
        j->verb_name = "evict";
        j->evict = true;
        if (!eviction_read(j))
            return true;
        j->verb = JOB_DELETE;
        j->looked = job_delete;
        job_look(j);
        return true;
    }
    if (strcmp(sub, "scale") != 0 && strcmp(sub, "resize") != 0 && strcmp(sub, "ephemeralcontainers") != 0)
        return false;
    if (method == METHOD_GET || method == METHOD_HEAD) {
        j->verb = JOB_UPDATE;
        j->verb_name = NULL; /* nothing is written */
        j->looked = scale_get;
        job_look(j);
        return true;
    }
    if (method != METHOD_PUT && method != METHOD_PATCH)
        return false;
    j->verb = method == METHOD_PUT ? JOB_UPDATE : JOB_PATCH;
    j->verb_name = method == METHOD_PUT ? "update" : "patch";
    j->looked = strcmp(sub, "scale") == 0 ? scale_write : job_write;
    if (job_read(j))
        job_look(j);
    return true;
}
