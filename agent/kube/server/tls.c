/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/server/tls.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

SCOPE_DEFINE(X509, X509_free)
SCOPE_DEFINE(X509_STORE_CTX, X509_STORE_CTX_free)

enum { TLS_PIECE = 16 * 1024 };

enum err_code tls_err(struct err *e, enum err_code code, const char *what)
{
    char text[256] = "no reason was given";
    unsigned long last = ERR_peek_last_error();

    if (last != 0)
        ERR_error_string_n(last, text, sizeof(text));
    ERR_clear_error();
    return err_set(e, code, "%s: %s", what, text);
}

enum err_code tls_init(struct tls *t, SSL_CTX *context, struct err *e)
{
    struct tls made = { .ssl = SSL_new(context), .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem()) };

    if (made.ssl == NULL || made.in == NULL || made.out == NULL) {
        BIO_free(made.in);
        BIO_free(made.out);
        SSL_free(made.ssl);
        return err_nomem(e);
    }
    BIO_set_mem_eof_return(made.in, -1);
    BIO_set_mem_eof_return(made.out, -1);
    SSL_set_bio(made.ssl, made.in, made.out);
    SSL_set_accept_state(made.ssl);
    *t = made;
    return ERR_OK;
}

void tls_done(struct tls *t)
{
    SSL_free(t->ssl);
    *t = (struct tls){ 0 };
}

/* The bytes that OpenSSL wants to send. */
static void tls_take_out(struct tls *t, struct buf *out)
{
    char *data = NULL;
    long n = BIO_get_mem_data(t->out, &data);

    if (n > 0)
        buf_add(out, data, (size_t)n);
    (void)BIO_reset(t->out);
}

enum err_code tls_receive(struct tls *t, const char *bytes, size_t n, struct buf *plain, struct buf *out,
                          bool *ret_end, struct err *e)
{
    int r = 1, why = SSL_ERROR_NONE;

    ERR_clear_error();
    if (n > 0 && BIO_write(t->in, bytes, (int)n) != (int)n)
        return err_nomem(e);
    do {
        char *room = buf_room(plain, TLS_PIECE);

        if (room == NULL)
            return err_nomem(e);
        r = SSL_read(t->ssl, room, TLS_PIECE);
        if (r > 0)
            plain->n += (size_t)r;
        plain->p[plain->n] = '\0';
    } while (r > 0);
    why = SSL_get_error(t->ssl, r);
    tls_take_out(t, out);
    if (why == SSL_ERROR_ZERO_RETURN)
        *ret_end = true;
    else if (why != SSL_ERROR_WANT_READ)
        return tls_err(e, ERR_UNAVAILABLE, "TLS");
    return ERR_OK;
}

enum err_code tls_send(struct tls *t, const void *p, size_t n, struct buf *out, struct err *e)
{
    const char *from = p;

    ERR_clear_error();
    while (n > 0) {
        size_t piece = n < TLS_PIECE ? n : TLS_PIECE;

        if (SSL_write(t->ssl, from, (int)piece) != (int)piece)
            return tls_err(e, ERR_UNAVAILABLE, "TLS");
        from += piece;
        n -= piece;
        tls_take_out(t, out);
    }
    return ERR_OK;
}

void tls_close(struct tls *t, struct buf *out)
{
    ERR_clear_error();
    SSL_shutdown(t->ssl);
    tls_take_out(t, out);
    ERR_clear_error();
}

/* ---- the client's identity ---- */

static enum err_code tls_check_chain(const struct tls *t, X509 *leaf, struct err *e)
{
    scoped(X509_STORE_CTX_free) X509_STORE_CTX *x = X509_STORE_CTX_new();
    X509_STORE *store = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(t->ssl));

    if (x == NULL || X509_STORE_CTX_init(x, store, leaf, SSL_get_peer_cert_chain(t->ssl)) != 1 ||
        X509_STORE_CTX_set_purpose(x, X509_PURPOSE_SSL_CLIENT) != 1)
        return err_nomem(e);
    /* As in Go: a chain may end at any certificate that is trusted. */
    X509_STORE_CTX_set_flags(x, X509_V_FLAG_PARTIAL_CHAIN);
    if (X509_verify_cert(x) == 1)
        return ERR_OK;
    ERR_clear_error();
    return err_set(e, ERR_UNAUTHENTICATED, "the client's certificate: %s",
                   X509_verify_cert_error_string(X509_STORE_CTX_get_error(x)));
}

/* A new string; NULL: out of memory, or a text that cannot be used: it has a zero byte. */
static json_t *tls_text(X509_NAME_ENTRY *entry)
{
    unsigned char *utf8 = NULL;
    int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
    json_t *text =
        n >= 0 && memchr(utf8, '\0', (size_t)n) == NULL ? json_stringn((char *)utf8, (size_t)n) : NULL;

    OPENSSL_free(utf8);
    return text;
}

/* Go takes the last common name, and all organizations. */
static json_t *tls_names(X509 *leaf)
{
    json_t *who = json_pack("{s:[]}", "groups");
    X509_NAME *subject = X509_get_subject_name(leaf);
    int n = X509_NAME_entry_count(subject);

    for (int i = 0; i < n; i++) {
        X509_NAME_ENTRY *entry = X509_NAME_get_entry(subject, i);
        int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
        json_t *groups = json_object_get(who, "groups");
        bool ok = true;

        if (nid == NID_commonName)
            ok = json_object_set_new(who, "user", tls_text(entry)) == 0;
        else if (nid == NID_organizationName)
            ok = json_array_size(groups) < TLS_GROUPS_MAX &&
                 json_array_append_new(groups, tls_text(entry)) == 0;
        if (!ok) {
            json_decref(who);
            return NULL;
        }
    }
    return who;
}

/* authentication.kubernetes.io/credential-id, which kubelet passes to authorizers. */
static bool tls_add_credential_id(json_t *who, X509 *leaf)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char text[sizeof("X509SHA256=") + 2 * EVP_MAX_MD_SIZE] = "X509SHA256=";
    unsigned n = 0;

    if (X509_digest(leaf, EVP_sha256(), digest, &n) != 1)
        return false;
    for (unsigned i = 0; i < n; i++)
        snprintf(text + strlen("X509SHA256=") + 2 * i, 3, "%02x", digest[i]);
    return json_object_set_new(who, "extra",
                               json_pack("{s:[s]}", "authentication.kubernetes.io/credential-id", text)) == 0;
}

enum err_code tls_identity(const struct tls *t, json_t **ret, struct err *e)
{
    scoped(X509_free) X509 *leaf = t->ssl != NULL ? SSL_get1_peer_certificate(t->ssl) : NULL;
    json_auto_t *who = NULL;

    if (leaf == NULL)
        return err_set(e, ERR_NOT_FOUND, "there is no client certificate");
    if (tls_check_chain(t, leaf, e) != ERR_OK)
        return e->code;
    who = tls_names(leaf);
    if (who == NULL || !tls_add_credential_id(who, leaf))
        return err_set(e, ERR_UNAUTHENTICATED, "the names in the client's certificate cannot be used");
    if (json_str(who, "user") == NULL || json_str(who, "user")[0] == '\0')
        return err_set(e, ERR_NOT_FOUND, "the client's certificate has no common name");
    *ret = json_incref(who);
    return ERR_OK;
}
