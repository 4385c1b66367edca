/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving - the certificate of the node's port and the CA of its clients: the message `serving` of
 * agent/kube/README.md, built from the files of the settings or of cert_dir (pki_read_serving()), and again
 * when one of them changes. If there is no certificate yet, the message contains only the CA, and
 * coracle-kube creates a self-signed one; unless `rotate`, the daemon writes it to cert_dir and reads it from
 * there.
 *
 * Files are read on the pool and followed by inotify; a file that cannot be read is tried again with back-off
 * (1 s to 1 min), and the previous message stays in effect. Loop thread only.
 */
#ifndef AGENT_KUBE_CREDENTIALS_SERVING_H
#define AGENT_KUBE_CREDENTIALS_SERVING_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

struct kube_serving;

struct kube_serving_options { /* texts are copied */
    uv_loop_t *loop;
    const char *cert_dir;             /* absolute */
    const char *cert_file, *key_file; /* tlsCertFile, tlsPrivateKeyFile; NULL or "": those of cert_dir */
    const char *client_ca_file;       /* NULL or "": none */
    bool rotate;                      /* serverTLSBootstrap */
    /* Members `certificate`, `key`, `clientCA`; never the same twice in a row; borrowed. */
    void (*on_serving)(const json_t *message, void *arg);
    void (*on_trouble)(const struct err *why, void *arg); /* NULL: over */
    void *arg;
};

/* Begins; the callbacks come from the loop. Fails only when out of memory. */
enum err_code kube_serving_open(struct kube_serving **ret, const struct kube_serving_options *o,
                                struct err *e) MUST_CHECK;
/* NULL is fine. Nothing is called any more; the rest closes during the loop's next turns. */
void kube_serving_close(struct kube_serving *s);
/* The latest message; borrowed; NULL: there is none yet. */
const json_t *kube_serving_message(const struct kube_serving *s);
#endif
