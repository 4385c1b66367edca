/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod - one pod of this node and its worker's state.  Private to agent/pod.
 *
 *             admitted            a regular container started
 *     PENDING ---------> STARTING ---------------------------> RUNNING
 *      |   |                 |                                    |
 *      |   | manifest gone   | manifest gone or all are done      |
 *      |   v                 v                                    |
 *      |  TERMINATING <------+------------------------------------+
 *      |       | all gone
 *      |       v
 *      +--> TERMINATED ---> freed, when the manifest is gone
 *    rejected   |
 *               +---------> PENDING, when a shutdown of the machine had ended it (shutdown.h)
 *
 * Works by level: events only call pod_wake(); pod_reconcile() re-reads the facts, compares them with what
 * the manifest asks for and starts the operations that are missing.  Every operation reports back through its
 * done callback, which records the outcome and wakes.
 *
 * What waits is a struct boot_time; an int64_t ..._ns is a wall time for people, or a duration
 * (base/clock.h).
 */
#ifndef AGENT_POD_CORE_POD_H
#define AGENT_POD_CORE_POD_H
#include "agent/pod/core/node_options.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/core/shutdown_state.h"
#include "agent/pod/core/start_times.h"
#include "base/boot_timer.h"
#include "base/fs.h"
#include "base/list.h"
#include "base/siphash.h"
#include "cni/link_watch.h"
#include "cni/strays.h"

#define POD_IFNAME "eth0" /* kubelet's; the one interface that a pod gets */

enum pod_state { POD_PENDING, POD_STARTING, POD_RUNNING, POD_TERMINATING, POD_TERMINATED };
const char *pod_state_name(enum pod_state s);

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

/* subPath mounts that could not follow their volume (live_sub_path.h) */
struct live_retry {
    uint64_t wait_ms; /* until the next try; 0: none has failed */
    int64_t since_ns; /* wall clock */
    struct boot_time retry_at;
    char error[504];
};

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
    bool live_due;      /* its subPath mounts may be older than their volume (live_sub_path.h) */
    pid_t live_pid;     /* its first process, for the child that looks */
    struct live_retry live_retry;
    bool create_held, create_waiting;
    uint64_t create_since_ms; /* held since, clock_mono_ms() */
    TAILQ_ENTRY(ctr) create_link;
};

/* To an image that is here (image_right.h). */
enum image_right { RIGHT_UNKNOWN, RIGHT_GRANTED, RIGHT_REFUSED };

/* One distinct image of the pod. */
struct pod_image {
    struct pod *pod;
    const char *reference; /* into pod->api */
    enum api_pull_policy policy;
    struct img_image *image; /* NULL until present */
    struct img_bring bring;
    bool bringing, pulled, error_final;
    bool pull_failed;      /* which is what reason and message tell */
    struct img_task check; /* whether its secrets have pulled the image before */
    bool checking;
    bool stale; /* a secret changed meanwhile: its answer counts for nothing */
    enum image_right right;
    bool dropped;    /* no container uses it any more: freed when its bring is over */
    char reason[32]; /* ErrImagePull, ... */
    char *message;
    uint64_t backoff_ms;
    struct boot_time retry_at;
    int64_t pull_started_ns;  /* wall clock */
    uint64_t pull_started_ms; /* clock_mono_ms() */
};

enum net_state {
    NET_NONE,
    NET_CREATING,
    NET_PINNED /* namespaces are there */,
    NET_ADDING,
    NET_READY,
    NET_DELETING,
    NET_DELETED
};
const char *net_state_name(enum net_state s);

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

#define POD_KEY_SIZE 320

struct pod {
    struct node *node;
    char key[POD_KEY_SIZE]; /* "namespace/name" */
    char uid[132];
    struct api_pod *api;       /* the accepted manifest */
    char manifest_file[256];   /* its file in the manifest folder; "" while unknown */
    struct api_pod *desired;   /* the manifest, while its resources cannot be had: resize.h; NULL */
    struct api_pod *successor; /* an edit that needs a new pod: starts when this one is gone */
    bool wanted;               /* the store still has it (or confirmed not yet after a restart) */
    bool recovered;            /* taken over from an earlier run and not yet compared with the store */
    bool unseen;   /* taken over, and its namespaces could not be looked at yet: it is left alone */
    bool rebooted; /* that earlier run was before a reboot of the machine */

