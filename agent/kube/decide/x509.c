/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/x509.h"

#include "base/buf.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "base/strs.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define X509_TEXT_MAX 65536 /* of a key, a request or a certificate as text */
#define CLIENT_SIGNER "kubernetes.io/kube-apiserver-client-kubelet"
#define SERVING_SIGNER "kubernetes.io/kubelet-serving"

static enum err_code x509_failed(struct err *e, const char *what)
{
    char why[160];

    ERR_error_string_n(ERR_get_error(), why, sizeof(why));
    ERR_clear_error();
    return err_set(e, ERR_INTERNAL, "%s: %s", what, why);
}

/* ---- keys ---- */

enum err_code x509_key_make(EVP_PKEY **ret, struct err *e)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    if (key == NULL)
        return x509_failed(e, "generate a key");
    *ret = key;
    return ERR_OK;
}

enum err_code x509_key_read(const char *pem, EVP_PKEY **ret, struct err *e)
{
    size_t n = strlen(pem);
    BIO *in = n <= X509_PEM_MAX ? BIO_new_mem_buf(pem, (int)n) : NULL;
    EVP_PKEY *key = in != NULL ? PEM_read_bio_PrivateKey(in, NULL, NULL, NULL) : NULL;

    BIO_free(in);
    ERR_clear_error();
    if (key == NULL)
        return err_set(e, ERR_INVALID, "no private key in PEM format");
    *ret = key;
    return ERR_OK;
}

static char *bio_text(BIO *bio)
{
    char *data = NULL; /* without a NUL at its end */
    long n = BIO_get_mem_data(bio, &data);
    struct buf text = BUF_INIT(X509_TEXT_MAX);

    if (n > 0)
        buf_add(&text, data, (size_t)n);
    return n > 0 && !text.failed ? buf_detach(&text) : NULL;
}

char *x509_key_pem(EVP_PKEY *key)
{
    BIO *out = BIO_new(BIO_s_secmem());
    char *text = NULL;

    if (out != NULL && PEM_write_bio_PrivateKey_traditional(out, key, NULL, NULL, 0, NULL, NULL) == 1)
        text = bio_text(out);
    BIO_free(out);
    return text;
}

/* ---- requests ---- */

static void subject_of(const char *node, char ret[300])
{
    snprintf(ret, 300, "system:node:%s", node);
}

static void name_part(EVP_MD_CTX *md, const void *data, size_t n)
{
    buf_auto text = BUF_INIT(2 * n + 16);

    base64_add(&text, data, n);
    /* Go's RawURLEncoding */
    while (text.n > 0 && text.p[text.n - 1] == '=')
        text.n--;
    for (size_t i = 0; i < text.n; i++)
        text.p[i] = text.p[i] == '+' ? '-' : text.p[i] == '/' ? '_' : text.p[i];
    EVP_DigestUpdate(md, text.p, text.n);
    EVP_DigestUpdate(md, "|", 1);
}

static bool request_name(const struct x509_request_spec *spec, char ret[X509_NAME_SIZE])
{
    static const char organization[] = "system:nodes", use[] = "digital signature";
    const char *use_2 = spec->serving ? "server auth" : "client auth";
    unsigned char digest[EVP_MAX_MD_SIZE], *der = NULL;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned size = 0;
    int n = i2d_PUBKEY(spec->key, &der);
    char cn[300];
    bool good = false;
    buf_auto text = BUF_INIT(128);

    subject_of(spec->node, cn);
    if (md != NULL && n > 0 && EVP_DigestInit_ex(md, EVP_sha512_256(), NULL) == 1) {
        name_part(md, der, (size_t)n);
        name_part(md, cn, strlen(cn));
        name_part(md, organization, strlen(organization));
        name_part(md, use, strlen(use));
        name_part(md, use_2, strlen(use_2));
        good = EVP_DigestFinal_ex(md, digest, &size) == 1;
    }
    if (good) {
        base64_add(&text, digest, size);
        while (text.n > 0 && text.p[text.n - 1] == '=')
            text.p[--text.n] = '\0';
        for (size_t i = 0; i < text.n; i++)
            text.p[i] = text.p[i] == '+' ? '-' : text.p[i] == '/' ? '_' : text.p[i];
        snprintf(ret, X509_NAME_SIZE, "node-csr-%.54s", text.p);
    }
    EVP_MD_CTX_free(md);
    OPENSSL_free(der);
    return good;
}

