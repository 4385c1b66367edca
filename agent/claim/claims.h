/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims - PersistentVolumeClaims of a node that joins no cluster. A claim is bound to a PersistentVolume of
 * the folder that fits (bind.h), as soon as there is one; otherwise its first pod gives it a folder:
 *
 *     <state>/claims/<namespace>/<name>/claim.json   what it is bound to; written before the folder is made
 *     <state>/claims/<namespace>/<name>/data/        its content
 *     <state>/claims/.gone/<uid>/                    being removed
 *
 * The folder is kept until the claim is removed and no pod uses it. A claim counts as removed only when every
 * file of the manifest folder is understood. What a PersistentVolume names is never removed. Claims of an
 * ephemeral volume and of volumeClaimTemplates are objects that the agent makes: their manifest is in
 * claim.json. The first kind goes with its pod, the second stays until somebody deletes it.
 *
 * Killed at any instruction: claim.json is replaced by rename, and a folder that goes is renamed first.
 * Loop thread only; our own state folder, so short calls block.
 */
#ifndef AGENT_CLAIM_CLAIMS_H
#define AGENT_CLAIM_CLAIMS_H
#include "agent/pod/core/claim_link.h"
#include "agent/pod/core/node.h"

struct claims;

struct claims_options {
    struct node *node;           /* borrowed while the claims are open */
    bool (*complete)(void *arg); /* every object of the folder is known */
    void *arg;
};

/* Reads the state folder, and puts the claims that the agent made into the store. */
enum err_code claims_open(struct claims **ret, const struct claims_options *o, struct err *e) MUST_CHECK;
const struct node_claims *claims_link(struct claims *c); /* for node_set_claims() */
/* The folder's first set is in the store: folders of claims that are gone are removed from now on. */
void claims_begin(struct claims *c);
void claims_pod_changed(struct claims *c, const struct pod *p); /* or it is gone */
/* A claim of volumeClaimTemplates: makes it unless there is one. `template_` is borrowed;
 * `owner` is the uid of its StatefulSet or pod. */
enum err_code claims_make(struct claims *c, const char *namespace_, const char *name, const json_t *template_,
                          const char *owner, struct err *e) MUST_CHECK;
/* Claims of this StatefulSet whose names end in a number from `from` on go as soon as no pod uses them. */
void claims_drop(struct claims *c, const char *set_uid, unsigned from);
/* Adds uid, binding and status to a claim or a PersistentVolume as it is shown. */
void claims_show(struct claims *c, enum api_kind kind, const char *namespace_, const char *name,
                 json_t *object);
void claims_stop(struct claims *c);
void claims_free(struct claims *c); /* the memory is freed from the loop; NULL is fine */
#endif