    enum pod_state state;
    int64_t created_ns, state_since_ns,
        start_time_ns; /* wall clock; of the last two what counts from them: */
    struct boot_time state_began, active_began;
    struct boot_time seen_at; /* when it was new; none: it was an earlier agent's */
    bool admitted, rejected;
    char phase[16]; /* final phase once terminal: "Succeeded", "Failed"; else "" */
    char reason[64];
    char *message;
    int32_t priority;
    int64_t deletion_ns;   /* when it was asked to go; 0 */
    int64_t grace_seconds; /* in force while terminating */
    bool preempting;       /* pending: others were ended for it, what they had is its own */
    int64_t preempted_ns;  /* when it was ended for a critical one; 0 */
    int64_t shutdown_ns;   /* when a shutdown of the machine ended it, or had it refused; 0 */
    bool finishing;        /* terminating because all its containers are done; not because it was removed */

    struct ctr *ctrs; /* init containers first, then regular ones, in spec order */
    size_t n_ctrs;
    struct pod_image **images; /* each its own memory: an edit keeps those that stay */
    size_t n_images;
    unsigned images_dropped; /* of which a bring is still under way */

    /* sandbox */
    enum net_state net;
    int64_t net_since_ns;
    char sandbox_id[65];
    char netns_dir[256];
    struct proc_call netns_call;
    struct netns_spec *netns_spec;
    struct cni_op cni_op;
    struct cni_attachment cni_att;
    struct net_attach *net_attach; /* what cni_att refers to */
    struct cni_result net_result;
    char net_error[512];
    struct boot_time net_retry_at;
    uint64_t net_backoff_ms;
    char netns_path[300];
    char net_again_ip[46]; /* attached again after it was lost: the address it had; "" otherwise */
    char hostname[65];
    uint32_t first_id;             /* of the host, that root is in the pod's user namespace; 0: none */
    bool net_check;                /* net_heal.c: to be looked at, not before net_check_at */
    bool net_healing;              /* lost its network: DEL and ADD are under way */
    bool net_checking;             /* cni_op is a CHECK */
    bool net_changed;              /* the pod changed its namespace itself: not attached again for that */
    bool net_told;                 /* the last check found something that is only told */
    uint64_t net_told_ms;          /* pause before the next look at what the pod changed */
    bool net_fresh;                /* this agent attached it, and nothing was wrong since */
    struct boot_time net_check_at; /* none: now */
    struct boot_time net_look_at;  /* net_watch.c: its interface is looked at then; none: nothing happened */
    struct boot_time net_again_at; /* when it was last attached again; none: never */
    bool net_watched;              /* net_nsid is the id of its network namespace */
    int32_t net_nsid;
    bool net_undo;        /* an ADD failed or was cut off: DEL before the next one */
    bool net_detached;    /* DEL is done (terminating) */
    bool net_lost;        /* recovered without its namespaces: begins anew */
    bool files_written;   /* hosts with the pod's IP */
    bool net_sysctls_set; /* those of its interface */

    /* shareProcessNamespace */
    enum { PIDNS_NONE, PIDNS_MAKING, PIDNS_READY } pidns;
    struct proc_call pidns_call;
    struct rt_pidns_spec *pidns_spec;
    struct pidns_watch *pidns_watch; /* its first process; NULL: there is none */
    struct boot_time pidns_retry_at;

    /* volumes */
    enum { VOLS_NONE, VOLS_CHECKING, VOLS_READY, VOLS_REMOVING, VOLS_REMOVED } vols;
    int64_t vols_since_ns;
    char vols_error[512];
    char vols_event[512]; /* last FailedMount text, so that the event is not repeated at each try */
    struct boot_time vols_retry_at;
    bool vols_held;            /* not removed: a mount that is not ours; tried again when mounts change */
    unsigned vols_mount_round; /* mount_watch_rounds() when the last removal began */
    uint64_t vols_backoff_ms;
    uint64_t payload_backoff_ms; /* of a refresh that failed; 0: the last one succeeded */
    struct boot_time
        vols_tidy_at; /* superseded versions of payloads are removed then; none: there are none */
    struct proc_call vols_call;
    struct proc_call live_call;
    struct ctr *live_ctr; /* whose mounts it looks at */
    unsigned *
        vols_at; /* shared with the child that checks host paths: 1 + index of the volume it looks at; NULL */
    char shm_path[512];
    bool cgroup_made;
    struct local_pod *local;       /* local_storage.h; NULL: what it writes is not measured */
    struct cpu_memory sizes, keep; /* of its cgroup; what that must keep while containers shrink */
    struct {                       /* resize.c */
        bool under_way, infeasible;
        int64_t since_ns, pending_ns; /* wall clock */
        struct boot_time pending_at;
        char *pending, *error; /* why it waits; what goes wrong; NULL */
    } resize;
    bool payload_stale; /* a ConfigMap or Secret it uses changed */
    bool env_look;      /* likewise for an environment: env_age_step() looks at them */
    struct boot_time
        tokens_renew_at; /* its service account tokens are asked for again then; none: it has none */
    char *overlaps;      /* files of volumes that a later source hides, for the status; NULL: none */
    int64_t overlaps_since_ns;

