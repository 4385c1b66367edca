/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/workload. Loop thread only. */
#ifndef AGENT_WORKLOAD_INTERNAL_H
#define AGENT_WORKLOAD_INTERNAL_H
#include "agent/source/store.h"
#include "agent/workload/decide.h"
#include "agent/workload/job.h"
#include "agent/workload/revision.h"
#include "agent/workload/workloads.h"
#include "base/strs.h"

#define WORKLOAD_UID_SIZE 37
#define WORKLOAD_MS INT64_C(1000000)
#define WORKLOAD_SECOND_NS INT64_C(1000000000)

struct workload_counts { /* counts of the desired pods */
    unsigned pods, ready, available, updated, updated_available;
};

/* The state of a Job that is not in its pods, and that survives a restart. */
struct job_facts {
    char hash[API_HASH_SIZE];  /* of the running template */
    int64_t started_ns;        /* wall clock; 0: suspended */
    struct boot_time began;    /* the same, for the deadline */
    bool was_suspended;        /* the Job was suspended at some time */
    int64_t turned_ns;         /* when it was suspended or resumed last */
    enum job_end end;          /* JOB_RUNS: not over */
    char *message;             /* of the end */
    int64_t ended_ns;          /* when its end was decided */
    int64_t finished_ns;       /* when its last pod had ended; 0: not yet */
    struct boot_time finished; /* the same, for ttlSecondsAfterFinished */
    json_t *status;            /* the final status; NULL before */
    struct job_plan plan;      /* the last one, without steps */
    struct job_seen *seen;     /* of this turn */
};

/* The state of a CronJob that is not in its Jobs. */
struct cron_facts {
    char *clock;        /* the schedule and zone to which the times below refer */
    int64_t since_s;    /* seconds since 1970: moments up to this one are done */
    int64_t last_s;     /* the moment of the last Job; 0: none */
    int64_t success_ns; /* when the last successful Job succeeded; 0: none */
    int64_t refused_s;  /* the moment that was skipped because a Job was running; 0: none */
};

/* The content of a revision's object, and its use. */
struct revision_facts {
    int64_t number;
    char hash[API_HASH_SIZE];
    uint64_t looks;         /* of its template */
    unsigned uses;          /* by pods, also those that are ending */
    unsigned made, removed; /* pods, in this turn */
};

struct workload {
    UT_hash_handle hh; /* by uid */
    char uid[WORKLOAD_UID_SIZE];
    char owner[WORKLOAD_UID_SIZE]; /* uid of the CronJob that created it, or of the workload whose revision it
                                      is; "" */
    enum api_kind kind;
    struct api_generic *object;
    int64_t generation; /* 1, and one more for each edit that this agent saw */
    struct workload_counts counts;
    int64_t created_ns, progress_ns; /* wall clock: the oldest pod; when counts changed last */
    struct boot_time progress_at;
    bool late;                  /* no progress for progressDeadlineSeconds */
    bool goes;                  /* a Job that is removed from the store at the end of this turn */
    bool asked;                 /* the removal of its document from its file was requested */
    char problem[300];          /* why a pod cannot be created; "" */
    struct workload_seen *seen; /* of this step; `pods` has the pod of each */
    const struct pod **pods;
    size_t n_seen;
    struct job_facts *job;           /* of a Job; otherwise NULL */
    struct cron_facts *cron;         /* of a CronJob; otherwise NULL */
    struct revision_facts *revision; /* of a revision of another workload; otherwise NULL */
    /* Of a workload with revisions: */
    uint64_t looks;              /* of its template */
    bool changed;                /* its object, since the last turn */
    char hash[API_HASH_SIZE];    /* of the current revision; "" before the first step */
    int64_t number, told_number; /* of that revision; 0: no revision is kept */
    bool on_hold;                /* a paused Deployment: the current template differs from the object's */
    char before[API_HASH_SIZE];  /* of the revision before the rollout; without a rollout, the current one. A
                                    StatefulSet's is recorded: pods below the partition are made of it */
    unsigned n_before;           /* its pods */
    struct workload *revisions, *next; /* the workload's revisions; a revision's next one; of this step */
    json_t *told;                      /* the status last sent to clients of the store; NULL: none */
};

struct workloads {
    struct workloads_options o;
    struct src_store *store;
    struct workload *all;
    struct node_workloads link;
    struct boot_timer timer;
    bool begun, stopped, stepping;
    int64_t next_ms;  /* of this step: time until the next step; -1: only after an event */
    char *dir;        /* <state>/jobs */
    bool swept;       /* records of removed objects were dropped */
    struct strs gone; /* uids of removed workloads, whose pods end even if the folder has invalid files */
};

void workload_uid(enum api_kind kind, const char *namespace_, const char *name, char ret[WORKLOAD_UID_SIZE]);
struct workload *workload_find(struct workloads *w, const char *uid);
void workloads_wake(struct workloads *w);
/* Whether a DaemonSet's pod may run on this node, by selector, affinity and tolerations. True for other
 * kinds. */
