/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode - turns the bytes of a manifest into objects and problems.
 *
 * Input is YAML (1.1 typing, as in Kubernetes) or JSON; several documents; `kind: List` (and PodList,
 * ConfigMapList, ...). Steps: text -> json_t (yaml.h) -> schema check and defaults -> structs -> validation.
 * All problems of a file are reported together; valid documents are usable even if another document of the
 * file is not (the manifest folder decides what to do with that). A problem has line, column, document and
 * field (problems.h); fields of a List's items begin with "items[3].".
 *
 * Unknown fields are problems ("unknown field"). Known fields that a node without a control plane cannot
 * honour are refused with the reason; fields without meaning for a node are accepted silently (e.g. affinity
 * is for the scheduler); fields without effect are listed in api_pod.ignored.
 */
#ifndef AGENT_API_MANIFEST_DECODE_H
#define AGENT_API_MANIFEST_DECODE_H
#include "agent/api/generic.h"
#include "agent/api/problems.h"
#include "agent/api/schema/kinds.h"
#include "agent/api/types.h"

#include <jansson.h>

#define API_FILE_MAX (10 * 1024 * 1024) /* bytes per manifest, kubelet's limit for static pods */

/* Whether the manifest folder ignores a file of this name: editors' and packagers' leftovers, hidden files.
 */
bool api_file_is_ignored(const char *name);

struct api_object {
    enum api_kind kind;
    int document;           /* 1.. */
    struct api_place place; /* of its name in the file */
    union {                 /* one reference each */
        struct api_pod *pod;
        struct api_config *config;
        struct api_priority_class *priority_class;
        struct api_runtime_class *runtime_class;
        struct api_generic *generic; /* api_kind_is_generic() */
    };
};

const struct api_meta *api_object_meta(const struct api_object *o); /* borrowed */
enum api_origin api_object_origin(const struct api_object *o);
struct api_object api_object_ref(const struct api_object *o); /* adds a reference */
void api_object_unref(struct api_object *o);

struct api_objects {
    struct api_object *v; /* malloc'ed */
    size_t n;
};

void api_objects_done(struct api_objects *o); /* drops the references */
void api_json_wipe(json_t *v);                /* overwrites every string below v: it may be from a Secret */

/* Decodes the content of one file. Fails only if nothing could be done at all (out of memory); problems of
 * the content are in *problems. `file` is only for messages. Pure computation (no I/O, no globals): callable
 * on any thread. */
enum err_code api_decode_file(const char *file, const char *text, size_t size, struct api_objects *ret,
                              struct api_problems *problems, struct err *e) MUST_CHECK;

struct api_lint; /* check.h */
/* The same, and also reports values that the daemon accepts but can never run, or does not know; `lint` may
 * be NULL. */
enum err_code api_lint_file(const char *file, const char *text, size_t size, const struct api_lint *lint,
                            struct api_objects *ret, struct api_problems *problems, struct err *e) MUST_CHECK;

/* The pull policy of an image without one: Always if its tag is "latest", or if it has neither tag nor
 * digest. */
enum api_pull_policy api_pull_policy_default(const char *image);

/* Adds to the first problem of a file that valid objects of the same file, `n` of them, have no effect
 * because of it, either. */
void api_problems_hold_back(struct api_problems *p, const struct api_object *first, size_t n);

/* Whether the cpu and memory of containers or pod differ (in-place resize). Both have the same containers. */
bool api_pod_resources_differ(const struct api_pod *old_pod, const struct api_pod *new_pod);
/* A copy of `pod` with the resources of `other`, which has the same containers: a new reference. */
enum err_code api_pod_with_resources_of(const struct api_pod *pod, const struct api_pod *other,
                                        struct api_pod **ret, struct err *e) MUST_CHECK;

/*
 * Ephemeral containers of a pod of the manifest folder, which its file never has: they were added to the pod
 * while it ran. The first function adds `container` (EphemeralContainer), the second one takes those of
 * `other` over into `pod`, a newer manifest of the same pod. *ret is a new reference. ERR_INVALID: that is
 * no valid pod; the text names the field.
 */
