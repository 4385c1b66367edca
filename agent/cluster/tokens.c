/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens - service account tokens of pods, from the apiserver (TokenRequest), by the rules of kubelet's token
 * manager (pkg/kubelet/token/token_manager.go): one for each pod, account, audience and lifetime, kept in
 * memory until the pod is removed, used until it expires; also on disk, sealed (keep.c).
 */
#include "agent/cluster/internal.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/siphash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
/* The pauses after a refusal; the volume retries by itself. The first one is short, because an apiserver may
 * learn a moment later than the agent that the pod is bound to this node. */
#define RETRY_FIRST_MS 100
#define RETRY_MOST_MS 10000

static void token_wipe(struct cluster_token *t)
{
    if (t->text != NULL)
        explicit_bzero(t->text, t->size);
    free(take_ptr(&t->text));
    t->size = 0;
}

#define TOKEN_NAME_SIZE 100

/* An audience may be any text, so the name contains a hash of all members. */
static void token_name(const struct cluster_token *t, char ret[TOKEN_NAME_SIZE])
{
    static const unsigned char public_key[SIPHASH_KEY_SIZE] = { 0 };

    snprintf(ret, TOKEN_NAME_SIZE, "Token/%.63s/%016" PRIx64, t->pod_uid,
             siphash(public_key, t->key, strlen(t->key)));
}

static void token_free(struct cluster *c, struct cluster_token *t)
{
    HASH_DEL(c->token_table, t);
    token_wipe(t);
    free(t->error);
    free(t->pod_uid);
    json_decref(t->message);
    free(t);
}

static json_t *token_request(const struct pod_token_request *r, json_int_t id)
{
    json_t *audiences = json_array();

    if (r->audience != NULL && r->audience[0] != '\0')
        json_array_append_new(audiences, json_string_of(r->audience));
    return json_pack("{s:s, s:I, s:s, s:s, s:{s:o, s:I, s:{s:s, s:s, s:s, s:s}}}", "type", "token", "id", id,
                     "namespace", r->namespace_, "serviceAccount", r->service_account, "request", "audiences",
                     audiences, "expirationSeconds", (json_int_t)r->expiration_seconds, "boundObjectRef",
                     "kind", "Pod", "apiVersion", "v1", "name", r->pod_name, "uid", r->pod_uid);
}

static struct cluster_token *token_of(struct cluster *c, const struct pod_token_request *r)
{
    str_auto key = str_printf("%s/%s/%s/%s/%lld", r->pod_uid, r->namespace_, r->service_account,
                              r->audience != NULL ? r->audience : "", (long long)r->expiration_seconds);
    struct cluster_token *t = NULL;

    if (key == NULL)
        return NULL;
    HASH_FIND_STR(c->token_table, key, t);
    if (t != NULL || HASH_COUNT(c->token_table) >= CLUSTER_TOKENS_MAX)
        return t;
    t = calloc(1, sizeof(*t) + strlen(key) + 1);
    if (t == NULL)
        return NULL;
    strcpy(t->key, key);
    t->id = ++c->last_id;
    t->pod_uid = strdup(r->pod_uid);
    t->message = token_request(r, t->id);
    if (t->pod_uid != NULL && t->message != NULL)
        HASH_ADD_STR(c->token_table, key, t);
    if (t->hh.tbl != NULL)
        return t;
    free(t->pod_uid);
    json_decref(t->message);
    free(t);
    return NULL;
}

static bool is_old(const struct cluster_token *t, const struct pod_token_request *r)
{
    return t->text == NULL ||
           clock_boot_is_due(pod_token_renew_at(t->expires_ns, r->expiration_seconds, 0)) ||
           t->expires_ns <= clock_wall_ns();
}

static enum err_code tokens_get(void *arg, const struct pod_token_request *r, struct pod_token *ret,
                                struct err *e)
{
    struct cluster *c = arg;
    struct cluster_token *t = token_of(c, r);
    bool usable;

    if (t == NULL)
        return err_set(e, ERR_EXHAUSTED, "no memory for a token, or too many tokens");
    if (is_old(t, r) && !t->asked && clock_boot().ns >= t->retry_ns) {
        free(take_ptr(&t->error));
        t->asked = cluster_send(c, json_incref(t->message));
    }
    usable = t->text != NULL && t->expires_ns > clock_wall_ns();
    if (usable) {
        *ret = (struct pod_token){ .text = t->text, .size = t->size, .expires_ns = t->expires_ns };
        return ERR_OK;
    }
    if (t->error != NULL)
        return err_set(e, ERR_PRECONDITION, "%s", t->error);
    return err_set(e, ERR_UNAVAILABLE, "waiting for a service account token from the apiserver");
}

static struct cluster_token *token_by_id(struct cluster *c, json_int_t id)
{
    struct cluster_token *t, *tmp;

    HASH_ITER (hh, c->token_table, t, tmp)
        if (t->id == id)
            return t;
    return NULL;
}

