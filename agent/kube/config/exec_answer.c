/* SPDX-License-Identifier: Apache-2.0 */
/* exec_answer - reads an ExecCredential (client-go/pkg/apis/clientauthentication). */
#include "agent/api/yaml/yaml.h"
#include "agent/kube/config/exec.h"
#include "agent/kube/config/internal.h"
#include "agent/kube/config/pem.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

static void answer_wipe(char **text)
{
    if (*text != NULL)
        explicit_bzero(*text, strlen(*text));
    free(take_ptr(text));
}

void kube_exec_answer_done(struct kube_exec_answer *a)
{
    answer_wipe(&a->token);
    answer_wipe(&a->certificate);
    answer_wipe(&a->key);
    a->expires_ns = 0;
}

static enum err_code answer_text(const json_t *o, const char *name, const char **ret, struct err *e)
{
    const json_t *v = json_object_get(o, name);

    *ret = NULL;
    if (v == NULL || json_is_null(v))
        return ERR_OK;
    if (!json_is_string(v))
        return err_set(e, ERR_INVALID, "decoding stdout: %s: %s, where a text is needed", name,
                       kube_type_name(v));
    if (json_string_length(v) > 0)
        *ret = json_string_value(v);
    return ERR_OK;
}

static enum err_code answer_head(const json_t *doc, const char *version, struct err *e)
{
    const char *has, *kind;

    if (!json_is_object(doc))
        return err_set(e, ERR_INVALID, "decoding stdout: it is %s, where an ExecCredential is needed",
                       kube_type_name(doc));
    if (answer_text(doc, "apiVersion", &has, e) != ERR_OK || answer_text(doc, "kind", &kind, e) != ERR_OK)
        return e->code;
    if (has == NULL || strcmp(has, version) != 0)
        return err_set(e, ERR_INVALID,
                       "exec plugin is configured to use API version %s, plugin returned version %.100s",
                       version, has != NULL ? has : "none");
    if (kind == NULL || strcmp(kind, "ExecCredential") != 0)
        return err_set(e, ERR_INVALID,
                       "decoding stdout: no kind \"%.100s\" is registered for version \"%s\", an "
                       "ExecCredential is needed",
                       kind != NULL ? kind : "", version);
    return ERR_OK;
}

/* time.RFC3339; metav1.Time. */
static enum err_code answer_expiry(const json_t *status, int64_t *ret, struct err *e)
{
    const char *text;

    if (answer_text(status, "expirationTimestamp", &text, e) != ERR_OK)
        return e->code;
    *ret = 0;
    if (text == NULL)
        return ERR_OK;
    if (clock_parse(text, ret, e) == ERR_RANGE) { /* "9999-12-31T23:59:59Z" is a usual way to say never */
        bool never =
            strcmp(text, "2262") > 0 || strcmp(text, "0001-01-01T00:00:00Z") == 0; /* Go's zero time */
        *e = (struct err){ 0 };
        *ret = never ? 0 : 1;
        return ERR_OK;
    }
    if (e->code != ERR_OK)
        return err_wrap(e, "decoding stdout: expirationTimestamp");
    if (*ret == 0)
        *ret = 1; /* 0 is "never" */
    return ERR_OK;
}

static enum err_code answer_pair(const char *certificate, const char *key, struct err *e)
{
    if ((certificate == NULL) != (key == NULL))
        return err_set(e, ERR_INVALID, "exec plugin returned only certificate or key, not both");
    if (certificate != NULL && !pem_has_certificate(certificate))
        return err_set(
            e, ERR_INVALID,
            "failed parsing client key/certificate: failed to find any PEM data in certificate input");
    if (key != NULL && !pem_has_key(key))
        return err_set(e, ERR_INVALID,
                       "failed parsing client key/certificate: failed to find any PEM data in key input");
    return ERR_OK;
}

static enum err_code answer_status(struct kube_exec_answer *a, const json_t *status, struct err *e)
{
    const char *token, *certificate, *key;

    if (status == NULL || json_is_null(status))
        return err_set(e, ERR_INVALID, "exec plugin didn't return a status field");
    if (!json_is_object(status))
        return err_set(e, ERR_INVALID, "decoding stdout: status: %s, where a mapping is needed",
                       kube_type_name(status));
    if (answer_text(status, "token", &token, e) != ERR_OK ||
        answer_text(status, "clientCertificateData", &certificate, e) != ERR_OK ||
        answer_text(status, "clientKeyData", &key, e) != ERR_OK ||
        answer_expiry(status, &a->expires_ns, e) != ERR_OK)
        return e->code;
    if (token == NULL && certificate == NULL && key == NULL)
        return err_set(e, ERR_INVALID, "exec plugin didn't return a token or cert/key pair");
    if (answer_pair(certificate, key, e) != ERR_OK)
        return e->code;
    if ((token != NULL && (a->token = strdup(token)) == NULL) ||
        (certificate != NULL && (a->certificate = strdup(certificate)) == NULL) ||
        (key != NULL && (a->key = strdup(key)) == NULL))
        return err_nomem(e);
    return ERR_OK;
}

enum err_code kube_exec_read(struct kube_exec_answer *ret, const char *text, size_t n, const char *version,
                             struct err *e)
{
    struct kube_exec_answer a = { 0 };
    json_t *doc = NULL;

    if (yaml_first_to_json(text, n, &doc, e) != ERR_OK)
        err_wrap(e, "decoding stdout");
    else if (doc == NULL)
        err_set(e, ERR_INVALID, "decoding stdout: the plugin has no output");
    else if (answer_head(doc, version, e) == ERR_OK)
        ERR_IGNORE(answer_status(&a, json_object_get(doc, "status"), e));
    kube_json_wipe(doc);
    if (e->code != ERR_OK) {
        kube_exec_answer_done(&a);
        return e->code;
    }
    kube_exec_answer_done(ret);
    *ret = a;
    return ERR_OK;
}
