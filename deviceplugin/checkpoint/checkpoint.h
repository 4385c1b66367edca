/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint - kubelet_internal_checkpoint, in kubelet's format with kubelet's checksum, so that a node can
 * migrate in either direction (pkg/kubelet/cm/devicemanager/checkpoint). Pure: the caller reads and writes
 * the file, atomically and only as root: plugins can write beside it.
 *
 * The checksum is the 32-bit FNV-1a of what Go's spew prints of the data (checkpoint_sum.c). Where kubelet's
 * order is random, ours is that of holdings.h.
 */
#ifndef DEVICEPLUGIN_CHECKPOINT_CHECKPOINT_H
#define DEVICEPLUGIN_CHECKPOINT_CHECKPOINT_H
#include "deviceplugin/holdings.h"

#include "base/strs.h"

#define DP_CHECKPOINT_MAX (64 * 1024 * 1024) /* bytes of the file */

struct dp_registered { /* a resource that has a provider, or recently had one */
    const char *resource;
    const char *const *ids; /* healthy devices */
    size_t n_ids;
};

/* The file's text, malloc'ed; entries without an answer are left out, as kubelet does. ERR_EXHAUSTED: longer
 * than DP_CHECKPOINT_MAX. ERR_INVALID: a resource is registered twice. */
enum err_code dp_checkpoint_write(const struct dp_holdings *h, const struct dp_registered *registered,
                                  size_t n, char **ret, size_t *ret_n, struct err *e) MUST_CHECK;
/*
 * Adds the file's entries to *h and the names of its registered resources to *resources; either may be NULL.
 * ERR_DATA_LOSS: the file is damaged (empty, cut off, not a checkpoint, a wrong checksum). The text names the
 * problem and its place, and nothing was added. An entry is ignored if it contradicts *h or an earlier entry
 * (another pod has the device, the container has other devices), or if its resource's name is not valid.
 * *ret_ignored (may be NULL) names the first hundred of these. ERR_EXHAUSTED: no memory; some entries may
 * have been added.
 */
enum err_code dp_checkpoint_read(const char *text, size_t n, struct dp_holdings *h, struct strs *resources,
                                 struct strs *ret_ignored, struct err *e) MUST_CHECK;
#endif
