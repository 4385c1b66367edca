/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container - one container's life through conmon and the OCI runtime (crun or runc).
 *
 *     <run>/containers/<id>/            the bundle, on tmpfs, 0700: config.json, rootfs (overlay),
 * conmon.pid, pid, meta.json <run>/exits/<id>                  written by conmon when the container ended:
 * its exit code <run>/oci/<id>/                   the OCI runtime's own state; exec.fifo there = created, not
 * started <state>/containers/<id>/{upper,work}   writable layer
 *
 * Facts, not memory: rt_state() reads these files and pidfds each time.  Exits come as events: inotify on
 * <run>/exits, and a pidfd on each conmon ("supervisor lost").  Container ids are never reused.  Loop thread
 * only.
 */
#ifndef AGENT_RUNTIME_CONTAINER_H
#define AGENT_RUNTIME_CONTAINER_H
#include "agent/api/types.h"
#include "agent/image/image.h"
#include "base/presence.h"
#include "cgroups/cgroup.h"

struct rt;

/* Something about this container changed (exited, supervisor lost): read rt_state(). */
typedef void (*rt_event_fn)(const char *id, void *arg);

struct rt_options {
    uv_loop_t *loop;
    const char *run_dir, *state_dir;        /* /run/coracle, /var/lib/coracle */
    const char *conmon_path, *runtime_path; /* absolute */
    const char *exec_path;                  /* coracle-exec; NULL: no rt_exec_start() */
    const char *unpack_path;                /* coracle-unpack; NULL: no rt_archive_start() */
    const char *seccomp_profile;            /* /usr/share/containers/seccomp.json */
    const char *localhost_seccomp_dir; /* <rootDir>/seccomp, for profiles of type Localhost; NULL: none */
    struct cg_tree *cgroups;
    rt_event_fn on_event;
    void *arg;
};

enum err_code rt_open(struct rt **ret, const struct rt_options *o, struct err *e) MUST_CHECK;
/* When no operation is under way any more; the memory goes once the loop has closed the handles.  Containers
 * run on. */
void rt_close(struct rt *rt);

/* Sets this process' resource limits to what containers shall have or inherit; call it before
 * proc_defaults_capture(). */
void rt_limits_own(void);

/* What runtime and kernel can do here, probed once at rt_open(). */
struct rt_features {
    char runtime_name[16]; /* "crun", "runc" */
    char runtime_version[32];
    bool recursive_read_only; /* mount option rro */
    bool user_namespaces;     /* the runtime joins one by path; the kernel's part: idmap_probe.h */
    bool lower_oom_score; /* CAP_SYS_RESOURCE: negative oom_score_adj can be set; else it is raised to our own
                           */
    int own_oom_score_adj;
};
const struct rt_features *rt_features(const struct rt *rt);

struct rt_mount {       /* bind mounts of volumes and files, in order */
    const char *volume; /* whose it is, for messages; NULL: a file of the pod's */
    const char *source, *destination;
    bool read_only, recursive_read_only;
    bool image;              /* an image as a volume: mapped to the pod's users already; its flags stay */
    const char *propagation; /* "rprivate", "rslave", "rshared" */
};

struct rt_device { /* a node of the host, or a folder of them, given to the container */
    const char *host_path, *container_path;
    const char *permissions; /* of "rwm" */
};

struct rt_hugepages { /* one page size the kernel has; 0: none may be used */
    char size[16];    /* "2MB", "1GB" */
    int64_t limit;
    bool reserved; /* limit reservations, too: a mapping is refused, not its use; cgroup v2 */
};

struct rt_config {  /* all resolved; borrowed until done */
    const char *id; /* 64 hex digits */
    const char *pod_uid, *pod_namespace, *pod_name, *container_name;
    unsigned attempt; /* restart count */
    struct img_image *image;
    const struct api_strs *command, *args; /* expanded; n 0: not given */
    const char *const *env;                /* "K=V"; wins over the image's; NULL-terminated */
    const char *working_dir;               /* NULL: the image's */
    const struct api_security *security;
    const struct api_pod_security *pod_security;
    bool seccomp_default;              /* unset profile means RuntimeDefault */
    const char *hostname;              /* HOSTNAME in the environment */
    const char *netns, *ipcns, *utsns; /* paths; NULL: the host's */
    const char *userns;                /* path; NULL: the host's */
    uint32_t first_id, n_ids;          /* with userns: its ids 0..n_ids-1 are first_id and on for the host */
    const char *pidns; /* path of the PID namespace that the pod's containers share; NULL: one of its own */
    bool host_pid;
    bool tty, stdin_open, stdin_once;
    const struct rt_device *devices;
    size_t n_devices;
    const struct rt_hugepages *hugepages;
    size_t n_hugepages;
    const char *shm_path; /* bind-mounted at /dev/shm; NULL: the host's own /dev/shm (hostIPC) */
    const struct rt_mount *mounts;
    size_t n_mounts;
    const char *cgroup_path; /* of the container, below the cgroup mounts: "/kubepods/.../<id>" */
    int64_t cpu_shares, cpu_quota_us, memory_limit; /* -1: not set */
    int64_t cpu_period_us;                          /* that the quota counts in; 0: CG_CPU_PERIOD_US */
    int64_t memory_min, memory_low, memory_high;    /* 0: not set; cgroup v2 */
    int64_t swap_max;                               /* beside the memory limit; cgroup v2; on v1 always 0 */
    bool oom_group;                                 /* an OOM kill takes the whole container; cgroup v2 */
    const char *cpus, *mems;                        /* "0-3,7": its processors, memory nodes; NULL: any */
    int oom_score_adj;
    const char *log_path;  /* its folder exists */
    int64_t log_max_bytes; /* of one file of it: conmon begins the next one then; 0: any size */
};

