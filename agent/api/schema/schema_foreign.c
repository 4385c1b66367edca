/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the volume sources that are refused (see schema_volume.c): their fields are checked anyway, so
 * that other mistakes in a manifest show at once. */
#include "agent/api/schema/schema.h"

#define TEXT(field) ROW(field, API_STRING)
#define NUMBER(field) ROW(field, API_INT32)
#define FLAG(field) ROW(field, API_BOOL)
#define TEXTS(field) ROW(field, API_STRINGS)
#define MAP(field) ROW(field, API_STRING_MAP)
#define LOCAL_REF(field) ROW(field, API_OBJECT, .nested = &api_schema_local_ref)

static const struct api_row gce_disk[] = {
    TEXT("pdName"), TEXT("fsType"), NUMBER("partition"), FLAG("readOnly"), { 0 }
};
const struct api_schema api_schema_gce_disk = SCHEMA("GCEPersistentDiskVolumeSource", gce_disk);

static const struct api_row aws_disk[] = {
    TEXT("volumeID"), TEXT("fsType"), NUMBER("partition"), FLAG("readOnly"), { 0 }
};
const struct api_schema api_schema_aws_disk = SCHEMA("AWSElasticBlockStoreVolumeSource", aws_disk);

static const struct api_row git_repo[] = { TEXT("repository"), TEXT("revision"), TEXT("directory"), { 0 } };
const struct api_schema api_schema_git_repo = SCHEMA("GitRepoVolumeSource", git_repo);

