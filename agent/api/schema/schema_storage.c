/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of PersistentVolume and of the sources of volumes that it shares with pods. */
#include "agent/api/generic.h"
#include "agent/api/schema/schema.h"
#include "agent/api/storage.h"

static const char controllers[] = "it is for controllers of the driver";

#define OF(kind_) .size = sizeof(struct api_storage), .init = AT(api_storage, kind), .init_value = (kind_)
#define FS_TYPE ROW("fsType", API_STRING, SLOT(api_storage, fs_type))
#define READ_ONLY ROW("readOnly", API_BOOL, SLOT(api_storage, read_only), .flags = API_ZERO_ABSENT)

/* ---- references to Secrets ---- */
static const struct api_row of_volume[] = {
    ROW("name", API_STRING, SLOT(api_storage_secret, name)),
    ROW("namespace", API_STRING, SLOT(api_storage_secret, namespace_)),
    { 0 },
};
static const struct api_schema of_volume_schema = SCHEMA("SecretReference", of_volume);
static const struct api_row of_pod[] = {
    ROW("name", API_STRING, SLOT(api_storage_secret, name)),
    { 0 },
};
static const struct api_schema of_pod_schema = SCHEMA("LocalObjectReference", of_pod);

#define SECRET(field, slot_, schema_) ROW(field, API_OBJECT, SLOT(api_storage, slot_), .nested = &(schema_))

/* ---- sources ---- */
static const struct api_row nfs[] = {
    ROW("server", API_STRING, SLOT(api_storage, server), .flags = API_REQUIRED),
    ROW("path", API_STRING, SLOT(api_storage, path), .flags = API_REQUIRED),
    READ_ONLY,
    { 0 },
};
const struct api_schema api_schema_nfs = SCHEMA("NFSVolumeSource", nfs, OF(API_STORAGE_NFS));

static const struct api_row iscsi[] = {
    ROW("targetPortal", API_STRING, SLOT(api_storage, portal), .flags = API_REQUIRED),
    ROW("iqn", API_STRING, SLOT(api_storage, iqn), .flags = API_REQUIRED),
    ROW("lun", API_INT32, SLOT(api_storage, lun), RANGE(0, 255)),
    ROW("iscsiInterface", API_STRING, SLOT(api_storage, interface), .otherwise = "default"),
    FS_TYPE,
    READ_ONLY,
    ROW("portals", API_STRINGS, SLOT(api_storage, portals)),
    ROW("chapAuthDiscovery", API_BOOL, SLOT(api_storage, chap_discovery), .flags = API_ZERO_ABSENT),
    ROW("chapAuthSession", API_BOOL, SLOT(api_storage, chap_session), .flags = API_ZERO_ABSENT),
    ROW("initiatorName", API_STRING, SLOT(api_storage, initiator)),
    { 0 },
};
static const struct api_schema iscsi_common = SCHEMA("ISCSIVolumeSource", iscsi);
static const struct api_row iscsi_of_pod[] = { SECRET("secretRef", secret, of_pod_schema), { 0 } };
const struct api_schema api_schema_iscsi =
    SCHEMA("ISCSIVolumeSource", iscsi_of_pod, .base = &iscsi_common, OF(API_STORAGE_ISCSI));
static const struct api_row iscsi_of_volume[] = { SECRET("secretRef", secret, of_volume_schema), { 0 } };
static const struct api_schema iscsi_volume_schema =
    SCHEMA("ISCSIPersistentVolumeSource", iscsi_of_volume, .base = &iscsi_common, OF(API_STORAGE_ISCSI));

static const struct api_row fc[] = {
    ROW("targetWWNs", API_STRINGS, SLOT(api_storage, wwns)),
    ROW("lun", API_INT32, SLOT(api_storage, lun), .absent = -1, RANGE(0, 255)),
    FS_TYPE,
    READ_ONLY,
    ROW("wwids", API_STRINGS, SLOT(api_storage, wwids)),
    { 0 },
};
const struct api_schema api_schema_fc = SCHEMA("FCVolumeSource", fc, OF(API_STORAGE_FC));

