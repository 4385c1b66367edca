/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/mirror.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_HASH "kubernetes.io/config.hash"

/* Annotations of kubelet's own say nothing of the manifest. */
static json_t *mirror_annotations(const json_t *meta)
{
    json_t *all = json_object(), *v;
    const char *key;

    json_object_foreach (json_object_get(meta, "annotations"), key, v)
        if (!str_starts(key, "kubernetes.io/config."))
            json_object_set(all, key, v);
    return all;
}

void mirror_hash(const json_t *pod, char ret[MIRROR_HASH_SIZE])
{
    const json_t *meta = json_object_get(pod, "metadata");
    json_t *given = json_object_get(json_object_get(meta, "annotations"), CONFIG_HASH);
    unsigned char digest[EVP_MAX_MD_SIZE] = { 0 };
    str_auto text = NULL;
    json_t *all;

    all = json_pack("{s:O*, s:O*, s:o, s:O*}", "hash", given, "labels", json_object_get(meta, "labels"),
                    "annotations", mirror_annotations(meta), "spec", json_object_get(pod, "spec"));
    text = all != NULL ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    if (text != NULL)
        EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
    for (size_t i = 0; i < (MIRROR_HASH_SIZE - 1) / 2; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

void mirror_name(const char *pod, const char *node, char ret[MIRROR_NAME_SIZE])
{
    size_t n = strlen(pod), m = strlen(node);
    bool has = n > m && pod[n - m - 1] == '-' && strcmp(pod + n - m, node) == 0;

    snprintf(ret, MIRROR_NAME_SIZE, "%s%s%s", pod, has ? "" : "-", has ? "" : node);
}

static void mirror_tolerations(json_t *spec)
{
    json_t *list = json_object_get(spec, "tolerations");

    /* As kubelet adds it to every static pod; otherwise a taint would delete the mirror repeatedly. */
    if (list == NULL) {
        list = json_array();
        json_object_set_new(spec, "tolerations", list);
    }
    json_array_append_new(list, json_pack("{s:s, s:s}", "operator", "Exists", "effect", "NoExecute"));
}

static bool tolerates_no_execute(const json_t *spec)
{
    json_t *t;
    size_t i;

    json_array_foreach (json_object_get(spec, "tolerations"), i, t)
        if (str_eq(json_str(t, "operator"), "Exists") && json_str(t, "key") == NULL &&
            (json_str(t, "effect") == NULL || str_eq(json_str(t, "effect"), "NoExecute")))
            return true;
    return false;
}

json_t *mirror_body(const json_t *pod, const char *hash, const char *node, const char *node_uid)
{
    const json_t *meta = json_object_get(pod, "metadata");
    const char *namespace_ = json_str(meta, "namespace"), *pod_name = json_str(meta, "name");
    char name[MIRROR_NAME_SIZE];
    json_t *annotations = json_object_get(meta, "annotations") != NULL
                              ? json_copy(json_object_get(meta, "annotations"))
                              : json_object();
    json_t *spec = json_deep_copy(json_object_get(pod, "spec"));

    mirror_name(pod_name != NULL ? pod_name : "", node, name);
    json_object_set_new(annotations, CONFIG_HASH, json_string(hash));
    json_object_set_new(annotations, MIRROR_ANNOTATION, json_string(hash));
    if (json_object_get(annotations, "kubernetes.io/config.source") == NULL)
        json_object_set_new(annotations, "kubernetes.io/config.source", json_string("file"));
    if (spec != NULL) {
        json_object_set_new(spec, "nodeName", json_string(node));
        if (!tolerates_no_execute(spec))
            mirror_tolerations(spec);
    }
    return json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:s*, s:O*, s:o, s:[{s:s, s:s, s:s, s:s, s:b}]}, s:o*, s:{s:s}}", "kind",
        "Pod", "apiVersion", "v1", "metadata", "name", name, "namespace",
        namespace_ != NULL ? namespace_ : "default", "uid", json_str(meta, "uid"), "labels",
        json_object_get(meta, "labels"), "annotations", annotations, "ownerReferences", "apiVersion", "v1",
        "kind", "Node", "name", node, "uid", node_uid, "controller", 1, "spec", spec, "status", "phase",
        "Pending");
}

json_t *delete_now_body(const char *uid)
{
    return json_pack("{s:s, s:s, s:i, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1",
                     "gracePeriodSeconds", 0, "preconditions", "uid", uid);
}
