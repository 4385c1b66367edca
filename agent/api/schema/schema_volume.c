/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Volume and of the sources that this node supports; the others are in schema_foreign.c. */
#include "agent/api/schema/schema.h"

#define MODE .flags = API_RANGE | API_OCTAL, .min = 0, .max = 0777
#define DEFAULT_MODE .flags = API_RANGE | API_OCTAL | API_IN_PARENT, .min = 0, .max = 0777, .otherwise = "420"

static const char needs_server[] = "needs an API server";
static const char needs_plane[] = "needs a control plane and a storage driver";
static const char foreign[] =
    "network file systems and storage drivers are not supported; mount it on the node "
    "and use hostPath";
static const char removed[] = "Kubernetes itself has removed or retired this volume type";

/* ---- hostPath, emptyDir, image ---- */
static const struct api_value host_path_types[] = {
    { "", 0 },       { "DirectoryOrCreate", 0 }, { "Directory", 0 },   { "FileOrCreate", 0 }, { "File", 0 },
    { "Socket", 0 }, { "CharDevice", 0 },        { "BlockDevice", 0 }, { NULL, 0 },
};
static const struct api_row host_path[] = {
    { .name = "path",
      .type = API_STRING,
      .slot = AT(api_volume, host_path),
      .flags = API_REQUIRED,
      .format = API_FMT_NO_BACKSTEPS },
    { .name = "type",
      .type = API_STRING,
      .slot = AT(api_volume, host_path_type),
      .flags = API_KEEP_EMPTY | API_EMPTY_TEXT,
      .values = host_path_types,
      .otherwise = "" },
    { 0 },
};
static const struct api_schema host_path_schema = { .name = "HostPathVolumeSource", .rows = host_path };

static const struct api_row empty_dir[] = {
    { .name = "medium",
      .type = API_STRING,
      .slot = AT(api_volume, medium),
      .flags = API_EMPTY_TEXT,
      .format = API_FMT_MEDIUM },
    { .name = "sizeLimit",
      .type = API_QUANTITY,
      .slot = AT(api_volume, size_limit),
      .has = AT(api_volume, has_size_limit) },
    { 0 },
};
static const struct api_schema empty_dir_schema = { .name = "EmptyDirVolumeSource", .rows = empty_dir };

static const struct api_row image[] = {
    { .name = "reference",
      .type = API_STRING,
      .slot = AT(api_volume, image_reference),
      .flags = API_REQUIRED,
      .format = API_FMT_IMAGE },
    { .name = "pullPolicy",
      .type = API_ENUM,
      .slot = AT(api_volume, image_pull_policy),
      .values = api_values_pull_policy },
    { 0 },
};
static const struct api_schema image_schema = { .name = "ImageVolumeSource", .rows = image };

/* ---- configMap, secret, downwardAPI ---- */
static const struct api_row item[] = {
    { .name = "key", .type = API_STRING, .slot = AT(api_item, key), .flags = API_REQUIRED },
    { .name = "path",
      .type = API_STRING,
      .slot = AT(api_item, path),
      .flags = API_REQUIRED,
      .format = API_FMT_FILE_PATH },
    { .name = "mode", .type = API_INT32, .slot = AT(api_item, mode), .absent = -1, MODE },
    { 0 },
};
static const struct api_schema item_schema = { .name = "KeyToPath",
                                               .rows = item,
                                               .size = sizeof(struct api_item) };

static const struct api_row downward_item[] = {
    { .name = "path",
      .type = API_STRING,
      .slot = AT(api_downward_item, path),
      .flags = API_REQUIRED,
      .format = API_FMT_FILE_PATH },
    { .name = "fieldRef",
      .type = API_OBJECT,
      .slot = AT(api_downward_item, field_ref),
      .flags = API_POINTER,
      .nested = &api_schema_field_ref },
    { .name = "resourceFieldRef",
      .type = API_OBJECT,
      .slot = AT(api_downward_item, resource_field_ref),
      .flags = API_POINTER,
      .nested = &api_schema_resource_field_ref },
    { .name = "mode", .type = API_INT32, .slot = AT(api_downward_item, mode), .absent = -1, MODE },
    { 0 },
};
static const struct api_schema downward_item_schema = {
    .name = "DownwardAPIVolumeFile",
    .rows = downward_item,
    .size = sizeof(struct api_downward_item),
    .one_of = "only one of fieldRef and resourceFieldRef is allowed",
    .one_of_none = "fieldRef or resourceFieldRef is required",
    .one_of_first = "fieldRef",
    .one_of_last = "resourceFieldRef"
};

