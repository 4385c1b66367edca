/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vol_data - kubelet's file vol_data.json beside a volume: the data needed to undo its calls, so that a
 * volume outlives the agent's memory, and a node can change over from kubelet or back to it. Pure; any
 * thread.
 *
 *     <root>/pods/<uid>/volumes/kubernetes.io~csi/<volume>/vol_data.json   beside the target "mount"
 *     .../<driver>/<sha256>/vol_data.json         of a staged volume: driver and handle
 *     .../volumeDevices/<volume>/data/vol_data.json      of a block device
 *
 * It is written before the driver is called and removed after the driver has undone the call.
 */
#ifndef VOLUMES_CSI_VOL_DATA_H
#define VOLUMES_CSI_VOL_DATA_H
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define CSI_VOL_DATA "vol_data.json"
#define CSI_VOL_DATA_MAX (16 * 1024) /* bytes of a file: handles of drivers have some hundred */

struct csi_vol_data { /* texts are borrowed, or in `memory`; NULL: not in the file */
    const char *attachment, *driver, *node, *spec_name, *handle;
    bool ephemeral;
    bool shared; /* of a device: without volumeLifecycleMode */
    struct arena memory;
};

/* The text of a target's file, in kubelet's order, with a newline; malloc'ed. NULL: no memory. */
char *csi_vol_data_text(const struct csi_vol_data *d) MUST_CHECK;
/* ERR_INVALID: no JSON object of texts, no driver or handle, or a driver's name that may be none;
 * ERR_EXHAUSTED: too long. The caller calls csi_vol_data_done(), also after an error; *ret must be { 0 }. */
enum err_code csi_vol_data_read(struct csi_vol_data *ret, const char *text, size_t n,
                                struct err *e) MUST_CHECK;
void csi_vol_data_done(struct csi_vol_data *d);
#endif
