/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own data of the node, of a pod and of each container, and declarations shared by its files. */
#ifndef AGENT_POD_CONTAINER_INTERNAL_H
#define AGENT_POD_CONTAINER_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/runtime/container.h"
#include "base/siphash.h"

struct container_node {
    /* create_limit.c: at most create_max containers are being created at a time */
    unsigned create_max, create_used;
    TAILQ_HEAD(, ctr_own) create_queue;
    uv_timer_t create_timer; /* runs while a container waits: a slot is not held for long */
    /* probes.c: likewise probes that need a process, each in its first second */
    unsigned probes_used;
    TAILQ_HEAD(, prober) probes_queue;
    unsigned char env_key[SIPHASH_KEY_SIZE]; /* env_age.c */
    bool env_key_known;
    struct log_keep *logs; /* log_keep.h; NULL: rotated logs are lost */
    struct cdi *cdi;       /* NULL: no folder is set */
};

static inline struct container_node *container_node(const struct node *n)
{
    return n->parts[ROOM_CONTAINER];
}

/* An instance whose remains are being removed; tried again, with growing pauses, until nothing is left. */
struct reap {
    struct pod *pod;
    struct rt_action action;
    char id[65], cgroup_path[512]; /* "": as in its bundle */
    char error[512];               /* of the last try; "": none failed */
    uint64_t pause_ms;
    struct boot_time again_at; /* the next try; none: it is under way */
    TAILQ_ENTRY(reap) link;
};

enum ctr_post {
    POST_NONE,
    POST_RUNNING, /* the postStart hook: until it is over, the container is not reported as running */
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
    bool started_once;  /* a sidecar: later containers may start */
    /* From the record, for the instance that was running: the results of its probes. */
    bool recovered, was_ready, was_started;
    bool unknown;   /* the last read of its state failed: nothing is decided about it */
    bool adopt_due; /* an earlier agent's, not taken over yet */
    bool log_kept;  /* rotated files of cur's log are being kept: log_keep.h */

    bool devices_prepared;            /* for the next start: devices_pre_start() */
    bool create_held, create_waiting; /* create_limit.c */
    uint64_t create_since_ms;         /* held since, clock_mono_ms() */
    struct ctr *create_ctr;           /* whose this is, while it waits */
    TAILQ_ENTRY(ctr_own) create_link;
    struct cpu_memory building; /* of the run that is being created */
    struct ctr_run *run;        /* data that a create in progress borrows */
    struct rt_create create;
    struct rt_action action;
    struct proc_call subpaths;

    bool cdi_missing; /* it waits for CDI specs, or for one with its devices: ctr_cdi.c */
    bool cdi_looked;  /* they were read for it, and its devices were still unknown */

    bool log_linked;     /* cur's log, for log shippers; as far as this agent knows */
    json_t *env_sources; /* sources of cur's environment (env_age.h); NULL: none that can change */
    json_t *env_told;    /* the sources of which cur was last notified by a signal; NULL: none since */
    char *env_old;       /* `ConfigMap "a"`: the source that is newer than its environment; NULL: none */
    int64_t env_old_ns;  /* since when that is known */
    json_t *env_now;     /* the sources to notify it of; NULL: none */
};

struct pod_containers {
    struct boot_time probes_since; /* the ticks of its probes count from here; none: not yet */
    bool env_look; /* a ConfigMap or Secret of an environment changed: env_age_step() checks them */
    TAILQ_HEAD(, reap) reaps;
};

static inline struct pod_containers *containers_of(const struct pod *p)
{
    return p->parts[ROOM_CONTAINER];
}

static inline struct ctr_own *own_of(const struct ctr *c)
{
    return c->parts[ROOM_CONTAINER];
}

/* ---- create_limit.c ---- */
void create_limit_init(struct node *n);
bool create_limit_take(struct ctr *c); /* false: the pod will be woken when there is a slot */
void create_limit_release(struct ctr *c);

/* ---- ctr_order.c, containers.c: upwards ---- */
void containers_step(struct pod *p); /* of a pod that starts or runs: each container in its turn */
void ctr_step(struct ctr *c);        /* towards running, if it should */
/* kubelet starts containers one after the other, and a postStart hook is part of its container's start: later
 * ones wait. (Without hooks that order is not observable, and they start in parallel.) */
bool ctr_holds_others(const struct ctr *c);
/* Consequences of a start: log link, event. started_ns: wall clock, 0: now. */
void ctr_note_start(struct ctr *c, int64_t started_ns, struct boot_time started_at);
void ctr_waiting(struct ctr *c, const char *reason, const char *fmt, ...) PRINTF_LIKE(3, 4);
void ctr_waits_no_more(struct ctr *c);
struct boot_time ctr_backoff_until(const struct ctr *c); /* none: not in back-off */