enum err_code api_pod_add_ephemeral(const struct api_pod *pod, json_t *container, struct api_pod **ret,
                                    struct err *e) MUST_CHECK;
enum err_code api_pod_keep_ephemeral(struct api_pod *pod, const struct api_pod *other, struct api_pod **ret,
                                     struct err *e) MUST_CHECK;

/* One Pod from JSON written by the agent itself (a record): same path, same checks. */
enum err_code api_decode_pod(const json_t *object, struct api_pod **ret, struct api_problems *problems,
                             struct err *e) MUST_CHECK;

struct api_expansion { /* of a workload's template; borrowed */
    const char *namespace_, *name;
    const struct api_kv *labels; /* in addition to the template's */
    size_t n_labels;
    const struct api_kv *annotations; /* likewise */
    size_t n_annotations;
    const char *index_env, *index_field; /* an environment variable of every container; NULL: none */
    bool of_daemon; /* it tolerates what Kubernetes' DaemonSets tolerate: pressure, and a node that is not
                       ready */
    const char *owner_api_version, *owner_kind, *owner_name, *owner_uid;
    const char *hostname, *subdomain; /* NULL: as in the template */
    /* Volumes of claims, by name: they replace those of the template. */
    const struct api_kv *claims;
    size_t n_claims;
};
/* A pod of a workload, whose owner_uid and ownerReferences are set: a new reference. ERR_INVALID: what only a
 * pod's own name can break. */
enum err_code api_expand_pod(const struct api_pod *template_, const struct api_expansion *x,
                             struct api_pod **ret, struct err *e) MUST_CHECK;

/* Whether Kubernetes' DaemonSets tolerate the taint by default. */
bool api_daemon_tolerates(const struct api_taint *taint);

/* An object of api_kind_is_generic() that the agent made, or another one of it: its owner is kept. Changes
 * `object`. A new reference. ERR_INVALID: it is not valid. */
enum err_code api_make_generic(enum api_kind kind, json_t *object, struct api_generic **ret,
                               struct err *e) MUST_CHECK;

/*
 * One object as the apiserver has it. It was validated there, so fields that this version does not know are
 * dropped, as are those that the server sets (status, managedFields). If it contains something that a node
 * refuses in a manifest, the pod is not refused: *ret is a pod with served.problem, which is shown and not
 * run. ERR_INVALID: a node does not use its kind, or it has no name.
 */
enum err_code api_decode_served(const json_t *object, struct api_object *ret, struct err *e) MUST_CHECK;

/* Checks the labels, annotations and taints of a Node before it is written; each fault is added to *problems.
 * The only failure is ERR_EXHAUSTED, out of memory. */
enum err_code api_check_node(const json_t *object, struct api_problems *problems, struct err *e) MUST_CHECK;

/* Makes a pod of a record one of the apiserver's again: copies *s. */
enum err_code api_pod_serve(struct api_pod *pod, const struct api_served *s, struct err *e) MUST_CHECK;

/*
 * The content of a manifest file on a node that has joined a cluster: as api_decode_file(), and each Pod is a
 * static pod of node `node_name`, as kubelet makes it (pkg/kubelet/config/common.go): its name gets the
 * suffix "-<node name>", so that it never clashes with a pod of the apiserver, and it tolerates NoExecute
 * taints. NULL: the node has not joined.
 */
enum err_code api_decode_static(const char *file, const char *text, size_t size, const char *node_name,
                                struct api_objects *ret, struct api_problems *problems,
                                struct err *e) MUST_CHECK;

/*
 * Whether an edit requires a new pod (the API's rule for what may change). If so, `why` has the names of the
 * fields, joined by ", "; false if the edit can be applied in place (labels, annotations,
 * containers[*].image, activeDeadlineSeconds shortened, tolerations added, terminationGracePeriodSeconds from
 * negative to 1, resources).
 */
bool api_pod_edit_needs_restart(const struct api_pod *old_pod, const struct api_pod *new_pod, char *why,
                                size_t why_size);
#endif
