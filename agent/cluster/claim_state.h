/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_state - claims, volumes and attachments as the apiserver has them: whether a pod can have the volume,
 * and why not, in kubelet's words (pkg/kubelet/volumemanager/populator, pkg/volume/csi/csi_attacher.go).
 * Pure.
 */
#ifndef AGENT_CLUSTER_CLAIM_STATE_H
#define AGENT_CLUSTER_CLAIM_STATE_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

struct claim_user {
    const char *namespace_, *pod, *uid;
    bool ephemeral; /* the claim has to be the pod's own */
    bool starts;    /* it has no container yet: a claim that is being deleted gets no new user */
};

/* *ret: the volume's name, borrowed from the claim. ERR_PRECONDITION: it has none for this pod. */
enum err_code claim_state_volume(const json_t *claim, const struct claim_user *user, const char **ret,
                                 struct err *e) MUST_CHECK;
/* ERR_PRECONDITION: the volume is not the claim's. */
enum err_code claim_state_is_bound(const json_t *claim, const json_t *volume, struct err *e) MUST_CHECK;

struct attachment_want {
    const char *name, *handle; /* of the VolumeAttachment; of the volume */
};
/*
 * *ret: attachmentMetadata, borrowed; NULL: none. ERR_UNAVAILABLE: it is not attached yet. ERR_EXHAUSTED: the
 * node has reached its limit (error code 8 of the attachment). ERR_PRECONDITION: the attachment's own error.
 */
enum err_code attachment_state(const json_t *object, const struct attachment_want *want, const json_t **ret,
                               struct err *e) MUST_CHECK;

/* "kubernetes.io/csi/<driver>^<handle>": of a volume in volumesInUse and volumesAttached; snprintf semantics.
 */
int attachable_name(const char *driver, const char *handle, char *ret, size_t size);
/* Of an element of volumesAttached, or of volumesInUse. */
bool attachable_is_in(const json_t *list, const char *name);
/* devicePath of an element of volumesAttached, borrowed; NULL: none. */
const char *attachable_device(const json_t *list, const char *name);
#endif
