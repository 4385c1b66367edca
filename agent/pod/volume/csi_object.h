/* SPDX-License-Identifier: Apache-2.0 */
/* csi_object - what a CSIDriver object says of its driver. Pure. */
#ifndef AGENT_POD_VOLUME_CSI_OBJECT_H
#define AGENT_POD_VOLUME_CSI_OBJECT_H
#include "agent/api/generic.h"
#include "base/error.h"
#include "volumes/csi/volume.h"

struct csi_object {
    bool pod_info;  /* podInfoOnMount */
    bool ephemeral; /* volumeLifecycleModes has it */
    bool republish; /* requiresRepublish */
    enum csi_group_policy group_policy;
};

/* ERR_EXHAUSTED: no memory. */
enum err_code csi_object_read(const struct api_generic *driver, struct csi_object *ret,
                              struct err *e) MUST_CHECK;
/* Whether the driver serves inline volumes; `object` NULL: there is none. In kubelet's words. */
enum err_code csi_object_allows_inline(const struct csi_object *object, const char *driver,
                                       struct err *e) MUST_CHECK;
#endif