/* ---- instance.c, restart.c: downwards ---- */
void ctr_stop_step(struct ctr *c); /* a timeout passed or its state changed */
void ctr_ended(struct ctr *c, int exit_code, const char *reason, const char *message, int64_t finished_ns);
void instance_clear(struct instance *i);
/* Carries RestartAllContainers out: true while containers still have to end, and none may start. */
bool restart_all_step(struct pod *p);

/* ---- hooks.c ---- */
void hook_set_post(struct ctr *c, enum ctr_post post); /* the one setter, which logs the change */

/* ---- reaps.c ---- */
void ctr_reap(struct pod *p, const char *id, const char *cgroup_path);
void ctr_reap_run(struct ctr *c); /* cur has ended; if the next run starts now, it comes first */
bool reaps_has(const struct pod *p, const char *id); /* it is being removed */
void reaps_clear(struct pod *p);                     /* the pod is being freed: none is in progress */

/* ---- ctr_message.c, ctr_log.c ---- */
/* The message that cur left, malloc'ed; NULL if it left none. Failed: a shortage; try again. */
enum err_code ctr_message(const struct ctr *c, int exit_code, char **ret, struct err *e) MUST_CHECK;
void ctr_log_keep(struct ctr *c, unsigned attempt); /* keeps its rotated files from now on; may be repeated */
void ctr_log_ended(struct ctr *c, unsigned attempt); /* it writes no more, or never will */
void ctr_log_remove(const struct ctr *c, unsigned attempt);
void ctr_log_link(struct ctr *c); /* for log shippers, once it has started; may be repeated */
void ctr_log_link_path(const struct ctr *c, const char *id, char *ret, size_t size);

/* ---- ctr_config.c ---- */
struct ctr_run; /* owns everything an rt_config borrows */
enum err_code ctr_run_build(struct ctr *c, struct ctr_run **ret, struct err *e) MUST_CHECK;
const struct rt_config *ctr_run_config(const struct ctr_run *r);
/* The host file for terminationMessagePath, below the pod's folder; removed with the run unless taken. */
const char *ctr_run_take_message_file(struct ctr_run *r);
json_t *ctr_run_take_env_sources(struct ctr_run *r); /* of that time; env_age.h */
const char *ctr_run_image(const struct ctr_run *r);  /* the manifest's name of it when the run was made */
/* Sets fn and arg of a call that mounts image volumes and binds the container's sub paths; false if it has
 * neither. */
bool ctr_run_subpaths(struct ctr_run *r, struct proc_call_spec *call);
/* the runtimes' term: prefix of errors of the former */
#define IMAGE_VOLUME_FAILED "ImageVolumeMountFailed"
/* The error of a ctr_run_build() is about a target that does not run, which under kubelet is the runtime's
 * affair: CreateContainerError. */
bool ctr_target_failed(const struct err *e);
void ctr_run_redact(struct ctr_run *r, struct err *e); /* redacts Secrets of its environment */
void ctr_run_free(struct ctr_run *r);                  /* NULL is fine */

/* ---- ctr_cdi.c ---- */
struct cdi_resolved;
struct dp_answer;
void ctr_cdi_open(struct node *n);
/* The edits for what `devices` answered and annotations ask for; *ret is unchanged if that is nothing. */
enum err_code ctr_cdi_add(struct ctr *c, const struct dp_answer *devices, struct cdi_resolved *ret,
                          struct err *e) MUST_CHECK;
/* The error of a ctr_run_build(): the specs are being read, and the pod will be woken; nothing failed. */
bool ctr_cdi_waits(const struct ctr *c, const struct err *e);
/* It is about CDI, which under kubelet is the runtime's affair: CreateContainerError. */
bool ctr_cdi_failed(const struct err *e);

/* ---- ctr_devices.c: for ctr_config.c ---- */
struct env;
enum err_code ctr_devices_add(struct ctr *c, struct arena *a, struct rt_config *config, struct dp_answer *ret,
                              struct err *e) MUST_CHECK;
size_t ctr_devices_mounts(const struct dp_answer *d, struct rt_mount *ret); /* as many as d->n_mounts */
enum err_code ctr_devices_env(const struct dp_answer *d, const struct env *own, struct arena *a,
                              struct env *ret, struct err *e) MUST_CHECK;

/* ---- ctr_record.c ---- */
void ctr_record_save(const struct pod *p, json_t *record);
void ctr_record_load(struct pod *p, const json_t *record);
#endif
