/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the volume sources that are refused (see schema_volume.c): their fields are checked anyway, so
 * that other mistakes in a manifest show at once. */
#include "agent/api/schema/schema.h"

#define TEXT(field)                                                                                          \
    {                                                                                                        \
        .name = field, .type = API_STRING                                                                    \
    }
#define NUMBER(field)                                                                                        \
    {                                                                                                        \
        .name = field, .type = API_INT32                                                                     \
    }
#define FLAG(field)                                                                                          \
    {                                                                                                        \
        .name = field, .type = API_BOOL                                                                      \
    }
#define TEXTS(field)                                                                                         \
    {                                                                                                        \
        .name = field, .type = API_STRINGS                                                                   \
    }
#define MAP(field)                                                                                           \
    {                                                                                                        \
        .name = field, .type = API_STRING_MAP                                                                \
    }
#define LOCAL_REF(field)                                                                                     \
    {                                                                                                        \
        .name = field, .type = API_OBJECT, .nested = &api_schema_local_ref                                   \
    }

static const struct api_row gce_disk[] = {
    TEXT("pdName"), TEXT("fsType"), NUMBER("partition"), FLAG("readOnly"), { 0 }
};
const struct api_schema api_schema_gce_disk = { .name = "GCEPersistentDiskVolumeSource", .rows = gce_disk };

static const struct api_row aws_disk[] = {
    TEXT("volumeID"), TEXT("fsType"), NUMBER("partition"), FLAG("readOnly"), { 0 }
};
const struct api_schema api_schema_aws_disk = { .name = "AWSElasticBlockStoreVolumeSource",
                                                .rows = aws_disk };

static const struct api_row git_repo[] = { TEXT("repository"), TEXT("revision"), TEXT("directory"), { 0 } };
const struct api_schema api_schema_git_repo = { .name = "GitRepoVolumeSource", .rows = git_repo };

