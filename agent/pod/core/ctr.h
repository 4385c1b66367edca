/* SPDX-License-Identifier: Apache-2.0 */
/* ctr - a container of a pod, and its runs.  Private to agent/pod. */
#ifndef AGENT_POD_CORE_CTR_H
#define AGENT_POD_CORE_CTR_H
#include "agent/api/types.h"
#include "agent/runtime/container.h"
#include "base/list.h"

/* cpu (thousandths) and memory (bytes) as a cgroup was last given them; -1: none. */
struct cpu_memory {
    bool known;
    int64_t cpu_request, cpu_limit, memory_request, memory_limit;
};

/* One run of a container.  Kept in the pod's record. */
struct instance {
    char id[65]; /* "" : there is none */
    unsigned attempt;
    int64_t created_ns, started_ns, finished_ns; /* wall clock; 0: not yet */
    struct boot_time started_at, ended_at;       /* the last two, for what counts from them */
    bool ended;
    bool log_linked; /* as far as this agent knows */
    int exit_code;
    char reason[32];     /* terminated: Completed, Error, OOMKilled, StartError, ContainerStatusUnknown */
    char *message;       /* termination message; NULL: none */
    char *image_id;      /* sha256:...; NULL while unknown */
    char *image_ref;     /* what the status calls it, as it was pulled; NULL: as image_id */
    json_t *env_sources; /* what its environment was made from (env_age.h); NULL: nothing that can change */
    json_t *env_told;    /* what it was last told of by a signal; NULL: nothing since */
    struct cpu_memory sizes;
    char message_file[128]; /* host file behind terminationMessagePath, below the pod's folder */
};

enum ctr_kind { CTR_INIT, CTR_SIDECAR, CTR_REGULAR };

/* What the worker is doing with the newest instance. */
enum ctr_state {
    CTR_NONE,     /* no instance, or the newest one ended */
    CTR_MOUNTING, /* sub paths are being bound */
    CTR_CREATING, /* rt_create under way */
    CTR_CREATED,
    CTR_STARTING, /* rt_start under way */
    CTR_RUNNING,
    CTR_PRESTOP,  /* told to end: its preStop hook runs, or its turn to be signalled has not come */
    CTR_STOPPING, /* signal sent, waiting for the exit */
    CTR_KILLING,  /* its cgroup was killed */
};
const char *ctr_state_name(enum ctr_state s);

struct ctr {
    struct pod *pod;
    const struct api_container *spec; /* into pod->api */
    enum ctr_kind kind;
    enum ctr_state state;
    struct boot_time state_began;
    struct instance cur, last;
    unsigned restarts;
    bool replace; /* image changed, or the sandbox is new: end it and start anew whatever the policy */

    /* crash back-off: 0 ms means no entry */
#define BACKOFF_MAX_MS 300000
    uint64_t backoff_ms;
    struct boot_time backoff_at; /* the run after its last pause began */

    /* why it waits; "" while nothing is wrong */
    char waiting_reason[40];
    char *waiting_message;
    struct boot_time retry_at; /* after a failed try that is not a crash: not before */

    struct boot_time stop_deadline; /* CTR_PRESTOP: its grace is over then; CTR_STOPPING: SIGKILL then */
    struct boot_time kill_again_at;

    struct ctr_probes *probes; /* NULL: none yet */
    struct hook *hook;         /* NULL: no lifecycle hook is under way */
    enum {
        POST_NONE,
        POST_RUNNING, /* the postStart hook: until it is over, nobody is told that the container runs */
        POST_FAILED,  /* and it is being killed for that */
    } post;
    char *post_message;  /* why the hook failed */
    char stop_text[160]; /* of the Killing event; "" : the usual one */
    bool again;          /* killed by a probe: starts again whatever its exit code */
    bool asked;          /* restart_ask(): ends, and starts again at once; its back-off stays as it is */
    /* From the record, for the instance that was running: what its probes had said. */
    bool recovered, was_ready, was_started;

    struct cpu_memory building; /* of the run that is being created */
    struct ctr_run *run;        /* what a create under way borrows */
    struct rt_create create;
    struct rt_action action;
    struct proc_call subpaths;
    char *env_old;      /* `ConfigMap "a"`: what its environment is older than; NULL: nothing */
    int64_t env_old_ns; /* since when that is known */
    json_t *env_now;    /* what it is to be told of; NULL: nothing new */
    bool unknown;       /* the last look at its state failed: nothing is decided about it */
    bool adopt_due;     /* an earlier agent's, not taken over yet */
    bool started_once;  /* a sidecar: what comes after it may start */
    bool log_kept;      /* rotated files of cur's log are being kept: log_keep.h */
    bool create_held, create_waiting;
    uint64_t create_since_ms; /* held since, clock_mono_ms() */
    TAILQ_ENTRY(ctr) create_link;
};

void ctr_set_state(struct ctr *c, enum ctr_state s);
#endif
