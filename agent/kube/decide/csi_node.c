/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/csi_node.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ID_ANNOTATION "csi.volume.kubernetes.io/nodeid"
/* Plugins that were part of Kubernetes once: for volumes of these types the scheduler and controllers look
 * for the CSI driver that replaced them. */
#define MIGRATED_ANNOTATION "storage.alpha.kubernetes.io/migrated-plugins"
#define MIGRATED                                                                                             \
    "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,"          \
    "kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume"
/* Bytes of the annotation: the apiserver takes 256 KiB of all of them. */
#define IDS_MAX (256 * 1024)

json_t *csi_node_new(const char *node, const char *node_uid)
{
    return json_pack("{s:s, s:s, s:{s:s, s:{s:s}, s:[{s:s, s:s, s:s, s:s}]}, s:{s:[]}}", "kind", "CSINode",
                     "apiVersion", "storage.k8s.io/v1", "metadata", "name", node, "annotations",
                     MIGRATED_ANNOTATION, MIGRATED, "ownerReferences", "apiVersion", "v1", "kind", "Node",
                     "name", node, "uid", node_uid, "spec", "drivers");
}

/* ---- entries ---- */

/* Null where there is none, as Go encodes it. NULL when out of memory. */
static json_t *topology_keys(const json_t *topology)
{
    const char **keys = json_sorted_keys(topology);
    json_t *list = json_object_size(topology) > 0 ? json_array() : json_null();

    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
        json_array_append_new(list, json_string(keys[i]));
    free(keys);
    return list;
}

static json_t *entry_of(const json_t *driver)
{
    json_int_t count = json_int(driver, "count", 0);
    json_t *entry =
        json_pack("{s:s*, s:s*, s:o}", "name", json_str(driver, "name"), "nodeID", json_str(driver, "nodeID"),
                  "topologyKeys", topology_keys(json_object_get(driver, "topology")));

    if (entry != NULL && count > 0)
        json_object_set_new(entry, "allocatable",
                            json_pack("{s:I}", "count", count < INT32_MAX ? count : INT32_MAX));
    return entry;
}

static const json_t *find_entry(const json_t *object, const char *driver)
{
    return json_named(json_at(object, "spec.drivers"), driver);
}

/* Of two lists of texts or nulls. */
static bool is_same_set(const json_t *a, const json_t *b)
{
    const json_t *v;
    size_t i;

    if (json_array_size(a) != json_array_size(b))
        return false;
    json_array_foreach (a, i, v)
        if (!json_has(b, json_string_value(v)))
            return false;
    return true;
}

bool csi_node_names(const json_t *object, const char *driver)
{
    return find_entry(object, driver) != NULL;
}

bool csi_node_clashes(const json_t *object, const json_t *driver)
{
    const json_t *there = find_entry(object, json_str(driver, "name"));
    json_auto_t *entry = entry_of(driver);

    return there != NULL && entry != NULL &&
           (!str_eq(json_str(there, "nodeID"), json_str(entry, "nodeID")) ||
            !is_same_set(json_object_get(there, "topologyKeys"), json_object_get(entry, "topologyKeys")));
}

static json_int_t entry_count(const json_t *entry)
{
    return json_int(json_object_get(entry, "allocatable"), "count", 0);
}

bool csi_node_has(const json_t *object, const json_t *driver)
{
    const json_t *there = find_entry(object, json_str(driver, "name"));
    json_auto_t *entry = entry_of(driver);

    return there != NULL && entry != NULL && !csi_node_clashes(object, driver) &&
           entry_count(there) == entry_count(entry);
}

json_t *csi_node_without(const json_t *object, const char *driver)
{
    json_t *copy = json_deep_copy(object), *list = json_array(), *spec, *entry;
    size_t i;

    if (copy == NULL || list == NULL) {
        json_decref(copy);
        json_decref(list);
        return NULL;
    }
    json_object_del(json_object_get(copy, "metadata"), "managedFields");
    spec = json_object_get(copy, "spec");
    if (spec == NULL) {
        spec = json_object();
        json_object_set_new(copy, "spec", spec);
    }
    json_array_foreach (json_object_get(spec, "drivers"), i, entry)
        if (!str_eq(json_str(entry, "name"), driver))
            json_array_append(list, entry);
    json_object_set_new(spec, "drivers", list);
    return copy;
}

