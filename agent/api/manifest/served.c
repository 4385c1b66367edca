/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served - objects of the apiserver. They passed its validation, perhaps that of a later version: an unknown
 * member is dropped, and a feature that this node lacks keeps the pod from running and is shown with the pod.
 */
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"

#include <string.h>

static const char *const reduced_meta[] = { "name",
                                            "namespace",
                                            "uid",
                                            "generation",
                                            "labels",
                                            "annotations",
                                            "deletionTimestamp",
                                            "deletionGracePeriodSeconds" };
static const char *const reduced_spec[] = { "restartPolicy", "terminationGracePeriodSeconds", "nodeName",
                                            "priority" };

/* ---- members that are not part of the manifest ---- */

/* Conditions that the node does not set: readiness gates ask for them. */
static char *served_conditions(struct api_check *c, const json_t *object)
{
    const json_t *list = json_object_get(json_object_get(object, "status"), "conditions");
    json_auto_t *kept = json_object();
    str_auto text = NULL;
    json_t *condition;
    size_t i;

    json_array_foreach (list, i, condition) {
        const char *type = json_str(condition, "type"), *status = json_str(condition, "status");

        if (type != NULL && status != NULL && i < API_LIST_MAX &&
            json_object_set_new(kept, type, json_string(status)) != 0)
            c->no_memory = true;
    }
    if (kept == NULL)
        c->no_memory = true;
    if (json_object_size(kept) == 0)
        return NULL;
    text = json_dumps(kept, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL)
        c->no_memory = true;
    return text != NULL ? api_strdup(c, text) : NULL;
}

void api_take_served(struct api_check *c, json_t *object, struct api_pod *pod)
{
    const json_t *meta = json_object_get(object, "metadata"), *deleted;
    json_int_t grace;

    deleted = json_object_get(meta, "deletionTimestamp");
    grace = json_int(meta, "deletionGracePeriodSeconds", 0);
    pod->served.deleting = deleted != NULL && !json_is_null(deleted);
    pod->served.deletion_grace_seconds = grace > 0 ? grace : 0;
    pod->served.conditions = served_conditions(c, object);
    json_object_del(object, "status");
}

enum err_code api_pod_serve(struct api_pod *pod, const struct api_served *s, struct err *e)
{
    struct api_served copy = *s;

    if (s->conditions != NULL && (copy.conditions = arena_strdup(&pod->arena, s->conditions)) == NULL)
        return err_nomem(e);
    if (s->problem != NULL && (copy.problem = arena_strdup(&pod->arena, s->problem)) == NULL)
        return err_nomem(e);
    pod->origin = API_FROM_SERVER;
    pod->served = copy;
    return ERR_OK;
}

/* ---- a pod that this node cannot run ---- */

static void copy_members(json_t *to, const json_t *from, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_t *v = json_object_get(from, names[i]);

        if (v != NULL)
            json_object_set(to, names[i], v);
    }
}

/* Its identity, and names and images of its containers: enough to show it. */
static json_t *reduced(const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec");
    json_t *meta = json_object(), *kept = json_object(), *containers = json_array(), *one;
    size_t i;

    copy_members(meta, json_object_get(object, "metadata"), reduced_meta, ARRAY_LEN(reduced_meta));
    copy_members(kept, spec, reduced_spec, ARRAY_LEN(reduced_spec));
    json_array_foreach (json_object_get(spec, "containers"), i, one) {
        static const char *const fields[] = { "name", "image" };
        json_t *c = json_object();

        copy_members(c, one, fields, ARRAY_LEN(fields));
        json_array_append_new(containers, c);
    }
    json_object_set_new(kept, "containers", containers);
    return json_pack("{s:s, s:s, s:o, s:o, s:O?}", "apiVersion", "v1", "kind", "Pod", "metadata", meta,
                     "spec", kept, "status", json_object_get(object, "status"));
}

static char *problem_text(struct api_pod *pod, const struct api_problems *p)
{
    buf_auto b = BUF_INIT(4096);

    for (size_t i = 0; i < p->n && b.n < 1500; i++)
        buf_addf(&b, "%s%.200s: %.400s", i > 0 ? "; " : "", p->v[i].field, p->v[i].message);
    return b.failed ? NULL : arena_strdup(&pod->arena, b.p);
}

static enum err_code decode_reduced(const json_t *object, const struct api_problems *why,
                                    struct api_object *ret, struct err *e)
{
    struct api_problems problems = { 0 };
    struct api_check c = { .problems = &problems, .served = true, .joined = true };
    json_auto_t *copy = reduced(object);

    if (copy == NULL)
        return err_nomem(e);
    if (api_decode_one(&c, copy, ret, e) == ERR_OK) {
        ret->pod->served.problem = problem_text(ret->pod, why);
        if (ret->pod->served.problem == NULL) {
            api_object_unref(ret);
            err_nomem(e);
        }
    } else if (e->code == ERR_INVALID && problems.n > 0) {
        err_set(e, ERR_INVALID, "%s: %s", problems.v[0].field, problems.v[0].message);
    }
    api_problems_done(&problems);
    return e->code;
}

/* ---- one object ---- */

/* Kinds that pods of a cluster refer to, of those that are kept whole. */
static bool is_storage(enum api_kind kind)
{
    return kind == API_KIND_CLAIM || kind == API_KIND_PERSISTENT_VOLUME || kind == API_KIND_CSI_DRIVER;
}

enum err_code api_decode_served(const json_t *object, struct api_object *ret, struct err *e)
{
    struct api_problems problems = { 0 };
    struct api_check c = { .problems = &problems, .served = true, .joined = true };
    json_t *copy = json_is_object(object) ? json_deep_copy(object) : json_object();
    const char *kind = json_str(object, "kind") != NULL ? json_str(object, "kind") : "?";
    struct api_object made;
    enum api_kind known;

    if (copy == NULL)
        return err_nomem(e);
    json_object_del(json_object_get(copy, "metadata"), "managedFields"); /* large, and of no use here */
    if (api_kind_find(kind, strlen(kind), &known) && api_kind_is_generic(known) && !is_storage(known)) {
        err_set(e, ERR_INVALID, "%s: kind: a node does not use such objects of its cluster", kind);
    } else if (api_decode_one(&c, copy, &made, e) == ERR_INVALID) {
        *e = (struct err){ 0 };
        if (str_eq(kind, "Pod"))
            decode_reduced(object, &problems, &made, e);
        else
            err_set(e, ERR_INVALID, "%.60s: %s: %s", kind, problems.n > 0 ? problems.v[0].field : "?",
                    problems.n > 0 ? problems.v[0].message : "it is not valid");
    }
    api_problems_done(&problems);
    api_json_wipe(copy);
    json_decref(copy);
    if (e->code == ERR_OK)
        *ret = made;
    return e->code;
}
