/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_usage - the usage of a volume of a CSI driver: calls the driver periodically while the volume is ready,
 * if the driver has GET_VOLUME_STATS. Loop thread only.
 */
#ifndef AGENT_POD_VOLUME_CSI_USAGE_H
#define AGENT_POD_VOLUME_CSI_USAGE_H
#include "base/clock.h"
#include "volumes/csi/csi.h"

struct csi_vol_usage { /* of one volume; begins as zeros */
    struct pod *pod;
    struct csi_stats *asked; /* NULL: never */
    struct boot_time next_at;
    bool known; /* the last answer was one */
    int64_t at_ns;
    struct csi_usage last;
};

/* Calls the driver if it is time. `path`: the pod's mount, or its block device. */
void csi_usage_step(struct csi_vol_usage *u, struct pod *p, const char *driver, const char *handle,
                    const char *path);
bool csi_usage_busy(const struct csi_vol_usage *u);
void csi_usage_cancel(struct csi_vol_usage *u);
void csi_usage_free(struct csi_vol_usage *u); /* not busy */
#endif
