/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens - service account tokens: a TokenRequest for each message `token`, answered by `answer`
 * (pkg/kubelet/token/token_manager.go). The daemon, which has the files, decides when to request a new token
 * (after 80% of its lifetime, or 24 h). At most TOKENS_MAX requests are in progress; more are refused with
 * 429.
 */
#include "agent/kube/sync/internal.h"

#include "base/codec/json.h"
#include "base/scope.h"

#define TOKENS_MAX 256

struct tokens_part {
    struct kube_sync *sync;
    size_t n;
};

struct token {
    struct tokens_part *part;
    struct sync_call call;
    json_t *id;
};

static void token_fail(struct kube_sync *s, json_t *id, int code, const char *why)
{
    sync_send(s, json_pack("{s:s, s:O, s:i, s:o}", "type", "answer", "id", id, "code", code, "message",
                           json_string_of(why)));
}

static void token_answered(void *owner, const struct sync_answer *a)
{
    struct token *t = owner;

    if (a->error->code == ERR_OK && a->object != NULL)
        sync_send(t->part->sync,
                  json_pack("{s:s, s:O, s:O}", "type", "answer", "id", t->id, "object", a->object));
    else
        token_fail(t->part->sync, t->id, a->http, a->error->text);
    t->part->n--;
    json_decref(t->id);
    free(t);
}

void tokens_part_take(struct tokens_part *p, const json_t *message)
{
    const char *namespace_ = json_str(message, "namespace"), *account = json_str(message, "serviceAccount");
    json_t *id = json_object_get(message, "id"), *body;
    struct token *t;

    if (id == NULL || namespace_ == NULL || account == NULL)
        return;
    if (p->n >= TOKENS_MAX) {
        token_fail(p->sync, id, 429, "too many tokens are asked for at once");
        return;
    }
    str_auto path =
        sync_path("/api/v1/namespaces", namespace_, "serviceaccounts", account, "token", SYNC_PATH_END);
    t = calloc(1, sizeof(*t));
    body = json_pack("{s:s, s:s, s:{}, s:O*}", "kind", "TokenRequest", "apiVersion",
                     "authentication.k8s.io/v1", "metadata", "spec", json_object_get(message, "request"));
    if (path == NULL || t == NULL || body == NULL) {
        token_fail(p->sync, id, 0, "out of memory");
        free(t);
        json_decref(body);
        return;
    }
    *t = (struct token){ .part = p, .id = json_incref(id) };
    p->n++;
    sync_call(p->sync, &t->call,
              &(struct kube_request_spec){ .method = "POST", .path = path, .body = body, .subject = account },
              token_answered, t);
    json_decref(body);
}

struct tokens_part *tokens_part_new(struct kube_sync *s)
{
    struct tokens_part *p = calloc(1, sizeof(*p));

    if (p != NULL)
        p->sync = s;
    return p;
}

void tokens_part_free(struct tokens_part *p)
{
    free(p);
}
