/* SPDX-License-Identifier: Apache-2.0 */
/* pki - the CA of a lone node, the certificate that its API shows, and the administrator's. By OpenSSL. */
#include "agent/kube/apiserver/internal.h"
#include "agent/kube/server/tls.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

SCOPE_DEFINE(BIO, BIO_free_all)
SCOPE_DEFINE(X509, X509_free)
SCOPE_DEFINE(EVP_PKEY, EVP_PKEY_free)

/* ---- reading ---- */

static X509 *read_certificate(const char *pem)
{
    scoped(BIO_free_all) BIO *bio = pem != NULL ? BIO_new_mem_buf(pem, (int)strlen(pem)) : NULL;

    return bio != NULL ? PEM_read_bio_X509(bio, NULL, tls_no_password, NULL) : NULL;
}

static EVP_PKEY *read_key(const char *pem)
{
    scoped(BIO_free_all) BIO *bio = pem != NULL ? BIO_new_mem_buf(pem, (int)strlen(pem)) : NULL;

    return bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, tls_no_password, NULL) : NULL;
}

static bool is_in_time(const X509 *x, int64_t now_s, int days)
{
    time_t now = (time_t)now_s, later = (time_t)(now_s + (int64_t)days * 86400);

    return X509_cmp_time(X509_get0_notBefore(x), &now) < 0 &&
           X509_cmp_time(X509_get0_notAfter(x), &later) > 0;
}

static bool pair_is_good(const json_t *files, const char *crt, const char *key, EVP_PKEY *signer,
                         int64_t now_s, int days)
{
    scoped(X509_free) X509 *x = read_certificate(json_str(files, crt));
    scoped(EVP_PKEY_free) EVP_PKEY *own = read_key(json_str(files, key));

    return x != NULL && own != NULL && X509_check_private_key(x, own) == 1 &&
           X509_verify(x, signer != NULL ? signer : own) == 1 && is_in_time(x, now_s, days);
}

static bool names_are_good(const json_t *files, const char *node_name, const char *host)
{
    scoped(X509_free) X509 *x = read_certificate(json_str(files, "server.crt"));

    return x != NULL && X509_check_host(x, node_name, 0, 0, NULL) == 1 && X509_check_ip_asc(x, host, 0) == 1;
}

/* All of them, and the leaves are the CA's. */
static bool all_are_good(const json_t *files, const char *node_name, const char *host, int64_t now_s)
{
    scoped(EVP_PKEY_free) EVP_PKEY *ca = read_key(json_str(files, "ca.key"));
    bool good = ca != NULL &&
                pair_is_good(files, "ca.crt", "ca.key", NULL, now_s, API_PKI_DAYS + API_PKI_RENEW_DAYS) &&
                pair_is_good(files, "server.crt", "server.key", ca, now_s, API_PKI_RENEW_DAYS) &&
                pair_is_good(files, "admin.crt", "admin.key", ca, now_s, API_PKI_RENEW_DAYS) &&
                names_are_good(files, node_name, host);

    ERR_clear_error();
    return good;
}

/* ---- making ---- */

struct pki_spec {
    const char *name, *group;                         /* common name; organization, NULL: none */
    const char *constraints, *usage, *extended, *alt; /* extensions; NULL: none */
    int days;
    X509 *issuer; /* NULL: itself */
    EVP_PKEY *signer;
};

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *ext;
    bool ok;

    if (value == NULL)
        return true;
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ok = ext != NULL && X509_add_ext(x, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok;
}

static bool add_name(X509_NAME *dn, const char *field, const char *value)
{
    return value == NULL ||
           X509_NAME_add_entry_by_txt(dn, field, MBSTRING_UTF8, (const unsigned char *)value, -1, -1, 0) == 1;
}

static X509 *make_certificate(const struct pki_spec *s, EVP_PKEY *key, int64_t now_s)
{
    X509 *x = X509_new(), *issuer = s->issuer != NULL ? s->issuer : x;
    time_t now = (time_t)now_s;
    uint64_t serial = 0;

    if (x == NULL)
        return NULL;
    if (RAND_bytes((unsigned char *)&serial, sizeof(serial)) == 1 && X509_set_version(x, 2) == 1 &&
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial >> 1) == 1 &&
        X509_time_adj_ex(X509_getm_notBefore(x), 0, -3600, &now) != NULL &&
        X509_time_adj_ex(X509_getm_notAfter(x), s->days, 0, &now) != NULL &&
        add_name(X509_get_subject_name(x), "O", s->group) &&
        add_name(X509_get_subject_name(x), "CN", s->name) &&
        X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 && X509_set_pubkey(x, key) == 1 &&
        add_extension(x, issuer, NID_basic_constraints, s->constraints) &&
        add_extension(x, issuer, NID_key_usage, s->usage) &&
        add_extension(x, issuer, NID_ext_key_usage, s->extended) &&
        add_extension(x, issuer, NID_subject_key_identifier, "hash") &&
        add_extension(x, issuer, NID_authority_key_identifier, s->issuer != NULL ? "keyid:always" : NULL) &&
        add_extension(x, issuer, NID_subject_alt_name, s->alt) &&
        X509_sign(x, s->signer != NULL ? s->signer : key, EVP_sha256()) != 0)
        return x;
    X509_free(x);
    return NULL;
}

