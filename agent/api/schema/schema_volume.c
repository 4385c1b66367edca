/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Volume and of the sources that this node supports; of the others only the name is known. */
#include "agent/api/schema/schema.h"

#define MODE .flags = API_OCTAL, RANGE(0, 0777)
#define DEFAULT_MODE .flags = API_OCTAL | API_IN_PARENT, RANGE(0, 0777), .otherwise = "420"
#define FOREIGN(field, reason) ROW(field, API_ANY, REFUSED(reason))

static const char needs_server[] = "without an API server there is none: the file is absent";
static const char of_cluster[] = "a static pod may not refer to objects of the apiserver";
static const char removed[] = "Kubernetes itself has removed or retired this volume type";

/* ---- hostPath, emptyDir, image ---- */
const struct api_value api_values_host_path[] = {
    { "", 0 },       { "DirectoryOrCreate", 0 }, { "Directory", 0 },   { "FileOrCreate", 0 }, { "File", 0 },
    { "Socket", 0 }, { "CharDevice", 0 },        { "BlockDevice", 0 }, { NULL, 0 },
};
static const struct api_row host_path[] = {
    ROW("path", API_STRING, SLOT(api_volume, host_path), .flags = API_REQUIRED,
        .format = API_FMT_NO_BACKSTEPS),
    ROW("type", API_STRING, SLOT(api_volume, host_path_type), .flags = API_KEEP_EMPTY | API_EMPTY_TEXT,
        .values = api_values_host_path, .otherwise = ""),
    { 0 },
};
static const struct api_schema host_path_schema = SCHEMA("HostPathVolumeSource", host_path);

static const struct api_row empty_dir[] = {
    ROW("medium", API_STRING, SLOT(api_volume, medium), .flags = API_EMPTY_TEXT, .format = API_FMT_MEDIUM),
    ROW("sizeLimit", API_QUANTITY, SLOT(api_volume, size_limit), .has = AT(api_volume, has_size_limit)),
    { 0 },
};
static const struct api_schema empty_dir_schema = SCHEMA("EmptyDirVolumeSource", empty_dir);

static const struct api_row image[] = {
    ROW("reference", API_STRING, SLOT(api_volume, image_reference), .flags = API_REQUIRED,
        .format = API_FMT_IMAGE),
    ROW("pullPolicy", API_ENUM, SLOT(api_volume, image_pull_policy), .values = api_values_pull_policy),
    { 0 },
};
static const struct api_schema image_schema = SCHEMA("ImageVolumeSource", image);

/* ---- csi: a volume of a driver that lives as long as the pod ---- */
static const struct api_row csi_secret[] = {
    ROW("name", API_STRING, SLOT(api_volume, csi_secret)),
    { 0 },
};
static const struct api_schema csi_secret_schema = SCHEMA("LocalObjectReference", csi_secret);

static const struct api_row csi[] = {
    ROW("driver", API_STRING, SLOT(api_volume, csi_driver), .flags = API_REQUIRED),
    ROW("readOnly", API_BOOL, SLOT(api_volume, csi_read_only)),
    ROW("fsType", API_STRING, SLOT(api_volume, csi_fs_type)),
    ROW("volumeAttributes", API_STRING_MAP, SLOT(api_volume, csi_attributes)),
    ROW("nodePublishSecretRef", API_OBJECT, .slot = HERE, .nested = &csi_secret_schema),
    { 0 },
};
static const struct api_schema csi_schema = SCHEMA("CSIVolumeSource", csi);

/* ---- configMap, secret, downwardAPI ---- */
static const struct api_row item[] = {
    ROW("key", API_STRING, SLOT(api_item, key), .flags = API_REQUIRED),
    ROW("path", API_STRING, SLOT(api_item, path), .flags = API_REQUIRED, .format = API_FMT_FILE_PATH),
    ROW("mode", API_INT32, SLOT(api_item, mode), .absent = -1, MODE),
    { 0 },
};
static const struct api_schema item_schema = SCHEMA("KeyToPath", item, .size = sizeof(struct api_item));