/* "DNS:a" and "IP:1.2.3.4", sorted, each once. kubelet's addressesToHostnamesAndIPs(). */
static bool alt_names(const json_t *addresses, struct strs *ret)
{
    unsigned char ip[16];
    json_t *a;
    size_t i;

    json_array_foreach ((json_t *)addresses, i, a) {
        const char *type = json_str(a, "type"), *address = json_str(a, "address");
        bool dns = str_eq(type, "Hostname") || str_eq(type, "InternalDNS") || str_eq(type, "ExternalDNS");
        bool is_ip;

        if (address == NULL || *address == '\0' || strpbrk(address, ",\n \t") != NULL)
            continue;
        is_ip = inet_pton(AF_INET, address, ip) == 1 || inet_pton(AF_INET6, address, ip) == 1;
        if (!dns && !is_ip)
            continue;
        if (!strs_take(ret, str_printf("%s:%s", is_ip ? "IP" : "DNS", address)))
            return false;
    }
    strs_unique(ret);
    return true;
}

static bool add_alt_names(X509_REQ *request, const struct strs *names)
{
    STACK_OF(X509_EXTENSION) *list = sk_X509_EXTENSION_new_null();
    buf_auto text = BUF_INIT(16384);
    X509_EXTENSION *ext;
    bool good = false;

    for (size_t i = 0; i < names->n; i++)
        buf_addf(&text, "%s%s", i > 0 ? "," : "", names->v[i]);
    ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text.p);
    if (list != NULL && ext != NULL && sk_X509_EXTENSION_push(list, ext) > 0) {
        good = X509_REQ_add_extensions(request, list) == 1;
        ext = NULL;
    }
    X509_EXTENSION_free(ext);
    sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
    return good;
}

static char *request_pem(const struct x509_request_spec *spec, const struct strs *names)
{
    X509_REQ *r = X509_REQ_new();
    BIO *out = BIO_new(BIO_s_mem());
    X509_NAME *subject = r != NULL ? X509_REQ_get_subject_name(r) : NULL;
    char *text = NULL, cn[300];

    subject_of(spec->node, cn);
    if (out != NULL && subject != NULL && X509_REQ_set_version(r, 0) == 1 &&
        X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, (const unsigned char *)"system:nodes", -1, -1,
                                   0) == 1 &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0) == 1 &&
        X509_REQ_set_pubkey(r, spec->key) == 1 && (names->n == 0 || add_alt_names(r, names)) &&
        X509_REQ_sign(r, spec->key, EVP_sha256()) > 0 && PEM_write_bio_X509_REQ(out, r) == 1)
        text = bio_text(out);
    BIO_free(out);
    X509_REQ_free(r);
    return text;
}

enum err_code x509_request(const struct x509_request_spec *spec, json_t **ret_body,
                           char ret_name[X509_NAME_SIZE], struct err *e)
{
    buf_auto encoded = BUF_INIT(X509_PEM_MAX);
    struct strs names = { 0 };
    str_auto pem = NULL;
    json_t *body = NULL;
    bool memory = !spec->serving || alt_names(spec->addresses, &names);

    if (memory && (!spec->serving || names.n > 0))
        pem = request_pem(spec, &names);
    if (pem != NULL && request_name(spec, ret_name)) {
        base64_add(&encoded, pem, strlen(pem));
        body = json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:[s, s]}}", "kind", "CertificateSigningRequest",
                         "apiVersion", "certificates.k8s.io/v1", "metadata", "name", ret_name, "spec",
                         "request", encoded.p, "signerName", spec->serving ? SERVING_SIGNER : CLIENT_SIGNER,
                         "usages", "digital signature", spec->serving ? "server auth" : "client auth");
    }
    if (!memory)
        err_nomem(e);
    else if (spec->serving && names.n == 0)
        err_set(e, ERR_PRECONDITION, "the node has no address for a serving certificate");
    else if (body == NULL)
        x509_failed(e, "make a certificate signing request");
    strs_done(&names);
    if (body == NULL)
        return e->code;
    *ret_body = body;
    return ERR_OK;
}

