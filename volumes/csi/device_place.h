/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_place - the folders of devices that the pods of a volume share (paths.h), and of the block devices
 * of pods. All of it may hang, so it is called inside a proc_call.
 */
#ifndef VOLUMES_CSI_DEVICE_PLACE_H
#define VOLUMES_CSI_DEVICE_PLACE_H
#include "volumes/csi/place.h"

/* The device's vol_data.json, synced, and the staging folder if the driver stages (0750). */
enum err_code csi_device_make(const struct csi_paths *p, const struct csi_vol_data *d, bool stages,
                              struct err *e) MUST_CHECK;
/* Removes all of it. ERR_PRECONDITION: it is still mounted; ERR_UNAVAILABLE: it holds files. Both stay then,
 * with vol_data.json. Absent is success. */
enum err_code csi_device_remove(const struct csi_paths *p, struct err *e) MUST_CHECK;
/* "used" if a pod has a part of it on the disk, "there" if nothing but the device is, "" if that is not,
 * either. */
enum err_code csi_device_state(const char *root, const struct csi_id *id, const struct csi_paths *p,
                               struct buf *out, struct err *e) MUST_CHECK;
/* All devices as JSON: [{"driver", "handle", "name" (of a block device)} or {"folder", "error"}]. */
enum err_code csi_devices_list(const char *root, struct buf *out, struct err *e) MUST_CHECK;

/* ---- the block device of a pod ---- */
/* The folder of targets, and the link at the pod: a removal finds the device by it. */
enum err_code csi_block_make(const struct csi_paths *p, struct err *e) MUST_CHECK;
/* Binds the target to its place below the volume's maps, once. */
enum err_code csi_block_map(const struct csi_paths *p, struct err *e) MUST_CHECK;
enum err_code csi_block_unmap(const struct csi_paths *p, struct err *e) MUST_CHECK;
/* Removes target and link; errors as of csi_place_remove(). */
enum err_code csi_block_remove(const struct csi_paths *p, struct err *e) MUST_CHECK;
#endif
