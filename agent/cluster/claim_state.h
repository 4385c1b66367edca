/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_state - evaluates claims, volumes and attachments of the apiserver: whether a pod can use the volume,
 * or the reason why not, with kubelet's texts (pkg/kubelet/volumemanager/populator,
 * pkg/volume/csi/csi_attacher.go). Pure.
 */
#ifndef AGENT_CLUSTER_CLAIM_STATE_H
#define AGENT_CLUSTER_CLAIM_STATE_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

struct claim_user {
    const char *namespace_, *pod, *uid;
    bool ephemeral; /* the claim must belong to the pod */
    bool starts;    /* the pod has no container yet: a claim that is being deleted accepts no new user */
};

/* *ret: the volume's name, borrowed from the claim. ERR_PRECONDITION: this pod cannot use the claim. */
enum err_code claim_state_volume(const json_t *claim, const struct claim_user *user, const char **ret,
                                 struct err *e) MUST_CHECK;
/* ERR_PRECONDITION: the volume is not bound to the claim. */
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

/* "kubernetes.io/csi/<driver>^<handle>": the name of a volume in volumesInUse and volumesAttached; snprintf
 * semantics. */
int attachable_name(const char *driver, const char *handle, char *ret, size_t size);
/* Whether `list`, volumesAttached or volumesInUse, has an element of this name. */
bool attachable_is_in(const json_t *list, const char *name);
/* devicePath of an element of volumesAttached, borrowed; NULL: none. */
const char *attachable_device(const json_t *list, const char *name);
#endif
