/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths - kubelet's paths of one CSI volume of a pod, on which drivers rely. Pure; any thread. Below
 * <root>/plugins/kubernetes.io/csi (P) and <root>/pods/<uid>:
 *
 *                a file system                            a block device
 *     device     P/<driver>/<sha256 of handle>            P/volumeDevices/<volume>/data
 *     staging    .../globalmount                          P/volumeDevices/staging/<volume>
 *     folder     volumes/kubernetes.io~csi/<volume>       P/volumeDevices/publish/<volume>
 *     target     .../mount                                P/volumeDevices/publish/<volume>/<uid>
 *     map, link  none                                     P/volumeDevices/<volume>/dev/<uid>, and
 *                                                         volumeDevices/kubernetes.io~csi/<volume>
 *
 * The pods of a volume share the device: it has a vol_data.json, as the folder of a file system.
 */
#ifndef VOLUMES_CSI_PATHS_H
#define VOLUMES_CSI_PATHS_H
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

#define CSI_PATH_SIZE 1024
#define CSI_VOLUMES "volumes/kubernetes.io~csi"       /* below <root>/pods/<uid> */
#define CSI_DEVICES "volumeDevices/kubernetes.io~csi" /* likewise */
#define CSI_PLUGIN "plugins/kubernetes.io/csi"        /* below <root> */
#define CSI_GLOBAL_MOUNT "globalmount"

struct csi_id {            /* which volume; texts are borrowed */
    const char *driver;    /* NULL: unknown, as after its file was lost */
    const char *handle;    /* likewise */
    const char *spec_name; /* of the PersistentVolume, or of the pod's inline volume; NULL: unknown */
    bool block, ephemeral;
};

struct csi_paths {                 /* in the arena */
    const char *device, *staging;  /* NULL: of an inline volume, or their parts are unknown */
    const char *folder, *target;   /* NULL: without `pod_uid` or spec_name */
    const char *publish;           /* of a block device: the folder of its targets; otherwise NULL */
    const char *maps, *map, *link; /* of a block device; otherwise NULL */
};

/* `pod_uid` NULL: those of the device only. ERR_INVALID: a name is no path element, or a path is too long. */
enum err_code csi_paths_make(struct csi_paths *ret, const char *root, const struct csi_id *id,
                             const char *pod_uid, struct arena *memory, struct err *e) MUST_CHECK;
/* An element of a path, as names of volumes and pods have to be. */
enum err_code csi_path_check(const char *what, const char *name, struct err *e) MUST_CHECK;
#endif