static const struct api_row downward_item[] = {
    ROW("path", API_STRING, SLOT(api_downward_item, path), .flags = API_REQUIRED,
        .format = API_FMT_FILE_PATH),
    ROW("fieldRef", API_OBJECT, SLOT(api_downward_item, field_ref), .flags = API_POINTER,
        .nested = &api_schema_field_ref),
    ROW("resourceFieldRef", API_OBJECT, SLOT(api_downward_item, resource_field_ref), .flags = API_POINTER,
        .nested = &api_schema_resource_field_ref),
    ROW("mode", API_INT32, SLOT(api_downward_item, mode), .absent = -1, MODE),
    { 0 },
};
static const struct api_schema downward_item_schema =
    SCHEMA("DownwardAPIVolumeFile", downward_item, .size = sizeof(struct api_downward_item),
           .one_of = "only one of fieldRef and resourceFieldRef is allowed",
           .one_of_none = "fieldRef or resourceFieldRef is required", .one_of_first = "fieldRef",
           .one_of_last = "resourceFieldRef");

#define PAYLOAD_NAME(field) ROW(field, API_STRING, SLOT(api_payload_source, name), .flags = API_REQUIRED)
#define PAYLOAD_ITEMS ROW("items", API_LIST, SLOTS(api_payload_source, items), .nested = &item_schema)
#define PAYLOAD_OPTIONAL ROW("optional", API_BOOL, SLOT(api_payload_source, optional))
#define PAYLOAD_DOWNWARD                                                                                     \
    ROW("items", API_LIST, SLOTS(api_payload_source, downward), .nested = &downward_item_schema)
#define PAYLOAD_MODE ROW("defaultMode", API_INT32, SLOT(api_volume, default_mode), DEFAULT_MODE)

static const struct api_row config_map[] = {
    PAYLOAD_NAME("name"), PAYLOAD_ITEMS, PAYLOAD_MODE, PAYLOAD_OPTIONAL, { 0 }
};
static const struct api_schema config_map_schema =
    SCHEMA("ConfigMapVolumeSource", config_map, .size = sizeof(struct api_payload_source),
           .init = AT(api_payload_source, kind), .init_value = API_SRC_CONFIG_MAP);

static const struct api_row secret[] = {
    PAYLOAD_NAME("secretName"), PAYLOAD_ITEMS, PAYLOAD_MODE, PAYLOAD_OPTIONAL, { 0 }
};
static const struct api_schema secret_schema =
    SCHEMA("SecretVolumeSource", secret, .size = sizeof(struct api_payload_source),
           .init = AT(api_payload_source, kind), .init_value = API_SRC_SECRET);

static const struct api_row downward[] = { PAYLOAD_DOWNWARD, PAYLOAD_MODE, { 0 } };
static const struct api_schema downward_schema =
    SCHEMA("DownwardAPIVolumeSource", downward, .size = sizeof(struct api_payload_source),
           .init = AT(api_payload_source, kind), .init_value = API_SRC_DOWNWARD);

/* ---- projected ---- */
static const struct api_row config_map_projection[] = {
    PAYLOAD_NAME("name"), PAYLOAD_ITEMS, PAYLOAD_OPTIONAL, { 0 }
};
static const struct api_schema config_map_projection_schema =
    SCHEMA("ConfigMapProjection", config_map_projection, .init = AT(api_payload_source, kind),
           .init_value = API_SRC_CONFIG_MAP);

static const struct api_row secret_projection[] = {
    PAYLOAD_NAME("name"), PAYLOAD_ITEMS, PAYLOAD_OPTIONAL, { 0 }
};
static const struct api_schema secret_projection_schema =
    SCHEMA("SecretProjection", secret_projection, .init = AT(api_payload_source, kind),
           .init_value = API_SRC_SECRET);

static const struct api_row downward_projection[] = { PAYLOAD_DOWNWARD, { 0 } };
static const struct api_schema downward_projection_schema =
    SCHEMA("DownwardAPIProjection", downward_projection, .init = AT(api_payload_source, kind),
           .init_value = API_SRC_DOWNWARD);

static const struct api_row token[] = {
    ROW("audience", API_STRING, SLOT(api_payload_source, token_audience)),
    ROW("expirationSeconds", API_INT64, SLOT(api_payload_source, token_expiration_seconds),
        RANGE(600, (int64_t)1 << 32), .otherwise = "3600"),
    ROW("path", API_STRING, SLOT(api_payload_source, path), .flags = API_REQUIRED,
        .format = API_FMT_FILE_PATH),
    { 0 },
};
static const struct api_schema token_schema =
    SCHEMA("ServiceAccountTokenProjection", token, .init = AT(api_payload_source, kind),
           .init_value = API_SRC_TOKEN);

