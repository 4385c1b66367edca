/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generic - objects that are kept whole, as JSON: workloads (Deployment, Job ...), which become pods of this
 * node, claims of storage, and kinds that a node only keeps and shows (Service, Ingress ...).
 *
 * As the objects of types.h: in one arena, immutable, reference-counted.
 */
#ifndef AGENT_API_GENERIC_H
#define AGENT_API_GENERIC_H
#include "agent/api/storage.h"

enum api_update { API_UPDATE_ROLLING, API_UPDATE_RECREATE, API_UPDATE_ON_DELETE };
enum api_concurrency { API_CONCURRENCY_ALLOW, API_CONCURRENCY_FORBID, API_CONCURRENCY_REPLACE };

#define API_HASH_SIZE 11 /* of a template: ten characters, as in pod-template-hash */

struct api_generic;

struct api_template {
    struct api_pod *pod;      /* decoded; its json has metadata and spec; NULL: a CronJob's */
    char hash[API_HASH_SIZE]; /* of labels, annotations and spec as written, without defaults */
};

/* podFailurePolicy of a Job: the first rule that matches decides. */
enum api_failure_action {
    API_FAILURE_COUNT,
    API_FAILURE_IGNORE,
    API_FAILURE_FAIL_INDEX,
    API_FAILURE_FAIL_JOB
};
struct api_failure_condition {
    char *type, *status; /* status "True" by default */
};
struct api_failure_rule {
    enum api_failure_action action;
    bool by_exit, not_in; /* by_exit: onExitCodes, otherwise onPodConditions */
    char *container;      /* NULL: any */
    int64_t *exit_codes;
    size_t n_exit_codes;
    struct api_failure_condition *conditions;
    size_t n_conditions;
};
struct api_success_rule {
    char *indexes; /* "0,2-4"; NULL: all */
    bool has_count;
    int32_t count;
};

struct api_workload { /* the spec; members that a kind does not have are 0, or the kind's default */
    struct api_label_selector selector;
    struct api_template pods; /* a CronJob has `job` instead */

    /* Deployment, ReplicaSet, StatefulSet, DaemonSet */
    int32_t replicas, min_ready_seconds, progress_deadline_seconds, revision_history_limit;
    bool has_progress_deadline, paused;
    enum api_update update;
    char *max_unavailable, *max_surge; /* a number, or "25%"; NULL: not given */
    int32_t partition, first_ordinal;
    bool parallel; /* podManagementPolicy of a StatefulSet */
    char *service_name;
    struct api_strs claim_names;                  /* of volumeClaimTemplates of a StatefulSet */
    bool claims_go_with_set, claims_go_with_pods; /* persistentVolumeClaimRetentionPolicy: Delete */

    /* Job */
    bool has_completions, has_parallelism, has_deadline, has_ttl, suspend, indexed, manual_selector;
    bool has_backoff_limit, has_index_backoff, has_max_failed_indexes;
    bool has_replacement, replace_failed; /* podReplacementPolicy; Failed: not while one is ending */
    bool has_failure_policy, has_success_policy;
    int32_t completions, parallelism, backoff_limit, index_backoff_limit, max_failed_indexes, ttl_seconds;
    int64_t deadline_seconds;
    struct api_failure_rule *failure_rules;
    size_t n_failure_rules;
    struct api_success_rule *success_rules;
    size_t n_success_rules;

    /* CronJob; `suspend`, too */
    char *schedule, *time_zone; /* time_zone NULL: the node's */
    enum api_concurrency concurrency;
    bool has_starting_deadline;
    int64_t starting_deadline_seconds;
    int32_t keep_successful, keep_failed;
    struct api_generic *job; /* the template as a Job; its name is a placeholder for the Jobs' names */
};

struct api_claim { /* a PersistentVolumeClaim's spec */
    struct api_strs access_modes;
    struct api_resource_list requests, limits;       /* "storage" */
    char *storage_class, *volume_name, *volume_mode; /* NULL: not given */
    char *attributes_class;                          /* likewise */
    struct api_label_selector *selector;             /* likewise */
};

struct api_generic {
    struct arena arena;
    int refs;
    enum api_origin origin;
    struct api_meta meta;
    struct api_workload *workload; /* of the six kinds of workloads; otherwise NULL */
    struct api_claim *claim;       /* of a claim; otherwise NULL */
    struct api_pv *pv;             /* of a PersistentVolume; otherwise NULL */
    char *json;                    /* the whole with defaults, without status */
    struct api_strs ignored;       /* as in struct api_pod; those of the template are in pods.pod */
};

struct api_generic *api_generic_ref(struct api_generic *g);
void api_generic_unref(struct api_generic *g); /* NULL is fine */
SCOPE_DEFINE(struct api_generic, api_generic_unref)
#endif