#define PAYLOAD_NAME(field)                                                                                  \
    {                                                                                                        \
        .name = field, .type = API_STRING, .slot = AT(api_payload_source, name), .flags = API_REQUIRED       \
    }
#define PAYLOAD_ITEMS                                                                                        \
    {                                                                                                        \
        .name = "items", .type = API_LIST, .slot = AT(api_payload_source, items),                            \
        .count = AT(api_payload_source, n_items), .nested = &item_schema                                     \
    }
#define PAYLOAD_OPTIONAL                                                                                     \
    {                                                                                                        \
        .name = "optional", .type = API_BOOL, .slot = AT(api_payload_source, optional)                       \
    }
#define PAYLOAD_DOWNWARD                                                                                     \
    {                                                                                                        \
        .name = "items", .type = API_LIST, .slot = AT(api_payload_source, downward),                         \
        .count = AT(api_payload_source, n_downward), .nested = &downward_item_schema                         \
    }
#define PAYLOAD_MODE                                                                                         \
    {                                                                                                        \
        .name = "defaultMode", .type = API_INT32, .slot = AT(api_volume, default_mode), DEFAULT_MODE         \
    }

static const struct api_row config_map[] = {
    PAYLOAD_NAME("name"), PAYLOAD_ITEMS, PAYLOAD_MODE, PAYLOAD_OPTIONAL, { 0 }
};
static const struct api_schema config_map_schema = { .name = "ConfigMapVolumeSource",
                                                     .rows = config_map,
                                                     .size = sizeof(struct api_payload_source),
                                                     .init = AT(api_payload_source, kind),
                                                     .init_value = API_SRC_CONFIG_MAP };

static const struct api_row secret[] = {
    PAYLOAD_NAME("secretName"), PAYLOAD_ITEMS, PAYLOAD_MODE, PAYLOAD_OPTIONAL, { 0 }
};
static const struct api_schema secret_schema = { .name = "SecretVolumeSource",
                                                 .rows = secret,
                                                 .size = sizeof(struct api_payload_source),
                                                 .init = AT(api_payload_source, kind),
                                                 .init_value = API_SRC_SECRET };

static const struct api_row downward[] = { PAYLOAD_DOWNWARD, PAYLOAD_MODE, { 0 } };
static const struct api_schema downward_schema = { .name = "DownwardAPIVolumeSource",
                                                   .rows = downward,
                                                   .size = sizeof(struct api_payload_source),
                                                   .init = AT(api_payload_source, kind),
                                                   .init_value = API_SRC_DOWNWARD };

/* ---- projected ---- */
static const struct api_row config_map_projection[] = {
    PAYLOAD_NAME("name"), PAYLOAD_ITEMS, PAYLOAD_OPTIONAL, { 0 }
};
static const struct api_schema config_map_projection_schema = { .name = "ConfigMapProjection",
                                                                .rows = config_map_projection,
                                                                .init = AT(api_payload_source, kind),
                                                                .init_value = API_SRC_CONFIG_MAP };

static const struct api_row secret_projection[] = {
    PAYLOAD_NAME("name"), PAYLOAD_ITEMS, PAYLOAD_OPTIONAL, { 0 }
};
static const struct api_schema secret_projection_schema = { .name = "SecretProjection",
                                                            .rows = secret_projection,
                                                            .init = AT(api_payload_source, kind),
                                                            .init_value = API_SRC_SECRET };