bool workload_fits(const struct workloads *w, const struct workload *one);
void workloads_look_again(struct workloads *w, int64_t ms);

/* ---- adopt.c ---- */
/* Adds the pods of an earlier run to the store. */
void workloads_adopt(struct workloads *w);
/* Removes pods and Jobs of removed workloads from the store, and their records. False: some may belong to a
 * file with problems; call it again later. */
bool workloads_drop_orphans(struct workloads *w);

/* ---- make.c ---- */
/* Creates the pod with this number, and with this index for a Job. */
void workload_make(struct workloads *w, struct workload *one, unsigned number, unsigned index);
void workload_remove(struct workloads *w, struct workload *one, const struct pod *p);
const char *workload_hash_label(enum api_kind kind);
extern const char workload_index_label[];

/* ---- record.c ---- */
/* Reads all records and adds the Jobs of CronJobs to the store. */
enum err_code workload_records_load(struct workloads *w, struct err *e) MUST_CHECK;
/* Saves the record of a Job or a CronJob. A failure is logged; the next change retries. */
void workload_record_save(struct workloads *w, const struct workload *one);
/* Saves the first record of an object that a workload creates (a CronJob's Job, a revision), before the
 * object is in the store. */
enum err_code workload_record_made(struct workloads *w, const char *uid, int64_t created_ns,
                                   const json_t *made, struct err *e) MUST_CHECK;
void workload_record_remove(struct workloads *w, const char *uid);
/* Reads the facts from the record if there is one, otherwise creates new ones. False: out of memory. */
bool workload_record_take(struct workloads *w, struct workload *one);
void workload_facts_free(struct workload *one);
/* The uids of all records. */
bool workload_records_list(struct workloads *w, struct strs *ret);

/* ---- events.c ---- */
void workload_event(struct workloads *w, const struct workload *one, bool warning, const char *reason,
                    const char *fmt, ...) PRINTF_LIKE(5, 6);
/* One of its pods was made, or is removed. */
void workload_event_pod(struct workloads *w, const struct workload *one, const struct api_pod *pod,
                        bool created);
void workload_event_failed(struct workloads *w, const struct workload *one, const char *pod, const char *why);
/* How many pods the ReplicaSets of a Deployment have after this turn. */
void workload_event_scaled(struct workloads *w, const struct workload *one);

/* ---- revisions.c ---- */
/* The one of this hash; NULL: there is none. */
struct workload *revision_of(struct workloads *w, const struct workload *one, const char *hash);
/* Whether the pod of this number is made of the revision before the rollout: it is below the partition of its
 * StatefulSet. */
bool revision_holds_back(struct workloads *w, const struct workload *one, unsigned number);
/* The StatefulSet with the template of that revision: a new reference. */
enum err_code revision_past(struct workloads *w, const struct workload *one, struct api_generic **ret,
                            struct err *e) MUST_CHECK;
/* Reads a new object. */
void revision_take(struct workload *one);
/* At the beginning of a step: links the revisions of each workload. */
void revisions_link(struct workloads *w);
/* Before the pods are counted: determines the current revision; creates it, or assigns a new number. */
void revisions_resolve(struct workloads *w, struct workload *one);
/* With its pods seen: counts the pods of each revision, and drops old revisions. */
void revisions_settle(struct workloads *w, struct workload *one);
/* The workload of a pod; a pod of a Deployment is owned by a ReplicaSet of it. NULL: the workload was
 * removed. */
struct workload *workload_of_pod(struct workloads *w, const struct api_pod *pod);
/* The template of new pods. */
const struct api_pod *workload_template(struct workloads *w, const struct workload *one);
static inline const char *workload_hash(const struct workload *one)
{
    return one->hash[0] != '\0' ? one->hash : one->object->workload->pods.hash;
}

/* ---- job_run.c ---- */
void job_step(struct workloads *w, struct workload *one);

/* ---- cron_run.c ---- */
void cron_step(struct workloads *w, struct workload *one);
/* "Europe/Berlin 0 3 * * *" */
char *cron_clock(const struct api_workload *spec);

/* ---- conditions and members of a status (show.c) ---- */
void show_number(json_t *o, const char *key, int64_t n);
void show_time(json_t *o, const char *key, int64_t ns);
void show_condition(json_t *list, int64_t since_ns, const char *type, bool is_true, const char *reason,
                    const char *message);
/* ---- show_batch.c ---- */
void show_job(json_t *s, json_t *conditions, const struct workload *one);
void show_cron_job(json_t *s, struct workloads *w, const struct workload *one);
const char *job_end_reason(enum job_end end);

/* ---- taints.c ---- */
/* Ends the pods that a taint of NoExecute does not let stay. */
void taints_step(struct workloads *w);

/* ---- show.c ---- */
/* Notifies clients of the status socket that keep a copy, if the status has changed. */
void workload_notify(struct workloads *w, struct workload *one);
json_t *workloads_object(enum api_kind kind, const char *namespace_, const char *name, void *arg,
                         struct err *e);
#endif
