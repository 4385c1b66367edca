/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror - mirror pods: the apiserver's picture of a pod of the manifest folder
 * (pkg/kubelet/pod/mirror_client.go, pkg/kubelet/kubelet.go). Pure.
 *
 * A mirror pod is a copy with the annotation kubernetes.io/config.mirror, whose value is the static pod's
 * hash, owned by the Node. Its uid is the apiserver's. Deleting it never stops the static pod.
 * NodeRestriction refuses mirrors of pods with a service account, or that name ConfigMaps, Secrets or claims:
 * such a pod has none.
 */
#ifndef AGENT_KUBE_DECIDE_MIRROR_H
#define AGENT_KUBE_DECIDE_MIRROR_H
#include <jansson.h>
#include <stdbool.h>

#define MIRROR_ANNOTATION "kubernetes.io/config.mirror"
#define MIRROR_HASH_SIZE 33
#define MIRROR_NAME_SIZE 520

/* Computed from the manifest and the hash that the daemon sends: an edit that keeps the pod's uid also
 * creates a new mirror. */
void mirror_hash(const json_t *pod, char ret[MIRROR_HASH_SIZE]);
/* "web-node1": as kubelet names static pods, so that the same manifest on two nodes makes two pods. */
void mirror_name(const char *pod, const char *node, char ret[MIRROR_NAME_SIZE]);
/* The body of the POST. New; NULL when out of memory. */
json_t *mirror_body(const json_t *pod, const char *hash, const char *node, const char *node_uid);
/* The body of a DELETE with grace 0 and the uid as precondition. */
json_t *delete_now_body(const char *uid);
#endif