static const struct api_row trust[] = {
    ROW("name", API_STRING, SLOT(api_payload_source, name), .flags = API_KEEP_EMPTY),
    ROW("signerName", API_STRING, SLOT(api_payload_source, signer), .flags = API_KEEP_EMPTY),
    ROW("labelSelector", API_OBJECT, SLOT(api_payload_source, labels), .flags = API_POINTER,
        .nested = &api_schema_label_selector),
    ROW("optional", API_BOOL, SLOT(api_payload_source, optional)),
    ROW("path", API_STRING, SLOT(api_payload_source, path), .flags = API_REQUIRED,
        .format = API_FMT_FILE_PATH),
    { 0 },
};
static const struct api_schema trust_schema = SCHEMA(
    "ClusterTrustBundleProjection", trust, .init = AT(api_payload_source, kind), .init_value = API_SRC_TRUST);

static const struct api_value key_types[] = { { "RSA3072", 0 },   { "RSA4096", 0 },   { "ECDSAP256", 0 },
                                              { "ECDSAP384", 0 }, { "ECDSAP521", 0 }, { "ED25519", 0 },
                                              { NULL, 0 } };
static const struct api_row certificate[] = {
    ROW("signerName", API_STRING, .flags = API_REQUIRED),
    ROW("keyType", API_STRING, .flags = API_REQUIRED, .values = key_types),
    ROW("maxExpirationSeconds", API_INT32, RANGE(3600, 91 * 86400)),
    ROW("credentialBundlePath", API_STRING, .format = API_FMT_FILE_PATH),
    ROW("keyPath", API_STRING, .format = API_FMT_FILE_PATH),
    ROW("certificateChainPath", API_STRING, .format = API_FMT_FILE_PATH),
    ROW("userAnnotations", API_STRING_MAP),
    { 0 },
};
static const struct api_schema certificate_schema =
    SCHEMA("PodCertificateProjection", certificate, .init = AT(api_payload_source, kind),
           .init_value = API_SRC_CERTIFICATE);

static const struct api_row projection[] = {
    ROW("configMap", API_OBJECT, .slot = HERE, .nested = &config_map_projection_schema),
    ROW("secret", API_OBJECT, .slot = HERE, .nested = &secret_projection_schema),
    ROW("downwardAPI", API_OBJECT, .slot = HERE, .nested = &downward_projection_schema),
    ROW("serviceAccountToken", API_OBJECT, .slot = HERE, .nested = &token_schema, .flags = API_IN_CLUSTER,
        IGNORED(needs_server)),
    ROW("clusterTrustBundle", API_OBJECT, .slot = HERE, .nested = &trust_schema, .flags = API_IN_CLUSTER,
        IGNORED(needs_server)),
    ROW("podCertificate", API_OBJECT, .slot = HERE, .nested = &certificate_schema, IGNORED(needs_server)),
    { 0 },
};
static const struct api_schema projection_schema =
    SCHEMA("VolumeProjection", projection, .size = sizeof(struct api_payload_source),
           .one_of = "only one kind of source is allowed in each element of sources",
           .one_of_none = "one of configMap, secret and downwardAPI is required");

static const struct api_row projected[] = {
    ROW("sources", API_LIST, SLOTS(api_volume, sources), .nested = &projection_schema),
    ROW("defaultMode", API_INT32, SLOT(api_volume, default_mode), .otherwise = "420", MODE),
    { 0 },
};
static const struct api_schema projected_schema =
    SCHEMA("ProjectedVolumeSource", projected, .init_true = AT(api_volume, projected));

/* ---- persistentVolumeClaim, ephemeral ---- */
static const struct api_row claim[] = {
    ROW("claimName", API_STRING, SLOT(api_volume, claim_name), .flags = API_REQUIRED,
        .format = API_FMT_SUBDOMAIN),
    ROW("readOnly", API_BOOL, SLOT(api_volume, claim_readonly), .flags = API_ZERO_ABSENT),
    { 0 },
};
static const struct api_schema claim_schema = SCHEMA("PersistentVolumeClaimVolumeSource", claim);