    struct boot_time probes_since; /* the ticks of its probes count from here; none: not yet */
    bool initialized;              /* some regular container has started */
    bool start_counted;            /* agent_metrics.h */
    struct start_times start_times;
    struct {
        char status[8];
        int64_t since_ns;
    } conditions[6]; /* in the order in which they are shown */

    TAILQ_HEAD(, reap) reaps;
    bool dirty_queued, record_dirty, freed;
    bool record_durable;  /* some record of it is on the disk: its containers may start */
    bool record_unsynced; /* the newest is not in a batch yet */
    bool record_written;
    uint64_t record_number; /* of the newest: counts up */
    bool record_aside;      /* the run folder has one, as the disk took none */
    uint64_t record_hash;   /* of what was written last */
    TAILQ_ENTRY(pod) unsynced_link;
    char record_error[256]; /* why the record could not be written; "" */
    struct pod_look look;
    uint64_t shown_hash; /* of the status last told to watchers */
    struct boot_timer timer;
    TAILQ_ENTRY(pod) dirty_link;
    UT_hash_handle hh;
};

/* ---- in this room: waking, states, the table ---- */
void pod_wake(struct pod *p); /* reconcile soon, on a later step of the loop */
/* Wake again then, unless something earlier is due; called during reconcile only. */
void pod_wake_at(struct pod *p, struct boot_time at);
void pod_set_state(struct pod *p, enum pod_state s);
void ctr_set_state(struct ctr *c, enum ctr_state s);
/* 68 years: what a manifest says beyond that would not fit times in ns. */
#define GRACE_MAX_SECONDS INT32_MAX
struct pod *pods_find(struct node *n, const char *namespace_, const char *name);
struct pod *pods_by_uid(struct node *n, const char *uid);
struct ctr *pods_by_container(struct node *n, const char *id);
void pods_key(char ret[POD_KEY_SIZE], const char *namespace_, const char *name);

/* ---- upward.c ---- asked of the worker ---- */
void pod_ask_end(struct pod *p, int64_t grace_seconds, const char *why); /* as one that ended by itself */
bool pod_ask_idle(const struct pod *p);                                  /* no operation of it is under way */
void pod_ask_apply(struct pod *p, struct api_pod *api);                  /* takes an edit over in place */
void pod_ask_recover(struct pod *p); /* compares what its record says with the facts, once more */

/* ---- the node ---- */
#define NODE_PODS_MAX                                                                                        \
    1024 /* entries in the table, also finished ones: memory stays bounded whatever the folder holds */

#define EVENT_BUCKETS 128
struct event {
    TAILQ_ENTRY(event) link;
    LIST_ENTRY(event) near; /* of those whose `about` falls into the same bucket */
    uint64_t about;         /* a hash of uid, field_path and reason: those of each new event are looked up */
    char *namespace_, *pod, *uid, *field_path, *reason, *message;
    bool warning, of_node; /* of_node: "pod" and "uid" are the node's name */
    bool combined;         /* stands for many with different messages */
    unsigned count;
    int64_t first_ns, last_ns; /* wall clock */
    struct boot_time last_at;
    uint64_t serial;
};

#define POD_START_BUCKETS 29
struct pod_starts { /* agent_metrics.h: how long pods took until they ran */
    uint64_t buckets[POD_START_BUCKETS], count, sum_ns;
};

