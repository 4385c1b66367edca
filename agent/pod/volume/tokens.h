/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens - service account tokens for projected volumes.  Only an API server can make one; whoever speaks
 * with one gives the node a struct pod_tokens, and then the volumes below follow by themselves.  Without one
 * a volume that wants a token is not set up, as under a kubelet without API server.
 *
 * Times are wall clock, ns, as the expiry in a token is.  Loop thread only.
 */
#ifndef AGENT_POD_VOLUME_TOKENS_H
#define AGENT_POD_VOLUME_TOKENS_H
#include "agent/api/types.h"
#include "base/error.h"

#include <sys/types.h>

struct node;

struct pod_token_request { /* borrowed for the call */
    const char *namespace_, *service_account;
    const char *pod_name, *pod_uid; /* what the token is bound to: it ends with the pod */
    const char *audience;           /* NULL: the server's own */
    int64_t expiration_seconds;     /* 600 ... 2^32 */
};

struct pod_token {
    const char *text; /* borrowed until the loop turns */
    size_t size;
    int64_t expires_ns;
};

struct pod_tokens {
    /*
     * Does not wait.  ERR_OK also with an older token while a newer one is on its way, as long as it has not
     * expired.  ERR_UNAVAILABLE: it is being asked for, node_token_changed() follows.  Anything else: the
     * server's reason why there is none; the volume is tried again with growing pauses.
     */
    enum err_code (*get)(void *arg, const struct pod_token_request *r, struct pod_token *ret, struct err *e);
    void *arg;
};

/* There is a token, or another one, for this pod. */
void node_token_changed(struct node *n, const char *pod_uid);

/*
 * When to ask again (pkg/kubelet/token/token_manager.go): when the token is 24 hours old or a fifth of its
 * time is left, whichever comes first, 0 to 9 s earlier by chance, so that not all pods ask at once.
 */
#define POD_TOKEN_JITTER_S 10
struct boot_time pod_token_renew_at(int64_t expires_ns, int64_t expiration_seconds, unsigned jitter_s);

/* The user that owns the token's file: the one as whom all containers of the pod run.  False: there is no
 * such one, root owns it. */
bool pod_token_owner(const struct api_pod *api, uid_t *ret);
#endif