static const struct api_row flex[] = {
    ROW("driver", API_STRING, SLOT(api_storage, driver), .flags = API_REQUIRED),
    FS_TYPE,
    READ_ONLY,
    ROW("options", API_STRING_MAP, SLOT(api_storage, opts)),
    { 0 },
};
static const struct api_schema flex_common = SCHEMA("FlexVolumeSource", flex);
static const struct api_row flex_of_pod[] = { SECRET("secretRef", secret, of_pod_schema), { 0 } };
const struct api_schema api_schema_flex =
    SCHEMA("FlexVolumeSource", flex_of_pod, .base = &flex_common, OF(API_STORAGE_FLEX));
static const struct api_row flex_of_volume[] = { SECRET("secretRef", secret, of_volume_schema), { 0 } };
static const struct api_schema flex_volume_schema =
    SCHEMA("FlexPersistentVolumeSource", flex_of_volume, .base = &flex_common, OF(API_STORAGE_FLEX));

static const struct api_row local[] = {
    ROW("path", API_STRING, SLOT(api_storage, path), .flags = API_REQUIRED, .format = API_FMT_NO_BACKSTEPS),
    FS_TYPE,
    { 0 },
};
static const struct api_schema local_schema = SCHEMA("LocalVolumeSource", local, OF(API_STORAGE_LOCAL));

static const struct api_row host_path[] = {
    ROW("path", API_STRING, SLOT(api_storage, path), .flags = API_REQUIRED, .format = API_FMT_NO_BACKSTEPS),
    ROW("type", API_STRING, SLOT(api_storage, type), .flags = API_KEEP_EMPTY | API_EMPTY_TEXT,
        .values = api_values_host_path, .otherwise = ""),
    { 0 },
};
static const struct api_schema host_path_schema =
    SCHEMA("HostPathVolumeSource", host_path, OF(API_STORAGE_HOST_PATH));

static const struct api_row csi[] = {
    ROW("driver", API_STRING, SLOT(api_storage, driver), .flags = API_REQUIRED),
    ROW("volumeHandle", API_STRING, SLOT(api_storage, handle), .flags = API_REQUIRED),
    READ_ONLY,
    FS_TYPE,
    ROW("volumeAttributes", API_STRING_MAP, SLOT(api_storage, opts)),
    ROW("controllerPublishSecretRef", API_OBJECT, .nested = &of_volume_schema, ACCEPTED(controllers)),
    SECRET("nodeStageSecretRef", stage_secret, of_volume_schema),
    SECRET("nodePublishSecretRef", publish_secret, of_volume_schema),
    ROW("controllerExpandSecretRef", API_OBJECT, .nested = &of_volume_schema, ACCEPTED(controllers)),
    SECRET("nodeExpandSecretRef", expand_secret, of_volume_schema),
    { 0 },
};
static const struct api_schema csi_schema = SCHEMA("CSIPersistentVolumeSource", csi, OF(API_STORAGE_CSI));

/* ---- claimRef, nodeAffinity ---- */
static const char dropped[] = "it is not binding";
static const struct api_row claim_ref[] = {
    ROW("kind", API_STRING, ACCEPTED(dropped)),
    ROW("namespace", API_STRING, SLOT(api_pv, claim_namespace), .otherwise = "default"),
    ROW("name", API_STRING, SLOT(api_pv, claim_name), .flags = API_REQUIRED),
    ROW("uid", API_STRING, SLOT(api_pv, claim_uid)),
    ROW("apiVersion", API_STRING, ACCEPTED(dropped)),
    ROW("resourceVersion", API_STRING, ACCEPTED(dropped)),
    ROW("fieldPath", API_STRING, ACCEPTED(dropped)),
    { 0 },
};
static const struct api_schema claim_ref_schema = SCHEMA("ObjectReference", claim_ref);

static const struct api_row node_selector[] = {
    ROW("nodeSelectorTerms", API_LIST, SLOTS(api_pv, node_terms), .flags = API_REQUIRED,
        .nested = &api_schema_node_term),
    { 0 },
};
static const struct api_schema node_selector_schema = SCHEMA("NodeSelector", node_selector);
static const struct api_row node_affinity[] = {
    ROW("required", API_OBJECT, .slot = HERE, .has = AT(api_pv, has_node_terms),
        .nested = &node_selector_schema),
    { 0 },
};
static const struct api_schema node_affinity_schema = SCHEMA("VolumeNodeAffinity", node_affinity);

