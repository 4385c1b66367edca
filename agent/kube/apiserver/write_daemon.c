/* SPDX-License-Identifier: Apache-2.0 */
/* write_daemon - requests the object of a write from the daemon, and sends the new version back. */
#include "agent/kube/apiserver/write.h"

#include "agent/api/manifest/decode.h"
#include "agent/api/serve/stored.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

void job_wipe(json_t *v)
{
    if (v != NULL && v->refcount == 1)
        api_json_wipe(v);
    json_decref(v);
}

/* ---- the daemon ---- */

bool job_ask(struct api_job *j, const char *method, const char *target, json_t *body, ask_done_fn done)
{
    secret_auto text = body != NULL ? json_text(body) : NULL;
    struct err e = { 0 };

    ask_close(j->ask);
    j->ask = NULL;
    if (body != NULL && text == NULL)
        err_nomem(&e);
    else
        j->ask = ask_send(j->r.api->o.server, method, target, text, API_WRITE_ANSWER_MAX, done, j, &e);
    if (j->ask != NULL)
        return true;
    job_fail(j, api_status(503, "ServiceUnavailable", NULL, "%s", e.text));
    return false;
}

/* Refusals of the daemon, in an apiserver's words. */
void job_refused(struct api_job *j, int http, const json_t *body, const struct err *e)
{
    const struct api_kind_row *k = j->r.target.kind;

    if (http == 0 || json_str(body, "message") == NULL)
        job_fail(j, api_status(503, "ServiceUnavailable", NULL, "%s",
                               e->code != ERR_OK ? e->text : "the daemon does not answer"));
    else
        job_fail(j, api_stored_refusal(k, j->name, j->object, http, body));
}

/* A namespace that no manifest has, because objects are in it, is an object for clients: a change of it makes
 * a manifest. */
static void take_implicit(struct api_job *j)
{
    const struct api_kind_row *k = j->r.target.kind;
    const struct stock_object *o =
        k->id == API_KIND_NAMESPACE ? stock_find(&j->r.api->stock, k, "", j->name) : NULL;

    if (o != NULL && o->set == 0)
        j->live = json_deep_copy(o->object);
}

/* As clients see it: the Node is in the stock, with a version that counts heart-beats; a Namespace that was
 * written by hand has a uid. */
static const json_t *as_stocked(struct api_job *j, json_t *object)
{
    if (j->r.target.kind->id == API_KIND_NAMESPACE && object != NULL)
        api_namespace_complete(object);
    return j->r.target.kind->id == API_KIND_NODE ? api_node_take(j->r.api, object) : object;
}

static void job_on_looked(int http, json_t *body, const struct err *e, void *owner)
{
    struct api_job *j = owner;
    const char *mark = json_str(body, "mark");

    job_wipe(take_ptr(&j->live));
    j->mark[0] = '\0';
    if (http == 200 && mark != NULL) {
        j->live = json_deep_copy(as_stocked(j, json_object_get(body, "object")));
        snprintf(j->mark, sizeof(j->mark), "%s", mark);
    }
    if (http != 200 && http != 404) {
        job_refused(j, http, body, e);
        return;
    }
    if (http == 404)
        take_implicit(j);
    if (http == 200 && j->live == NULL) {
        job_fail(j, NULL);
        return;
    }
    j->looked(j);
}

void job_look(struct api_job *j)
{
    const struct api_kind_row *k = j->r.target.kind;
    buf_auto target = BUF_INIT(HTTP_URL_MAX);

    j->tries++;
    buf_adds(&target, "/store/object?apiVersion=");
    percent_add(&target, k->api_version);
    buf_addf(&target, "&kind=%s&name=", k->kind);
    percent_add(&target, j->name);
    if (k->namespaced) {
        buf_adds(&target, "&namespace=");
        percent_add(&target, j->r.target.namespace);
    }
    job_ask(j, "GET", target.p, NULL, job_on_looked);
}

/* ---- storing ---- */

static void job_on_store(int http, json_t *body, const struct err *e, void *owner)
{
    struct api_job *j = owner;
    const char *file = json_str(body, "file");

    if ((http == 409 || (http == 404 && j->verb != JOB_DELETE)) && j->tries < API_WRITE_TRIES) {
        job_look(j); /* another one was faster */
        return;
    }
    if (http == 409) {
        job_fail(j, api_status_conflict(j->r.target.kind->group, j->r.target.kind->plural, j->name, NULL));
        return;
    }
    if (http == 404 && j->list != NULL) {
        job_collection_next(j);
        return;
    }
    if (http == 404) {
        job_lacks(j);
        return;
    }
    if (http != 200 && http != 201) {
        job_refused(j, http, body, e);
        return;
    }
    snprintf(j->file, sizeof(j->file), "%s", file != NULL ? file : "");
    j->held = json_flag(body, "held");
    j->released = json_flag(body, "released");
    job_stored(j, http, json_object_get(body, "object"));
}

void job_store(struct api_job *j, bool remove)
{
    json_auto_t *request =
        json_pack("{s:O, s:b, s:b}", "object", j->object, "dryRun", (int)j->dry, "audited", 1);

    if (request == NULL ||
        (j->mark[0] != '\0' && json_object_set_new(request, "mark", json_string(j->mark)) != 0) ||
        (remove && j->grace_s >= 0 &&
         json_object_set_new(request, "graceSeconds", json_integer(j->grace_s)) != 0)) {
        job_fail(j, NULL);
        return;
    }
    job_ask(j, remove ? "DELETE" : "PUT", "/store/object", request, job_on_store);
}

/* Into the copy at once: the client's next GET sees it. */
static void stock_take(struct api_job *j, json_t *object)
{
    struct kube_api *a = j->r.api;
    const struct stock_change *change = NULL;

    if (j->r.target.kind->id == API_KIND_NODE)
        api_node_take(a, object);
    else if (stock_put(&a->stock, object, a->set, &change) && change != NULL)
        api_changed(a);
    api_namespace_need(a, j->r.target.namespace);
}

void job_stored(struct api_job *j, int http, json_t *object)
{
    json_t *shown = json_deep_copy(j->dry && j->shown != NULL ? j->shown : object);

    if (shown != NULL)
        api_object_complete(shown);
    if (shown == NULL) {
        job_fail(j, NULL);
    } else if (j->verb == JOB_DELETE) {
        job_deleted(j, shown);
        json_decref(shown);
    } else if (j->released) {
        job_released(j, shown);
        json_decref(shown);
    } else {
        if (!j->dry)
            stock_take(j, shown);
        else if (j->live == NULL)
            json_object_del(json_object_get(shown, "metadata"), "resourceVersion");
        job_answer(j, http, shown);
    }
}