void tokens_answer(struct cluster *c, const json_t *message)
{
    struct cluster_token *t = token_by_id(c, json_int(message, "id", 0));
    const json_t *status = json_object_get(json_object_get(message, "object"), "status");
    const char *text = json_str(status, "token"), *until = json_str(status, "expirationTimestamp"),
               *why = json_str(message, "message");
    int64_t expires_ns = 0;
    char name[TOKEN_NAME_SIZE];

    if (t == NULL || !t->asked)
        return;
    t->asked = false;
    if (text != NULL && until != NULL && clock_parse(until, &expires_ns, ERR_IGNORED) == ERR_OK) {
        char *copy = strdup(text);

        if (copy == NULL)
            return;
        token_wipe(t);
        t->text = copy;
        t->size = strlen(copy);
        t->expires_ns = expires_ns;
        t->retry_ms = 0;
        free(take_ptr(&t->error));
        token_name(t, name);
        kept_changed(c->kept, name, true);
    } else {
        free(t->error);
        t->error = str_printf("the apiserver gives no token (%d): %.300s", (int)json_int(message, "code", 0),
                              why != NULL ? why : "an answer without a token");
        t->retry_ms = backoff_next_ms(t->retry_ms, RETRY_FIRST_MS, RETRY_MOST_MS);
        t->retry_ns = clock_boot().ns + (int64_t)t->retry_ms * MILLISECOND;
        log_warn("the apiserver does not issue a service account token", F_STR("podUID", t->pod_uid),
                 F_STR("why", t->error != NULL ? t->error : "?"));
    }
    node_token_changed(c->o.node, t->pod_uid);
}

void tokens_again(struct cluster *c)
{
    struct cluster_token *t, *tmp;

    HASH_ITER (hh, c->token_table, t, tmp)
        if (t->asked)
            t->asked = cluster_send(c, json_incref(t->message));
}

void tokens_pod_gone(struct cluster *c, const char *uid)
{
    struct cluster_token *t, *tmp;
    char name[TOKEN_NAME_SIZE];

    HASH_ITER (hh, c->token_table, t, tmp)
        if (strcmp(t->pod_uid, uid) == 0) {
            token_name(t, name);
            kept_drop(c->kept, name);
            token_free(c, t);
        }
}

/* ---- on the disk ---- */

static struct cluster_token *token_by_name(const struct cluster *c, const char *name)
{
    struct cluster_token *t, *tmp;
    char own[TOKEN_NAME_SIZE];

    HASH_ITER (hh, c->token_table, t, tmp) {
        token_name(t, own);
        if (strcmp(own, name) == 0)
            return t;
    }
    return NULL;
}

json_t *tokens_keep(struct cluster *c, const char *name)
{
    const struct cluster_token *t = token_by_name(c, name);
    char expires[CLOCK_RFC3339_SIZE];

    if (t == NULL || t->text == NULL)
        return NULL;
    clock_format_nano(t->expires_ns, expires);
    /* A copy: it is wiped with the token. */
    return json_pack("{s:s, s:s, s:o}", "token", t->text, "expirationTimestamp", expires, "request",
                     json_deep_copy(t->message));
}

/* The request in a message; texts are borrowed from it. */
static struct pod_token_request token_request_of(const json_t *message)
{
    const json_t *request = json_object_get(message, "request"),
                 *to = json_object_get(request, "boundObjectRef");

    return (struct pod_token_request){ .namespace_ = json_str(message, "namespace"),
                                       .service_account = json_str(message, "serviceAccount"),
                                       .pod_name = json_str(to, "name"),
                                       .pod_uid = json_str(to, "uid"),
                                       .audience = json_string_value(
                                           json_array_get(json_object_get(request, "audiences"), 0)),
                                       .expiration_seconds = json_int(request, "expirationSeconds", 0) };
}

void tokens_use(struct cluster *c, const char *name, const json_t *kept)
{
    const struct pod_token_request r = token_request_of(json_object_get(kept, "request"));
    const char *text = json_str(kept, "token"), *until = json_str(kept, "expirationTimestamp");
    char own[TOKEN_NAME_SIZE] = "";
    struct cluster_token *t;
    int64_t expires_ns = 0;

    if (r.namespace_ == NULL || r.service_account == NULL || r.pod_name == NULL || r.pod_uid == NULL ||
        text == NULL || until == NULL || clock_parse(until, &expires_ns, ERR_IGNORED) != ERR_OK ||
        expires_ns <= clock_wall_ns() || pods_by_uid(c->o.node, r.pod_uid) == NULL)
        return;
    t = token_of(c, &r);
    if (t != NULL)
        token_name(t, own);
    if (t == NULL || t->text != NULL || strcmp(own, name) != 0 || (t->text = strdup(text)) == NULL)
        return;
    t->size = strlen(t->text);
    t->expires_ns = expires_ns;
    node_token_changed(c->o.node, t->pod_uid);
}

bool tokens_wanting(const struct cluster *c)
{
    for (const struct cluster_token *t = c->token_table; t != NULL; t = t->hh.next)
        if (t->text == NULL)
            return true;
    return false;
}

void tokens_open(struct cluster *c)
{
    c->tokens = (struct pod_tokens){ .get = tokens_get, .arg = c };
}

const struct pod_tokens *cluster_tokens(struct cluster *c)
{
    return &c->tokens;
}

void tokens_free(struct cluster *c)
{
    struct cluster_token *t, *tmp;

    HASH_ITER (hh, c->token_table, t, tmp)
        token_free(c, t);
}
