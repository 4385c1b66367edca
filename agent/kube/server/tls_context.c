/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a TLS server: certificate and key, the CAs of clients, versions and ciphers. */
#include "agent/kube/server/tls.h"

#include "base/log.h"
#include "base/scope.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#define SELF_SIGNED_DAYS 365 /* as kubelet's (client-go util/cert) */

SCOPE_DEFINE(BIO, BIO_free_all)
SCOPE_DEFINE(X509, X509_free)
SCOPE_DEFINE(EVP_PKEY, EVP_PKEY_free)
SCOPE_DEFINE(SSL_CTX, SSL_CTX_free)

static bool tls_context_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

int tls_no_password(char *to, int size, int rwflag, void *arg)
{
    (void)to;
    (void)size;
    (void)rwflag;
    (void)arg;
    return -1;
}

static BIO *tls_context_bio(const char *text)
{
    size_t n = strlen(text);

    return n <= TLS_PEM_MAX ? BIO_new_mem_buf(text, (int)n) : NULL;
}

/* ---- the server's certificate ---- */

static enum err_code use_certificate(SSL_CTX *c, const struct tls_settings *o, struct err *e)
{
    scoped(BIO_free_all) BIO *certs = tls_context_bio(o->certificate);
    scoped(BIO_free_all) BIO *keys = tls_context_bio(tls_context_given(o->key) ? o->key : o->certificate);
    scoped(X509_free) X509 *leaf = NULL;
    scoped(EVP_PKEY_free) EVP_PKEY *key = NULL;
    X509 *more;

    if (certs == NULL || keys == NULL)
        return err_set(e, ERR_INVALID, "the certificate or its key is longer than %zu bytes", TLS_PEM_MAX);
    leaf = PEM_read_bio_X509(certs, NULL, tls_no_password, NULL);
    if (leaf == NULL || SSL_CTX_use_certificate(c, leaf) != 1)
        return tls_err(e, ERR_INVALID, "the server's certificate");
    while ((more = PEM_read_bio_X509(certs, NULL, tls_no_password, NULL)) != NULL) {
        int r = SSL_CTX_add1_chain_cert(c, more);

        X509_free(more);
        if (r != 1)
            return tls_err(e, ERR_INVALID, "the chain of the server's certificate");
    }
    ERR_clear_error();
    key = PEM_read_bio_PrivateKey(keys, NULL, tls_no_password, NULL);
    if (key == NULL || SSL_CTX_use_PrivateKey(c, key) != 1 || SSL_CTX_check_private_key(c) != 1)
        return tls_err(e, ERR_INVALID, "the key of the server's certificate");
    return ERR_OK;
}

static bool tls_context_add_extension(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    bool ok = ext != NULL && X509_add_ext(x, ext, -1) == 1;

    X509_EXTENSION_free(ext);
    return ok;
}

static char *tls_context_text(BIO *from)
{
    char *data = NULL; /* without a NUL at its end */
    long n = BIO_get_mem_data(from, &data);
    char *text = n > 0 ? malloc((size_t)n + 1) : NULL;

    if (text != NULL) {
        memcpy(text, data, (size_t)n);
        text[n] = '\0';
    }
    return text;
}

