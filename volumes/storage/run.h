/* SPDX-License-Identifier: Apache-2.0 */
/* run - programs of the system, and the steps of a mount that FlexVolumes need, too. All of it blocks: inside
 * a proc_call only. */
#ifndef VOLUMES_STORAGE_RUN_H
#define VOLUMES_STORAGE_RUN_H
#include "base/buf.h"
#include "base/scope.h"
#include "volumes/storage/storage.h"

#define STORAGE_RUN_MS 110000 /* a bit less than the whole call */
#define STORAGE_OUT_MAX 4096

/* Runs a program by its name, or the one at `path`. Without ret_exit, an exit code other than 0 is an error,
 * with the beginning of the program's output. */
struct storage_run {
    const char *program, *package; /* the package has the program */
    const char *path;              /* NULL: it is looked for */
    const char *const *args;       /* NULL-terminated, without the program */
    struct buf *out;               /* standard output; NULL: it belongs to the message */
    unsigned ms;                   /* 0: STORAGE_RUN_MS */
    size_t out_max;                /* of `out`: the rest is dropped; 0: STORAGE_OUT_MAX */
    int *ret_exit;
};
enum err_code storage_run(const struct storage_run *r, struct err *e) MUST_CHECK;

/* The mount of a disk at `global`, formatted if it is empty, and from there at the target. */
enum err_code storage_mount_device(const struct storage_spec *s, const char *device, const char *global,
                                   struct err *e) MUST_CHECK;
/* The first part alone: a disk at a folder. */
enum err_code storage_mount_disk(const struct storage_spec *s, const char *device, const char *global,
                                 struct err *e) MUST_CHECK;
enum err_code storage_bind(const struct storage_spec *s, const char *from, struct err *e) MUST_CHECK;
enum err_code storage_is_mounted(const char *path, bool *ret, struct err *e) MUST_CHECK;
enum err_code storage_make_folder(const char *path, struct err *e) MUST_CHECK; /* 0750 */
/* A mount that does not answer within `patience_ms` is detached forcibly; a path that is not mounted is
 * fine. */
enum err_code storage_unmount(const char *path, unsigned patience_ms, struct err *e) MUST_CHECK;
/* ---- lock.c: one at a time at the mount of a disk ---- */
/* The file is beside `global`, whose folder exists. Held until it is closed. */
enum err_code storage_lock(const char *global, int *ret_fd, struct err *e) MUST_CHECK;
/* Does not wait: *ret_fd is -1 if somebody else has it. */
enum err_code storage_try_lock(const char *global, int *ret_fd, struct err *e) MUST_CHECK;
void storage_lock_remove(const char *global); /* while it is held */

/* ---- resize.c ---- */
/* The file system at `path` grows to the size of its device. */
enum err_code storage_resize(const char *device, const char *path, struct err *e) MUST_CHECK;

/* At a sub path of the pod's volumes: mounts with the same source as the mount at `target`. */
enum err_code storage_unmount_sub_paths(const char *root, const char *uid, const char *target,
                                        unsigned patience_ms, struct err *e) MUST_CHECK;
#endif
