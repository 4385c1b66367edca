/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls - the server side of TLS over memory buffers, without I/O, and the name in a client certificate.
 *
 * Client certificates are requested, but not required: with an invalid one the handshake succeeds, and the
 * request is not authenticated, as in kubelet. Sessions are not resumed, so each connection is verified with
 * the current CAs.
 */
#ifndef AGENT_KUBE_SERVER_TLS_H
#define AGENT_KUBE_SERVER_TLS_H
#include "base/buf.h"

#include <jansson.h>
#include <openssl/ssl.h>

#define TLS_PEM_MAX ((size_t)1 << 20)
#define TLS_GROUPS_MAX 256 /* organizations of a certificate */

struct tls_settings { /* borrowed; PEM texts, NULL or "": none */
    const char *certificate, *key;
    const char *client_ca;
    const json_t *ciphers;   /* Go's names; NULL or empty: Go's choice */
    const json_t *curves;    /* numbers in TLS, by preference; NULL or empty: OpenSSL's choice */
    const char *min_version; /* "VersionTLS12", also the default */
};

/* OpenSSL's last error as *e; none of its errors is left. */
enum err_code tls_err(struct err *e, enum err_code code, const char *what);

/* OpenSSL's pem_password_cb: a key with a password is an error; OpenSSL must not prompt on a terminal. */
int tls_no_password(char *to, int size, int rwflag, void *arg);

/* A self-signed certificate for `name` and its key, in PEM: as kubelet creates it for a node without a
 * certificate. malloc'ed; wipe the key. */
enum err_code tls_self_signed(const char *name, char **ret_certificate, char **ret_key,
                              struct err *e) MUST_CHECK;
/* ERR_INVALID: the setting that cannot be used, and why. SSL_CTX_free(). */
enum err_code tls_context_new(SSL_CTX **ret, const struct tls_settings *o, struct err *e) MUST_CHECK;

struct tls {
    SSL *ssl;
    BIO *in, *out; /* the SSL's */
};

enum err_code tls_init(struct tls *t, SSL_CTX *context, struct err *e) MUST_CHECK;
void tls_done(struct tls *t); /* also of { 0 } */

/* Takes bytes of the peer; appends plain text to `plain`, and bytes to be sent to `out`, also on failure (an
 * alert). *ret_end: the peer has closed its side. ERR_UNAVAILABLE: TLS's own
 * words. */
enum err_code tls_receive(struct tls *t, const char *bytes, size_t n, struct buf *plain, struct buf *out,
                          bool *ret_end, struct err *e) MUST_CHECK;
/* Appends to `out`; only after the handshake. */
enum err_code tls_send(struct tls *t, const void *p, size_t n, struct buf *out, struct err *e) MUST_CHECK;
void tls_close(struct tls *t, struct buf *out); /* close_notify */

/* kubelet's x509 request authenticator (CommonNameUserConversion): {"user", "groups", "extra"}, a new
 * reference. ERR_NOT_FOUND: no certificate was given, or it names no user. ERR_UNAUTHENTICATED: it is not
 * good. */
enum err_code tls_identity(const struct tls *t, json_t **ret, struct err *e) MUST_CHECK;
#endif
