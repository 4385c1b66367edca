/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revision - the objects that remember the templates of a workload, as Kubernetes' controllers make them:
 * ReplicaSets of a Deployment, ControllerRevisions of a StatefulSet or a DaemonSet. kubectl reads the history
 * from them, and goes back to one. Pure.
 *
 * A revision is named after its workload and the hash of its template ("web-bcdfghjklm"). Its number is in
 * the annotation deployment.kubernetes.io/revision, or in `revision`: the greatest is in force. A template
 * that was in force before gets its old revision back, with a new number.
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
/* The number of a revision; 0: it has none. */
int64_t revision_number(const json_t *object);
/* A ReplicaSet keeps the numbers that it had before, too. False: out of memory. */
bool revision_renumber(json_t *object, int64_t number);
/* Gives a ReplicaSet the annotations of its Deployment, which tell the cause of the change; those that only
 * the ReplicaSet has stay. True: one has changed. */
bool revision_annotate(json_t *object, const json_t *owner);

/* The template of a revision or of a workload; NULL: it has none. Borrowed. */
json_t *revision_template(const json_t *object);
/* Equal for equal templates, with their defaults and without what a revision adds; while this process runs.
 * 0: out of memory. */
uint64_t revision_looks(const json_t *template_);
#endif
