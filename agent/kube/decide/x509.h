/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x509 - keys, certificate signing requests and certificates, by OpenSSL. No I/O.
 *
 * Keys are EC P-256, as PEM "EC PRIVATE KEY". A request has kubelet's subject and (for serving) the node's
 * addresses. Its name is derived from key, subject and usages (k8s.io/client-go/util/certificate/csr), so
 * that a restarted process with the same key finds its earlier request.
 */
#ifndef AGENT_KUBE_DECIDE_X509_H
#define AGENT_KUBE_DECIDE_X509_H
#include "base/error.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X509_NAME_SIZE 64 /* "node-csr-" and 43 characters of base64 */
#define X509_PEM_MAX (256 * 1024)

enum err_code x509_key_make(EVP_PKEY **ret, struct err *e) MUST_CHECK;
enum err_code x509_key_read(const char *pem, EVP_PKEY **ret, struct err *e) MUST_CHECK;
char *x509_key_pem(EVP_PKEY *key); /* malloc'ed; a secret; NULL: no memory */

struct x509_request_spec {
    EVP_PKEY *key;
    const char *node;        /* its name: CN=system:node:<node>, O=system:nodes */
    bool serving;            /* kubernetes.io/kubelet-serving, with `addresses`; else the client's signer */
    const json_t *addresses; /* of the Node's status; NULL: none */
};

/* The body of the POST of a CertificateSigningRequest, with its name. ERR_PRECONDITION: a serving certificate
 * without an address. */
enum err_code x509_request(const struct x509_request_spec *spec, json_t **ret_body,
                           char ret_name[X509_NAME_SIZE], struct err *e) MUST_CHECK;

struct x509_times { /* wall clock, nanoseconds */
    int64_t not_before_ns, not_after_ns;
};

/* Of the first certificate in `pem`. `key`: it must be this one's; NULL: any. ERR_INVALID: no certificate. */
enum err_code x509_certificate(const char *pem, EVP_PKEY *key, struct x509_times *ret,
                               struct err *e) MUST_CHECK;
/* Its subject is the node's: the cluster signed it, not the agent itself. */
bool x509_is_of_node(const char *pem, const char *node);
/* The first certificate names exactly these addresses (IP and DNS). */
bool x509_names_are(const char *pem, const json_t *addresses);
#endif