struct net_heal { /* net_heal.c; counts of its last round */
    struct cni_gc gc;
    bool gc_again;
    struct cni_strays strays;
    struct cni_link_watch *watch; /* net_watch.c; NULL: none */
    size_t adopted;               /* attachments known only by what they left, since the start */
    unsigned running, checked, again;
    size_t networks; /* that GC was run on */
    char gc_error[512];
};

/* What lower rooms ask of the worker, set when the node opens: no room calls one above it. */
struct pod_upward {
    void (*queue)(struct pod *p); /* to be looked at on a later step of the loop */
    void (*end)(struct pod *p, int64_t grace_seconds, bool finishing, const char *why);
    bool (*idle)(const struct pod *p);
    void (*apply)(struct pod *p, struct api_pod *api);
    void (*recover)(struct pod *p); /* compares what its record says with the facts, once more */
};

struct node {
    struct node_options o;
    struct pod_upward upward;
    struct net_heal heal;
    struct rt *rt;
    struct status_server *server;
    struct src_folder *folder;
    struct status_provider provider;
    struct pod *pods;
    size_t n_pods;
    TAILQ_HEAD(, pod) dirty;
    TAILQ_HEAD(, pod) unsynced; /* their records */
    bool records_syncing;
    bool records_due; /* those that may wait have waited */
    uv_timer_t records_timer;
    int64_t opened_ns; /* wall clock */
    struct boot_time opened_at;
    struct boot_timers *timers;
    uv_idle_t runner;
    bool runner_active, sources_ready, closing, draining, forced /* drained a second time: at once */;
    bool told_no_cluster_dns;
    void (*drained)(void *arg);
    void *drained_arg;
    void (*idle)(void *arg);
    void *idle_arg;
    uv_timer_t idle_timer;
    struct { /* what the cgroup of a QoS class was last given, by enum cg_class */
        bool known;
        int64_t cpu_shares, memory_low;
    } classes[CG_BEST_EFFORT + 1];
    int64_t protected_bytes; /* requests of memory that the cgroup of all pods protects; 0: none */
    uv_timer_t limits_timer; /* runs while the limits of all pods together cannot be written */
    /* at most create_max containers are being created at a time */
    unsigned create_max, create_used;
    TAILQ_HEAD(, ctr) create_queue;
    uv_timer_t left_timer;   /* runs while a pod of the manifests is left out for want of memory */
    uv_timer_t create_timer; /* runs while somebody waits: a place is not held for long */
    /* likewise probes that need a process, each in its first second */
    unsigned probes_used;
    TAILQ_HEAD(, prober) probes_queue;
    /* clean-up of left-overs */
    char *foreign; /* uids of pods that are not ours (foreign.h), a line each; NULL: not known yet */
    unsigned sweeps;
    TAILQ_HEAD(, job) jobs;
    TAILQ_HEAD(, import) imports;         /* images being brought for the status socket */
    TAILQ_HEAD(, image_task) image_tasks; /* verified or pinned, likewise */
    TAILQ_HEAD(, status_exec) execs;      /* processes in containers for it */
    TAILQ_HEAD(, event) events;
    LIST_HEAD(, event) events_about[EVENT_BUCKETS];
    size_t n_events;
    uint64_t event_serial;
    char boot_id[ID_BOOT_SIZE];
    char sandbox_tag[17];                    /* the first digits of sandbox ids; net_attach.h */
    unsigned char env_key[SIPHASH_KEY_SIZE]; /* env_age.c */
    bool env_key_known;
    struct shutdown shutdown;
    struct {
        enum { USERS_ASKING, USERS_CAN, USERS_CANNOT } state;
        char why[504]; /* not */
        struct proc_call call;
    } users;                                 /* node_users.c */
    struct hugepages_watch *hugepages_watch; /* NULL: this kernel has none */
    struct mount_watch *mount_watch;         /* NULL: nobody waits for a mount to go */
    struct pod_starts starts;
    struct start_sums start_sums;
    struct local_storage *local; /* local_storage.h; NULL: nothing was measured yet */
    struct oom *oom;             /* oom.h; NULL: kills are not watched */
    struct image_gc *image_gc;   /* image_gc.h */
    struct log_keep *logs;       /* log_keep.h; NULL: rotated logs are lost */
    struct usage *usage;         /* usage.h; NULL: nobody has asked yet */
    struct scrapes *scrapes;     /* scrape.h; likewise */
    char left_out[256];          /* why a pod of the manifests is not in the table; "" */
};

void node_check_idle(struct node *n);
#endif