static const struct api_row nfs[] = { TEXT("server"), TEXT("path"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_nfs = SCHEMA("NFSVolumeSource", nfs);

static const struct api_row iscsi[] = { TEXT("targetPortal"),    TEXT("iqn"),
                                        NUMBER("lun"),           TEXT("iscsiInterface"),
                                        TEXT("fsType"),          FLAG("readOnly"),
                                        TEXTS("portals"),        FLAG("chapAuthDiscovery"),
                                        FLAG("chapAuthSession"), LOCAL_REF("secretRef"),
                                        TEXT("initiatorName"),   { 0 } };
const struct api_schema api_schema_iscsi = SCHEMA("ISCSIVolumeSource", iscsi);

static const struct api_row glusterfs[] = { TEXT("endpoints"), TEXT("path"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_glusterfs = SCHEMA("GlusterfsVolumeSource", glusterfs);

static const struct api_row claim_volume[] = { TEXT("claimName"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_claim_volume = SCHEMA("PersistentVolumeClaimVolumeSource", claim_volume);

static const struct api_row rbd[] = { TEXTS("monitors"),      TEXT("image"),    TEXT("fsType"),
                                      TEXT("pool"),           TEXT("user"),     TEXT("keyring"),
                                      LOCAL_REF("secretRef"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_rbd = SCHEMA("RBDVolumeSource", rbd);

static const struct api_row flex[] = { TEXT("driver"),   TEXT("fsType"), LOCAL_REF("secretRef"),
                                       FLAG("readOnly"), MAP("options"), { 0 } };
const struct api_schema api_schema_flex = SCHEMA("FlexVolumeSource", flex);

static const struct api_row cinder[] = {
    TEXT("volumeID"), TEXT("fsType"), FLAG("readOnly"), LOCAL_REF("secretRef"), { 0 }
};
const struct api_schema api_schema_cinder = SCHEMA("CinderVolumeSource", cinder);

static const struct api_row cephfs[] = {
    TEXTS("monitors"),      TEXT("path"),     TEXT("user"), TEXT("secretFile"),
    LOCAL_REF("secretRef"), FLAG("readOnly"), { 0 }
};
const struct api_schema api_schema_cephfs = SCHEMA("CephFSVolumeSource", cephfs);

static const struct api_row flocker[] = { TEXT("datasetName"), TEXT("datasetUUID"), { 0 } };
const struct api_schema api_schema_flocker = SCHEMA("FlockerVolumeSource", flocker);

static const struct api_row fc[] = { TEXTS("targetWWNs"), NUMBER("lun"),  TEXT("fsType"),
                                     FLAG("readOnly"),    TEXTS("wwids"), { 0 } };
const struct api_schema api_schema_fc = SCHEMA("FCVolumeSource", fc);

static const struct api_row azure_file[] = { TEXT("secretName"), TEXT("shareName"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_azure_file = SCHEMA("AzureFileVolumeSource", azure_file);

static const struct api_row vsphere[] = {
    TEXT("volumePath"), TEXT("fsType"), TEXT("storagePolicyName"), TEXT("storagePolicyID"), { 0 }
};
const struct api_schema api_schema_vsphere = SCHEMA("VsphereVirtualDiskVolumeSource", vsphere);

static const struct api_row quobyte[] = {
    TEXT("registry"), TEXT("volume"), FLAG("readOnly"), TEXT("user"), TEXT("group"), TEXT("tenant"), { 0 }
};
const struct api_schema api_schema_quobyte = SCHEMA("QuobyteVolumeSource", quobyte);

static const struct api_row azure_disk[] = { TEXT("diskName"),
                                             TEXT("diskURI"),
                                             TEXT("cachingMode"),
                                             TEXT("fsType"),
                                             FLAG("readOnly"),
                                             TEXT("kind"),
                                             { 0 } };
const struct api_schema api_schema_azure_disk = SCHEMA("AzureDiskVolumeSource", azure_disk);

static const struct api_row photon[] = { TEXT("pdID"), TEXT("fsType"), { 0 } };
const struct api_schema api_schema_photon = SCHEMA("PhotonPersistentDiskVolumeSource", photon);

static const struct api_row portworx[] = { TEXT("volumeID"), TEXT("fsType"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_portworx = SCHEMA("PortworxVolumeSource", portworx);

static const struct api_row scale_io[] = { TEXT("gateway"),
                                           TEXT("system"),
                                           LOCAL_REF("secretRef"),
                                           FLAG("sslEnabled"),
                                           TEXT("protectionDomain"),
                                           TEXT("storagePool"),
                                           TEXT("storageMode"),
                                           TEXT("volumeName"),
                                           TEXT("fsType"),
                                           FLAG("readOnly"),
                                           { 0 } };
const struct api_schema api_schema_scale_io = SCHEMA("ScaleIOVolumeSource", scale_io);

static const struct api_row storage_os[] = { TEXT("volumeName"), TEXT("volumeNamespace"), TEXT("fsType"),
                                             FLAG("readOnly"),   LOCAL_REF("secretRef"),  { 0 } };
const struct api_schema api_schema_storage_os = SCHEMA("StorageOSVolumeSource", storage_os);

static const struct api_row csi[] = { TEXT("driver"),
                                      FLAG("readOnly"),
                                      TEXT("fsType"),
                                      MAP("volumeAttributes"),
                                      LOCAL_REF("nodePublishSecretRef"),
                                      { 0 } };
const struct api_schema api_schema_csi = SCHEMA("CSIVolumeSource", csi);

/* ---- ephemeral: a claim inside the pod ---- */
static const struct api_row typed_ref[] = { TEXT("apiGroup"), TEXT("kind"), TEXT("name"), { 0 } };
static const struct api_schema typed_ref_schema = SCHEMA("TypedLocalObjectReference", typed_ref);

static const struct api_row object_ref[] = {
    TEXT("apiGroup"), TEXT("kind"), TEXT("name"), TEXT("namespace"), { 0 }
};
static const struct api_schema object_ref_schema = SCHEMA("TypedObjectReference", object_ref);

static const struct api_row claim_resources[] = {
    ROW("limits", API_RESOURCES),
    ROW("requests", API_RESOURCES),
    { 0 },
};
static const struct api_schema claim_resources_schema = SCHEMA("VolumeResourceRequirements", claim_resources);

static const struct api_row claim_spec[] = {
    TEXTS("accessModes"),
    ROW("selector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("resources", API_OBJECT, .nested = &claim_resources_schema),
    TEXT("volumeName"),
    TEXT("storageClassName"),
    TEXT("volumeMode"),
    ROW("dataSource", API_OBJECT, .nested = &typed_ref_schema),
    ROW("dataSourceRef", API_OBJECT, .nested = &object_ref_schema),
    TEXT("volumeAttributesClassName"),
    { 0 },
};
static const struct api_schema claim_spec_schema = SCHEMA("PersistentVolumeClaimSpec", claim_spec);

static const struct api_row template_meta[] = { MAP("labels"), MAP("annotations"), TEXT("name"), { 0 } };
static const struct api_schema template_meta_schema =
    SCHEMA("ObjectMeta (of a claim template)", template_meta);

static const struct api_row claim_template[] = {
    ROW("metadata", API_OBJECT, .nested = &template_meta_schema),
    ROW("spec", API_OBJECT, .nested = &claim_spec_schema),
    { 0 },
};
static const struct api_schema claim_template_schema =
    SCHEMA("PersistentVolumeClaimTemplate", claim_template);

static const struct api_row ephemeral[] = {
    ROW("volumeClaimTemplate", API_OBJECT, .nested = &claim_template_schema),
    { 0 },
};
const struct api_schema api_schema_ephemeral = SCHEMA("EphemeralVolumeSource", ephemeral);
