/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes - the node's one tmpfs for payloads, and emptyDir, hostPath and subPath on the host side.
 * Values in, values out; nothing here knows what a pod is: a volume is (owner uid, name).
 *
 * Layout:  <tmpfs>/<uid>/<volume>/     payload volumes (atomic_writer.h), bind-mounted read-only
 *          <tmpfs>/<uid>/.shm          the pod's /dev/shm (its own 64 MiB tmpfs)
 *          <pods_dir>/<uid>/volumes/kubernetes.io~empty-dir/<volume>/     emptyDir (Memory: a tmpfs on it)
 *          <pods_dir>/<uid>/volume-subpaths/<volume>/<container>/<index>  subPath bind mounts
 *
 * All of it blocks.  The loop thread may call what touches none but the node's tmpfs and its own folders:
 * vol_node_*(), vol_payload_*(), vol_empty_dir_setup(), vol_shm_setup(), vol_list_owners(); and
 * vol_host_path_known(), which never waits.  The others may hang: call them inside a proc_call.
 */
#ifndef VOLUMES_VOLUMES_H
#define VOLUMES_VOLUMES_H
#include "base/error.h"
#include "volumes/atomic_writer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vol_node; /* the node's tmpfs and folders */

struct vol_node_options {
    const char *tmpfs_dir; /* <run>/volumes: a tmpfs is mounted there (nosuid,nodev,mode=0700; noswap where
                              the kernel has it) */
    uint64_t tmpfs_bytes;  /* its size limit */
    const char *pods_dir;  /* <rootDir>/pods */
};

/* Mounts the tmpfs unless it is mounted already (a restart keeps it). *ret_swap_warning: swap is on and
 * noswap is missing. */
enum err_code vol_node_open(struct vol_node **ret, const struct vol_node_options *o, bool *ret_swap_warning,
                            struct err *e) MUST_CHECK;
/* `remove` (--ephemeral): unmount. */
void vol_node_close(struct vol_node *n, bool remove);

struct vol_payload { /* what a payload volume shall show */
    const char *uid, *name;
    const struct vol_file *files;
    size_t n_files;
    int64_t fs_group; /* -1: none; else group ownership and mode bits by kubelet's read-only rule */
    mode_t root_mode; /* of the volume's own folder; 0: 0755.  Containers see it through a read-only mount. */
    bool *ret_kept;   /* the superseded version stays for its readers: vol_payload_tidy() later; NULL: removed
                         at once */
};
#define VOL_KEEP_MS 1000 /* how long it stays: a reader that opens a few files is through by then */

/* Writes the payload atomically; *ret_changed: something became visible.  The folder's byte limit
 * (VOL_PAYLOAD_MAX) is checked first: ERR_EXHAUSTED leaves the old generation visible. */
#define VOL_PAYLOAD_MAX (16u * 1024 * 1024)
enum err_code vol_payload_publish(struct vol_node *n, const struct vol_payload *p, bool *ret_changed,
                                  struct err *e) MUST_CHECK;
/* Was some version of it published, and is it there still? */
struct presence vol_payload_published(const struct vol_node *n, const char *uid, const char *name,
                                      struct err *e) MUST_CHECK;
/* Removes superseded versions whose time is over; *ret_kept: some stay.  A volume that is not there is fine.
 */
void vol_payload_tidy(struct vol_node *n, const char *uid, const char *name, bool *ret_kept);
/* Host path of the volume's folder for the bind mount; snprintf semantics. */
enum err_code vol_payload_path(const struct vol_node *n, const char *uid, const char *name, char *ret,
                               size_t size, struct err *e) MUST_CHECK;

/*
 * Makes the folder `sub` inside a payload volume (0755) as the mount point of another volume of the same
 * container that lies below this one's mountPath: the container's view is read-only, so nobody can make it
 * later.  Publishing leaves it alone.
 */
enum err_code vol_payload_mount_point(struct vol_node *n, const char *uid, const char *name, const char *sub,
                                      struct err *e) MUST_CHECK;

struct vol_empty_dir {
    const char *uid, *name;
    bool memory;
    uint64_t huge_page_bytes; /* a hugetlbfs with pages of this size; 0: none */
    uint64_t size_bytes;      /* of tmpfs or hugetlbfs (rounded up to pages); 0: the kernel's default */
    int64_t fs_group;         /* -1: none */
};
/*
 * Keeps existing content.  Gives the host path.  The folder appears under its name only when mode and group
 * are as they shall be, so one that exists is ready and is not walked again: files made later get their group
 * from the set-group-ID bit.
 */
enum err_code vol_empty_dir_setup(struct vol_node *n, const struct vol_empty_dir *v, char *ret_path,
                                  size_t size, struct err *e) MUST_CHECK;

/* hostPath with its type check ("" none, DirectoryOrCreate, ...; "" makes a missing folder, as container
 * engines do).  May hang on foreign file systems: call inside proc_call.
 * Errors: `hostPath type check failed: <path> is not a directory`. */
enum err_code vol_host_path_check(const char *path, const char *type, struct err *e) MUST_CHECK;

/*
 * True: the check would succeed, by what the kernel has in its caches of a file system on a disk of the
 * machine.  False: not known without asking a file system.  Never waits.
 */
bool vol_host_path_known(const char *path, const char *type);

/* The pod's /dev/shm. */
enum err_code vol_shm_setup(struct vol_node *n, const char *uid, uint64_t size_bytes, char *ret_path,
                            size_t size, struct err *e) MUST_CHECK;

/*
 * subPath: resolves `sub` beneath `volume_path` race-free (openat2), makes missing folders (mode of the
 * volume root), binds what was found (the very descriptor) to the subpath folder.  Inside a proc_call.
 */
struct vol_sub_path {
    const char *uid, *volume, *container;
    unsigned index;          /* of the volumeMount */
    const char *volume_path; /* host path of the volume */
    const char *sub;         /* relative */
    bool shared;             /* mounts made in it show in the volume, too (Bidirectional) */
};
enum err_code vol_sub_path_bind(struct vol_node *n, const struct vol_sub_path *s, char *ret_path, size_t size,
                                struct err *e) MUST_CHECK;

/*
 * All of one owner: unmount (MNT_DETACH), remove payloads, emptyDirs, subpaths and the pod folder;
 * idempotent; never crosses a mount.  May block: run inside a proc_call.  Absent is success.
 * ERR_PRECONDITION: a mount that is not ours holds a volume, which stays as it is while the others go; the
 * text names both.
 */
enum err_code vol_pod_teardown(struct vol_node *n, const char *uid, struct err *e) MUST_CHECK;
/* uids that have something on disk or in the tmpfs (NULL-terminated, malloc'ed): for clean-up after a
 * restart. */
enum err_code vol_list_owners(struct vol_node *n, char ***ret, struct err *e) MUST_CHECK;
#endif
