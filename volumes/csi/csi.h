/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi - the node's side of CSI: drivers that registered, and calls to them for the volumes of pods. Loop
 * thread only; nothing here blocks. Everything that may hang (a driver, a mount of it) is a call with a
 * deadline or a child that can be killed, so a bad driver holds its own volumes only.
 *
 *   drivers.c   drivers register through the plugin watcher (deviceplugin/plugin/plugins.h), with NodeGetInfo
 *   mount.c     sets up one volume of a pod; stage.c what its pods share, expand.c its size
 *   remove.c    undoes the volumes of a pod, as found on the disk
 *   release.c   unstages what no pod has any more (unstage.c)
 *   turns.c     one operation at a time on what pods share
 *   volume.h, messages.h, vol_data.h, version.h, paths.h   pure: requests, answers, files, versions, paths
 *
 * The state on the disk decides, not memory. The agent writes vol_data.json beside the target before it calls
 * NodePublishVolume, and removes it after NodeUnpublishVolume has succeeded and nothing is mounted any more.
 * NodeStageVolume and NodeUnstageVolume have a vol_data.json of their own. So a removal after a restart, or
 * of a forgotten pod, finds the calls that have to be undone. A set-up repeats its calls after a restart, as
 * kubelet does: the calls of CSI are idempotent.
 */
#ifndef VOLUMES_CSI_CSI_H
#define VOLUMES_CSI_CSI_H
#include "base/grpc/client.h"
#include "base/presence.h"
#include "base/process/process.h"
#include "deviceplugin/plugin/plugins.h"
#include "volumes/csi/messages.h"
#include "volumes/csi/paths.h"

#define CSI_CALL_MS 120000 /* deadline of a call: kubelet's csiTimeout */

struct csi;

struct csi_options { /* texts are copied */
    uv_loop_t *loop;
    const char *root_dir;  /* kubelet's folder: <root>/pods, <root>/plugins */
    const char *node_name; /* for names of attachments */
    int cgroup_fd;         /* of children, as in struct proc_call_spec */
    const char *cgroup_procs;
    /* Whether a driver may register, of which this is known; the driver gets the error. May be NULL. */
    enum err_code (*admit)(const char *driver, const struct csi_node_info *info, void *arg, struct err *e);
    /* A driver registered, or is gone; may be NULL. */
    void (*changed)(const char *driver, bool here, void *arg);
    /* In the child that searches for volumes to remove: removes the agent's own mounts on them (subPath),
     * which would keep them busy. */
    enum err_code (*let_go)(const char *pod_uid, void *arg, struct err *e);
    /* Whether a pod still wants the volume staged there, so that it is not unstaged; may be NULL. */
    bool (*wanted)(const char *staging, void *arg);
    /* Driver and handle of a staged volume whose vol_data.json is lost, by its folder; may be NULL. The texts
     * are borrowed until the loop turns. */
    bool (*find)(const char *device, struct csi_id *ret, void *arg);
    /* An unstaging failed, once for each error; of a driver that is away, if it stays so. May be NULL. */
    void (*not_released)(const struct csi_id *id, const struct err *why, void *arg);
    /* One begins or ends, or a scan for some; for the end of the node. May be NULL. */
    void (*releasing)(bool begins, void *arg);
    void *arg;
};
enum err_code csi_open(struct csi **ret, const struct csi_options *o, struct err *e) MUST_CHECK;
/* For dp_plugins_options; borrowed while it exists. */
const struct dp_plugin_handler *csi_plugin_handler(const struct csi *c);
bool csi_busy(const struct csi *c);
void csi_cancel(struct csi *c); /* the agent is shutting down: operations are cancelled, and no new one
                                 * begins */
void csi_close(struct csi *c);  /* not busy, and the plugin watcher has ended; NULL is fine */

struct csi_driver_info { /* for CSINode, metrics and people */
    const char *name, *endpoint, *version;
    const struct csi_node_info *node;
};
/* NodeGetInfo once more, unless it is under way: `changed` follows if the driver allows another number of
 * volumes now. Errors are logged. */
void csi_ask_again(struct csi *c, const char *driver);
void csi_each_driver(const struct csi *c, void (*fn)(const struct csi_driver_info *d, void *arg), void *arg);

/* ---- operations on one device take their turns ---- */
struct csi_turn {
    TAILQ_ENTRY(csi_turn) link;
    const char *key; /* NULL: none is taken or waited for */
    void (*next)(void *arg);
    void *arg;
};

