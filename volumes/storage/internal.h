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

/* Without the lock, which the caller has. */
enum err_code storage_mount_locked(const struct storage_spec *s, const char *device, const char *global,
                                   struct err *e) MUST_CHECK;

/* ---- disk.c: disks of this node, by the folder where one is mounted or its device is bound ---- */
struct storage_disk {
    enum storage_kind kind;
    bool block;
    char iface[520]; /* iscsi: of its sessions */
    char name[256];  /* of the folder: "<portal>-<iqn>-lun-0", "<wwn>-lun-0", of local the volume */
    char path[STORAGE_PATH_MAX]; /* the folder */
    char lock[STORAGE_PATH_MAX]; /* for storage_lock() */
};
/* ERR_INVALID: a path is too long. */
enum err_code storage_disk_make(struct storage_disk *ret, const char *root, enum storage_kind kind,
                                bool block, const char *iface, const char *name, struct err *e) MUST_CHECK;
/* Until fn returns false. */
enum err_code storage_disk_each(const char *root, enum storage_kind kind,
                                bool (*fn)(const struct storage_disk *d, void *arg), void *arg,
                                struct err *e) MUST_CHECK;
typedef enum err_code (*storage_attach_fn)(const struct storage_spec *s, const void *arg, char *ret_device,
                                           size_t size, struct err *e);
/* Attaches and mounts it, or binds its device. The folders are made before, so that the end of the pod finds
 * them after a kill at any point. */
enum err_code storage_disk_mount(const struct storage_spec *s, const struct storage_disk *d,
                                 storage_attach_fn attach, const void *arg, struct err *e) MUST_CHECK;

/* ---- release.c ---- */
/* Those of a kind that no pod uses any more. `sources`: of mounts that a pod had until now; a disk of these
 * is waited for, any other that somebody holds is left to them. */
enum err_code storage_disks_let_go(const char *root, enum storage_kind kind, const char *const *sources,
                                   size_t n_sources, unsigned patience_ms, struct err *e) MUST_CHECK;

/* ---- block.c ---- */
enum err_code storage_block_map(const struct storage_spec *s, const struct storage_disk *d,
                                const char *device, struct err *e) MUST_CHECK;
/* All of a pod, of a kind. */
enum err_code storage_block_unmap(const char *root, const char *uid, enum storage_kind kind,
                                  unsigned patience_ms, struct err *e) MUST_CHECK;
/* After the disks were let go. */
void storage_block_forget(const char *root, const char *uid, enum storage_kind kind);
bool storage_block_has_any(const char *root, const char *uid);

/* ---- nfs.c, iscsi.c, fc.c, local.c ---- */
enum err_code storage_nfs_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
enum err_code storage_iscsi_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
enum err_code storage_iscsi_disk(const struct storage_spec *s, struct storage_disk *ret,
                                 struct err *e) MUST_CHECK;
enum err_code storage_fc_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
enum err_code storage_fc_disk(const struct storage_spec *s, struct storage_disk *ret,
                              struct err *e) MUST_CHECK;
enum err_code storage_local_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
/* "1.2.3.4:3260"; the port is added where it is missing. ERR_INVALID: no address. */
enum err_code storage_iscsi_portal(const char *portal, char *ret, size_t size, struct err *e) MUST_CHECK;
/* The target in "<portal>-<iqn>-lun-0". False: the name is not that of a disk. */
bool storage_iscsi_target(const char *name, char *ret, size_t size);
/* All sessions and records of a target by an interface. */
enum err_code storage_iscsi_detach(const char *iface, const char *iqn, struct err *e) MUST_CHECK;
/* A disk that is no longer mounted: removes its multipath device, and with `deletes` its disks. */
void storage_device_release(const char *device, bool deletes);
/* The device-mapper disk over a disk of several paths, waited for; otherwise the disk itself. */
void storage_multipath(const char *device, unsigned ms, char *ret, size_t size);
/* Waits for one of the paths; the first that there is, resolved. */
enum err_code storage_wait_for(const char *const *paths, size_t n, unsigned ms, char *ret, size_t size,
                               struct err *e) MUST_CHECK;
#endif
