/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes - the node's single tmpfs for payloads, and emptyDir, hostPath and subPath on the host side. This
 * folder does not depend on pods: a volume is identified by (owner uid, name).
 *
 * Layout:
 *   <tmpfs>/<uid>/<volume>/     payload volumes (atomic_writer.h), bind-mounted read-only
 *   <tmpfs>/<uid>/.shm          the pod's /dev/shm (its own 64 MiB tmpfs)
 *   <pods_dir>/<uid>/volumes/kubernetes.io~empty-dir/<volume>/     emptyDir (Memory: a tmpfs on it)
 *   <pods_dir>/<uid>/volume-subpaths/<volume>/<container>/<index>  subPath bind mounts
 *
 * All functions block. The loop thread may call those that use only the node's tmpfs and our own folders:
 * vol_node_*(), vol_payload_*() of payloads that are not large, vol_empty_dir_setup(), vol_shm_setup(),
 * vol_list_owners(); and vol_host_path_known(), which never waits. vol_payload_publish() and
 * vol_payload_tidy() may run in any thread, one at a time for each volume. The others may hang: call them
 * inside a proc_call.
 */
#ifndef VOLUMES_VOLUMES_H
#define VOLUMES_VOLUMES_H
#include "base/error.h"
#include "base/strs.h"
#include "volumes/atomic_writer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vol_node; /* the node's tmpfs and folders */

struct vol_node_options {
    /* <run>/volumes: the tmpfs' mount point (nosuid,nodev,mode=0700; noswap if the kernel has it) */
    const char *tmpfs_dir;
    uint64_t tmpfs_bytes; /* its size limit */
    const char *pods_dir; /* <rootDir>/pods */
};

/* Mounts the tmpfs unless it is already mounted (a restart keeps it). *ret_swap_warning: swap is on and
 * noswap is not available. */
enum err_code vol_node_open(struct vol_node **ret, const struct vol_node_options *o, bool *ret_swap_warning,
                            struct err *e) MUST_CHECK;
/* `remove` (--ephemeral): unmount. */
void vol_node_close(struct vol_node *n, bool remove);

struct vol_payload { /* the content of a payload volume */
    const char *uid, *name;
    const struct vol_file *files;
    size_t n_files;
    int64_t fs_group; /* -1: none; otherwise ownership and mode bits follow kubelet's read-only rule */
    mode_t root_mode; /* mode of the volume's root folder; 0: 0755. Containers see a read-only mount. */
    /* Set if the superseded version was kept for its readers: call vol_payload_tidy() later. NULL: remove it
     * at once. */
    bool *ret_kept;
};
#define VOL_KEEP_MS 1000 /* how long it is kept: a reader that opens a few files is done by then */

/* Writes the payload atomically; *ret_changed: the visible content changed. The folder's limit
 * (VOL_PAYLOAD_MAX) is checked first: ERR_EXHAUSTED leaves the old generation visible. */
#define VOL_PAYLOAD_MAX (16u * 1024 * 1024)
enum err_code vol_payload_publish(struct vol_node *n, const struct vol_payload *p, bool *ret_changed,
                                  struct err *e) MUST_CHECK;
/* Whether writing it takes longer than the loop has: then call vol_payload_publish() on the pool. */
bool vol_payload_is_large(const struct vol_payload *p);
/* The entries below the volume, which a publish or a tidy may have to remove. VOL_LARGE_ENTRIES: so many or
 * more, or they cannot be counted, so both are called on the pool. Walks the folder: remember the result. */
#define VOL_LARGE_ENTRIES ((size_t)768)
size_t vol_payload_entries(const struct vol_node *n, const char *uid, const char *name);
/* The entries that publishing it adds at most. */
size_t vol_payload_adds(const struct vol_payload *p);
/* Whether some version of it was published and still exists. */
struct presence vol_payload_published(const struct vol_node *n, const char *uid, const char *name,
                                      struct err *e) MUST_CHECK;
/* Removes superseded versions whose time is over; *ret_kept: some are left. A missing volume is fine. */
void vol_payload_tidy(struct vol_node *n, const char *uid, const char *name, bool *ret_kept);
/* Host path of the volume's folder for the bind mount; snprintf semantics. */
enum err_code vol_payload_path(const struct vol_node *n, const char *uid, const char *name, char *ret,
                               size_t size, struct err *e) MUST_CHECK;