static bool put_pem(json_t *to, const char *name, BIO *bio)
{
    char *data = NULL; /* without a NUL at its end */
    long n = BIO_get_mem_data(bio, &data);

    return n > 0 && json_object_set_new(to, name, json_stringn(data, (size_t)n)) == 0;
}

/* The pair of `name`, into `to`. */
static bool make_pair(json_t *to, const char *name, const struct pki_spec *s, int64_t now_s, X509 **ret,
                      EVP_PKEY **ret_key)
{
    scoped(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    scoped(X509_free) X509 *x = key != NULL ? make_certificate(s, key, now_s) : NULL;
    scoped(BIO_free_all) BIO *crt = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_secmem());
    char crt_name[16], key_name[16];

    snprintf(crt_name, sizeof(crt_name), "%s.crt", name);
    snprintf(key_name, sizeof(key_name), "%s.key", name);
    if (x == NULL || crt == NULL || secret == NULL || PEM_write_bio_X509(crt, x) != 1 ||
        PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) != 1 ||
        !put_pem(to, crt_name, crt) || !put_pem(to, key_name, secret))
        return false;
    if (ret != NULL) {
        *ret = take_ptr(&x);
        *ret_key = take_ptr(&key);
    }
    return true;
}

enum err_code api_pki_renew(const json_t *files, const char *node_name, const char *host, int64_t now_s,
                            json_t **ret, struct err *e)
{
    scoped(X509_free) X509 *ca = NULL;
    scoped(EVP_PKEY_free) EVP_PKEY *ca_key = NULL;
    json_auto_t *made = json_object();
    str_auto alt = str_printf("IP:127.0.0.1,IP:::1,IP:%s,DNS:localhost,DNS:%s", host, node_name);
    str_auto ca_name = str_printf("coracle-%s", node_name);
    struct pki_spec root = { .name = ca_name,
                             .constraints = "critical,CA:TRUE,pathlen:0",
                             .usage = "critical,keyCertSign,digitalSignature",
                             .days = API_PKI_CA_DAYS };
    struct pki_spec server = { .name = "coracle",
                               .constraints = "critical,CA:FALSE",
                               .usage = "critical,digitalSignature",
                               .extended = "serverAuth",
                               .alt = alt,
                               .days = API_PKI_DAYS };
    struct pki_spec admin = { .name = "coracle-admin",
                              .group = "system:masters",
                              .constraints = "critical,CA:FALSE",
                              .usage = "critical,digitalSignature",
                              .extended = "clientAuth",
                              .days = API_PKI_DAYS };

    *ret = NULL;
    if (made == NULL || alt == NULL || ca_name == NULL)
        return err_nomem(e);
    if (all_are_good(files, node_name, host, now_s))
        return ERR_OK;
    /* A CA that is still good stays: kubeconfigs that were printed trust it. */
    if (pair_is_good(files, "ca.crt", "ca.key", NULL, now_s, API_PKI_DAYS + API_PKI_RENEW_DAYS)) {
        ca = read_certificate(json_str(files, "ca.crt"));
        ca_key = read_key(json_str(files, "ca.key"));
        json_object_set(made, "ca.crt", json_object_get(files, "ca.crt"));
        json_object_set(made, "ca.key", json_object_get(files, "ca.key"));
    } else if (!make_pair(made, "ca", &root, now_s, &ca, &ca_key)) {
        return tls_err(e, ERR_INTERNAL, "make a CA");
    }
    server.issuer = admin.issuer = ca;
    server.signer = admin.signer = ca_key;
    if (!make_pair(made, "server", &server, now_s, NULL, NULL) ||
        !make_pair(made, "admin", &admin, now_s, NULL, NULL))
        return tls_err(e, ERR_INTERNAL, "make a certificate");
    *ret = json_incref(made);
    return ERR_OK;
}
