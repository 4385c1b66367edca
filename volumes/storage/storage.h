/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage - volumes that Kubernetes itself mounts: nfs, iscsi, fc and local, by the programs of the system
 * (mount.nfs, iscsiadm, mount, mkfs ...). Paths are kubelet's:
 *
 *     <root>/pods/<uid>/volumes/kubernetes.io~nfs/<volume>          the mount that containers get
 *     <root>/plugins/kubernetes.io/iscsi/iface-<iface>/<portal>-<iqn>-lun-<n>    of a disk: mounted once
 *     <root>/plugins/kubernetes.io/fc/<wwn>-lun-<n>                              here and bound to each pod
 *     <root>/plugins/kubernetes.io/local-volume/mounts/<volume>
 *
 * and of a block device (iscsi, fc):
 *
 *     <root>/plugins/kubernetes.io/iscsi/volumeDevices/iface-.../...-lun-<n>/<uid>   the device, bound here
 *     <root>/pods/<uid>/volumeDevices/kubernetes.io~iscsi/<volume>                   a link to it
 *
 * Everything here may hang and runs programs: call it inside a proc_call that has a cgroup from the start.
 * Nothing is remembered: what is mounted is read from mountinfo, so a call may be repeated at any time.
 * Rules: pkg/volume/{nfs,iscsi,fc,local} and k8s.io/mount-utils.
 */
#ifndef VOLUMES_STORAGE_STORAGE_H
#define VOLUMES_STORAGE_STORAGE_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum storage_kind { STORAGE_NFS, STORAGE_ISCSI, STORAGE_FC, STORAGE_LOCAL };

/* What a mount does, for the words of its failure. */
enum storage_step { STORAGE_SET_UP, STORAGE_ATTACH, STORAGE_MOUNT_DEVICE };

struct storage_pair {
    const char *key, *value;
};

struct storage_spec { /* all borrowed */
    enum storage_kind kind;
    const char *root;   /* rootDir */
    const char *name;   /* of the PersistentVolume, or the pod's name for the volume */
    const char *target; /* where the pod has it; of a block device, the link */
    const char *pod_uid;
    bool block; /* iscsi, fc: containers get the device */
    bool read_only;
    const char *const *options; /* mountOptions */
    size_t n_options;
    const char *fs_type; /* of a disk; NULL: ext4 */
    int64_t fs_group;    /* -1: none */
    bool group_if_wrong; /* OnRootMismatch */
    const char *path;    /* nfs, local */
    const char *server;  /* nfs */
    const char *portal, *iqn, *interface, *initiator;
    const char *const *portals; /* iscsi: besides `portal`; fc: targetWWNs */
    size_t n_portals;
    const char *const *wwids;
    size_t n_wwids;
    int lun;
    bool chap_discovery, chap_session;
    const struct storage_pair *secrets; /* of CHAP */
    size_t n_secrets;
    enum storage_step *step; /* where it is, or was when it failed; may be NULL */
};

static inline void storage_at(enum storage_step *step, enum storage_step now)
{
    if (step != NULL)
        *step = now;
}

/* Mounts it at the target, unless it is mounted there. ERR_NOT_FOUND: a program is missing, *e names its
 * package; ERR_INVALID: an option or a path; otherwise what a program said. */
enum err_code storage_mount(const struct storage_spec *s, struct err *e) MUST_CHECK;
/* Of iscsi and fc: where the disk is mounted for all pods, or its device bound for each. */
enum err_code storage_disk_folder(const struct storage_spec *s, char *ret, size_t size,
                                  struct err *e) MUST_CHECK;
/* Of one that is mounted, of a local disk: its file system grows to the size of the disk. */
enum err_code storage_expand(const struct storage_spec *s, struct err *e) MUST_CHECK;
/* ERR_INVALID: an option that is none, or that makes something else than a mount. */
enum err_code storage_check_options(const char *const *options, size_t n, struct err *e) MUST_CHECK;

/*
 * Unmounts a pod's volumes of these kinds, and their disks if no other pod uses them, and removes their
 * folders. A mount that does not answer within `patience_ms` is detached forcibly: unwritten data are lost.
 * Other volumes are not touched.
 */
enum err_code storage_unmount_all(const char *root, const char *uid, unsigned patience_ms,
                                  struct err *e) MUST_CHECK;
/* Whether there is anything for storage_unmount_all(). Never waits. */
bool storage_has_any(const char *root, const char *uid);
#endif