/* ---- certificates ---- */

static X509 *certificate_of(const char *pem)
{
    size_t n = strlen(pem);
    BIO *in = n <= X509_PEM_MAX ? BIO_new_mem_buf(pem, (int)n) : NULL;
    X509 *c = in != NULL ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;

    BIO_free(in);
    ERR_clear_error();
    return c;
}

static bool x509_time(const ASN1_TIME *t, int64_t *ret_ns)
{
    struct tm tm;

    if (ASN1_TIME_to_tm(t, &tm) != 1)
        return false;
    *ret_ns = (int64_t)timegm(&tm) * 1000000000;
    return true;
}

enum err_code x509_certificate(const char *pem, EVP_PKEY *key, struct x509_times *ret, struct err *e)
{
    X509 *c = certificate_of(pem);
    struct x509_times t = { 0 };

    if (c == NULL)
        return err_set(e, ERR_INVALID, "no certificate in PEM format");
    if (!x509_time(X509_get0_notBefore(c), &t.not_before_ns) ||
        !x509_time(X509_get0_notAfter(c), &t.not_after_ns))
        err_set(e, ERR_INVALID, "the certificate has no validity period");
    else if (key != NULL && X509_check_private_key(c, key) != 1)
        err_set(e, ERR_INVALID, "the certificate is for another key");
    X509_free(c);
    ERR_clear_error();
    if (e->code != ERR_OK)
        return e->code;
    *ret = t;
    return ERR_OK;
}

bool x509_is_of_node(const char *pem, const char *node)
{
    X509 *c = certificate_of(pem);
    char wanted[300], found[300] = "";

    subject_of(node, wanted);
    if (c != NULL)
        X509_NAME_get_text_by_NID(X509_get_subject_name(c), NID_commonName, found, sizeof(found));
    X509_free(c);
    return strcmp(found, wanted) == 0;
}

static bool add_name(const GENERAL_NAME *name, struct strs *to)
{
    char text[64];
    int type = 0;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
    const unsigned char *data = ASN1_STRING_get0_data(value);
    int n = ASN1_STRING_length(value);

    if (type == GEN_DNS)
        return strs_take(to, str_printf("DNS:%.*s", n, (const char *)data));
    if (type != GEN_IPADD || (n != 4 && n != 16) ||
        inet_ntop(n == 4 ? AF_INET : AF_INET6, data, text, sizeof(text)) == NULL)
        return true;
    return strs_take(to, str_printf("IP:%s", text));
}

bool x509_names_are(const char *pem, const json_t *addresses)
{
    X509 *c = certificate_of(pem);
    GENERAL_NAMES *names = c != NULL ? X509_get_ext_d2i(c, NID_subject_alt_name, NULL, NULL) : NULL;
    struct strs has = { 0 }, wants = { 0 };
    bool same = c != NULL && alt_names(addresses, &wants);

    for (int i = 0; same && i < sk_GENERAL_NAME_num(names); i++)
        same = add_name(sk_GENERAL_NAME_value(names, i), &has);
    strs_unique(&has);
    same = same && has.n == wants.n;
    for (size_t i = 0; same && i < has.n; i++)
        same = strcmp(has.v[i], wants.v[i]) == 0;
    strs_done(&has);
    strs_done(&wants);
    GENERAL_NAMES_free(names);
    X509_free(c);
    ERR_clear_error();
    return same;
}
