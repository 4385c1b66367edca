/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens - service account tokens for projected volumes. Only an API server can issue one; a future client of
 * one passes a struct pod_tokens to the node, and the volumes then follow automatically. Without it, a volume
 * that needs a token is not set up, as under a kubelet without API server.
 *
 * Times are wall clock, ns, like the expiry in a token. Loop thread only.
 */
#ifndef AGENT_POD_VOLUME_TOKENS_H
#define AGENT_POD_VOLUME_TOKENS_H
#include "agent/api/types.h"
#include "base/error.h"

#include <sys/types.h>

struct node;

struct pod_token_request { /* borrowed for the call */
    const char *namespace_, *service_account;
    const char *pod_name, *pod_uid; /* the token is bound to the pod and ends with it */
    const char *audience;           /* NULL: the server's default */
    int64_t expiration_seconds;     /* 600 ... 2^32 */
};

struct pod_token {
    const char *text; /* borrowed until the loop turns */
    size_t size;
    int64_t expires_ns;
};

struct pod_tokens {
    /* Does not wait. ERR_OK also with an older token while a newer one is requested, until it has expired.
     * ERR_UNAVAILABLE: it is being requested, node_token_changed() follows. Otherwise: the server's reason;
     * the volume is retried with growing delays. */
    enum err_code (*get)(void *arg, const struct pod_token_request *r, struct pod_token *ret, struct err *e);
    void *arg;
};

/* There is a new token for this pod. */
void node_token_changed(struct node *n, const char *pod_uid);

/*
 * When to renew a token (pkg/kubelet/token/token_manager.go): when it is 24 hours old or a fifth of its
 * lifetime is left, whichever comes first, randomly 0 to 9 s earlier, so that not all pods send requests at
 * once.
 */
#define POD_TOKEN_JITTER_S 10
struct boot_time pod_token_renew_at(int64_t expires_ns, int64_t expiration_seconds, unsigned jitter_s);

/* The owner of the token's file: the user all containers of the pod run as. False: they differ, so root owns
 * it. */
bool pod_token_owner(const struct api_pod *api, uid_t *ret);
#endif