/* As kubelet's without certificate files: clients cannot check it, but nothing is sent in the clear. */
enum err_code tls_self_signed(const char *name, char **ret_certificate, char **ret_key, struct err *e)
{
    scoped(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    scoped(X509_free) X509 *x = X509_new();
    str_auto subject = str_printf("%s@%lld", name, (long long)time(NULL));
    str_auto alt = str_printf("DNS:%s", name);
    scoped(BIO_free_all) BIO *certificate_pem = BIO_new(BIO_s_mem());
    scoped(BIO_free_all) BIO *key_pem = BIO_new(BIO_s_secmem());
    uint64_t serial = 0;
    X509_NAME *dn;
    str_auto certificate = NULL;
    char *made_key;

    if (key == NULL || x == NULL || subject == NULL || alt == NULL || certificate_pem == NULL ||
        key_pem == NULL || RAND_bytes((unsigned char *)&serial, sizeof(serial)) != 1)
        return tls_err(e, ERR_INVALID, "make a certificate");
    serial >>= 1;
    dn = X509_get_subject_name(x);
    if (X509_set_version(x, 2) != 1 || ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial) != 1 ||
        X509_gmtime_adj(X509_getm_notBefore(x), -3600) == NULL ||
        X509_gmtime_adj(X509_getm_notAfter(x), SELF_SIGNED_DAYS * 86400L) == NULL ||
        X509_NAME_add_entry_by_txt(dn, "CN", MBSTRING_UTF8, (const unsigned char *)subject, -1, -1, 0) != 1 ||
        X509_set_issuer_name(x, dn) != 1 || X509_set_pubkey(x, key) != 1 ||
        !tls_context_add_extension(x, NID_basic_constraints, "critical,CA:FALSE") ||
        !tls_context_add_extension(x, NID_ext_key_usage, "serverAuth") ||
        !tls_context_add_extension(x, NID_subject_alt_name, alt) || X509_sign(x, key, EVP_sha256()) == 0 ||
        PEM_write_bio_X509(certificate_pem, x) != 1 ||
        PEM_write_bio_PrivateKey(key_pem, key, NULL, NULL, 0, NULL, NULL) != 1)
        return tls_err(e, ERR_INVALID, "make a certificate");
    certificate = tls_context_text(certificate_pem);
    made_key = tls_context_text(key_pem);
    if (certificate == NULL || made_key == NULL) {
        free(made_key);
        return err_nomem(e);
    }
    *ret_certificate = take_ptr(&certificate);
    *ret_key = made_key;
    return ERR_OK;
}

/* ---- the CAs of clients ---- */

static enum err_code use_client_ca(SSL_CTX *c, const char *pem, struct err *e)
{
    scoped(BIO_free_all) BIO *in = tls_context_bio(pem);
    X509_STORE *store = SSL_CTX_get_cert_store(c);
    X509 *ca;
    size_t n = 0;

    if (in == NULL)
        return err_set(e, ERR_INVALID, "the CAs of clients are longer than %zu bytes", TLS_PEM_MAX);
    while ((ca = PEM_read_bio_X509(in, NULL, tls_no_password, NULL)) != NULL) {
        bool ok = X509_STORE_add_cert(store, ca) == 1 && SSL_CTX_add_client_CA(c, ca) == 1;

        X509_free(ca);
        if (!ok)
            return tls_err(e, ERR_INVALID, "a CA of clients");
        n++;
    }
    if (n == 0)
        return tls_err(e, ERR_INVALID, "the CAs of clients have no certificate");
    ERR_clear_error();
    return ERR_OK;
}

static int accept_any(int ok, X509_STORE_CTX *x)
{
    (void)ok;
    (void)x;
    return 1; /* tls_identity() evaluates it when a request arrives */
}

/* ---- versions and ciphers ---- */

static enum err_code use_version(SSL_CTX *c, const char *name, struct err *e)
{
    static const struct {
        const char *name;
        int version;
    } versions[] = { { "VersionTLS10", TLS1_VERSION },
                     { "VersionTLS11", TLS1_1_VERSION },
                     { "VersionTLS12", TLS1_2_VERSION },
                     { "VersionTLS13", TLS1_3_VERSION } };

    if (!tls_context_given(name))
        name = "VersionTLS12";
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        if (strcmp(versions[i].name, name) == 0)
            return SSL_CTX_set_min_proto_version(c, versions[i].version) == 1 ? ERR_OK
                                                                              : tls_err(e, ERR_INVALID, name);
    return err_set(e, ERR_INVALID, "tlsMinVersion: \"%.64s\" is not a TLS version", name);
}

/* Those of TLS 1.3 cannot be chosen, as in Go. */
static enum err_code use_ciphers(SSL_CTX *c, const json_t *list, struct err *e)
{
    buf_auto names = BUF_INIT(16 * 1024);
    const json_t *v;
    size_t i;