static const struct api_row nfs[] = { TEXT("server"), TEXT("path"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_nfs = { .name = "NFSVolumeSource", .rows = nfs };

static const struct api_row iscsi[] = { TEXT("targetPortal"),    TEXT("iqn"),
                                        NUMBER("lun"),           TEXT("iscsiInterface"),
                                        TEXT("fsType"),          FLAG("readOnly"),
                                        TEXTS("portals"),        FLAG("chapAuthDiscovery"),
                                        FLAG("chapAuthSession"), LOCAL_REF("secretRef"),
                                        TEXT("initiatorName"),   { 0 } };
const struct api_schema api_schema_iscsi = { .name = "ISCSIVolumeSource", .rows = iscsi };

static const struct api_row glusterfs[] = { TEXT("endpoints"), TEXT("path"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_glusterfs = { .name = "GlusterfsVolumeSource", .rows = glusterfs };

static const struct api_row claim_volume[] = { TEXT("claimName"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_claim_volume = { .name = "PersistentVolumeClaimVolumeSource",
                                                    .rows = claim_volume };

static const struct api_row rbd[] = { TEXTS("monitors"),      TEXT("image"),    TEXT("fsType"),
                                      TEXT("pool"),           TEXT("user"),     TEXT("keyring"),
                                      LOCAL_REF("secretRef"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_rbd = { .name = "RBDVolumeSource", .rows = rbd };

static const struct api_row flex[] = { TEXT("driver"),   TEXT("fsType"), LOCAL_REF("secretRef"),
                                       FLAG("readOnly"), MAP("options"), { 0 } };
const struct api_schema api_schema_flex = { .name = "FlexVolumeSource", .rows = flex };

static const struct api_row cinder[] = {
    TEXT("volumeID"), TEXT("fsType"), FLAG("readOnly"), LOCAL_REF("secretRef"), { 0 }
};
const struct api_schema api_schema_cinder = { .name = "CinderVolumeSource", .rows = cinder };

static const struct api_row cephfs[] = {
    TEXTS("monitors"),      TEXT("path"),     TEXT("user"), TEXT("secretFile"),
    LOCAL_REF("secretRef"), FLAG("readOnly"), { 0 }
};
const struct api_schema api_schema_cephfs = { .name = "CephFSVolumeSource", .rows = cephfs };

static const struct api_row flocker[] = { TEXT("datasetName"), TEXT("datasetUUID"), { 0 } };
const struct api_schema api_schema_flocker = { .name = "FlockerVolumeSource", .rows = flocker };

static const struct api_row fc[] = { TEXTS("targetWWNs"), NUMBER("lun"),  TEXT("fsType"),
                                     FLAG("readOnly"),    TEXTS("wwids"), { 0 } };
const struct api_schema api_schema_fc = { .name = "FCVolumeSource", .rows = fc };

static const struct api_row azure_file[] = { TEXT("secretName"), TEXT("shareName"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_azure_file = { .name = "AzureFileVolumeSource", .rows = azure_file };

static const struct api_row vsphere[] = {
    TEXT("volumePath"), TEXT("fsType"), TEXT("storagePolicyName"), TEXT("storagePolicyID"), { 0 }
};
const struct api_schema api_schema_vsphere = { .name = "VsphereVirtualDiskVolumeSource", .rows = vsphere };

static const struct api_row quobyte[] = {
    TEXT("registry"), TEXT("volume"), FLAG("readOnly"), TEXT("user"), TEXT("group"), TEXT("tenant"), { 0 }
};
const struct api_schema api_schema_quobyte = { .name = "QuobyteVolumeSource", .rows = quobyte };

static const struct api_row azure_disk[] = { TEXT("diskName"),
                                             TEXT("diskURI"),
                                             TEXT("cachingMode"),
                                             TEXT("fsType"),
                                             FLAG("readOnly"),
                                             TEXT("kind"),
                                             { 0 } };
const struct api_schema api_schema_azure_disk = { .name = "AzureDiskVolumeSource", .rows = azure_disk };

static const struct api_row photon[] = { TEXT("pdID"), TEXT("fsType"), { 0 } };
const struct api_schema api_schema_photon = { .name = "PhotonPersistentDiskVolumeSource", .rows = photon };

static const struct api_row portworx[] = { TEXT("volumeID"), TEXT("fsType"), FLAG("readOnly"), { 0 } };
const struct api_schema api_schema_portworx = { .name = "PortworxVolumeSource", .rows = portworx };

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
const struct api_schema api_schema_scale_io = { .name = "ScaleIOVolumeSource", .rows = scale_io };

static const struct api_row storage_os[] = { TEXT("volumeName"), TEXT("volumeNamespace"), TEXT("fsType"),
                                             FLAG("readOnly"),   LOCAL_REF("secretRef"),  { 0 } };
const struct api_schema api_schema_storage_os = { .name = "StorageOSVolumeSource", .rows = storage_os };

static const struct api_row csi[] = { TEXT("driver"),
                                      FLAG("readOnly"),
                                      TEXT("fsType"),
                                      MAP("volumeAttributes"),
                                      LOCAL_REF("nodePublishSecretRef"),
                                      { 0 } };
const struct api_schema api_schema_csi = { .name = "CSIVolumeSource", .rows = csi };

/* ---- ephemeral: a claim inside the pod ---- */
static const struct api_row typed_ref[] = { TEXT("apiGroup"), TEXT("kind"), TEXT("name"), { 0 } };
static const struct api_schema typed_ref_schema = { .name = "TypedLocalObjectReference", .rows = typed_ref };

static const struct api_row object_ref[] = {
    TEXT("apiGroup"), TEXT("kind"), TEXT("name"), TEXT("namespace"), { 0 }
};
static const struct api_schema object_ref_schema = { .name = "TypedObjectReference", .rows = object_ref };

static const struct api_row claim_resources[] = {
    { .name = "limits", .type = API_RESOURCES },
    { .name = "requests", .type = API_RESOURCES },
    { 0 },
};
static const struct api_schema claim_resources_schema = { .name = "VolumeResourceRequirements",
                                                          .rows = claim_resources };

static const struct api_row claim_spec[] = {
    TEXTS("accessModes"),
    { .name = "selector", .type = API_OBJECT, .nested = &api_schema_label_selector },
    { .name = "resources", .type = API_OBJECT, .nested = &claim_resources_schema },
    TEXT("volumeName"),
    TEXT("storageClassName"),
    TEXT("volumeMode"),
    { .name = "dataSource", .type = API_OBJECT, .nested = &typed_ref_schema },
    { .name = "dataSourceRef", .type = API_OBJECT, .nested = &object_ref_schema },
    TEXT("volumeAttributesClassName"),
    { 0 },
};
static const struct api_schema claim_spec_schema = { .name = "PersistentVolumeClaimSpec",
                                                     .rows = claim_spec };

static const struct api_row template_meta[] = { MAP("labels"), MAP("annotations"), TEXT("name"), { 0 } };
static const struct api_schema template_meta_schema = { .name = "ObjectMeta (of a claim template)",
                                                        .rows = template_meta };

static const struct api_row claim_template[] = {
    { .name = "metadata", .type = API_OBJECT, .nested = &template_meta_schema },
    { .name = "spec", .type = API_OBJECT, .nested = &claim_spec_schema },
    { 0 },
};
static const struct api_schema claim_template_schema = { .name = "PersistentVolumeClaimTemplate",
                                                         .rows = claim_template };

static const struct api_row ephemeral[] = {
    { .name = "volumeClaimTemplate", .type = API_OBJECT, .nested = &claim_template_schema },
    { 0 },
};
const struct api_schema api_schema_ephemeral = { .name = "EphemeralVolumeSource", .rows = ephemeral };