struct rt_create {
    struct op op;
    struct rt_create_run *run; /* private */
};
#define RT_CREATE_DEADLINE_MS 120000

/*
 * Makes bundle, root file system and supervisor; on success the container is created (its init waits for
 * rt_start). Errors before conmon (config): ERR_INVALID or ERR_PRECONDITION with kubelet's text for
 * CreateContainerConfigError
 * ("container has runAsNonRoot and image will run as root ..."); from the runtime: ERR_UNKNOWN with its own
 * words (StartError); anything else is a CreateContainerError: ERR_NOT_FOUND (user not in the image, seccomp
 * profile missing, "no command specified"), ERR_UNIMPLEMENTED (unknown capability), ERR_DATA_LOSS (text that
 * is not UTF-8), ERR_UNAVAILABLE, ERR_INTERNAL, ... A failed create leaves nothing but what rt_delete
 * removes.
 */
void rt_create_start(struct rt_create *c, struct rt *rt, const struct rt_config *config, op_done_fn done,
                     void *owner);

struct rt_action {
    struct op op;
    struct rt_action_run *run; /* private */
};
/* `crun start`.  Records the start time. */
void rt_start_start(struct rt_action *a, struct rt *rt, const char *id, op_done_fn done, void *owner);
/*
 * Removes a container in any state, in every part: kills its cgroup, runtime state, conmon, mounts, bundle,
 * writable layer, exit file; not the log.  Idempotent; safe on a half-made one.  cgroup_path may be NULL when
 * unknown (then meta.json's is used).
 */
void rt_delete_start(struct rt_action *a, struct rt *rt, const char *id, const char *cgroup_path,
                     op_done_fn done, void *owner);

enum rt_phase {
    RT_ABSENT,  /* no bundle */
    RT_PARTIAL, /* bundle but never created: delete and make anew */
    RT_CREATED, /* waits for start */
    RT_RUNNING,
    RT_EXITED, /* exit file is there */
    RT_LOST,   /* conmon gone without an exit file (container dead or alive): to be deleted,
                  ContainerStatusUnknown 137 */
};

struct rt_state {
    enum rt_phase phase;
    pid_t pid, conmon_pid; /* 0 when unknown */
    int exit_code;         /* RT_EXITED: 0..255; 128+n for a signal */
    bool oom_killed;
    int64_t created_ns, started_ns, finished_ns; /* wall clock; 0 when it did not happen */
};
/* Reads the facts.  An error: one of them could not be read, the state is unknown (base/presence.h) and *ret
 * unchanged. */
enum err_code rt_state(struct rt *rt, const char *id, struct rt_state *ret, struct err *e) MUST_CHECK;
/* Takes over a container that an earlier run of the agent made: notes its start, ends what its exec left,
 * watches its conmon.  An error: to be called again. */
enum err_code rt_adopt(struct rt *rt, const char *id, struct err *e) MUST_CHECK;
/* Sees to it that the end of its conmon is an event; nothing to do where that ended or is watched. */
enum err_code rt_watch_conmon(struct rt *rt, const char *id, struct err *e) MUST_CHECK;
/* The folder of what it wrote to its root file system; false: its path is too long. */
bool rt_writable_dir(const struct rt *rt, const char *id, char *ret, size_t size);
/* Ids of all containers that have a bundle, a writable layer, runtime state or an exit file (NULL-terminated,
 * malloc'ed each). */
enum err_code rt_list(struct rt *rt, char ***ret, struct err *e) MUST_CHECK;
/* Identity stored in meta.json of a bundle; absent: there is no such file, or it holds none. */
struct rt_identity {
    char pod_uid[132], pod_namespace[64], pod_name[256], container_name[64], cgroup_path[512];
    unsigned attempt;
};
struct presence rt_identity(const struct rt *rt, const char *id, struct rt_identity *ret,
                            struct err *e) MUST_CHECK;

/* Signal to the container's init by pidfd. ERR_NOT_FOUND when it is proven to be gone. */
enum err_code rt_signal(struct rt *rt, const char *id, int signo, struct err *e) MUST_CHECK;
/*
 * Kills the container's conmon, for one that is alive but does not write the exit file although nothing of
 * the container lives (it was stopped, or hangs in a write of the log): RT_LOST follows.  Nothing happens
 * when it is gone.
 */
void rt_kill_supervisor(struct rt *rt, const char *id);
/* "SIGTERM", "TERM", "15", "SIGRTMIN+3" -> number; 0: unknown. */
int rt_signal_number(const char *name);
/* RuntimeDefault cannot be honoured (profile missing): NULL when fine, else the reason with the package's
 * name. */
const char *rt_seccomp_problem(const struct rt *rt);

/*
 * The OCI runtime specification for a config, as written to config.json (pure but for reading the root file
 * system's /etc/passwd and /etc/group below rootfs_fd, never leaving it); unit-testable.
 */
enum err_code rt_spec_build(const struct rt *rt, const struct rt_config *c, int rootfs_fd, json_t **ret,
                            struct err *e) MUST_CHECK;
#endif
