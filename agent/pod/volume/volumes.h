/* SPDX-License-Identifier: Apache-2.0 */
/* volumes - the volumes of a pod.  Loop thread only. */
#ifndef AGENT_POD_VOLUME_VOLUMES_H
#define AGENT_POD_VOLUME_VOLUMES_H
#include "agent/pod/core/pod.h"
#include "agent/pod/volume/tokens.h"

extern const struct room volume_room;

void volumes_step(struct pod *p);
bool volumes_ready(const struct pod *p);           /* containers can be created with them */
bool volumes_working(const struct pod *p);         /* a child sets them up or removes them */
const char *volumes_shm_path(const struct pod *p); /* of the pod's /dev/shm */
/* A container was added that mounts what no other one does: it is set up, too, and those that start wait for
 * that. Existing volumes stay as they are. */
void volumes_more(struct pod *p);
void volumes_stale(struct pod *p); /* pod data shown in volumes changed */
/* A ConfigMap or Secret changed; does nothing if no volume uses it. */
void volumes_config_changed(struct pod *p, enum api_config_kind kind, const char *name);
/* A CSIDriver changed: volumes that wait for it are tried again. */
void volumes_drivers_changed(struct node *n);
/* A claim that a pod waits for may exist now. */
void volumes_claims_changed(struct pod *p);
/* ClusterTrustBundles changed; false: no volume shows any. */
bool volumes_trust_changed(struct pod *p);
bool volumes_mounts_changed(struct node *n); /* the room's mounts_changed, see room.h */
void volumes_explain(const struct pod *p, json_t *steps);
bool volumes_teardown_step(struct pod *p);
/* The condition of the pod's status that lists hidden files of its volumes; may be NULL. */
json_t *volumes_overlaps_json(const struct pod *p);
bool volumes_use_config(const struct api_pod *p, enum api_config_kind kind, const char *name);

/* The last usage that a volume's driver reported; false: it has no driver, or nothing is known. */
struct csi_usage;
bool volumes_driver_usage(const struct pod *p, const char *volume, struct csi_usage *ret, int64_t *ret_at_ns);
/* How full a volume is that the node mounted, as far as its server answers. False: nothing is known. */
struct volume_space {
    int64_t at_ns; /* wall clock */
    uint64_t capacity_bytes, available_bytes, used_bytes;
    uint64_t inodes, inodes_free;
};
bool volumes_space(const struct pod *p, const char *volume, struct volume_space *ret);
/* Of FlexVolumes that a controller attaches: "VENDOR/DRIVER/NAME" of each that the pod needs. */
void volumes_each_attached(const struct pod *p, void (*fn)(const char *name, void *arg), void *arg);
/* Driver and handle of a volume that the pod has, or is getting, from a CSI driver, whatever the objects say
 * by now; borrowed until the loop turns. False: it has none. */
bool volumes_driver_id(const struct pod *p, const char *volume, const char **ret_driver,
                       const char **ret_handle);
/* A CSI driver serves the volume, as far as is known. */
bool volumes_is_driver(const struct pod *p, const char *volume);

/* ---- subPath mounts that follow their volume: live_sub_path.h ---- */
void live_sub_path_begun(struct ctr *c); /* a new run began: discard the state of the last one */
void live_sub_path_due(struct pod *p);   /* mounts may differ from their volume: compare */
void live_sub_path_explain(const struct ctr *c, json_t *steps);

/* ---- ConfigMaps, Secrets and the like: pod_payloads.h ---- */
/*
 * Rewrites outdated volumes if that is possible now; does nothing else.  Returns false if there was nothing
 * to do.
 */
bool payloads_follow(struct pod *p);
#endif