static const struct api_row downward_projection[] = { PAYLOAD_DOWNWARD, { 0 } };
static const struct api_schema downward_projection_schema = { .name = "DownwardAPIProjection",
                                                              .rows = downward_projection,
                                                              .init = AT(api_payload_source, kind),
                                                              .init_value = API_SRC_DOWNWARD };

static const struct api_row token[] = {
    { .name = "audience", .type = API_STRING, .slot = AT(api_payload_source, token_audience) },
    { .name = "expirationSeconds",
      .type = API_INT64,
      .slot = AT(api_payload_source, token_expiration_seconds),
      .flags = API_RANGE,
      .min = 600,
      .max = (int64_t)1 << 32,
      .otherwise = "3600" },
    { .name = "path",
      .type = API_STRING,
      .slot = AT(api_payload_source, token_path),
      .flags = API_REQUIRED,
      .format = API_FMT_FILE_PATH },
    { 0 },
};
static const struct api_schema token_schema = { .name = "ServiceAccountTokenProjection",
                                                .rows = token,
                                                .init = AT(api_payload_source, kind),
                                                .init_value = API_SRC_TOKEN };

static const struct api_row trust_bundle[] = {
    { .name = "name", .type = API_STRING, .flags = API_KEEP_EMPTY },
    { .name = "signerName", .type = API_STRING, .flags = API_KEEP_EMPTY },
    { .name = "labelSelector", .type = API_OBJECT, .nested = &api_schema_label_selector },
    { .name = "optional", .type = API_BOOL },
    { .name = "path", .type = API_STRING, .flags = API_REQUIRED, .format = API_FMT_FILE_PATH },
    { 0 },
};
static const struct api_schema trust_bundle_schema = { .name = "ClusterTrustBundleProjection",
                                                       .rows = trust_bundle,
                                                       .one_of = "only one of name and signerName is allowed",
                                                       .one_of_none = "name or signerName is required",
                                                       .one_of_first = "name",
                                                       .one_of_last = "signerName" };

static const struct api_row pod_certificate[] = {
    { .name = "signerName", .type = API_STRING, .flags = API_REQUIRED },
    { .name = "keyType", .type = API_STRING, .flags = API_REQUIRED },
    { .name = "maxExpirationSeconds", .type = API_INT32 },
    { .name = "credentialBundlePath", .type = API_STRING, .format = API_FMT_FILE_PATH },
    { .name = "keyPath", .type = API_STRING, .format = API_FMT_FILE_PATH },
    { .name = "certificateChainPath", .type = API_STRING, .format = API_FMT_FILE_PATH },
    { .name = "userAnnotations", .type = API_STRING_MAP },
    { 0 },
};
static const struct api_schema pod_certificate_schema = { .name = "PodCertificateProjection",
                                                          .rows = pod_certificate };

static const struct api_row projection[] = {
    { .name = "configMap", .type = API_OBJECT, .slot = HERE, .nested = &config_map_projection_schema },
    { .name = "secret", .type = API_OBJECT, .slot = HERE, .nested = &secret_projection_schema },
    { .name = "downwardAPI", .type = API_OBJECT, .slot = HERE, .nested = &downward_projection_schema },
    { .name = "serviceAccountToken",
      .type = API_OBJECT,
      .slot = HERE,
      .nested = &token_schema,
      .support = API_REFUSED,
      .why = needs_server },
    { .name = "clusterTrustBundle",
      .type = API_OBJECT,
      .nested = &trust_bundle_schema,
      .support = API_REFUSED,
      .why = needs_server },
    { .name = "podCertificate",
      .type = API_OBJECT,
      .nested = &pod_certificate_schema,
      .support = API_REFUSED,
      .why = needs_server },
    { 0 },
};
static const struct api_schema projection_schema = {
    .name = "VolumeProjection",
    .rows = projection,
    .size = sizeof(struct api_payload_source),
    .one_of = "only one kind of source is allowed in each element of sources",
    .one_of_none = "one of configMap, secret and downwardAPI is required",
};

