/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint - kubelet_internal_checkpoint, in kubelet's format with kubelet's checksum, so that a node can
 * change over in either direction.
 *
 * The checksum is the 32-bit FNV-1a of what Go's spew prints of the data (checkpoint_sum.c). A file that is
 * damaged is set aside and named; holdings are then what the pods' records say.
 */
#ifndef DEVICEPLUGIN_CHECKPOINT_H
#define DEVICEPLUGIN_CHECKPOINT_H
#include "deviceplugin/holdings.h"

#include "base/strs.h"

#define DP_CHECKPOINT_MAX (64 * 1024 * 1024)

struct dp_registered {
    const char *resource;
    const char *const *ids;
    size_t n_ids;
}; /* healthy devices; sorted */

/* The file's text, malloc'ed. */
enum err_code dp_checkpoint_write(const struct dp_holdings *h, const struct dp_registered *registered,
                                  size_t n, char **ret, size_t *ret_n, struct err *e) MUST_CHECK;
/* Adds its entries to *h and the names of its registered resources to *resources. ERR_DATA_LOSS: damaged, the
 * text says how; nothing was added. An entry that contradicts another is ignored and named in *ret_ignored
 * (may be NULL). */
enum err_code dp_checkpoint_read(const char *text, size_t n, struct dp_holdings *h, struct strs *resources,
                                 struct strs *ret_ignored, struct err *e) MUST_CHECK;
#endif
