/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container - the life of one container, through conmon and the OCI runtime (crun or runc).
 *
 *     <run>/containers/<id>/     the bundle, on tmpfs, 0700: config.json, rootfs (overlay),
 *                                conmon.pid, pid, meta.json
 *     <run>/exits/<id>           the exit code, written by conmon when the container ended
 *     <run>/oci/<id>/            the OCI runtime's state; exec.fifo means created, not started
 *     <state>/containers/<id>/   writable layer: upper, work
 *
 * State is not kept in memory: rt_state() reads these files and pidfds each time. Exits are events: inotify
 * on <run>/exits, and a pidfd on each conmon ("supervisor lost"). Container ids are never reused. Loop thread
 * only.
 */
#ifndef AGENT_RUNTIME_CONTAINER_H
#define AGENT_RUNTIME_CONTAINER_H
#include "agent/api/types.h"
#include "agent/image/image.h"
#include "base/presence.h"
#include "cgroups/cgroup.h"

struct rt;

/* The container changed (exited, supervisor lost): read rt_state(). */
typedef void (*rt_event_fn)(const char *id, void *arg);

struct rt_options {
    uv_loop_t *loop;
    const char *run_dir, *state_dir;        /* /run/coracle, /var/lib/coracle */
    const char *conmon_path, *runtime_path; /* absolute */
    const char *exec_path;                  /* coracle-exec; NULL: rt_exec_start() is not available */
    const char *unpack_path;                /* coracle-unpack; NULL: no rt_archive_start() */
    const char *seccomp_profile;            /* /usr/share/containers/seccomp.json */
    const char *localhost_seccomp_dir; /* <rootDir>/seccomp, for profiles of type Localhost; may be NULL */
    struct cg_tree *cgroups;
    rt_event_fn on_event;
    void *arg;
};

enum err_code rt_open(struct rt **ret, const struct rt_options *o, struct err *e) MUST_CHECK;
/* Call when no operation is in progress; the memory is freed once the loop has closed the handles. Containers
 * continue to run. */
void rt_close(struct rt *rt);

/* Sets this process' resource limits to those that containers get or inherit; call it before
 * proc_defaults_capture(). */
void rt_limits_own(void);

/* Capabilities of runtime and kernel, probed once by rt_open(). */
struct rt_features {
    char runtime_name[16]; /* "crun", "runc" */
    char runtime_version[32];
    bool recursive_read_only; /* mount option rro */
    bool user_namespaces;     /* the runtime can join one by path; the kernel's part: idmap_probe.h */
    /* CAP_SYS_RESOURCE: oom_score_adj can be negative; otherwise it is raised to our own. */
    bool lower_oom_score;
    int own_oom_score_adj;
};
const struct rt_features *rt_features(const struct rt *rt);

struct rt_mount {       /* bind mounts of volumes and files, in order */
    const char *volume; /* the volume's name, for messages; NULL: a file of the pod */
    const char *source, *destination;
    bool read_only, recursive_read_only;
    bool image;              /* an image as a volume: already mapped to the pod's users; its flags are kept */
    const char *propagation; /* "rprivate", "rslave", "rshared" */
};

struct rt_device { /* a node of the host, or a folder of nodes, for the container */
    const char *host_path, *container_path;
    const char *permissions; /* from "rwm" */
};

struct rt_hugepages { /* a page size of the kernel; 0: none may be used */
    char size[16];    /* "2MB", "1GB" */
    int64_t limit;
    bool reserved; /* limit reservations, too: mapping fails rather than access; cgroup v2 */
};

struct rt_config {  /* fully resolved; borrowed until done */
    const char *id; /* 64 hex digits */
    const char *pod_uid, *pod_namespace, *pod_name, *container_name;
    unsigned attempt; /* restart count */
    struct img_image *image;
    const struct api_strs *command, *args; /* expanded; n 0: not given */
    const char *const *env;                /* "K=V"; overrides the image's; NULL-terminated */
    const char *working_dir;               /* NULL: the image's */
    const struct api_security *security;
    const struct api_pod_security *pod_security;
    bool seccomp_default;              /* RuntimeDefault if no profile is set */
    const char *hostname;              /* HOSTNAME in the environment */
    const char *netns, *ipcns, *utsns; /* paths; NULL: the host's */
    const char *userns;                /* path; NULL: the host's */
    uint32_t first_id, n_ids;          /* with userns: its ids 0..n_ids-1 are first_id and up on the host */
    const char *pidns;                 /* the PID namespace shared by the pod's containers; NULL: its own */
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
    int64_t cpu_period_us;                          /* the quota's period; 0: CG_CPU_PERIOD_US */
    int64_t memory_min, memory_low, memory_high;    /* 0: not set; cgroup v2 */
    int64_t swap_max;        /* in addition to the memory limit; cgroup v2; on v1 always 0 */
    bool oom_group;          /* an OOM kill ends the whole container; cgroup v2 */
    const char *cpus, *mems; /* CPUs and memory nodes, "0-3,7"; NULL: all */
    int oom_score_adj;
    const char *log_path;  /* its folder exists */
    int64_t log_max_bytes; /* per file: then conmon starts the next one; 0: unlimited */
};

