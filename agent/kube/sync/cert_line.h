/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cert_line - one of the node's two certificates: requests it, waits for it, sends it to the daemon, and
 * requests a new one before it expires. Loop thread only.
 */
#ifndef AGENT_KUBE_SYNC_CERT_LINE_H
#define AGENT_KUBE_SYNC_CERT_LINE_H
#include "agent/kube/sync/certs.h"
#include "agent/kube/sync/internal.h"

struct cert_line {
    struct kube_sync *sync;
    const char *usage; /* "client", "server" */
    bool serving, wanted /* now */, rotates;
    char *certificate; /* PEM in force; NULL: none */
    int64_t rotate_at_ns;
    int64_t not_after_ns; /* of the one in force; 0: there is none */
    uint64_t errors;      /* attempts that brought none: kubelet's ..._expiration_renew_errors */
    EVP_PKEY *key;        /* of the request under way */
    char name[X509_NAME_SIZE];
    struct sync_call call;
    struct kube_reflector *reflector; /* waits for the approval */
    struct sync_timer timer, closer;
    uint64_t wait_ms;
    char *saved; /* the key of before a restart, to be used once; NULL: none */
};

/* Performs the next step: sends a request if one is needed, or sets the timer for the next one. */
void cert_step(void *owner);
/* Sets the current certificate; NULL: none. `chance`: 0 to 1, determines the time of the next request. */
void cert_take(struct cert_line *l, const char *pem, double chance);
void cert_wait(struct cert_line *l); /* for the approval of its request, from now on */
void cert_stop(struct cert_line *l);
void cert_done(struct cert_line *l); /* frees its members */
#endif
