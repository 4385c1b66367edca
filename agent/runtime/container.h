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
#include "agent/runtime/spec/spec.h"
#include "base/presence.h"
#include "base/strs.h"
#include "cgroups/cgroup.h"

struct rt;

/* The container changed (exited, supervisor lost): read rt_state(). */
typedef void (*rt_event_fn)(const char *id, void *arg);

/* An OCI runtime that pods can choose. */
#define RT_HANDLERS_MAX 32                                  /* per node, without the default */
#define RT_HANDLER_OPTIONS_MAX 16                           /* per handler */
#define RT_HANDLER_OPTION_MAX 500                           /* bytes of an option */
#define RT_NO_HANDLER "no runtime for \"%s\" is configured" /* containerd's text */
struct rt_handler_option {
    const char *name;           /* a DNS label; unique */
    const char *program;        /* absolute */
    const char *const *options; /* before the command; NULL-terminated; NULL: none */
};

struct rt_options {
    uv_loop_t *loop;
    const char *run_dir, *state_dir;          /* /run/coracle, /var/lib/coracle */
    const char *conmon_path, *runtime_path;   /* absolute; the runtime of pods without a runtime class */
    const struct rt_handler_option *handlers; /* in the order in which they are shown */
    size_t n_handlers;
    const char *exec_path;             /* coracle-exec; NULL: rt_exec_start() is not available */
    const char *unpack_path;           /* coracle-unpack; NULL: no rt_archive_start() */
    const char *seccomp_profile;       /* /usr/share/containers/seccomp.json */
    const char *localhost_seccomp_dir; /* <rootDir>/seccomp, for profiles of type Localhost; may be NULL */
    struct cg_tree *cgroups;
    rt_event_fn on_event;
    void *arg;
};

enum err_code rt_open(struct rt **ret, const struct rt_options *o, struct err *e) MUST_CHECK;
/* Call when no operation is in progress; the memory is freed once the loop has closed the handles. Containers
 * continue to run. */
void rt_close(struct rt *rt);

/* The features of the default runtime, probed once by rt_open(). */
const struct rt_features *rt_features(const struct rt *rt);
/* The features of a handler; NULL or "": the default. Returns NULL if there is no handler of that name, or
 * its program does not behave like a runtime. */
const struct rt_features *rt_handler_features(const struct rt *rt, const char *name);
/* Names of the handlers, the default's "" first; borrowed. */
size_t rt_handler_names(const struct rt *rt, const char *ret[], size_t max);

struct rt_create {
    struct op op;
    struct rt_create_run *run; /* private */
};
/*
 * Creates bundle, root file system and supervisor; on success the container is created (its init waits for
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
    /* Of a delete, set before: how long it waits between the end of the processes and the rest, which nothing
     * depends on. 0: not at all. */
    uint64_t calm_ms;
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
    RT_PARTIAL, /* bundle but not created: delete and create it again */
    RT_CREATED, /* waiting for start */
    RT_RUNNING,
    RT_EXITED, /* the exit file exists */
    /* conmon ended without an exit file (container dead or alive): to be deleted, ContainerStatusUnknown 137.
     */
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
/* Adopts a container of an earlier run of the agent: records its start, ends leftover execs, watches its
 * conmon. After an error, call it again. */
enum err_code rt_adopt(struct rt *rt, const char *id, struct err *e) MUST_CHECK;
/* Ensures that the end of its conmon causes an event; no effect if it has ended or is already watched. */
enum err_code rt_watch_conmon(struct rt *rt, const char *id, struct err *e) MUST_CHECK;
/* The upper folder of its root file system; false if the path is too long. */
bool rt_writable_dir(const struct rt *rt, const char *id, char *ret, size_t size);
/* Ids of all containers with a bundle, writable layer, runtime state or exit file (strs_done()). */
enum err_code rt_list(struct rt *rt, struct strs *ret, struct err *e) MUST_CHECK;
/* Identity in a bundle's meta.json; absent if there is no such file or content. */
struct rt_identity {
    char pod_uid[132], pod_namespace[64], pod_name[256], container_name[64], cgroup_path[512];
    unsigned attempt;
};
struct presence rt_identity(const struct rt *rt, const char *id, struct rt_identity *ret,
                            struct err *e) MUST_CHECK;

/* Sends a signal to the container's init by pidfd. ERR_NOT_FOUND if init has provably ended. */
enum err_code rt_signal(struct rt *rt, const char *id, int signo, struct err *e) MUST_CHECK;
/* Opens the PID namespace of a running container's init; ERR_NOT_FOUND if it does not run. */
enum err_code rt_pidns_open(struct rt *rt, const char *id, int *ret, struct err *e) MUST_CHECK;
/* Kills a container's conmon that is alive but does not write the exit file although the container is dead
 * (it was stopped, or hangs writing the log): RT_LOST follows. No effect if conmon has ended. */
void rt_kill_supervisor(struct rt *rt, const char *id);
/* "SIGTERM", "TERM", "15", "SIGRTMIN+3" -> number; 0: unknown. */
int rt_signal_number(const char *name);
/* Why RuntimeDefault is unavailable (missing profile), with the package's name; NULL if it is available. */
const char *rt_seccomp_problem(const struct rt *rt);
#endif