/* ---- PersistentVolume ---- */
static const char removed[] = "Kubernetes itself has removed or retired this volume type";
static const char moved[] = "Kubernetes itself hands this volume type to a CSI driver: use csi";

static const struct api_value reclaim_policies[] = {
    { "Retain", 0 }, { "Delete", 0 }, { "Recycle", 0 }, { NULL, 0 }
};
static const struct api_value volume_modes[] = { { "Block", 0 }, { "Filesystem", 0 }, { NULL, 0 } };

#define SOURCE(field, schema_)                                                                               \
    ROW(field, API_OBJECT, SLOT(api_pv, storage), .nested = &(schema_), .support = API_ACTED)
#define NOT_HERE(field, reason) ROW(field, API_ANY, REFUSED(reason))

static const struct api_row spec[] = {
    SOURCE("hostPath", host_path_schema),
    SOURCE("local", local_schema),
    SOURCE("nfs", api_schema_nfs),
    SOURCE("iscsi", iscsi_volume_schema),
    SOURCE("fc", api_schema_fc),
    SOURCE("flexVolume", flex_volume_schema),
    SOURCE("csi", csi_schema),
    NOT_HERE("gcePersistentDisk", moved),
    NOT_HERE("awsElasticBlockStore", moved),
    NOT_HERE("azureDisk", moved),
    NOT_HERE("azureFile", moved),
    NOT_HERE("cinder", moved),
    NOT_HERE("vsphereVolume", moved),
    NOT_HERE("portworxVolume", moved),
    NOT_HERE("cephfs", removed),
    NOT_HERE("rbd", removed),
    NOT_HERE("glusterfs", removed),
    NOT_HERE("flocker", removed),
    NOT_HERE("photonPersistentDisk", removed),
    NOT_HERE("quobyte", removed),
    NOT_HERE("scaleIO", removed),
    NOT_HERE("storageos", removed),
    ROW("capacity", API_RESOURCES, SLOT(api_pv, capacity)),
    ROW("accessModes", API_STRINGS, SLOT(api_pv, access_modes), .values = api_values_access_modes),
    ROW("claimRef", API_OBJECT, .slot = HERE, .has = AT(api_pv, has_claim), .nested = &claim_ref_schema),
    ROW("persistentVolumeReclaimPolicy", API_STRING, SLOT(api_pv, reclaim_policy), .values = reclaim_policies,
        .otherwise = "Retain"),
    ROW("storageClassName", API_STRING, SLOT(api_pv, storage_class)),
    ROW("mountOptions", API_STRINGS, SLOT(api_pv, mount_options)),
    ROW("volumeMode", API_STRING, SLOT(api_pv, volume_mode), .values = volume_modes,
        .otherwise = "Filesystem"),
    ROW("nodeAffinity", API_OBJECT, .slot = HERE, .nested = &node_affinity_schema),
    ROW("volumeAttributesClassName", API_STRING, SLOT(api_pv, attributes_class)),
    { 0 },
};
static const struct api_schema spec_schema =
    SCHEMA("PersistentVolumeSpec", spec, .size = sizeof(struct api_pv),
           .one_of = "may not specify more than 1 volume type", .one_of_none = "must specify a volume type",
           .one_of_first = "hostPath", .one_of_last = "storageos");

static const struct api_row persistent_volume[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &api_schema_cluster_meta,
        .otherwise = "{}"),
    ROW("spec", API_OBJECT, SLOT(api_generic, pv), .nested = &spec_schema,
        .flags = API_POINTER | API_REQUIRED),
    ROW("status", API_ANY, .flags = API_DROP,
        ACCEPTED("the status is what the node reports; one in a manifest is dropped")),
    { 0 },
};
const struct api_schema api_schema_persistent_volume = SCHEMA("PersistentVolume", persistent_volume);
