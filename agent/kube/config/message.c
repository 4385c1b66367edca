/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/config/message.h"

#include "agent/kube/config/file.h"
#include "agent/kube/config/internal.h"
#include "agent/kube/config/pem.h"
#include "agent/kube/config/proxy_env.h"
#include "base/clock.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void kube_message_done(struct kube_message *m)
{
    kube_json_wipe(m->json);
    kube_exec_done(&m->exec);
    strs_done(&m->paths);
    *m = (struct kube_message){ 0 };
}

/* Sets a member to a text of any bytes; empty ones are left out. */
static enum err_code message_put(struct kube_message *m, const char *member, const char *text, struct err *e)
{
    if (text == NULL || text[0] == '\0')
        return ERR_OK;
    return json_object_set_new(m->json, member, json_string_of(text)) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code put_true(struct kube_message *m, const char *member, bool on, struct err *e)
{
    return !on || json_object_set_new(m->json, member, json_true()) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code follow(struct kube_message *m, const char *path, struct err *e)
{
    return strs_add_once(&m->paths, path) ? ERR_OK : err_nomem(e);
}

/* ---- PEM ---- */

/* The content of a *-data field or of its file; NULL: neither is set. */
static enum err_code data_of(struct kube_message *m, const struct kube_choice *c, enum kube_kind kind,
                             const char *field, char **ret, size_t *ret_n, struct err *e)
{
    str_auto data_field = str_printf("%s-data", field);
    const char *path = kube_get(c, kind, field), *data;

    if (data_field == NULL)
        return err_nomem(e);
    data = kube_get(c, kind, data_field);
    if (data[0] != '\0') {
        size_t n = strlen(data);
        unsigned char *bytes = malloc(BASE64_DECODED_MAX(n) + 1);
        if (bytes == NULL)
            return err_nomem(e);
        if (!base64_decode(data, n, bytes, ret_n)) {
            free(bytes);
            return err_set(e, ERR_INVALID, "%s: not base64", data_field);
        }
        bytes[*ret_n] = '\0';
        *ret = (char *)bytes;
        return ERR_OK;
    }
    if (path[0] == '\0')
        return ERR_OK;
    if (follow(m, path, e) != ERR_OK)
        return e->code;
    return kube_file_read(path, KUBE_FILE_MAX, ret, ret_n, e) == ERR_OK ? ERR_OK : err_wrap(e, "%s", field);
}

static enum err_code put_pem(struct kube_message *m, const struct kube_choice *c, enum kube_kind kind,
                             const char *field, const char *member, bool (*is)(const char *text),
                             struct err *e)
{
    char *text = NULL;
    size_t n = 0;

    if (data_of(m, c, kind, field, &text, &n, e) == ERR_OK && text != NULL) {
        if (strlen(text) != n || !is(text))
            err_set(e, ERR_INVALID, "%s: failed to find any PEM data of a %s in it", field,
                    is == pem_has_key ? "private key" : "certificate");
        else
            ERR_IGNORE(message_put(m, member, text, e));
    }
    kube_file_wipe(text, n);
    return e->code != ERR_OK ? err_wrap(e, "%s \"%s\"", kube_kind_name[kind],
                                        c->of[kind].name != NULL ? c->of[kind].name : "")
                             : ERR_OK;
}

/* ---- the user ---- */

static enum err_code put_token_file(struct kube_message *m, const char *path, struct err *e)
{
    char *text = NULL, *begin;
    size_t n = 0, length;

    if (follow(m, path, e) != ERR_OK || kube_file_read(path, KUBE_TOKEN_MAX, &text, &n, e) != ERR_OK)
        return e->code;
    for (begin = text; isspace((unsigned char)*begin);)
        begin++;
    for (length = strlen(begin); length > 0 && isspace((unsigned char)begin[length - 1]);)
        begin[--length] = '\0';
    if (length == 0)
        err_set(e, ERR_INVALID, "read empty token from file \"%s\"", path);
    else
        ERR_IGNORE(message_put(m, "token", begin, e));
    kube_file_wipe(text, n);
    return e->code;
}

/* The file's token wins; without it the token of the field, where there is one. */
static enum err_code put_token(struct kube_message *m, const struct kube_choice *c, struct err *e)
{
    const char *token = kube_get(c, KUBE_USER, "token"), *path = kube_get(c, KUBE_USER, "tokenFile");
    struct err failed = { 0 };

    if (path[0] == '\0')
        return message_put(m, "token", token, e);
    m->token_file = true;
    if (put_true(m, "anew", true, e) != ERR_OK)
        return e->code;
    if (put_token_file(m, path, &failed) == ERR_OK)
        return ERR_OK;
    if (token[0] != '\0')
        return message_put(m, "token", token, e);
    *e = failed;
    return err_wrap(e, "user \"%s\": tokenFile", c->of[KUBE_USER].name != NULL ? c->of[KUBE_USER].name : "");
}

static enum err_code put_impersonation(struct kube_message *m, const struct kube_choice *c, struct err *e)
{
    static const char *const members[][2] = {
        { "as", "user" }, { "as-uid", "uid" }, { "as-groups", "groups" }, { "as-user-extra", "extra" }
    };
    json_t *to = NULL;

    if (!kube_has(c, KUBE_USER, "as"))
        return ERR_OK;
    if (json_object_set_new(m->json, "impersonate", to = json_object()) != 0)
        return err_nomem(e);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        json_t *v = json_object_get(c->of[KUBE_USER].value, members[i][0]);
        if (v != NULL && json_object_set(to, members[i][1], v) != 0)
            return err_nomem(e);
    }
    return ERR_OK;
}

/* The cluster as a plugin sees it: the CA in place, the server normalised. */
static json_t *cluster_for_plugin(const struct kube_message *m, const struct kube_choice *c)
{
    const char *ca = json_str(m->json, "ca");
    json_t *cluster = json_copy(c->of[KUBE_CLUSTER].value);
    buf_auto data = BUF_INIT(2 * KUBE_FILE_MAX);

    if (ca != NULL)
        base64_add(&data, ca, strlen(ca));
    if (cluster == NULL || data.failed ||
        (ca != NULL &&
         json_object_set_new(cluster, "certificate-authority-data", json_string(data.p)) != 0)) {
        json_decref(cluster);
        return NULL;
    }
    return cluster;
}

/* Anything static takes the plugin's place, as in the real client. */
static enum err_code put_plugin(struct kube_message *m, const struct kube_choice *c,
                                const char *const *environment, struct err *e)
{
    const json_t *exec = json_object_get(c->of[KUBE_USER].value, "exec");
    json_auto_t *cluster = NULL;

    if (exec == NULL || json_str(m->json, "token") != NULL || json_str(m->json, "username") != NULL ||
        json_str(m->json, "certificate") != NULL)
        return ERR_OK;
    cluster = cluster_for_plugin(m, c);
    if (cluster == NULL || put_true(m, "anew", true, e) != ERR_OK)
        return err_nomem(e);
    if (kube_exec_make(&m->exec, exec, cluster, environment, e) != ERR_OK)
        return err_wrap(e, "user \"%s\"", c->of[KUBE_USER].name != NULL ? c->of[KUBE_USER].name : "");
    return ERR_OK;
}

static enum err_code put_user(struct kube_message *m, const struct kube_choice *c,
                              const char *const *environment, struct err *e)
{
    if (put_impersonation(m, c, e) != ERR_OK)
        return e->code;
    if (c->tls &&
        (put_pem(m, c, KUBE_USER, "client-certificate", "certificate", pem_has_certificate, e) != ERR_OK))
        return e->code;
    if (json_str(m->json, "certificate") != NULL &&
        put_pem(m, c, KUBE_USER, "client-key", "key", pem_has_key, e) != ERR_OK)
        return e->code;
    if (c->url_user != NULL) { /* of the URL: it is there before any token, also over http */
        if (message_put(m, "username", c->url_user, e) == ERR_OK)
            ERR_IGNORE(message_put(m, "password", c->url_password, e));
        return e->code;
    }
    if (!c->tls)
        return ERR_OK;
    if (put_token(m, c, e) != ERR_OK)
        return e->code;
    if (kube_has(c, KUBE_USER, "username") &&
        (message_put(m, "username", kube_get(c, KUBE_USER, "username"), e) != ERR_OK ||
         message_put(m, "password", kube_get(c, KUBE_USER, "password"), e) != ERR_OK))
        return e->code;
    return put_plugin(m, c, environment, e);
}

/* ---- the cluster ---- */

static enum err_code put_proxy(struct kube_message *m, const struct kube_choice *c,
                               const char *const *environment, struct err *e)
{
    str_auto found = c->proxy != NULL ? strdup(c->proxy) : kube_proxy_of(environment, c->server);
    str_auto socks = NULL;

    if (found == NULL)
        return ERR_OK;
    if (strncasecmp(found, "socks5:", strlen("socks5:")) != 0)
        return message_put(m, "proxyURL", found, e);
    socks = str_printf("socks5h:%s", found + strlen("socks5:"));
    return socks != NULL ? message_put(m, "proxyURL", socks, e) : err_nomem(e);
}

static enum err_code put_cluster(struct kube_message *m, const struct kube_choice *c,
                                 const char *const *environment, struct err *e)
{
    if (message_put(m, "server", c->server, e) != ERR_OK || put_proxy(m, c, environment, e) != ERR_OK ||
        put_true(m, "noCompression", kube_has(c, KUBE_CLUSTER, "disable-compression"), e) != ERR_OK)
        return e->code;
    if (!c->tls)
        return ERR_OK;
    if (message_put(m, "tlsServerName", kube_get(c, KUBE_CLUSTER, "tls-server-name"), e) != ERR_OK ||
        put_true(m, "insecure", kube_has(c, KUBE_CLUSTER, "insecure-skip-tls-verify"), e) != ERR_OK)
        return e->code;
    return put_pem(m, c, KUBE_CLUSTER, "certificate-authority", "ca", pem_has_certificate, e);
}

enum err_code kube_message_make(struct kube_message *ret, const struct kube_choice *c,
                                const char *const *environment, struct err *e)
{
    kube_message_done(ret);
    ret->json = json_object();
    if (ret->json == NULL)
        return err_nomem(e);
    if (put_cluster(ret, c, environment, e) == ERR_OK)
        ERR_IGNORE(put_user(ret, c, environment, e));
    return e->code;
}

enum err_code kube_message_load(struct kube_message *ret, const char *kubeconfig,
                                const char *const *environment, struct err *e)
{
    struct kube_ask ask = { .flags = { .kubeconfig = kubeconfig } };
    struct kube_config all = { 0 };
    struct kube_choice choice = { 0 };
    struct err followed = { 0 };

    kube_message_done(ret);
    if (kube_config_load(&all, &ask, e) == ERR_OK &&
        kube_config_choose(&choice, &all, &ask.flags, e) == ERR_OK) {
        static const struct {
            enum kube_kind kind;
            const char *field;
        } named[] = { { KUBE_CLUSTER, "certificate-authority" },
                      { KUBE_USER, "client-certificate" },
                      { KUBE_USER, "client-key" },
                      { KUBE_USER, "tokenFile" } };
        if (kube_config_check(&choice, &all, e) == ERR_OK)
            ERR_IGNORE(kube_message_make(ret, &choice, environment, e));
        for (size_t i = 0; i < ARRAY_LEN(named); i++)
            if (kube_has(&choice, named[i].kind, named[i].field))
                ERR_IGNORE(follow(ret, kube_get(&choice, named[i].kind, named[i].field), &followed));
    }
    ERR_IGNORE(follow(ret, kubeconfig, &followed));
    kube_choice_done(&choice);
    kube_config_done(&all);
    if (e->code == ERR_OK)
        *e = followed;
    return e->code;
}

json_t *kube_message_answer(const struct kube_message *m, const struct kube_exec_answer *a)
{
    struct kube_message copy = { .json = json_copy(m->json) };
    struct err e = { 0 };
    char expires[CLOCK_RFC3339_SIZE] = "";

    if (a->expires_ns != 0)
        clock_format_s(a->expires_ns, expires);
    if (copy.json == NULL || message_put(&copy, "token", a->token, &e) != ERR_OK ||
        message_put(&copy, "certificate", a->certificate, &e) != ERR_OK ||
        message_put(&copy, "key", a->key, &e) != ERR_OK ||
        message_put(&copy, "expires", expires, &e) != ERR_OK) {
        kube_json_wipe(copy.json);
        return NULL;
    }
    return copy.json;
}
