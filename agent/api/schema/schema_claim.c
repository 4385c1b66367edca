/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of PersistentVolumeClaim and of the templates of claims. */
#include "agent/api/generic.h"
#include "agent/api/schema/schema.h"

static const char of_class[] =
    "binds to a PersistentVolume of this class; otherwise the claim gets a folder of this node. "
    "\"\" asks for a PersistentVolume";
static const char no_classes[] = "claims are folders of this node: there are no classes of attributes";

const struct api_value api_values_access_modes[] = { { "ReadOnlyMany", 0 },
                                                     { "ReadWriteMany", 0 },
                                                     { "ReadWriteOnce", 0 },
                                                     { "ReadWriteOncePod", 0 },
                                                     { NULL, 0 } };
static const struct api_value volume_modes[] = { { "Block", 0 }, { "Filesystem", 0 }, { NULL, 0 } };

static const struct api_row claim_resources[] = {
    ROW("limits", API_RESOURCES, SLOT(api_claim, limits),
        IGNORED("the size asked for limits the folder, where the file system has project quotas")),
    ROW("requests", API_RESOURCES, SLOT(api_claim, requests)),
    { 0 },
};
static const struct api_schema claim_resources_schema = SCHEMA("VolumeResourceRequirements", claim_resources);

static const struct api_row claim_spec[] = {
    ROW("accessModes", API_STRINGS, SLOT(api_claim, access_modes), .values = api_values_access_modes),
    ROW("resources", API_OBJECT, .slot = HERE, .nested = &claim_resources_schema),
    ROW("storageClassName", API_STRING, SLOT(api_claim, storage_class), .flags = API_KEEP_EMPTY,
        ACTED(of_class)),
    ROW("volumeName", API_STRING, SLOT(api_claim, volume_name)),
    ROW("volumeMode", API_STRING, SLOT(api_claim, volume_mode), .values = volume_modes,
        .otherwise = "Filesystem"),
    ROW("selector", API_OBJECT, SLOT(api_claim, selector), .flags = API_POINTER,
        .nested = &api_schema_label_selector, ACTED("of labels of a PersistentVolume")),
    ROW("dataSource", API_ANY, REFUSED("nothing here fills a volume from a snapshot or another claim")),
    ROW("dataSourceRef", API_ANY, REFUSED("nothing here fills a volume from a snapshot or another claim")),
    ROW("volumeAttributesClassName", API_STRING, SLOT(api_claim, attributes_class), ACCEPTED(no_classes)),
    { 0 },
};
const struct api_schema api_schema_claim_spec =
    SCHEMA("PersistentVolumeClaimSpec", claim_spec, .size = sizeof(struct api_claim));

static const struct api_row claim[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &api_schema_object_meta,
        .otherwise = "{}"),
    ROW("spec", API_OBJECT, SLOT(api_generic, claim), .nested = &api_schema_claim_spec,
        .flags = API_POINTER | API_REQUIRED),
    ROW("status", API_ANY, .flags = API_DROP,
        ACCEPTED("the status is what the node reports; one in a manifest is dropped")),
    { 0 },
};
const struct api_schema api_schema_claim = SCHEMA("PersistentVolumeClaim", claim);

/* In volumeClaimTemplates. */
static const struct api_row claim_template_meta[] = {
    ROW("namespace", API_STRING, ACCEPTED("claims are in the namespace of their pod")),
    { 0 },
};
static const struct api_schema claim_template_meta_schema =
    SCHEMA("ObjectMeta", claim_template_meta, .base = &api_schema_object_meta);
static const struct api_row template_status[] = {
    ROW("phase", API_STRING, .otherwise = "Pending"),
    { 0 },
};
static const struct api_schema template_status_schema =
    SCHEMA("PersistentVolumeClaimStatus", template_status);
static const struct api_row claim_template[] = {
    ROW("apiVersion", API_STRING, .otherwise = "v1", .support = API_ACTED),
    ROW("kind", API_STRING, .otherwise = "PersistentVolumeClaim", .support = API_ACTED),
    ROW("metadata", API_OBJECT, .nested = &claim_template_meta_schema, .otherwise = "{}"),
    ROW("spec", API_OBJECT, .nested = &api_schema_claim_spec),
    ROW("status", API_OBJECT, .nested = &template_status_schema, .otherwise = "{}",
        ACCEPTED("what an apiserver writes there")),
    { 0 },
};
const struct api_schema api_schema_claim_template = SCHEMA("PersistentVolumeClaim", claim_template);
