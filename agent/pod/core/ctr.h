/* SPDX-License-Identifier: Apache-2.0 */
/* ctr - a container of a pod, and its runs.  Private to agent/pod. */
#ifndef AGENT_POD_CORE_CTR_H
#define AGENT_POD_CORE_CTR_H
#include "agent/api/types.h"
#include "agent/pod/core/room.h"
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
    int exit_code;
    char reason[32]; /* terminated: Completed, Error, OOMKilled, StartError, ContainerStatusUnknown */
    char *message;   /* termination message; NULL: none */
    /* The cause of its end, as far as the exit code does not show it: "liveness probe failed: ...", the
     * kernel's words about a process killed out of memory, a hook's output. For people; NULL: nothing is
     * known. */
    char *why;
    char *image_id;  /* sha256:...; NULL while unknown */
    char *image_ref; /* its id in the status, as it was pulled; NULL: as image_id */
    struct cpu_memory sizes;
    char message_file[128]; /* host file behind terminationMessagePath, below the pod's folder */
};

/* Adds to `why`, which keeps the first INSTANCE_WHY_MAX bytes; text that it already contains is not
 * repeated. */
#define INSTANCE_WHY_MAX 2048
void instance_add_why(struct instance *i, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Ephemeral ones are added to a pod that exists, run once, and count neither for its phase nor its readiness.
 */
enum ctr_kind { CTR_INIT, CTR_SIDECAR, CTR_REGULAR, CTR_EPHEMERAL };
static inline bool ctr_kind_of_init(enum ctr_kind k) /* one of spec.initContainers */
{
    return k == CTR_INIT || k == CTR_SIDECAR;
}
/* Whether it lasts as long as the pod does: a regular one or a sidecar. */
static inline bool ctr_kind_lasts(enum ctr_kind k)
{
    return k == CTR_SIDECAR || k == CTR_REGULAR;
}

/* What the worker is doing with the newest instance. */
enum ctr_state {
    CTR_NONE,     /* no instance, or the newest one ended */
    CTR_MOUNTING, /* sub paths are being bound */
    CTR_CREATING, /* rt_create under way */
    CTR_CREATED,
    CTR_STARTING, /* rt_start under way */
    CTR_RUNNING,
    CTR_PRESTOP,  /* ending: its preStop hook runs, or it has not been signalled yet */
    CTR_STOPPING, /* signal sent, waiting for the exit */
    CTR_KILLING,  /* its cgroup was killed */
};
const char *ctr_state_name(enum ctr_state s);

#define BACKOFF_MAX_MS 300000 /* kubelet's longest pause between crashes, and between pulls that fail */

struct ctr {
    struct pod *pod;
    size_t index;                     /* in pod->ctrs */
    const struct api_container *spec; /* into pod->api */
    enum ctr_kind kind;
    enum ctr_state state;
    struct boot_time state_began;
    struct instance cur, last;
    unsigned restarts;
    bool replace; /* image changed, or the sandbox is new: end it and start anew whatever the policy */
    bool again;   /* killed by a probe or on request: starts again whatever its exit code */

    /* why it waits; "" while nothing is wrong */
    char waiting_reason[40];
    char *waiting_message;
    void *parts[ROOMS]; /* what each room keeps of it: room.h */
};

/* The one setter of each, which logs the change; a record is read into them as it is. */
void ctr_set_state(struct ctr *c, enum ctr_state s);
void ctr_set_replace(struct ctr *c, bool replace);
void ctr_set_again(struct ctr *c, bool again);
#endif
