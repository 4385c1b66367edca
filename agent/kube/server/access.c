/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access - the sender of a request, and its rights: kubelet's authenticators (client certificate, bearer
 * token, anonymous) and authorizer, with its caches. Source: pkg/kubelet/server/auth.go,
 * cmd/kubelet/app/auth.go, staging/src/k8s.io/apiserver/plugin/pkg/{authenticator/token,authorizer}/webhook.
 */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <string.h>
#include <strings.h>

#define REVIEW_MS 10000    /* for an answer: kubelet's webhook timeout */
#define QUESTION_MAX 10000 /* a longer question is not cached, as in kubelet */
#define REVIEW_ANSWER_MAX (256u << 10)

struct access {
    struct kube_server *server;
    struct caller *caller; /* NULL: gone */
    struct kube_request request;
    json_t *who; /* {"user", "uid", "groups", "extra"}, as in SubjectAccessReview */
    const char *rights[ROUTE_RIGHTS_MAX];
    size_t n_rights, at;
    json_t *question;    /* under way */
    char *question_text; /* of it, for the cache */
};

static void access_free(struct access *a)
{
    struct kube_server *s = a->server;

    if (a->caller != NULL)
        a->caller->source = NULL;
    json_decref(a->who);
    json_decref(a->question);
    free(a->question_text);
    free(a);
    s->n_access--;
    kube_server_maybe_free(s);
}

static void access_gone(struct caller *c)
{
    struct access *a = c->job;

    a->caller = NULL;
    if (op_live(&a->request.op))
        kube_request_cancel(&a->request); /* done frees it */
    else
        access_free(a);
}

static const struct caller_source access_source = { .gone = access_gone };

static void access_refuse(struct access *a, int http, const char *text)
{
    struct caller *c = a->caller;

    access_free(a);
    caller_text(c, http, text);
}

static void access_unauthorized(struct access *a)
{
    access_refuse(a, 401, "Unauthorized");
}

/* Sends the question unless its answer is known. */
static void access_ask(struct access *a, const char *path, op_done_fn done)
{
    const struct kube_request_spec spec = { .method = "POST",
                                            .path = path,
                                            .body = a->question,
                                            .subject = "a client of the node's port",
                                            .answer_max = REVIEW_ANSWER_MAX,
                                            .deadline_ms = REVIEW_MS };

    kube_request_start(&a->request, a->server->o.client, &spec, done, a);
}

static uint64_t access_now_ms(const struct access *a)
{
    return uv_now(a->server->o.loop);
}

/* ---- may they? ---- */

static void access_authorize(struct access *a);

static const char *access_method(const struct access *a)
{
    return llhttp_method_name((llhttp_method_t)llhttp_get_method(&a->caller->parser.llhttp));
}

static void access_forbidden(struct access *a)
{
    char text[1024], rights[128] = "";

    for (size_t i = 0; i < a->n_rights; i++)
        snprintf(rights + strlen(rights), sizeof(rights) - strlen(rights), "%s%s", i > 0 ? " " : "",
                 a->rights[i]);
    snprintf(text, sizeof(text), "Forbidden (user=%.256s, verb=%s, resource=nodes, subresource(s)=[%s])\n",
             json_str(a->who, "user"), route_verb(access_method(a)), rights);
    access_refuse(a, 403, text);
}

static void access_decide(struct access *a, bool allowed)
{
    struct caller *c = a->caller;

    if (allowed) {
        c->proven = c->proven || (a->who != NULL && !str_eq(json_str(a->who, "user"), "system:anonymous"));
        access_free(a);
        serve_request(c);
    } else if (++a->at < a->n_rights) {
        access_authorize(a);
    } else {
        access_forbidden(a);
    }
}

static void on_access_reviewed(struct op *op, const struct err *result)
{
    struct access *a = op->owner;
    const json_t *status = json_object_get(a->request.answer, "status");
    const char *why = json_str(status, "evaluationError");
    bool allowed = json_flag(status, "allowed");
    char text[1024];

    if (a->caller == NULL) {
        access_free(a);
        return;
    }
    if (result->code != ERR_OK || status == NULL) {
        log_warn("the apiserver does not answer an access review for a client of the node's port",
                 F_STR("user", json_str(a->who, "user")), F_STR("err", result->text));
        snprintf(text, sizeof(text),
                 "Authorization error (user=%.256s, verb=%s, resource=nodes, subresource=%s)",
                 json_str(a->who, "user"), route_verb(access_method(a)), a->rights[a->at]);
        access_refuse(a, 500, text);
        return;
    }
    if (why != NULL)
        log_debug("an access review", F_STR("err", why));
    if (a->question_text != NULL && strlen(a->question_text) <= QUESTION_MAX)
        review_cache_put(&a->server->decisions, a->question_text, strlen(a->question_text),
                         json_boolean(allowed), access_now_ms(a),
                         allowed ? a->server->rules.allowed_ms : a->server->rules.denied_ms);
    access_decide(a, allowed);
}

