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
