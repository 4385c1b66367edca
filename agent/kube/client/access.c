/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/internal.h"

#include "base/clock.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"
#include "base/scope.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- PEM ---- */

static void blob_free(struct curl_blob *b)
{
    if (b->data != NULL)
        explicit_bzero(b->data, b->len);
    free(b->data);
    *b = (struct curl_blob){ 0 };
}

static enum err_code blob_take(struct curl_blob *ret, const json_t *credentials, const char *member,
                               struct err *e)
{
    const char *text = json_str(credentials, member);

    if (text == NULL || *text == '\0')
        return ERR_OK;
    ret->data = strdup(text);
    if (ret->data == NULL)
        return err_nomem(e);
    ret->len = strlen(text);
    ret->flags = CURL_BLOB_NOCOPY;
    return ERR_OK;
}

static const char *why_openssl(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = ERR_reason_error_string(code);

    return text != NULL ? text : "no PEM block was found";
}

static int64_t not_after_s(const X509 *x)
{
    struct tm tm = { 0 };

    return ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static int no_pass_phrase(char *buf, int size, int rwflag, void *arg)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    (void)arg;
    return -1;
}

/* libcurl would say so at each connection only, and less clearly. */
static enum err_code check_pem(struct kube_access *a, struct err *e)
{
    BIO *ca = BIO_new_mem_buf(a->ca.data, (int)a->ca.len), *key = NULL, *certificate = NULL;
    X509 *root = NULL, *own = NULL;
    EVP_PKEY *private = NULL;

    ERR_clear_error();
    if (a->ca.len > 0 && (root = PEM_read_bio_X509(ca, NULL, NULL, NULL)) == NULL)
        err_set(e, ERR_INVALID, "certificate of the authority: %s", why_openssl());
    if (e->code == ERR_OK && a->certificate.len > 0) {
        certificate = BIO_new_mem_buf(a->certificate.data, (int)a->certificate.len);
        key = BIO_new_mem_buf(a->key.data, (int)a->key.len);
        if ((own = PEM_read_bio_X509(certificate, NULL, NULL, NULL)) == NULL)
            err_set(e, ERR_INVALID, "client certificate: %s", why_openssl());
        else if ((private = PEM_read_bio_PrivateKey(key, NULL, no_pass_phrase, NULL)) == NULL)
            err_set(e, ERR_INVALID, "key of the client certificate: %s", why_openssl());
        else if (X509_check_private_key(own, private) != 1)
            err_set(e, ERR_INVALID, "the key does not belong to the client certificate");
        else
            a->not_after_s = not_after_s(own);
    }
    ERR_clear_error();
    X509_free(root);
    X509_free(own);
    EVP_PKEY_free(private);
    BIO_free(ca);
    BIO_free(certificate);
    BIO_free(key);
    return e->code;
}

/* ---- headers ---- */

static enum err_code header(struct kube_access *a, const char *name, const char *value, struct err *e)
{
    str_auto line = NULL;
    struct curl_slist *longer;

    for (const char *p = value; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' && *p != '\t')
            return err_set(e, ERR_INVALID, "header %s: its value has a control character", name);
    line = str_printf("%s: %s", name, value);
    longer = line != NULL ? curl_slist_append(a->headers, line) : NULL;
    if (longer == NULL)
        return err_nomem(e);
    a->headers = longer;
    return ERR_OK;
}

static enum err_code add_authorization(struct kube_access *a, const json_t *credentials, struct err *e)
{
    const char *token = json_str(credentials, "token"), *user = json_str(credentials, "username"),
               *password = json_str(credentials, "password");
    str_auto value = NULL;
    str_auto both = NULL;

    if (token != NULL && *token != '\0') {
        value = str_printf("Bearer %s", token);
    } else if (user != NULL && *user != '\0') {
        buf_auto coded = BUF_INIT(1 << 16);

        both = str_printf("%s:%s", user, password != NULL ? password : "");
        if (both != NULL)
            base64_add(&coded, both, strlen(both));
        value = str_printf("Basic %s", coded.p);
    } else {
        return ERR_OK;
    }
    return value != NULL ? header(a, "Authorization", value, e) : err_nomem(e);
}

/* {user, uid, groups, extra}: of the kubeconfig's as, as-uid, as-groups and as-user-extra. */
static enum err_code add_impersonation(struct kube_access *a, const json_t *who, struct err *e)
{
    const char *user = json_str(who, "user"), *uid = json_str(who, "uid"), *key;
    json_t *value, *each;
    size_t i;