static void access_authorize(struct access *a)
{
    json_t *spec = json_deep_copy(a->who), *known;

    if (a->server->rules.always_allow) {
        json_decref(spec);
        access_decide(a, true);
        return;
    }
    if (spec == NULL ||
        json_object_set_new(spec, "resourceAttributes",
                            json_pack("{s:s, s:s, s:s, s:s, s:s}", "verb", route_verb(access_method(a)),
                                      "version", "v1", "resource", "nodes", "subresource", a->rights[a->at],
                                      "name", a->server->node_name)) != 0) {
        json_decref(spec);
        access_refuse(a, 500, "out of memory\n");
        return;
    }
    json_decref(a->question);
    free(a->question_text);
    a->question_text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    a->question = json_pack("{s:s, s:s, s:{}, s:o}", "kind", "SubjectAccessReview", "apiVersion",
                            "authorization.k8s.io/v1", "metadata", "spec", spec);
    if (a->question == NULL || a->question_text == NULL) {
        access_refuse(a, 500, "out of memory\n");
        return;
    }
    known =
        review_cache_get(&a->server->decisions, a->question_text, strlen(a->question_text), access_now_ms(a));
    if (known != NULL)
        access_decide(a, json_is_true(known));
    else
        access_ask(a, "/apis/authorization.k8s.io/v1/subjectaccessreviews", on_access_reviewed);
}

/* ---- authentication ---- */

static void access_authenticated(struct access *a, json_t *who /* taken */)
{
    json_t *groups = json_object_get(who, "groups");

    /* Every user except the anonymous one; a provider may already have added it. */
    if (strcmp(json_str(who, "user"), "system:anonymous") != 0 && !json_has(groups, "system:authenticated"))
        json_array_append_new(groups, json_string("system:authenticated"));
    a->who = who;
    a->n_rights = route_rights(&a->caller->parser.request, a->rights);
    access_authorize(a);
}

/* The user of a TokenReview as {"user", ...}; NULL: it names no user. */
static json_t *access_user(const json_t *status)
{
    const json_t *user = json_object_get(status, "user");
    const char *name = json_str(user, "username"), *uid = json_str(user, "uid");
    json_t *groups = json_object_get(user, "groups"), *extra = json_object_get(user, "extra");
    json_t *who;

    if (!json_flag(status, "authenticated") || name == NULL || name[0] == '\0')
        return NULL;
    who = json_pack("{s:s, s:o}", "user", name, "groups",
                    json_is_array(groups) ? json_copy(groups) : json_array());
    if (who != NULL && uid != NULL && uid[0] != '\0')
        json_object_set_new(who, "uid", json_string(uid));
    if (who != NULL && json_object_size(extra) > 0)
        json_object_set(who, "extra", extra);
    return who;
}

static const char *access_token(const struct caller *c)
{
    const char *at = c->token + strspn(c->token, " ");

    if (strncasecmp(at, "Bearer ", 7) != 0)
        return "";
    return at + 7 + strspn(at + 7, " ");
}

static void on_token_reviewed(struct op *op, const struct err *result)
{
    struct access *a = op->owner;
    const json_t *status = json_object_get(a->request.answer, "status");
    json_t *who = result->code == ERR_OK ? access_user(status) : NULL;
    const char *token = a->caller != NULL ? access_token(a->caller) : "";

    if (a->caller == NULL) {
        json_decref(who);
        access_free(a);
        return;
    }
    if (result->code != ERR_OK)
        log_warn("the apiserver does not answer a token review for a client of the node's port",
                 F_STR("err", result->text));
    else if (json_str(status, "error") != NULL)
        log_debug("a token was refused", F_STR("err", json_str(status, "error")));
    if (result->code == ERR_OK && status != NULL)
        review_cache_put(&a->server->tokens, token, strlen(token),
                         who != NULL ? json_deep_copy(who) : json_null(), access_now_ms(a),
                         a->server->rules.token_ms);
    if (who != NULL)
        access_authenticated(a, who);
    else
        access_unauthorized(a);
}

static void access_review_token(struct access *a, const char *token)
{
    json_t *known = review_cache_get(&a->server->tokens, token, strlen(token), access_now_ms(a));

    if (json_is_object(known)) {
        access_authenticated(a, json_deep_copy(known));
        return;
    }
    a->question = known == NULL ? json_pack("{s:s, s:s, s:{}, s:{s:s}}", "kind", "TokenReview", "apiVersion",
                                            "authentication.k8s.io/v1", "metadata", "spec", "token", token)
                                : NULL;
    if (a->question == NULL) /* known to be bad, or no UTF-8 */
        access_unauthorized(a);
    else
        access_ask(a, "/apis/authentication.k8s.io/v1/tokenreviews", on_token_reviewed);
}

/* An invalid certificate or token is refused, even if none is required; kubelet's union of authenticators
 * tries the token after an invalid certificate. */
void access_begin(struct caller *c)
{
    struct kube_server *s = c->server;
    const char *token = access_token(c);
    struct access *a;
    json_t *who = NULL;
    struct err e = { 0 };

    if (c->read_only) {
        serve_request(c);
        return;
    }
    a = calloc(1, sizeof(*a));
    if (a == NULL) {
        caller_text(c, 500, "out of memory\n");
        return;
    }
    a->server = s;
    a->caller = c;
    c->source = &access_source;
    c->job = a;
    s->n_access++;
    if (tls_identity(&c->tls, &who, &e) == ERR_OK)
        access_authenticated(a, who);
    else if (token[0] != '\0' && s->rules.token_webhook)
        access_review_token(a, token);
    else if (e.code == ERR_NOT_FOUND && s->rules.anonymous)
        access_authenticated(
            a, json_pack("{s:s, s:[s]}", "user", "system:anonymous", "groups", "system:unauthenticated"));
    else
        access_unauthorized(a);
}