static const struct api_row projected[] = {
    { .name = "sources",
      .type = API_LIST,
      .slot = AT(api_volume, sources),
      .count = AT(api_volume, n_sources),
      .nested = &projection_schema },
    { .name = "defaultMode",
      .type = API_INT32,
      .slot = AT(api_volume, default_mode),
      .otherwise = "420",
      MODE },
    { 0 },
};
static const struct api_schema projected_schema = { .name = "ProjectedVolumeSource",
                                                    .rows = projected,
                                                    .init_true = AT(api_volume, projected) };

/* ---- Volume ---- */
#define PAYLOAD(field, schema)                                                                               \
    {                                                                                                        \
        .name = field, .type = API_OBJECT, .slot = AT(api_volume, sources),                                  \
        .count = AT(api_volume, n_sources), .tag = AT(api_volume, kind), .tag_value = API_VOL_PAYLOAD,       \
        .flags = API_ONE, .nested = &(schema)                                                                \
    }
#define REFUSED(field, schema, reason)                                                                       \
    {                                                                                                        \
        .name = field, .type = API_OBJECT, .nested = &(schema), .support = API_REFUSED, .why = reason        \
    }

static const struct api_row volume[] = {
    { .name = "name",
      .type = API_STRING,
      .slot = AT(api_volume, name),
      .flags = API_REQUIRED,
      .format = API_FMT_LABEL },
    { .name = "emptyDir",
      .type = API_OBJECT,
      .slot = HERE,
      .tag = AT(api_volume, kind),
      .tag_value = API_VOL_EMPTY_DIR,
      .nested = &empty_dir_schema },
    { .name = "hostPath",
      .type = API_OBJECT,
      .slot = HERE,
      .tag = AT(api_volume, kind),
      .tag_value = API_VOL_HOST_PATH,
      .nested = &host_path_schema },
    PAYLOAD("configMap", config_map_schema),
    PAYLOAD("secret", secret_schema),
    PAYLOAD("downwardAPI", downward_schema),
    { .name = "projected",
      .type = API_OBJECT,
      .slot = HERE,
      .tag = AT(api_volume, kind),
      .tag_value = API_VOL_PAYLOAD,
      .nested = &projected_schema },
    { .name = "image",
      .type = API_OBJECT,
      .slot = HERE,
      .tag = AT(api_volume, kind),
      .tag_value = API_VOL_IMAGE,
      .nested = &image_schema },
    REFUSED("persistentVolumeClaim", api_schema_claim_volume, needs_plane),
    REFUSED("ephemeral", api_schema_ephemeral, needs_plane),
    REFUSED("csi", api_schema_csi, needs_plane),
    REFUSED("nfs", api_schema_nfs, foreign),
    REFUSED("iscsi", api_schema_iscsi, foreign),
    REFUSED("fc", api_schema_fc, foreign),
    REFUSED("flexVolume", api_schema_flex, foreign),
    REFUSED("gitRepo", api_schema_git_repo, removed),
    REFUSED("gcePersistentDisk", api_schema_gce_disk, removed),
    REFUSED("awsElasticBlockStore", api_schema_aws_disk, removed),
    REFUSED("azureDisk", api_schema_azure_disk, removed),
    REFUSED("azureFile", api_schema_azure_file, removed),
    REFUSED("cinder", api_schema_cinder, removed),
    REFUSED("vsphereVolume", api_schema_vsphere, removed),
    REFUSED("portworxVolume", api_schema_portworx, removed),
    REFUSED("cephfs", api_schema_cephfs, removed),
    REFUSED("rbd", api_schema_rbd, removed),
    REFUSED("glusterfs", api_schema_glusterfs, removed),
    REFUSED("flocker", api_schema_flocker, removed),
    REFUSED("photonPersistentDisk", api_schema_photon, removed),
    REFUSED("quobyte", api_schema_quobyte, removed),
    REFUSED("scaleIO", api_schema_scale_io, removed),
    REFUSED("storageos", api_schema_storage_os, removed),
    { 0 },
};
const struct api_schema api_schema_volume = { .name = "Volume",
                                              .rows = volume,
                                              .size = sizeof(struct api_volume),
                                              .one_of = "only one volume type is allowed",
                                              .one_of_first = "emptyDir" };
