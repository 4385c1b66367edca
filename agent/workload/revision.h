/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revision - the objects that record the templates of a workload, as Kubernetes' controllers create them:
 * ReplicaSets of a Deployment, ControllerRevisions of a StatefulSet or a DaemonSet. kubectl reads the history
 * from them, and rolls back to a revision. Pure.
 *
 * A revision is named after its workload and the hash of its template ("web-bcdfghjklm"). Its number is in
 * the annotation deployment.kubernetes.io/revision, or in `revision`: the greatest number is the current one.
 * A template that was current before reuses its old revision, with a new number.
 */
#ifndef AGENT_WORKLOAD_REVISION_H
#define AGENT_WORKLOAD_REVISION_H
#include "agent/api/generic.h"
#include "agent/api/schema/kinds.h"

#include <jansson.h>

#define REVISION_ANNOTATION "deployment.kubernetes.io/revision"
#define REVISION_DESIRED "deployment.kubernetes.io/desired-replicas"
#define REVISION_MAX "deployment.kubernetes.io/max-replicas"

/* Whether workloads of the kind have revisions. */
bool revision_has(enum api_kind kind);
/* The kind of the revisions of workloads of this kind. */
enum api_kind revision_kind(enum api_kind kind);

/* A revision of the workload `owner` (its whole object), which has the uid `uid`. NULL: out of memory. */
json_t *revision_object(enum api_kind kind, const json_t *owner, const char *uid, const char *hash,
                        int64_t number);
/* The number of a revision; 0: none. */
int64_t revision_number(const json_t *object);
/* Sets a new number; a ReplicaSet also keeps its earlier numbers. False: out of memory. */
bool revision_renumber(json_t *object, int64_t number);
/* Copies the annotations of a Deployment, which include the cause of the change, to its ReplicaSet;
 * annotations of the ReplicaSet alone are kept. True: an annotation has changed. */
bool revision_annotate(json_t *object, const json_t *owner);

/* The template of a revision or of a workload; NULL: none. Borrowed. */
json_t *revision_template(const json_t *object);
/* A hash that is equal for equal templates, with their defaults and without the additions of a revision;
 * valid in this process only. 0: out of memory. */
uint64_t revision_looks(const json_t *template_);
#endif