/* Makes the folder `sub` inside a payload volume (0755), as the mount point of another volume of the same
 * container whose mountPath is below this one's: the container's view is read-only, so it cannot be made
 * later. Publishing leaves it alone. */
enum err_code vol_payload_mount_point(struct vol_node *n, const char *uid, const char *name, const char *sub,
                                      struct err *e) MUST_CHECK;

struct vol_empty_dir {
    const char *uid, *name;
    bool memory;
    uint64_t huge_page_bytes; /* a hugetlbfs with pages of this size; 0: none */
    uint64_t size_bytes;      /* of tmpfs or hugetlbfs (rounded up to pages); 0: the kernel's default */
    int64_t fs_group;         /* -1: none */
};
/* Keeps existing content; returns the host path. The folder appears under its name only once its mode and
 * group are set, so an existing one is ready and not visited again: later files get their group through the
 * set-group-ID bit. */
enum err_code vol_empty_dir_setup(struct vol_node *n, const struct vol_empty_dir *v, char *ret_path,
                                  size_t size, struct err *e) MUST_CHECK;

/* Makes the folder of one that does not exist yet under its temporary name, empty, so that it can be given a
 * project; *ret_path: where. vol_empty_dir_setup() takes it. May be repeated; any thread, but not beside a
 * set-up or the teardown of the same owner. */
enum err_code vol_empty_dir_prepare(struct vol_node *n, const char *uid, const char *name, char *ret_path,
                                    size_t size, struct err *e) MUST_CHECK;

/* Whether one of this path exists, prepared or set up. */
struct presence vol_empty_dir_exists(const char *path, struct err *e) MUST_CHECK;

/* hostPath with its type check ("": none, makes a missing folder as container engines do; DirectoryOrCreate;
 * ...). May hang on foreign file systems: call inside proc_call. Errors: `hostPath type check failed: <path>
 * is not a directory`. */
enum err_code vol_host_path_check(const char *path, const char *type, struct err *e) MUST_CHECK;

/* True if the check would succeed, as far as the kernel knows from its caches of a local disk file system.
 * False: unknown without asking a file system. Never waits. */
bool vol_host_path_known(const char *path, const char *type);

/* Whether a folder has this group and its permission bits; and sets them for a whole tree, as kubelet does
 * for a pod's fsGroup: files get group read and write, folders group access and the set-group-ID bit. Follows
 * no symlink, leaves no file system. The folder itself is changed last, so that a repetition after a kill
 * processes the whole tree. The second walks the tree: call it inside a proc_call. ERR_EXHAUSTED: more than
 * VOL_GROUP_DEPTH_MAX folders within each other. */
#define VOL_GROUP_DEPTH_MAX 128
bool vol_group_is(const char *path, int64_t group);
enum err_code vol_group_set(const char *path, int64_t group, struct err *e) MUST_CHECK;

/* The pod's /dev/shm. */
enum err_code vol_shm_setup(struct vol_node *n, const char *uid, uint64_t size_bytes, char *ret_path,
                            size_t size, struct err *e) MUST_CHECK;

/* subPath: resolves `sub` beneath `volume_path` race-free (openat2), makes missing folders (with the volume
 * root's mode), and binds the result, by its descriptor, to the subpath folder. Call inside a proc_call. */
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
 * Unmounts (MNT_DETACH) and removes everything of one owner: payloads, emptyDirs, subpaths and the pod
 * folder; idempotent; never crosses a mount. May block: call inside a proc_call. Absent is success.
 * ERR_PRECONDITION: a foreign mount holds a volume, which is kept while the others are removed; the text
 * names both.
 */
enum err_code vol_pod_teardown(struct vol_node *n, const char *uid, struct err *e) MUST_CHECK;
/* Unmounts the sub paths alone, whose mounts keep volumes of others busy. Call inside a proc_call. */
enum err_code vol_sub_paths_unmount(const struct vol_node *n, const char *uid, struct err *e) MUST_CHECK;
/* The uids with something on disk or in the tmpfs (strs_done()), for cleaning up after a restart. */
enum err_code vol_list_owners(struct vol_node *n, struct strs *ret, struct err *e) MUST_CHECK;
#endif
