/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of kinds that a node keeps and shows, and does not act on: only their outlines are known. */
#include "agent/api/generic.h"
#include "agent/api/schema/schema.h"

static const char not_here[] = "kept and shown, not acted on: it is for a control plane";

#define PART(name_) ROW(name_, API_ANY, ACCEPTED(not_here))

static const struct api_row shown[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &api_schema_object_meta,
        .otherwise = "{}"),
    PART("spec"),
    PART("status"),
    { 0 },
};
const struct api_schema api_schema_shown = SCHEMA("Object", shown);

static const struct api_row shown_account[] = {
    PART("secrets"), PART("imagePullSecrets"), PART("automountServiceAccountToken"), { 0 }
};
const struct api_schema api_schema_service_account =
    SCHEMA("ServiceAccount", shown_account, .base = &api_schema_shown);

static const struct api_row shown_endpoints[] = { PART("subsets"), { 0 } };
const struct api_schema api_schema_endpoints =
    SCHEMA("Endpoints", shown_endpoints, .base = &api_schema_shown);

static const struct api_row shown_role[] = { PART("rules"), PART("aggregationRule"), { 0 } };
const struct api_schema api_schema_role = SCHEMA("Role", shown_role, .base = &api_schema_shown);

static const struct api_row shown_binding[] = { PART("subjects"), PART("roleRef"), { 0 } };
const struct api_schema api_schema_role_binding =
    SCHEMA("RoleBinding", shown_binding, .base = &api_schema_shown);

/* ---- without a namespace ---- */
static const struct api_row shown_cluster[] = {
    ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &api_schema_cluster_meta,
        .otherwise = "{}"),
    { 0 },
};
const struct api_schema api_schema_shown_cluster =
    SCHEMA("Object (without namespace)", shown_cluster, .base = &api_schema_shown);

static const struct api_row shown_cluster_role[] = {
    ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &api_schema_cluster_meta,
        .otherwise = "{}"),
    { 0 },
};
const struct api_schema api_schema_cluster_role =
    SCHEMA("ClusterRole", shown_cluster_role, .base = &api_schema_role);
const struct api_schema api_schema_cluster_role_binding =
    SCHEMA("ClusterRoleBinding", shown_cluster_role, .base = &api_schema_role_binding);

static const struct api_row shown_class[] = {
    PART("provisioner"),          PART("parameters"),        PART("reclaimPolicy"),     PART("mountOptions"),
    PART("allowVolumeExpansion"), PART("volumeBindingMode"), PART("allowedTopologies"), { 0 },
};
const struct api_schema api_schema_storage_class =
    SCHEMA("StorageClass", shown_class, .base = &api_schema_shown_cluster);

/* ---- old templates of StatefulSets and DaemonSets ---- */
static const struct api_row controller_revision[] = {
    ROW("data", API_ANY, .support = API_ACTED),
    ROW("revision", API_INT64, .flags = API_REQUIRED, .support = API_ACTED),
    { 0 },
};
const struct api_schema api_schema_controller_revision =
    SCHEMA("ControllerRevision", controller_revision, .base = &api_schema_shown);

/* ---- a storage driver's requirements of this node ---- */
static const struct api_value group_policies[] = {
    { "ReadWriteOnceWithFSType", 0 }, { "File", 0 }, { "None", 0 }, { NULL, 0 }
};

static const struct api_row csi_driver_spec[] = {
    ROW("attachRequired", API_BOOL, .otherwise = "true", .support = API_ACTED),
    ROW("podInfoOnMount", API_BOOL, .otherwise = "false", .support = API_ACTED),
    ROW("volumeLifecycleModes", API_STRINGS, .support = API_ACTED),
    ROW("fsGroupPolicy", API_STRING, .otherwise = "ReadWriteOnceWithFSType", .values = group_policies,
        .support = API_ACTED),
    ROW("storageCapacity", API_BOOL, .otherwise = "false", ACCEPTED(not_here)),
    ROW("tokenRequests", API_ANY, .support = API_ACTED),
    ROW("requiresRepublish", API_BOOL, .otherwise = "false", .support = API_ACTED),
    ROW("seLinuxMount", API_BOOL, .otherwise = "false", .harmless = "false",
        IGNORED("this node does not use SELinux")),
    ROW("nodeAllocatableUpdatePeriodSeconds", API_INT64, ACCEPTED(not_here)),
    ROW("serviceAccountTokenInSecrets", API_BOOL, .support = API_ACTED),
    ROW("preventPodSchedulingIfMissing", API_BOOL, ACCEPTED(not_here)),
    { 0 },
};
static const struct api_schema csi_driver_spec_schema = SCHEMA("CSIDriverSpec", csi_driver_spec);

static const struct api_row csi_driver[] = {
    ROW("spec", API_OBJECT, .slot = HERE, .flags = API_REQUIRED, .nested = &csi_driver_spec_schema),
    { 0 },
};
const struct api_schema api_schema_csi_driver =
    SCHEMA("CSIDriver", csi_driver, .base = &api_schema_shown_cluster);