static const char of_template[] = "the claim is named after the pod and the volume";
static const struct api_row template_meta[] = {
    ROW("name", API_STRING, ACCEPTED(of_template)),
    ROW("namespace", API_STRING, ACCEPTED(of_template)),
    { 0 },
};
static const struct api_schema template_meta_schema =
    SCHEMA("ObjectMeta", template_meta, .base = &api_schema_object_meta);
static const struct api_row claim_template[] = {
    ROW("metadata", API_OBJECT, .nested = &template_meta_schema, .otherwise = "{}"),
    ROW("spec", API_OBJECT, .nested = &api_schema_claim_spec, .flags = API_REQUIRED),
    { 0 },
};
static const struct api_schema claim_template_schema =
    SCHEMA("PersistentVolumeClaimTemplate", claim_template);
static const struct api_row ephemeral[] = {
    ROW("volumeClaimTemplate", API_OBJECT, .nested = &claim_template_schema, .flags = API_REQUIRED),
    { 0 },
};
static const struct api_schema ephemeral_schema =
    SCHEMA("EphemeralVolumeSource", ephemeral, .init_true = AT(api_volume, ephemeral));

/* ---- Volume ---- */
#define PAYLOAD(field, schema)                                                                               \
    ROW(field, API_OBJECT, SLOTS(api_volume, sources), TAG(AT(api_volume, kind), API_VOL_PAYLOAD),           \
        .flags = API_ONE, .nested = &(schema))

#define STORAGE(field, schema)                                                                               \
    ROW(field, API_OBJECT, SLOT(api_volume, storage), TAG(AT(api_volume, kind), API_VOL_STORAGE),            \
        .flags = API_POINTER, .nested = &(schema))

static const struct api_row volume[] = {
    ROW("name", API_STRING, SLOT(api_volume, name), .flags = API_REQUIRED, .format = API_FMT_LABEL),
    ROW("emptyDir", API_OBJECT, .slot = HERE, TAG(AT(api_volume, kind), API_VOL_EMPTY_DIR),
        .nested = &empty_dir_schema),
    ROW("hostPath", API_OBJECT, .slot = HERE, TAG(AT(api_volume, kind), API_VOL_HOST_PATH),
        .nested = &host_path_schema),
    PAYLOAD("configMap", config_map_schema),
    PAYLOAD("secret", secret_schema),
    PAYLOAD("downwardAPI", downward_schema),
    ROW("projected", API_OBJECT, .slot = HERE, TAG(AT(api_volume, kind), API_VOL_PAYLOAD),
        .nested = &projected_schema),
    ROW("image", API_OBJECT, .slot = HERE, TAG(AT(api_volume, kind), API_VOL_IMAGE), .nested = &image_schema),
    ROW("csi", API_OBJECT, .slot = HERE, TAG(AT(api_volume, kind), API_VOL_CSI), .nested = &csi_schema),
    ROW("persistentVolumeClaim", API_OBJECT, .slot = HERE, TAG(AT(api_volume, kind), API_VOL_CLAIM),
        .nested = &claim_schema, .flags = API_NOT_STATIC, REFUSED(of_cluster)),
    ROW("ephemeral", API_OBJECT, .slot = HERE, TAG(AT(api_volume, kind), API_VOL_CLAIM),
        .nested = &ephemeral_schema, .flags = API_NOT_STATIC, REFUSED(of_cluster)),
    STORAGE("nfs", api_schema_nfs),
    STORAGE("iscsi", api_schema_iscsi),
    STORAGE("fc", api_schema_fc),
    STORAGE("flexVolume", api_schema_flex),
    FOREIGN("gitRepo", removed),
    FOREIGN("gcePersistentDisk", removed),
    FOREIGN("awsElasticBlockStore", removed),
    FOREIGN("azureDisk", removed),
    FOREIGN("azureFile", removed),
    FOREIGN("cinder", removed),
    FOREIGN("vsphereVolume", removed),
    FOREIGN("portworxVolume", removed),
    FOREIGN("cephfs", removed),
    FOREIGN("rbd", removed),
    FOREIGN("glusterfs", removed),
    FOREIGN("flocker", removed),
    FOREIGN("photonPersistentDisk", removed),
    FOREIGN("quobyte", removed),
    FOREIGN("scaleIO", removed),
    FOREIGN("storageos", removed),
    { 0 },
};
const struct api_schema api_schema_volume =
    SCHEMA("Volume", volume, .size = sizeof(struct api_volume), .one_of = "only one volume type is allowed",
           .one_of_first = "emptyDir");
