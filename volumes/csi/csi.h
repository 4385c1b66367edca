/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi - the node's side of CSI: drivers that registered, and calls to them for the volumes of pods. Loop
 * thread only; nothing here blocks. Whatever may hang (a driver, a mount of it) is a call with a deadline or
 * a child that can be killed, so a bad driver holds its own volumes only.
 *
 *   drivers.c   drivers register through the plugin watcher (deviceplugin/plugins.h), with NodeGetInfo
 *   mount.c     sets up one volume of a pod
 *   remove.c    undoes the volumes of a pod, as found on the disk
 *   volume.h, messages.h, vol_data.h, version.h, place.h   pure: requests, answers, files, versions, paths
 *
 * What is on the disk decides, not memory. The agent writes vol_data.json beside the target before it calls
 * NodePublishVolume, and removes it after NodeUnpublishVolume has succeeded and nothing is mounted any more.
 * So a removal after a restart, or of a pod that nobody knows any more, finds what has to be undone. A set-up
 * repeats its calls after a restart, as kubelet does: the calls of CSI are idempotent.
 */
#ifndef VOLUMES_CSI_CSI_H
#define VOLUMES_CSI_CSI_H
#include "base/grpc/client.h"
#include "base/presence.h"
#include "base/process/process.h"
#include "deviceplugin/plugins.h"
#include "volumes/csi/messages.h"

#define CSI_CALL_MS 120000 /* deadline of a call: kubelet's csiTimeout */
#define CSI_PATH_SIZE 1024

struct csi;

struct csi_options { /* texts are copied */
    uv_loop_t *loop;
    const char *root_dir;  /* kubelet's folder: <root>/pods, <root>/plugins */
    const char *node_name; /* for names of attachments */
    int cgroup_fd;         /* of children, as in struct proc_call_spec */
    const char *cgroup_procs;
    /* A driver registered, or is gone; may be NULL. */
    void (*changed)(const char *driver, bool here, void *arg);
    /* In the child that looks for volumes to remove: gives up mounts of the agent's own on them (subPath), or
     * they would stay busy. */
    enum err_code (*let_go)(const char *pod_uid, void *arg, struct err *e);
    void *arg;
};
enum err_code csi_open(struct csi **ret, const struct csi_options *o, struct err *e) MUST_CHECK;
/* For dp_plugins_options; borrowed while it exists. */
const struct dp_plugin_handler *csi_plugin_handler(const struct csi *c);
bool csi_busy(const struct csi *c);
void csi_close(struct csi *c); /* not busy, and the plugin watcher has ended; NULL is fine */

struct csi_driver_info { /* for CSINode, metrics and people */
    const char *name, *endpoint, *version;
    const struct csi_node_info *node;
};
/* NodeGetInfo once more, unless it is under way: `changed` follows if the driver allows another number of
 * volumes now. Errors are logged. */
void csi_ask_again(struct csi *c, const char *driver);
void csi_each_driver(const struct csi *c, void (*fn)(const struct csi_driver_info *d, void *arg), void *arg);

/* ---- one volume of a pod: set up ---- */
/*
 * NodeGetCapabilities, the target's folder with vol_data.json, NodePublishVolume, and then the fsGroup. The
 * volume is borrowed until done. An error has kubelet's text. After an error that is final (csi_is_uncertain)
 * vol_data.json is removed again, unless the target is mounted: by an earlier call.
 */
struct csi_mount {
    struct op op;
    /* private */
    struct csi *csi;
    const struct csi_volume *volume;
    csi_caps caps;
    struct grpc_channel *channel;
    struct grpc_call call;
    struct proc_call child;
    struct err failed; /* what the publish answered, while it is undone */
    char folder[CSI_PATH_SIZE], target[CSI_PATH_SIZE];
};
void csi_mount_start(struct csi_mount *m, struct csi *c, const struct csi_volume *v, op_done_fn done,
                     void *owner);

/* What the driver can, as it said last; valid in done if the result is OK. */
csi_caps csi_mount_caps(const struct csi_mount *m);

/* ---- how full a volume is ---- */
struct csi_stats {
    struct op op;
    struct csi_usage usage; /* valid in done if the result is OK */
    /* private */
    struct grpc_channel *channel;
    struct grpc_call call;
};
/* NodeGetVolumeStats; texts are borrowed for the call. */
void csi_stats_start(struct csi_stats *s, struct csi *c, const char *driver, const char *handle,
                     const char *path, op_done_fn done, void *owner);

/* ---- all volumes of a pod: undone ---- */
struct csi_known { /* a volume as its manifest names it, for one whose vol_data.json is lost */
    const char *name, *driver, *handle;
};
struct csi_removed; /* one volume being removed */
/*
 * Undoes every CSI volume that the pod has on the disk: NodeUnpublishVolume, then its folder. All are tried;
 * the result is the first error, which names volume and driver. Absent is success. ERR_PRECONDITION: a driver
 * said that it is done, and the target is still mounted.
 */
struct csi_remove {
    struct op op;
    /* private */
    struct csi *csi;
    char uid[128];
    struct arena memory;
    struct csi_removed *volumes;
    size_t n_volumes, at;
    const struct csi_known *known;
    size_t n_known;
    struct grpc_channel *channel;
    struct grpc_call call;
    struct proc_call child;
    struct err first;
};
void csi_remove_start(struct csi_remove *r, struct csi *c, const char *pod_uid, const struct csi_known *known,
                      size_t n_known, op_done_fn done, void *owner);
/* Whether the pod has a folder of CSI volumes: if it is absent, there is nothing to remove. */
struct presence csi_look(const struct csi *c, const char *pod_uid, struct err *e) MUST_CHECK;
#endif