    if (user != NULL && *user != '\0' && header(a, "Impersonate-User", user, e) != ERR_OK)
        return e->code;
    if (uid != NULL && *uid != '\0' && header(a, "Impersonate-Uid", uid, e) != ERR_OK)
        return e->code;
    json_array_foreach (json_object_get(who, "groups"), i, value)
        if (json_is_string(value) && header(a, "Impersonate-Group", json_string_value(value), e) != ERR_OK)
            return e->code;
    json_object_foreach (json_object_get(who, "extra"), key, value) {
        buf_auto name = BUF_INIT(4096);

        buf_adds(&name, "Impersonate-Extra-");
        percent_add(&name, key);
        json_array_foreach (value, i, each)
            if (json_is_string(each) && header(a, name.p, json_string_value(each), e) != ERR_OK)
                return e->code;
    }
    return ERR_OK;
}

static enum err_code add_headers(struct kube_access *a, const json_t *credentials, const char *user_agent,
                                 const char *host, struct err *e)
{
    if (header(a, "Accept", "application/json", e) != ERR_OK ||
        header(a, "User-Agent", user_agent, e) != ERR_OK ||
        (host != NULL && header(a, "Host", host, e) != ERR_OK) ||
        header(a, "Expect", "", e) != ERR_OK || /* "Expect:" leaves it out */
        add_authorization(a, credentials, e) != ERR_OK)
        return e->code;
    return add_impersonation(a, json_object_get(credentials, "impersonate"), e);
}

/* ---- the server ---- */

struct where {
    char *scheme, *host, *port, *path;
    bool has_port; /* as opposed to the scheme's */
};

static bool where_has_port(CURLU *u)
{
    char *port = NULL;
    const bool has = curl_url_get(u, CURLUPART_PORT, &port, 0) == CURLUE_OK;

    curl_free(port);
    return has;
}

static void where_done(struct where *w)
{
    curl_free(w->scheme);
    curl_free(w->host);
    curl_free(w->port);
    curl_free(w->path);
}

static enum err_code where_of(const char *server, struct where *ret, struct err *e)
{
    CURLU *u = curl_url();
    CURLUcode code =
        u != NULL ? curl_url_set(u, CURLUPART_URL, server, CURLU_DEFAULT_SCHEME) : CURLUE_OUT_OF_MEMORY;

    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_SCHEME, &ret->scheme, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_HOST, &ret->host, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT);
    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_PATH, &ret->path, 0);
    ret->has_port = code == CURLUE_OK && where_has_port(u);
    curl_url_cleanup(u);
    if (code != CURLUE_OK)
        return err_set(e, ERR_INVALID, "server \"%s\": %s", server, curl_url_strerror(code));
    if (strcmp(ret->scheme, "https") != 0 && strcmp(ret->scheme, "http") != 0)
        return err_set(e, ERR_INVALID, "server \"%s\": neither https nor http", server);
    for (size_t n = strlen(ret->path); n > 0 && ret->path[n - 1] == '/'; n--)
        ret->path[n - 1] = '\0';
    return ERR_OK;
}

/* With tls-server-name the certificate is verified against that name, which is also sent as SNI, as in
 * client-go: the request names it, and the connection goes to the host. */
static enum err_code take_server(struct kube_access *a, const json_t *credentials, const char *user_agent,
                                 struct err *e)
{
    const char *server = json_str(credentials, "server"), *name = json_str(credentials, "tlsServerName");
    struct where w = { 0 };
    str_auto host = NULL;

    if (server == NULL || *server == '\0')
        return err_set(e, ERR_INVALID, "no server is given");
    if (where_of(server, &w, e) != ERR_OK) {
        where_done(&w);
        return e->code;
    }
    if (name == NULL || *name == '\0' || strcmp(name, w.host) == 0)
        name = NULL;
    a->plain = strcmp(w.scheme, "http") == 0;
    a->host = str_printf("%s%s%s", w.host, w.has_port ? ":" : "", w.has_port ? w.port : "");
    if (name != NULL) {
        bool six = strchr(name, ':') != NULL;

        a->base =
            str_printf("%s://%s%s%s:%s%s", w.scheme, six ? "[" : "", name, six ? "]" : "", w.port, w.path);
        a->connect_to = str_printf("::%s:%s", w.host, w.port);
        host = str_printf("%s:%s", w.host, w.port);
    } else {
        a->base = str_printf("%s://%s:%s%s", w.scheme, w.host, w.port, w.path);
    }
    if (a->base == NULL || a->host == NULL || (name != NULL && (a->connect_to == NULL || host == NULL)))
        err_nomem(e);
    else
        ERR_IGNORE(add_headers(a, credentials, user_agent, host, e));
    where_done(&w);
    return e->code;
}

/* ---- */

static void access_free(struct kube_access *a)
{
    for (struct curl_slist *h = a->headers; h != NULL; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(a->headers);
    blob_free(&a->ca);
    blob_free(&a->certificate);
    blob_free(&a->key);
    free(a->base);
    free(a->host);
    free(a->connect_to);
    free(a->proxy);
    free(a);
}

bool kube_access_expired(const struct kube_access *a)
{
    return a->not_after_s != 0 && clock_wall_ns() / 1000000000 >= a->not_after_s;
}

struct kube_access *kube_access_ref(struct kube_access *a)
{
    a->refs++;
    return a;
}

void kube_access_unref(struct kube_access *a)
{
    if (a != NULL && --a->refs == 0)
        access_free(a);
}

enum err_code kube_access_new(struct kube_access **ret, const json_t *credentials, const char *user_agent,
                              struct err *e)
{
    struct kube_access *a = calloc(1, sizeof(*a));
    const char *proxy = json_str(credentials, "proxyURL");

    if (a == NULL)
        return err_nomem(e);
    a->refs = 1;
    a->proxy = strdup(proxy != NULL ? proxy : "");
    a->insecure = json_flag(credentials, "insecure");
    a->compressed = !json_flag(credentials, "noCompression");
    if (a->proxy == NULL)
        err_nomem(e);
    else if (take_server(a, credentials, user_agent, e) == ERR_OK &&
             blob_take(&a->ca, credentials, "ca", e) == ERR_OK &&
             blob_take(&a->certificate, credentials, "certificate", e) == ERR_OK &&
             blob_take(&a->key, credentials, "key", e) == ERR_OK)
        ERR_IGNORE(check_pem(a, e));
    if (e->code != ERR_OK) {
        access_free(a);
        return e->code;
    }
    *ret = a;
    return ERR_OK;
}
