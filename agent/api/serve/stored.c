/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/serve/stored.h"

#include "agent/api/job_labels.h"
#include "agent/api/kept_meta.h"
#include "agent/api/made_uid.h"
#include "agent/api/serve/words.h"
#include "agent/api/status.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <string.h>

bool api_stored_new(const struct api_kind_row *kind, json_t *object)
{
    json_t *meta = json_object_get(object, "metadata");
    char now[CLOCK_RFC3339_SIZE], uid[37];

    clock_format_s(clock_wall_ns(), now);
    id_random_uuid(uid);
    if (kind->id == API_KIND_NAMESPACE &&
        json_object_set_new(object, "status", json_pack("{s:s}", "phase", "Active")) != 0)
        return false;
    return json_object_set_new(meta, "creationTimestamp", json_string(now)) == 0 &&
           (api_kind_is_workload(kind->id) || kind->id == API_KIND_POD ||
            json_object_set_new(meta, "uid", json_string(uid)) == 0);
}

/* The texts of a Secret are values like others. */
static bool merge_texts(json_t *object)
{
    json_t *texts = json_object_get(object, "stringData"), *data = json_object_get(object, "data"), *v;
    const char *key;
    bool ok = true;

    if (!json_is_object(texts))
        return true;
    if (data == NULL && json_object_set_new(object, "data", data = json_object()) != 0)
        return false;
    json_object_foreach (texts, key, v) {
        buf_auto b = BUF_INIT(2 * json_string_length(v) + 8);

        base64_add(&b, json_string_value(v), json_string_length(v));
        ok = ok && !b.failed && json_object_set_new(data, key, json_string(b.p != NULL ? b.p : "")) == 0;
        buf_wipe(&b);
    }
    json_object_del(object, "stringData");
    return ok;
}

bool api_stored_try(const struct api_kind_row *kind, json_t *object)
{
    json_t *meta = json_object_get(object, "metadata");
    const char *name = json_str(meta, "name");
    char uid[API_UID_SIZE];

    if (kind->id == API_KIND_SECRET)
        return merge_texts(object);
    if (kind->id == API_KIND_CLAIM && json_object_get(meta, "finalizers") == NULL)
        return json_object_set_new(meta, "finalizers", json_pack("[s]", "kubernetes.io/pvc-protection")) == 0;
    if (kind->id == API_KIND_JOB && name != NULL) {
        api_made_uid(kind->kind, json_str(meta, "namespace"), name, uid);
        api_job_label(object, name, uid);
    }
    return true;
}

static void drop_empty(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    if (v != NULL && json_object_size(v) == 0)
        json_object_del(o, key);
}

/* The selector and the labels that the node shows of a Job without. */
static void strip_job(json_t *object_meta, json_t *spec)
{
    static const char *const names[] = { "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
                                         "controller-uid", "job-name" };
    const json_t *selected = json_object_get(json_object_get(spec, "selector"), "matchLabels");
    json_t *template_ = json_object_get(spec, "template"), *meta = json_object_get(template_, "metadata");

    if (json_is_true(json_object_get(spec, "manualSelector")))
        return;
    if (json_object_size(selected) == 1 && json_object_get(selected, names[0]) != NULL)
        json_object_del(spec, "selector");
    if (json_equal(json_object_get(object_meta, "labels"), json_object_get(meta, "labels")))
        json_object_del(object_meta, "labels");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_object_del(json_object_get(meta, "labels"), names[i]);
        json_object_del(json_object_get(object_meta, "labels"), names[i]);
    }
    drop_empty(meta, "labels");
    drop_empty(object_meta, "labels");
    drop_empty(template_, "metadata");
}

/* The number of the revision in force, which the node shows. */
static void strip_revision(json_t *meta)
{
    json_t *annotations = json_object_get(meta, "annotations");

    json_object_del(annotations, "deployment.kubernetes.io/revision");
    drop_empty(meta, "annotations");
}

void api_stored_strip(const struct api_kind_row *kind, json_t *object, bool is_new)
{
    static const char *const always[] = { "resourceVersion", "selfLink", "deletionTimestamp",
                                          "deletionGracePeriodSeconds" };
    json_t *meta = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec");
    const bool pod = kind->id == API_KIND_POD;

    const size_t n =
        !is_new && api_meta_is_held(meta) ? 2 : ARRAY_LEN(always); /* its deletion is kept, too */

    for (size_t i = 0; i < n; i++)
        json_object_del(meta, always[i]);
    if (pod || api_kind_is_workload(kind->id)) {
        json_object_del(meta, "uid");
        json_object_del(object, "status");
    }
    if (api_kind_is_workload(kind->id))
        json_object_del(meta, "generation");
    if (kind->id == API_KIND_DEPLOYMENT)
        strip_revision(meta);
    if (kind->id == API_KIND_JOB)
        strip_job(meta, spec);
    if (pod) {
        json_object_del(meta, "creationTimestamp");
        json_object_del(spec, "nodeName");
        json_object_del(spec, "priority");
        if (!is_new) /* with a new pod they are refused */
            json_object_del(spec, "ephemeralContainers");
    }
    if (json_object_size(json_object_get(object, "status")) == 0)
        json_object_del(object, "status");
}

static json_t *refused_fields(const struct api_kind_row *kind, const char *name, const json_t *object,
                              const json_t *body)
{
    json_t *list = json_array();
    const json_t *cause;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(body, "details"), "causes"), i, cause) {
        const char *field = json_str(cause, "field"), *text = json_str(cause, "message");

        words_add(list, object, field != NULL ? field : "", text != NULL ? text : "");
    }
    return api_status_invalid(kind->group, kind->kind, name, list);
}

json_t *api_stored_refusal(const struct api_kind_row *kind, const char *name, const json_t *object, int http,
                           const json_t *body)
{
    const char *message = json_str(body, "message");

    if (http == 404)
        return api_status_not_found(kind->group, kind->plural, name);
    if (http == 0 || message == NULL)
        return api_status(503, "ServiceUnavailable", NULL, "the daemon does not answer");
    if (http == 403)
        return api_status(
            403, "Forbidden",
            json_pack("{s:s, s:s, s:s}", "name", name, "group", kind->group, "kind", kind->plural),
            "%s%s%s \"%s\" is forbidden: %s", kind->plural, kind->group[0] != '\0' ? "." : "", kind->group,
            name, message);
    return http == 422 ? refused_fields(kind, name, object, body)
                       : api_status(http, json_str(body, "reason"), NULL, "%s", message);
}