json_t *csi_node_with(const json_t *object, const json_t *driver)
{
    const char *name = json_str(driver, "name");
    json_t *entry = entry_of(driver), *copy = name != NULL ? csi_node_without(object, name) : NULL;
    json_t *list = json_object_get(json_object_get(copy, "spec"), "drivers");

    if (entry == NULL || copy == NULL) {
        json_decref(entry);
        json_decref(copy);
        return NULL;
    }
    json_array_append_new(list, entry);
    return copy;
}

/* ---- the Node ---- */

/* A value that is no JSON object is replaced. NULL: no memory. */
static json_t *ids_of(const json_t *node)
{
    const char *text =
        json_str(json_object_get(json_object_get(node, "metadata"), "annotations"), ID_ANNOTATION);
    json_t *ids = NULL;

    if (text == NULL || json_parse(text, strlen(text), IDS_MAX, &ids, ID_ANNOTATION, ERR_IGNORED) != ERR_OK ||
        !json_is_object(ids)) {
        json_decref(ids);
        return json_object();
    }
    return ids;
}

/* With keys in order, as Go writes them. */
static void put_ids(json_t *patch, const json_t *ids)
{
    char *text = json_dumps(ids, JSON_COMPACT | JSON_SORT_KEYS);

    if (text != NULL)
        json_object_set_new(patch, "annotations", json_pack("{s:s}", ID_ANNOTATION, text));
    free(text);
}

static enum err_code add_labels(json_t *patch, const json_t *node, const json_t *driver, struct err *e)
{
    const json_t *there = json_object_get(json_object_get(node, "metadata"), "labels");
    json_t *labels = json_object(), *value;
    const char *key;

    json_object_foreach (json_object_get(driver, "topology"), key, value) {
        const char *has = json_str(there, key), *wants = json_string_value(value);

        if (has == NULL)
            json_object_set(labels, key, value);
        else if (!str_eq(has, wants)) {
            json_decref(labels);
            return err_set(e, ERR_PRECONDITION,
                           "detected topology value collision: driver reported \"%.100s\":\"%.70s\" but "
                           "existing label is \"%.100s\":\"%.70s\"",
                           key, wants != NULL ? wants : "", key, has);
        }
    }
    if (json_object_size(labels) > 0)
        json_object_set(patch, "labels", labels);
    json_decref(labels);
    return ERR_OK;
}

static json_t *metadata_patch(json_t *meta)
{
    if (json_object_size(meta) > 0)
        return json_pack("{s:o}", "metadata", meta);
    json_decref(meta);
    return json_object();
}

enum err_code csi_node_metadata(const json_t *node, const json_t *driver, json_t **ret, struct err *e)
{
    const char *name = json_str(driver, "name"), *id = json_str(driver, "nodeID");
    json_auto_t *ids = ids_of(node);
    json_t *meta = json_object(), *patch;

    if (ids == NULL || meta == NULL || name == NULL || id == NULL) {
        json_decref(meta);
        return name != NULL && id != NULL ? err_nomem(e)
                                          : err_set(e, ERR_INVALID, "a driver without name or node id");
    }
    if (add_labels(meta, node, driver, e) != ERR_OK) {
        json_decref(meta);
        return e->code;
    }
    if (!str_eq(json_str(ids, name), id)) {
        json_object_set_new(ids, name, json_string(id));
        put_ids(meta, ids);
    }
    patch = metadata_patch(meta);
    if (patch == NULL)
        return err_nomem(e);
    *ret = patch;
    return ERR_OK;
}

json_t *csi_node_metadata_without(const json_t *node, const char *driver)
{
    json_auto_t *ids = ids_of(node);
    json_t *meta;

    if (json_object_get(ids, driver) == NULL || json_object_del(ids, driver) != 0)
        return NULL;
    meta = json_object();
    if (meta == NULL)
        return NULL;
    if (json_object_size(ids) > 0)
        put_ids(meta, ids);
    else
        json_object_set_new(meta, "annotations", json_pack("{s:n}", ID_ANNOTATION));
    return metadata_patch(meta);
}
