/* SPDX-License-Identifier: Apache-2.0 */
/* place - kubelet's paths of CSI volumes, on which drivers rely, and the work on these folders. */
#ifndef VOLUMES_CSI_PLACE_H
#define VOLUMES_CSI_PLACE_H
#include "base/buf.h"
#include "base/error.h"
#include "volumes/csi/paths.h"
#include "volumes/csi/vol_data.h"

#include <stddef.h>

/* "<root>/pods/<uid>/volumes/kubernetes.io~csi"; with `volume` the folder of that volume, with `target` the
 * driver's mount point in it. ERR_INVALID: a name is not a path element, or the path is too long. */
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
/* The same of one place of a driver: a folder, or a file that is empty. */
enum err_code csi_place_remove_target(const char *path, struct err *e) MUST_CHECK;
/* rmdir; one that holds something is ERR_UNAVAILABLE, a mounted one ERR_PRECONDITION. Absent is success. */
enum err_code csi_place_remove_folder(const char *path, struct err *e) MUST_CHECK;
/* vol_data.json of a folder, if there is one. */
enum err_code csi_place_remove_file(const char *folder, struct err *e) MUST_CHECK;
/*
 * Lists the volumes of a pod as JSON: [{"name", "block", "ephemeral", "driver", "handle"} or {"name",
 * "block", "error"}]. Absent: []. A volume whose file is lost is found by its staged mount (mountinfo).
 */
enum err_code csi_place_list(const char *root, const char *uid, struct buf *out, struct err *e) MUST_CHECK;
/* Reads the vol_data.json of a folder. csi_vol_data_done(), also after an error. */
enum err_code csi_place_read(const char *folder, struct csi_vol_data *ret, struct err *e) MUST_CHECK;
/* The staging folder's path that shows the same as `target` by mountinfo, as the device's folder; malloc'ed.
 * NULL: there is none. */
char *csi_place_staged_at(const char *root, const char *target);
#endif
