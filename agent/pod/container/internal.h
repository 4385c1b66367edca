/* SPDX-License-Identifier: Apache-2.0 */
/* What container keeps of the node, of a pod and of each container for itself, and what its files share. */
#ifndef AGENT_POD_CONTAINER_INTERNAL_H
#define AGENT_POD_CONTAINER_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/runtime/container.h"
#include "base/siphash.h"

struct container_node {
    /* create_limit.c: at most create_max containers are being created at a time */
    unsigned create_max, create_used;
    TAILQ_HEAD(, ctr_own) create_queue;
    uv_timer_t create_timer; /* runs while somebody waits: a place is not held for long */
    /* probes.c: likewise probes that need a process, each in its first second */
    unsigned probes_used;
    TAILQ_HEAD(, prober) probes_queue;
    unsigned char env_key[SIPHASH_KEY_SIZE]; /* env_age.c */
    bool env_key_known;
    struct log_keep *logs; /* log_keep.h; NULL: rotated logs are lost */
};

static inline struct container_node *container_node(const struct node *n)
{
    return n->parts[ROOM_CONTAINER];
}

/* An instance whose remains are being removed; tried again, with growing pauses, until nothing is left. */
struct reap {
    struct pod *pod;
    struct rt_action action;
    char id[65], cgroup_path[512]; /* "": as its bundle says */
    char error[512];               /* of the last try; "": none failed */
    uint64_t pause_ms;
    struct boot_time again_at; /* the next try; none: it is under way */
    TAILQ_ENTRY(reap) link;
};

enum ctr_post {
    POST_NONE,
    POST_RUNNING, /* the postStart hook: until it is over, nobody is told that the container runs */
    POST_FAILED,  /* and it is being killed for that */
};

struct ctr_own { /* of one container */
    /* crash back-off: 0 ms means no entry */
    uint64_t backoff_ms;
    struct boot_time backoff_at; /* the run after its last pause began */
    struct boot_time retry_at;   /* after a failed try that is not a crash: not before */

    struct boot_time stop_deadline; /* CTR_PRESTOP: its grace is over then; CTR_STOPPING: SIGKILL then */
    struct boot_time kill_again_at;
    char stop_text[160]; /* of the Killing event; "" : the usual one */

    struct ctr_probes *probes; /* NULL: none yet */
    struct hook *hook;         /* NULL: no lifecycle hook is under way */
    enum ctr_post post;
    char *post_message; /* why the hook failed */
    bool asked;         /* restart_ask(): ends, and starts again at once; its back-off stays as it is */
    bool started_once;  /* a sidecar: what comes after it may start */
    /* From the record, for the instance that was running: what its probes had said. */
    bool recovered, was_ready, was_started;
    bool unknown;   /* the last look at its state failed: nothing is decided about it */
    bool adopt_due; /* an earlier agent's, not taken over yet */
    bool log_kept;  /* rotated files of cur's log are being kept: log_keep.h */

    bool create_held, create_waiting; /* create_limit.c */
    uint64_t create_since_ms;         /* held since, clock_mono_ms() */
    struct ctr *create_ctr;           /* whose this is, while it waits */
    TAILQ_ENTRY(ctr_own) create_link;
    struct cpu_memory building; /* of the run that is being created */
    struct ctr_run *run;        /* what a create under way borrows */
    struct rt_create create;
    struct rt_action action;
    struct proc_call subpaths;

    char *env_old;      /* `ConfigMap "a"`: what its environment is older than; NULL: nothing */
    int64_t env_old_ns; /* since when that is known */
    json_t *env_now;    /* what it is to be told of; NULL: nothing new */
};

struct pod_containers {
    struct boot_time probes_since; /* the ticks of its probes count from here; none: not yet */
    bool env_look; /* a ConfigMap or Secret of an environment changed: env_age_step() looks at them */
    TAILQ_HEAD(, reap) reaps;
    struct ctr_own own[]; /* as many as the pod has containers */
};

static inline struct pod_containers *containers_of(const struct pod *p)
{
    return p->parts[ROOM_CONTAINER];
}

static inline struct ctr_own *own_of(const struct ctr *c)
{
    return &containers_of(c->pod)->own[c - c->pod->ctrs];
}

void ctr_waits_no_more(struct ctr *c);               /* containers.c */
bool reaps_has(const struct pod *p, const char *id); /* reaps.c: it is being removed */

/* ---- ctr_record.c ---- */
void ctr_record_save(const struct pod *p, json_t *record);
void ctr_record_load(struct pod *p, const json_t *record);
#endif
