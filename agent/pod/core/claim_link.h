/* SPDX-License-Identifier: Apache-2.0 */
/* claim_link - where the volumes of claims are; agent/claim sets it, and no room knows more of claims. On a
 * node of a cluster there is none: such pods are refused. Loop thread only. */
#ifndef AGENT_POD_CORE_CLAIM_LINK_H
#define AGENT_POD_CORE_CLAIM_LINK_H
#include "agent/api/types.h"
#include "base/error.h"

struct node;
struct pod;

struct claim_place {
    const char *path; /* on the host; borrowed until the loop turns */
    const char *type; /* of the check, as a hostPath's; NULL: the folder is the agent's own */
    uint64_t bytes;   /* the size of the agent's own */
};

struct node_claims {
    /* Takes the claim of a volume for the pod: binds it, makes its folder. May be repeated. ERR_PRECONDITION:
     * it waits, for what *e says; volumes_claims_changed() comes when that may be over. */
    enum err_code (*take)(struct pod *p, const struct api_volume *v, void *arg, struct err *e);
    /* ERR_NOT_FOUND: it is not bound. */
    enum err_code (*place)(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                           void *arg, struct err *e);
    void *arg;
};

/* "data", or of an ephemeral volume "<pod>-<volume>"; snprintf semantics. */
int claim_name(const struct pod *p, const struct api_volume *v, char *ret, size_t size);
enum err_code claim_take(struct pod *p, const struct api_volume *v, struct err *e) MUST_CHECK;
enum err_code claim_place(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                          struct err *e) MUST_CHECK;
/* Before pods start. The struct is borrowed while the node exists. */
void node_set_claims(struct node *n, const struct node_claims *c);
#endif
