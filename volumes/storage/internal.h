/* SPDX-License-Identifier: Apache-2.0 */
/* storage, private. All of it blocks. */
#ifndef VOLUMES_STORAGE_INTERNAL_H
#define VOLUMES_STORAGE_INTERNAL_H
#include "base/buf.h"
#include "volumes/storage/run.h"
#include "volumes/storage/storage.h"

#define STORAGE_PATH_MAX 1024

/* ---- device.c ---- */
/* "ext4"; "" if there is nothing on the disk. A partition table counts as something. */
enum err_code storage_find_type(const char *device, char *ret, size_t size, struct err *e) MUST_CHECK;
enum err_code storage_set_group(const struct storage_spec *s, struct err *e) MUST_CHECK;
/* "a,b,ro"; the caller frees it. NULL: no memory. */
char *storage_join_options(const struct storage_spec *s, const char *more);

/* ---- nfs.c, iscsi.c, fc.c, local.c ---- */
enum err_code storage_nfs_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
enum err_code storage_iscsi_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
enum err_code storage_fc_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
enum err_code storage_local_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
/* After its global mount is gone: the session ends with the last disk of the target, a disk of fc is removed.
 */
enum err_code storage_iscsi_detach(const char *root, const char *global, struct err *e) MUST_CHECK;
void storage_fc_detach(const char *device);
/* The device-mapper disk over a disk of several paths; otherwise the disk itself. */
void storage_multipath(const char *device, char *ret, size_t size);
/* Waits for one of the paths; the first that there is, resolved. */
enum err_code storage_wait_for(const char *const *paths, size_t n, unsigned ms, char *ret, size_t size,
                               struct err *e) MUST_CHECK;
#endif