    json_array_foreach (list, i, v) {
        const char *name = json_string_value(v), *ours;
        char longer[96];

        if (name == NULL)
            continue;
        /* Go's two old names of these lack the suffix of RFC 7905. */
        snprintf(longer, sizeof(longer), "%s%s", name, str_ends(name, "_CHACHA20_POLY1305") ? "_SHA256" : "");
        ours = OPENSSL_cipher_name(longer);
        if (strcmp(ours, "(NONE)") == 0)
            return err_set(e, ERR_INVALID, "tlsCipherSuites: \"%.64s\" is unknown", name);
        if (!str_starts(ours, "TLS_")) /* of TLS 1.3 */
            buf_addf(&names, "%s%s", names.n > 0 ? ":" : "", ours);
    }
    if (names.failed)
        return err_nomem(e);
    if (SSL_CTX_set_cipher_list(c, names.n > 0 ? names.p : "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
        return tls_err(e, ERR_INVALID, "tlsCipherSuites");
    return ERR_OK;
}

/* By the numbers that Go's tls.CurveID and TLS share. Those that OpenSSL lacks are left out: a file for a
 * newer one may name the hybrid ones (OpenSSL 3.5) before others. */
static enum err_code use_curves(SSL_CTX *c, const json_t *list, struct err *e)
{
    static const struct {
        json_int_t number;
        const char *name;
    } known[] = { { 23, "P-256" },
                  { 24, "P-384" },
                  { 25, "P-521" },
                  { 29, "X25519" },
                  { 4587, "SecP256r1MLKEM768" },
                  { 4588, "X25519MLKEM768" },
                  { 4589, "SecP384r1MLKEM1024" } };
    buf_auto names = BUF_INIT(4096);
    const json_t *v;
    size_t i, k;

    json_array_foreach (list, i, v) {
        for (k = 0; k < ARRAY_LEN(known) && known[k].number != json_integer_value(v); k++)
            ;
        if (k == ARRAY_LEN(known))
            return err_set(e, ERR_INVALID, "tlsCurvePreferences: %lld is unknown",
                           (long long)json_integer_value(v));
        if (SSL_CTX_set1_groups_list(c, known[k].name) == 1)
            buf_addf(&names, "%s%s", names.n > 0 ? ":" : "", known[k].name);
        else
            log_warn("tlsCurvePreferences: not supported by this OpenSSL",
                     F_STR("keyExchange", known[k].name));
    }
    ERR_clear_error();
    if (names.failed)
        return err_nomem(e);
    if (json_array_size(list) > 0 && (names.n == 0 || SSL_CTX_set1_groups_list(c, names.p) != 1))
        return err_set(e, ERR_INVALID, "tlsCurvePreferences: this OpenSSL supports none of them");
    return ERR_OK;
}

/* Clients that offer h2 alone are refused by TLS: streams need HTTP/1.1. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
                           const unsigned char *offered, unsigned n, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";

    (void)ssl;
    (void)arg;
    return SSL_select_next_proto((unsigned char **)(uintptr_t)ret, ret_n, ours, sizeof(ours) - 1, offered,
                                 n) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

enum err_code tls_context_new(SSL_CTX **ret, const struct tls_settings *o, struct err *e)
{
    scoped(SSL_CTX_free) SSL_CTX *c = SSL_CTX_new(TLS_server_method());

    if (c == NULL)
        return err_nomem(e);
    SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                               SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(c, choose_protocol, NULL);
    if (use_version(c, o->min_version, e) != ERR_OK || use_ciphers(c, o->ciphers, e) != ERR_OK ||
        use_curves(c, o->curves, e) != ERR_OK)
        return e->code;
    if (tls_context_given(o->client_ca)) {
        if (use_client_ca(c, o->client_ca, e) != ERR_OK)
            return e->code;
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER, accept_any);
    }
    if (!tls_context_given(o->certificate))
        return err_set(e, ERR_INVALID, "the server sent no certificate");
    if (use_certificate(c, o, e) != ERR_OK)
        return e->code;
    *ret = take_ptr(&c);
    return ERR_OK;
}
