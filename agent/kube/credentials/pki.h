/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pki - the folder of the node's certificates (`certDir`) in kubelet's layout
 * (k8s.io/client-go/util/certificate/certificate_store.go, pkg/kubelet/certificate), so that a node of
 * kubeadm changes over and back:
 *
 *     kubelet-client-<YYYY-MM-DD-hh-mm-ss>.pem   certificate, then key (600); the time is local
 *     kubelet-client-current.pem                 a symlink to the newest, with an absolute target
 *     kubelet-client.key.tmp                     the key, while its certificate is awaited (600)
 *     kubelet-server-...                         likewise, for the node's port, where serverTLSBootstrap
 *     kubelet.crt (644), kubelet.key (600)       the self-signed pair of the node's port
 *
 * Every file is written to a temporary one, synced, and renamed; a symlink likewise. Blocking: on the pool.
 */
#ifndef AGENT_KUBE_CREDENTIALS_PKI_H
#define AGENT_KUBE_CREDENTIALS_PKI_H
#include "base/error.h"

#include <stdbool.h>

#define PKI_PEM_MAX (256 * 1024) /* of a certificate with its chain, and of a key */

/*
 * Writes the content of coracle-kube's message `certificate`:
 *
 *     "client", "server"   both texts: the pair; the client's key alone: it waits for its certificate
 *     "self-signed"        kubelet.crt and kubelet.key
 *
 * Texts in PEM; "" or NULL: not there. ERR_INVALID: a text is no PEM, or the usage is unknown.
 */
enum err_code pki_write(const char *cert_dir, const char *usage, const char *certificate, const char *key,
                        struct err *e) MUST_CHECK;

/* The key that waits in kubelet-client.key.tmp; NULL: none, or it cannot be used. malloc'ed; wipe it. */
char *pki_waiting_key(const char *cert_dir);

/* The pair of the node's port as kubelet chooses it: the files of the settings where they are given, else
 * kubelet-server-current.pem where `rotate` and it exists, else kubelet.crt and kubelet.key. ERR_NOT_FOUND:
 * there is none yet. malloc'ed. */
enum err_code pki_read_serving(const char *cert_dir, const char *cert_file, const char *key_file, bool rotate,
                               char **ret_certificate, char **ret_key, struct err *e) MUST_CHECK;
#endif
