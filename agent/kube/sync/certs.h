/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certs - the node's certificates by CertificateSigningRequests (k8s.io/client-go/util/certificate).
 *
 * The client certificate is requested while the credentials are those of the bootstrap, and again at a random
 * moment between 70 and 90% of its lifetime if it is to be rotated; the serving certificate where
 * serverTLSBootstrap is set, at the same times and when the node's addresses change. A request is watched
 * until it has a certificate; after CERTS_WAIT_MS, a refusal or a failure it is made again (2 s, doubled up
 * to 32 s; 5 min after a denial).
 *
 * The client's key is sent to the daemon (`certificate` without a certificate) before it is used, and comes
 * back in `credentials` after a restart (`waitingKey`): the request that waits for an approval is then found
 * by its name. The serving certificate in force is that of the message `serving`, if the cluster signed it;
 * it is waited for CERTS_SERVING_MS, so that a restart asks for no other.
 */
#ifndef AGENT_KUBE_SYNC_CERTS_H
#define AGENT_KUBE_SYNC_CERTS_H
#include "agent/kube/decide/x509.h"

#define CERTS_WAIT_MS (15 * 60 * 1000)
#define CERTS_DENIED_MS (5 * 60 * 1000)
#define CERTS_SERVING_MS 2000

/* When to rotate; `chance` in [0, 1). */
int64_t certs_rotate_at_ns(const struct x509_times *t, double chance);

enum certs_verdict { CERTS_PENDING, CERTS_ISSUED, CERTS_DENIED };
/* Of a CertificateSigningRequest; *ret_pem: malloc'ed, if issued; `why`: the message of a denial. */
enum certs_verdict certs_judge(const json_t *request, char **ret_pem, char *why, size_t why_size);
#endif
