/* SPDX-License-Identifier: Apache-2.0 */
/* csi_object - the settings of a driver in its CSIDriver object. Pure. */
#ifndef AGENT_POD_VOLUME_CSI_OBJECT_H
#define AGENT_POD_VOLUME_CSI_OBJECT_H
#include "agent/api/generic.h"
#include "base/error.h"
#include "volumes/csi/volume.h"

#define CSI_TOKENS_MAX 16 /* audiences of one driver; the apiserver has no limit */
#define CSI_AUDIENCE_SIZE 256

struct csi_token_wish {               /* of tokenRequests */
    char audience[CSI_AUDIENCE_SIZE]; /* "": the apiserver's own */
    int64_t seconds;
};

struct csi_object {
    bool pod_info;              /* podInfoOnMount */
    bool ephemeral, persistent; /* volumeLifecycleModes; without it, Persistent */
    bool republish;             /* requiresRepublish */
    bool attach;                /* attachRequired; without it, true */
    bool selinux_mount;         /* seLinuxMount: without effect here */
    bool tokens_secret;         /* serviceAccountTokenInSecrets */
    enum csi_group_policy group_policy;
    struct csi_token_wish tokens[CSI_TOKENS_MAX];
    size_t n_tokens;
};

/* ERR_EXHAUSTED: no memory, or too many tokens; ERR_INVALID: a token that cannot be asked for. */
enum err_code csi_object_read(const struct api_generic *driver, struct csi_object *ret,
                              struct err *e) MUST_CHECK;
/* Whether the driver serves inline volumes, or those of claims; `object` NULL: there is none, and it serves
 * claims. In kubelet's words. */
enum err_code csi_object_allows(const struct csi_object *object, const char *driver, bool ephemeral,
                                struct err *e) MUST_CHECK;
#endif