/* ---- one volume of a pod: set up ---- */
struct csi_mount;
struct csi_stage {
    struct op op;
    /* private */
    struct csi *csi;
    const struct csi_volume *volume;
    const struct csi_paths *paths;
    csi_caps caps;
    struct grpc_channel *channel; /* of the set-up */
    struct grpc_call call;
    struct proc_call child;
    struct err failed; /* the driver's answer, while the set-up is undone */
};

struct csi_expand {
    struct op op;
    uint64_t bytes; /* the present size as reported by the driver; 0: not reported. Valid in done if the
                     * result is OK */
    /* private */
    struct csi *csi;
    const struct csi_volume *volume;
    csi_caps caps;
    uint64_t wanted;
    struct arena memory;
    struct grpc_channel *channel;
    struct grpc_call call;
};
/* NodeExpandVolume of a published volume, which is borrowed until done. ERR_UNIMPLEMENTED: the driver cannot.
 */
void csi_expand_start(struct csi_expand *x, struct csi *c, const struct csi_volume *v, csi_caps caps,
                      uint64_t bytes, op_done_fn done, void *owner);

/*
 * NodeGetCapabilities; NodeStageVolume, if the driver stages and this was not done; the target's folder with
 * vol_data.json; NodePublishVolume; then the fsGroup, and NodeExpandVolume if expand_bytes is given. The
 * volume is borrowed until done. An error has kubelet's text; csi_mount_step() names the failed step. After a
 * final error (see csi_is_uncertain) vol_data.json is removed again, unless an earlier call has mounted the
 * volume. csi_release() unstages a volume that stays staged.
 */
enum csi_step { CSI_STEP_STAGE, CSI_STEP_PUBLISH, CSI_STEP_EXPAND };
struct csi_mount {
    struct op op;
    /* private */
    struct csi *csi;
    const struct csi_volume *volume;
    struct csi_paths paths;
    struct arena memory; /* of the paths */
    csi_caps caps;
    enum csi_step step;
    bool stops; /* csi_mount_stop() */
    struct csi_turn turn;
    struct csi_stage stage;
    struct csi_expand expand;
    struct grpc_channel *channel;
    struct grpc_call call;
    struct proc_call child;
    struct err failed; /* the answer to the publish, while it is undone */
};
void csi_mount_start(struct csi_mount *m, struct csi *c, const struct csi_volume *v, op_done_fn done,
                     void *owner);
enum csi_step csi_mount_step(const struct csi_mount *m); /* where it is, or failed */
/* Its pod is ending: the set-up ends after the driver has answered the current call, so that the call cannot
 * take effect after it is undone; it ends at once if no call is in progress. op_cancel() does not wait for an
 * answer. */
void csi_mount_stop(struct csi_mount *m);
bool csi_mount_stopped(const struct csi_mount *m); /* or cancelled */

/* The driver's capabilities, as last reported; valid in done if the result is OK. */
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
struct csi_known {    /* a volume as the objects name it, for one whose vol_data.json is lost */
    const char *name; /* spec_name */
    const char *driver, *handle;
    bool ephemeral;
};
struct csi_removed; /* one volume being removed */
/*
 * Removes every CSI volume of the pod that is on disk: NodeUnpublishVolume, then its folder; staged volumes
 * are released. All volumes are tried; the result is the first error, which names volume and driver. No
 * volume is a success. ERR_PRECONDITION: a driver reported success, but the target is still mounted.
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
    struct csi_turn turn;
    struct grpc_channel *channel;
    struct grpc_call call;
    struct proc_call child;
    struct err first;
};
void csi_remove_start(struct csi_remove *r, struct csi *c, const char *pod_uid, const struct csi_known *known,
                      size_t n_known, op_done_fn done, void *owner);
/* Whether the pod has a folder of CSI volumes: if it is absent, there is nothing to remove. */
struct presence csi_has_volumes(const struct csi *c, const char *pod_uid, struct err *e) MUST_CHECK;

/* ---- staged volumes ---- */
/* A pod has released this volume: it is unstaged if that was the last pod, and tried until that succeeds. */
void csi_release(struct csi *c, const struct csi_id *id);
/* Releases volumes that an earlier run of the agent left staged; after all pods are known. */
void csi_sweep(struct csi *c);
/* Those that are not unstaged yet; `error`: of the last try, or "". */
void csi_each_release(const struct csi *c, void (*fn)(const struct csi_id *id, const char *error, void *arg),
                      void *arg);
#endif
