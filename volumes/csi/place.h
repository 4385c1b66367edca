/* SPDX-License-Identifier: Apache-2.0 */
/* place - kubelet's paths of CSI volumes, on which drivers rely, and the work on these folders. */
#ifndef VOLUMES_CSI_PLACE_H
#define VOLUMES_CSI_PLACE_H
#include "base/buf.h"
#include "base/error.h"
#include "volumes/csi/vol_data.h"

#include <stddef.h>

#define CSI_VOLUMES "volumes/kubernetes.io~csi" /* below <root>/pods/<uid> */

/* "<root>/pods/<uid>/volumes/kubernetes.io~csi"; with `volume` the folder of that volume, with `target` what
 * the driver mounts in it. ERR_INVALID: a name is no path element, or the path is too long. */
enum err_code csi_place_all(const char *root, const char *uid, char *ret, size_t size,
                            struct err *e) MUST_CHECK;
enum err_code csi_place_folder(const char *root, const char *uid, const char *volume, char *ret, size_t size,
                               struct err *e) MUST_CHECK;
enum err_code csi_place_target(const char *root, const char *uid, const char *volume, char *ret, size_t size,
                               struct err *e) MUST_CHECK;

/* ---- these may hang: call them inside a proc_call ---- */
/* Makes the folder (0750; the driver makes the target itself) and its vol_data.json (0644), synced. */
enum err_code csi_place_make(const char *folder, const struct csi_vol_data *d, struct err *e) MUST_CHECK;
/* Removes target, vol_data.json and folder. ERR_PRECONDITION: the target is still mounted; ERR_UNAVAILABLE:
 * it holds files. Both stay then, with the file. Absent is success. */
enum err_code csi_place_remove(const char *folder, struct err *e) MUST_CHECK;
/* Lists the volumes of a pod as JSON: [{"name", "driver", "handle"} or {"name", "error"}]. Absent: []. */
enum err_code csi_place_list(const char *all, struct buf *out, struct err *e) MUST_CHECK;
#endif