struct rt_create {
    struct op op;
    struct rt_create_run *run; /* private */
};
/*
 * Makes bundle, root file system and supervisor; on success the container is created (its init waits for
 * rt_start). Errors before conmon (config): ERR_INVALID or ERR_PRECONDITION with kubelet's text for
 * CreateContainerConfigError ("container has runAsNonRoot and image will run as root ..."); from the runtime:
 * ERR_UNKNOWN with its message (StartError); anything else is a CreateContainerError: ERR_NOT_FOUND (user not
 * in the image, seccomp profile missing, "no command specified"), ERR_UNIMPLEMENTED (unknown capability),
 * ERR_DATA_LOSS (text that is not UTF-8), ERR_UNAVAILABLE, ERR_INTERNAL, ... After a failure, rt_delete
 * removes everything that is left.
 */
#define RT_CREATE_DEADLINE_MS 120000
void rt_create_start(struct rt_create *c, struct rt *rt, const struct rt_config *config, op_done_fn done,
                     void *owner);

struct rt_action {
    struct op op;
    struct rt_action_run *run; /* private */
};
/* `crun start`.  Records the start time. */
void rt_start_start(struct rt_action *a, struct rt *rt, const char *id, op_done_fn done, void *owner);
/* Removes a container in any state, completely: kills its cgroup, removes runtime state, conmon, mounts,
 * bundle, writable layer and exit file, but not the log. Idempotent; works on incomplete ones. cgroup_path
 * may be NULL if unknown (then meta.json's is used). */
void rt_delete_start(struct rt_action *a, struct rt *rt, const char *id, const char *cgroup_path,
                     op_done_fn done, void *owner);

enum rt_phase {
    RT_ABSENT,  /* no bundle */
    RT_PARTIAL, /* bundle but not created: delete and make it again */
    RT_CREATED, /* waiting for start */
    RT_RUNNING,
    RT_EXITED, /* the exit file exists */
    /* conmon gone without an exit file (container dead or alive): to be deleted, ContainerStatusUnknown
     * 137. */
    RT_LOST,
};

struct rt_state {
    enum rt_phase phase;
    pid_t pid, conmon_pid; /* 0 when unknown */
    int exit_code;         /* RT_EXITED: 0..255; 128+n for a signal */
    bool oom_killed;
    int64_t created_ns, started_ns, finished_ns; /* wall clock; 0 if it did not happen */
};
/* Reads the current state. On error a part could not be read, the state is unknown (base/presence.h) and *ret
 * unchanged. */
enum err_code rt_state(struct rt *rt, const char *id, struct rt_state *ret, struct err *e) MUST_CHECK;
/* Adopts a container of an earlier run of the agent: records its start, ends left-over execs, watches its
 * conmon. After an error, call it again. */
enum err_code rt_adopt(struct rt *rt, const char *id, struct err *e) MUST_CHECK;
/* Ensures that the end of its conmon is an event; no effect if it has ended or is already watched. */
enum err_code rt_watch_conmon(struct rt *rt, const char *id, struct err *e) MUST_CHECK;
/* The upper folder of its root file system; false if the path is too long. */
bool rt_writable_dir(const struct rt *rt, const char *id, char *ret, size_t size);
/* Ids of all containers with a bundle, writable layer, runtime state or exit file (NULL-terminated, all
 * malloc'ed). */
enum err_code rt_list(struct rt *rt, char ***ret, struct err *e) MUST_CHECK;
/* Identity in a bundle's meta.json; absent if there is no such file or content. */
struct rt_identity {
    char pod_uid[132], pod_namespace[64], pod_name[256], container_name[64], cgroup_path[512];
    unsigned attempt;
};
struct presence rt_identity(const struct rt *rt, const char *id, struct rt_identity *ret,
                            struct err *e) MUST_CHECK;

/* Sends a signal to the container's init by pidfd. ERR_NOT_FOUND if it is proven to be gone. */
enum err_code rt_signal(struct rt *rt, const char *id, int signo, struct err *e) MUST_CHECK;
/* Kills a container's conmon that is alive but does not write the exit file although the container is dead
 * (it was stopped, or hangs writing the log): RT_LOST follows. No effect if it is gone. */
void rt_kill_supervisor(struct rt *rt, const char *id);
/* "SIGTERM", "TERM", "15", "SIGRTMIN+3" -> number; 0: unknown. */
int rt_signal_number(const char *name);
/* Why RuntimeDefault is unavailable (missing profile), with the package's name; NULL if it is available. */
const char *rt_seccomp_problem(const struct rt *rt);

/* The OCI runtime specification for a config, as written to config.json (pure, except for reading /etc/passwd
 * and /etc/group below rootfs_fd, never leaving it); unit-testable. */
enum err_code rt_spec_build(const struct rt *rt, const struct rt_config *c, int rootfs_fd, json_t **ret,
                            struct err *e) MUST_CHECK;
#endif
