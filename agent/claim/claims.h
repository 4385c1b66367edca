/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims - PersistentVolumeClaims of a node that joins no cluster. A claim is bound to a matching
 * PersistentVolume of the manifest folder (bind.h) as soon as there is one; otherwise a folder is created for
 * it when its first pod starts:
 *
 *     <state>/claims/<namespace>/<name>/claim.json   its binding; written before the folder is created
 *     <state>/claims/<namespace>/<name>/data/        its content
 *     <state>/claims/.gone/<uid>/                    being removed
 *
 * The folder is kept until the claim is removed and no pod uses it. A claim counts as removed only if every
 * file of the manifest folder is valid. The folder of a PersistentVolume is never removed. Claims of
 * ephemeral volumes and of volumeClaimTemplates are objects that the agent creates: their manifest is in
 * claim.json. The first kind is removed with its pod, the second stays until a user deletes it.
 *
 * The agent may be killed at any instruction: claim.json is replaced by rename, and a folder is renamed
 * before its removal. Loop thread only; our own state folder, so short calls block.
 */
#ifndef AGENT_CLAIM_CLAIMS_H
#define AGENT_CLAIM_CLAIMS_H
#include "agent/pod/core/claim_link.h"
#include "agent/pod/core/node.h"

struct claims;

struct claims_options {
    struct node *node;           /* borrowed while the claims are open */
    bool (*complete)(void *arg); /* whether every object of the folder is known */
    void *arg;
};

/* Reads the state folder, and adds the claims that the agent created to the store. */
enum err_code claims_open(struct claims **ret, const struct claims_options *o, struct err *e) MUST_CHECK;
const struct node_claims *claims_link(struct claims *c); /* for node_set_claims() */
/* Called when the folder's first set is in the store: from now on, folders of removed claims are removed. */
void claims_begin(struct claims *c);
void claims_pod_changed(struct claims *c, const struct pod *p); /* also when the pod was removed */
/* Creates a claim of volumeClaimTemplates unless it exists. `template_` is borrowed; `owner` is the uid of
 * its StatefulSet or pod. */
enum err_code claims_make(struct claims *c, const char *namespace_, const char *name, const json_t *template_,
                          const char *owner, struct err *e) MUST_CHECK;
/* Removes claims of this StatefulSet whose names end in a number from `from` on, as soon as no pod uses them.
 */
void claims_drop(struct claims *c, const char *set_uid, unsigned from);
/* Adds uid, binding and status to the shown object of a claim or a PersistentVolume. */
void claims_show(struct claims *c, enum api_kind kind, const char *namespace_, const char *name,
                 json_t *object);
void claims_stop(struct claims *c);
void claims_free(struct claims *c); /* the memory is freed from the loop; NULL is fine */
#endif
