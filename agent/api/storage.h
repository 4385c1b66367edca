/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage - the source of a volume's data, in a PersistentVolume or directly in a pod (nfs, iscsi, fc,
 * flexVolume), and the other fields of a PersistentVolume. In the arena of its object, immutable.
 */
#ifndef AGENT_API_STORAGE_H
#define AGENT_API_STORAGE_H
#include "agent/api/types.h"

enum api_storage_kind {
    API_STORAGE_NONE,
    API_STORAGE_HOST_PATH,
    API_STORAGE_LOCAL,
    API_STORAGE_NFS,
    API_STORAGE_ISCSI,
    API_STORAGE_FC,
    API_STORAGE_FLEX,
    API_STORAGE_CSI,
};

struct api_storage_secret { /* name NULL: none; namespace_ NULL: the pod's */
    char *name, *namespace_;
};

struct api_storage {
    enum api_storage_kind kind;
    bool read_only;
    char *path;          /* hostPath, local, nfs */
    char *type;          /* hostPath; "": none is checked */
    char *fs_type;       /* local, iscsi, fc, flexVolume, csi; NULL: the default */
    char *server;        /* nfs */
    char *driver;        /* flexVolume, csi */
    struct api_kvs opts; /* flexVolume: options; csi: volumeAttributes */
    /* iscsi; fc has a LUN, too */
    char *portal, *iqn, *interface, *initiator;
    struct api_strs portals; /* besides `portal` */
    int32_t lun;             /* fc: -1 where none is given */
    bool chap_discovery, chap_session;
    struct api_strs wwns, wwids; /* fc */
    char *handle;                /* csi: volumeHandle */
    /* `secret`: of iscsi and flexVolume; the others are csi's. */
    struct api_storage_secret secret, stage_secret, publish_secret, expand_secret;
};

struct api_pv { /* a PersistentVolume's spec */
    struct api_storage storage;
    struct api_resource_list capacity; /* "storage" */
    struct api_strs access_modes, mount_options;
    char *storage_class, *attributes_class; /* NULL: none */
    char *volume_mode;                      /* "Filesystem" or "Block" */
    char *reclaim_policy;                   /* "Retain", "Delete" or "Recycle" */
    bool has_claim;                         /* claimRef */
    char *claim_namespace, *claim_name, *claim_uid;
    bool has_node_terms;
    struct api_node_term *node_terms;
    size_t n_node_terms;
};

bool api_pv_is_block(const struct api_pv *pv);
/* kubelet's check of a PersistentVolume's node affinity, by the labels of the node. */
bool api_pv_fits_node(const struct api_pv *pv, const char *node_name, const struct api_kvs *labels);
/* "nfs"; of a PersistentVolume without a source, "none". */
const char *api_storage_name(enum api_storage_kind kind);
/* The node itself attaches disks of this kind, as file systems or as block devices. */
bool api_storage_has_devices(enum api_storage_kind kind);
#endif
