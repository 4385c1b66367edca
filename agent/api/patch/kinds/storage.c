/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of PersistentVolumeClaim and PersistentVolume.  Of the drivers of volumes only the names are known.
 */
#include "agent/api/patch/kinds/tables.h"

static const struct api_row typed_local_object_reference[] = {
    ROW("apiGroup", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("kind", API_STRING),
    ROW("name", API_STRING),
    { 0 },
};
static const struct api_schema typed_local_object_reference_schema =
    SCHEMA("TypedLocalObjectReference", typed_local_object_reference, .atomic = true);

static const struct api_row typed_object_reference[] = {
    ROW("apiGroup", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("kind", API_STRING),
    ROW("name", API_STRING),
    ROW("namespace", API_STRING, .flags = API_KEEP_EMPTY),
    { 0 },
};
static const struct api_schema typed_object_reference_schema =
    SCHEMA("TypedObjectReference", typed_object_reference);

static const struct api_row volume_resource_requirements[] = {
    ROW("limits", API_RESOURCES),
    ROW("requests", API_RESOURCES),
    { 0 },
};
static const struct api_schema volume_resource_requirements_schema =
    SCHEMA("VolumeResourceRequirements", volume_resource_requirements);

static const struct api_row persistent_volume_claim_spec[] = {
    ROW("accessModes", API_STRINGS),
    ROW("dataSource", API_OBJECT, .nested = &typed_local_object_reference_schema),
    ROW("dataSourceRef", API_OBJECT, .nested = &typed_object_reference_schema),
    ROW("resources", API_OBJECT, .nested = &volume_resource_requirements_schema),
    ROW("selector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("storageClassName", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("volumeAttributesClassName", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("volumeMode", API_STRING, .flags = API_KEEP_EMPTY, .otherwise = "Filesystem"),
    ROW("volumeName", API_STRING),
    { 0 },
};
static const struct api_schema persistent_volume_claim_spec_schema =
    SCHEMA("PersistentVolumeClaimSpec", persistent_volume_claim_spec);

static const struct api_row persistent_volume_claim_condition[] = {
    ROW("lastProbeTime", API_STRING, .otherwise = "null"),
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema persistent_volume_claim_condition_schema =
    SCHEMA("PersistentVolumeClaimCondition", persistent_volume_claim_condition);

static const struct api_row modify_volume_status[] = {
    ROW("status", API_STRING),
    ROW("targetVolumeAttributesClassName", API_STRING),
    { 0 },
};
static const struct api_schema modify_volume_status_schema =
    SCHEMA("ModifyVolumeStatus", modify_volume_status);

static const struct api_row persistent_volume_claim_status[] = {
    ROW("accessModes", API_STRINGS),
    ROW("allocatedResourceStatuses", API_STRING_MAP),
    ROW("allocatedResources", API_RESOURCES),
    ROW("capacity", API_RESOURCES),
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &persistent_volume_claim_condition_schema),
    ROW("currentVolumeAttributesClassName", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("modifyVolumeStatus", API_OBJECT, .nested = &modify_volume_status_schema),
    ROW("phase", API_STRING, .otherwise = "Pending"),
    { 0 },
};
const struct api_schema patch_schema_claim_status =
    SCHEMA("PersistentVolumeClaimStatus", persistent_volume_claim_status);

static const struct api_row persistent_volume_claim[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &persistent_volume_claim_spec_schema),
    ROW("status", API_OBJECT, .nested = &patch_schema_claim_status),
    { 0 },
};
const struct api_schema patch_schema_claim = SCHEMA("PersistentVolumeClaim", persistent_volume_claim);

static const struct api_row object_reference[] = {
    ROW("apiVersion", API_STRING), ROW("fieldPath", API_STRING),
    ROW("kind", API_STRING),       ROW("name", API_STRING),
    ROW("namespace", API_STRING),  ROW("resourceVersion", API_STRING),
    ROW("uid", API_STRING),        { 0 },
};
static const struct api_schema object_reference_schema =
    SCHEMA("ObjectReference", object_reference, .atomic = true);

static const struct api_row secret_reference[] = {
    ROW("name", API_STRING),
    ROW("namespace", API_STRING),
    { 0 },
};
static const struct api_schema secret_reference_schema =
    SCHEMA("SecretReference", secret_reference, .atomic = true);

static const struct api_row csi_persistent_volume_source[] = {
    ROW("controllerExpandSecretRef", API_OBJECT, .nested = &secret_reference_schema),
    ROW("controllerPublishSecretRef", API_OBJECT, .nested = &secret_reference_schema),
    ROW("driver", API_STRING),
    ROW("fsType", API_STRING),
    ROW("nodeExpandSecretRef", API_OBJECT, .nested = &secret_reference_schema),
    ROW("nodePublishSecretRef", API_OBJECT, .nested = &secret_reference_schema),
    ROW("nodeStageSecretRef", API_OBJECT, .nested = &secret_reference_schema),
    ROW("readOnly", API_BOOL, .flags = API_ZERO_ABSENT),
    ROW("volumeAttributes", API_STRING_MAP),
    ROW("volumeHandle", API_STRING),
    { 0 },
};
static const struct api_schema csi_persistent_volume_source_schema =
    SCHEMA("CSIPersistentVolumeSource", csi_persistent_volume_source);

static const struct api_row host_path_volume_source[] = {
    ROW("path", API_STRING),
    ROW("type", API_STRING, .flags = API_KEEP_EMPTY),
    { 0 },
};
static const struct api_schema host_path_volume_source_schema =
    SCHEMA("HostPathVolumeSource", host_path_volume_source);

static const struct api_row local_volume_source[] = {
    ROW("fsType", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("path", API_STRING),
    { 0 },
};
static const struct api_schema local_volume_source_schema = SCHEMA("LocalVolumeSource", local_volume_source);

static const struct api_row nfs_volume_source[] = {
    ROW("path", API_STRING),
    ROW("readOnly", API_BOOL, .flags = API_ZERO_ABSENT),
    ROW("server", API_STRING),
    { 0 },
};
static const struct api_schema nfs_volume_source_schema = SCHEMA("NFSVolumeSource", nfs_volume_source);

static const struct api_row volume_node_affinity[] = {
    ROW("required", API_OBJECT, .nested = &api_schema_node_selector),
    { 0 },
};
static const struct api_schema volume_node_affinity_schema =
    SCHEMA("VolumeNodeAffinity", volume_node_affinity);

static const struct api_row persistent_volume_spec[] = {
    ROW("accessModes", API_STRINGS),
    ROW("awsElasticBlockStore", API_ANY),
    ROW("azureDisk", API_ANY),
    ROW("azureFile", API_ANY),
    ROW("capacity", API_RESOURCES),
    ROW("cephfs", API_ANY),
    ROW("cinder", API_ANY),
    ROW("claimRef", API_OBJECT, .nested = &object_reference_schema),
    ROW("csi", API_OBJECT, .nested = &csi_persistent_volume_source_schema),
    ROW("fc", API_ANY),
    ROW("flexVolume", API_ANY),
    ROW("flocker", API_ANY),
    ROW("gcePersistentDisk", API_ANY),
    ROW("glusterfs", API_ANY),
    ROW("hostPath", API_OBJECT, .nested = &host_path_volume_source_schema),
    ROW("iscsi", API_ANY),
    ROW("local", API_OBJECT, .nested = &local_volume_source_schema),
    ROW("mountOptions", API_STRINGS),
    ROW("nfs", API_OBJECT, .nested = &nfs_volume_source_schema),
    ROW("nodeAffinity", API_OBJECT, .nested = &volume_node_affinity_schema),
    ROW("persistentVolumeReclaimPolicy", API_STRING, .otherwise = "Retain"),
    ROW("photonPersistentDisk", API_ANY),
    ROW("portworxVolume", API_ANY),
    ROW("quobyte", API_ANY),
    ROW("rbd", API_ANY),
    ROW("scaleIO", API_ANY),
    ROW("storageClassName", API_STRING),
    ROW("storageos", API_ANY),
    ROW("volumeAttributesClassName", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("volumeMode", API_STRING, .flags = API_KEEP_EMPTY, .otherwise = "Filesystem"),
    ROW("vsphereVolume", API_ANY),
    { 0 },
};
static const struct api_schema persistent_volume_spec_schema =
    SCHEMA("PersistentVolumeSpec", persistent_volume_spec);

static const struct api_row persistent_volume_status[] = {
    ROW("lastPhaseTransitionTime", API_STRING),
    ROW("message", API_STRING),
    ROW("phase", API_STRING),
    ROW("reason", API_STRING),
    { 0 },
};
static const struct api_schema persistent_volume_status_schema =
    SCHEMA("PersistentVolumeStatus", persistent_volume_status);

static const struct api_row persistent_volume[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &persistent_volume_spec_schema),
    ROW("status", API_OBJECT, .nested = &persistent_volume_status_schema),
    { 0 },
};
const struct api_schema patch_schema_volume = SCHEMA("PersistentVolume", persistent_volume);
