/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/csi_tokens.h"

#include "agent/pod/volume/tokens.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

static void time_text(int64_t at_ns, char *ret, size_t size)
{
    time_t at = (time_t)(at_ns / SECOND);
    struct tm tm;

    if (gmtime_r(&at, &tm) == NULL || strftime(ret, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        ret[0] = '\0';
}

static void wipe_object(json_t *all)
{
    const char *key;
    json_t *one;

    json_object_foreach (all, key, one) {
        const char *text = json_str(one, "token");

        if (text != NULL)
            explicit_bzero((char *)text, strlen(text));
    }
    json_decref(all);
}

static enum err_code add(const struct pod *p, const struct csi_token_wish *w, json_t *all, struct err *e)
{
    const struct pod_tokens *tokens = p->node->o.tokens;
    const char *account = p->api->spec.service_account_name;
    const struct pod_token_request r = {
        .namespace_ = p->api->meta.namespace,
        .service_account = account != NULL && account[0] != '\0' ? account : "default",
        .pod_name = p->api->meta.name,
        .pod_uid = p->uid,
        .audience = w->audience[0] != '\0' ? w->audience : NULL,
        .expiration_seconds = w->seconds,
    };
    struct pod_token token = { 0 };
    char at[32];

    if (tokens->get(tokens->arg, &r, &token, e) != ERR_OK)
        return e->code;
    time_text(token.expires_ns, at, sizeof(at));
    if (json_object_set_new(
            all, w->audience,
            json_pack("{s:s, s:s#}", "expirationTimestamp", at, "token", token.text, (int)token.size)) != 0)
        return err_nomem(e);
    return ERR_OK;
}

enum err_code csi_tokens_get(const struct pod *p, const struct csi_object *object, char **ret, struct err *e)
{
    json_t *all;

    if (object->n_tokens == 0)
        return ERR_OK;
    if (p->node->o.tokens == NULL)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "kubernetes.io/csi: the driver wants service account tokens (tokenRequests), which "
                       "only the apiserver of a cluster issues");
    all = json_object();
    if (all == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < object->n_tokens && e->code == ERR_OK; i++)
        ERR_IGNORE(add(p, &object->tokens[i], all, e));
    if (e->code == ERR_OK) {
        *ret = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
        if (*ret == NULL)
            err_nomem(e);
    }
    wipe_object(all);
    return e->code;
}

void csi_tokens_free(char *tokens)
{
    if (tokens == NULL)
        return;
    explicit_bzero(tokens, strlen(tokens));
    free(tokens);
}
