/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_internal - declarations shared by the files about containers.
 *
 * Everything is addressed by paths rather than descriptors: a bundle is removed, and with hostUsers: false
 * created, in a forked child, which starts with all descriptors closed.
 */
#ifndef AGENT_RUNTIME_CONTAINER_INTERNAL_H
#define AGENT_RUNTIME_CONTAINER_INTERNAL_H
#include "agent/runtime/container.h"
#include "agent/runtime/handlers.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/process/process.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    RT_ID_SIZE = 65, /* 64 hex digits and NUL */
    /* maximum of run_dir and state_dir, so that every path below them fits in struct rt_path */
    RT_ROOT_MAX = 256,
    RT_CGROUP_PATH_MAX = 512,
    RT_META_MAX = 16 * 1024, /* meta.json */
};

/* ---- container.c: the object ---- */

struct rt_watch { /* a watched conmon */
    char id[RT_ID_SIZE];
    struct rt *rt;
    int pidfd;
    uv_poll_t poll; /* last user of the memory: freed in its close callback */
    UT_hash_handle hh;
};

struct rt {
    uv_loop_t *loop;
    char *run_dir, *state_dir, *conmon_path;
    char *exec_path, *unpack_path; /* may be NULL */
    struct cg_tree *cgroups;
    rt_event_fn on_event;
    void *arg;
    struct rt_host host; /* owns its strings; its features are the default runtime's */
    /* Handlers that can be chosen, the default first; fixed after rt_open(). And handlers of existing
     * containers that are no longer configured. */
    struct rt_handler *handlers, *old_handlers;
    struct rt_watch *watches; /* by id */
    struct watch_set *exits;
    size_t open_handles; /* pending uv_close() calls; the memory is freed after the last */
    unsigned execs;      /* number of execs begun; part of their folders' names */
    bool closing;
};

struct rt_path {
    char s[512];
};

void rt_free(struct rt *rt); /* after its handles are closed */
bool rt_id_valid(const char *id);
struct rt_path rt_container_dir(const struct rt *rt, const char *id);
struct rt_path rt_container_file(const struct rt *rt, const char *id, const char *name);
struct rt_path rt_exit_file(const struct rt *rt, const char *id);
struct rt_path rt_oci_dir(const struct rt *rt, const char *id);
struct rt_path rt_layer_dir(const struct rt *rt, const char *id); /* <state>/containers/<id> */
/* An absolute path whose last element is the id: all processes in it may be killed. */
bool rt_cgroup_path_valid(const char *path, const char *id);

/* The OCI runtime's environment, and its arguments before the command. With an id the runtime logs to that
 * bundle, which also makes its messages on standard error plain text; NULL if there may be no bundle. */
enum { RT_GLOBAL_ARGS = 4 + RT_HANDLER_OPTIONS_MAX };
struct rt_runtime_args {
    struct rt_path root, log;
    const char *v[RT_GLOBAL_ARGS + 1];
    size_t n;
    /*
     * "_LIBCONTAINER_STATEDIR=<folder>": at its start, crun bind-mounts its own binary over a temporary file
     * (against CVE-2019-5736), and leaves both when killed at that moment. By default they are in /tmp; with
     * this variable they are in the bundle and removed with it, or (no bundle) in <run>/runtime, which
     * rt_open() empties.
     */
    struct rt_path clone_env;
    const char *env[3]; /* PATH and the above */
};
void rt_runtime_args(const struct rt *rt, const struct rt_handler *h, const char *id,
                     struct rt_runtime_args *ret);
/* The runtime's last message in the bundle's log (JSON lines), malloc'ed; may be NULL. */
char *rt_runtime_words(const struct rt *rt, const char *id);

/* ---- features.c ---- */
/* Probes all runtimes in parallel. A handler that does not answer is dropped with a warning; the default must
 * answer. */
enum err_code rt_features_probe(struct rt *rt, struct err *e) MUST_CHECK;
/* "crun version 1.8.1\n..." -> name and version; false if the text is different. */
bool rt_features_parse_version(const char *text, struct rt_features *ret);
/* The answer to `features` (OCI's features.md). ERR_INVALID: not an answer; nothing was changed. */
enum err_code rt_features_parse(const char *text, struct rt_features *ret, struct err *e) MUST_CHECK;
/* Known features of versions without the `features` command. */
void rt_features_by_version(struct rt_features *f);

/* ---- exits.c ---- */
enum err_code rt_exits_open(struct rt *rt, struct err *e) MUST_CHECK;
void rt_exits_close(struct rt *rt);
/* Takes ownership of the pidfd, also on failure. */
enum err_code rt_watch_add(struct rt *rt, const char *id, int pidfd, struct err *e) MUST_CHECK;
void rt_watch_remove(struct rt *rt, const char *id);
struct rt_watch *rt_watch_find(struct rt *rt, const char *id);
bool rt_pidfd_ended(int pidfd); /* true is proven */
/* Opens the container's init, verified to be its own; ERR_NOT_FOUND if it does not run. */
enum err_code rt_init_open(struct rt *rt, const char *id, pid_t *ret_pid, int *ret_pidfd,
                           struct err *e) MUST_CHECK;

/* ---- conmon.c ---- */
/* A pidfd of the container's conmon, from conmon.pid and verified by its command line; absent: it ended, or
 * its pid is unknown. If absent or unknown, *ret_pidfd is -1. *ret_pid may be NULL. */
struct presence rt_conmon_open(const struct rt *rt, const char *id, int *ret_pidfd, pid_t *ret_pid,
                               struct err *e) MUST_CHECK;
/* Kills the processes creating this container: its conmon, even if it has not written conmon.pid yet, and the
 * OCI runtime below it, which otherwise dies a moment after conmon. Examines every process; *ret_n is the
 * number found, so repeat until 0. An error: some processes could not be examined. */
enum err_code rt_kill_creators(const struct rt *rt, const struct rt_handler *h, const char *id, size_t *ret_n,
                               struct err *e) MUST_CHECK;
struct rt_conmon_args {
    const char *v[48 + RT_HANDLER_OPTIONS_MAX];
    char runtime_args[RT_GLOBAL_ARGS][640];
    char real_runtime[PATH_MAX + 20], streams[40];
    struct rt_runtime_args runtime;
    struct rt_path bundle, pid_file, conmon_pid_file, exits;
    char log[4200], log_max[24];
};
void rt_conmon_args(const struct rt *rt, const struct rt_handler *h, const struct rt_config *c,
                    struct rt_conmon_args *ret);
/* Parses a line from the sync pipe: the pid, or ERR_UNKNOWN with the runtime's message. */
enum err_code rt_conmon_parse_sync(const char *line, size_t n, pid_t *ret, struct err *e) MUST_CHECK;
/* Removes the prefix that crun and runc add when logging to a terminal or in logfmt; in place. */
void rt_words_tidy(char *text);

/* ---- bundle.c ---- */
#define RT_MAPPED_MOUNTS "mounts"  /* folder in a bundle: volumes mapped to a pod's users */
#define RT_SUPERVISED "supervised" /* file in a bundle: a conmon may be creating the container */
#define RT_STARTED "started"       /* file in a bundle: the start time in nanoseconds */
struct rt_bundle_job {
    const struct rt *rt;
    const struct rt_handler *handler; /* the handler that the config names */
    const struct rt_config *config;
};
/* proc_call function, perhaps in a thread: arg is a rt_bundle_job. Always succeeds; the outcome is the struct
 * err in `out`, so that compared texts get no prefix. */
enum err_code rt_bundle_make(const void *arg, struct buf *out, struct err *e);
struct rt_bundle_removal {
    struct rt_path bundle, rootfs, mapped, layer, exit_file, oci;
};
/* proc_call function: unmounts and removes; arg is a rt_bundle_removal. */
enum err_code rt_bundle_remove(const void *arg, struct buf *out, struct err *e);

/* ---- state.c ---- */
void rt_record_start(const struct rt *rt, const char *id);
/* A whole number in a small file of ours; absent if there is no such file, or other content. */
struct presence rt_read_number(const char *path, int64_t min, int64_t max, int64_t *ret,
                               struct err *e) MUST_CHECK;

/* ---- signal.c ---- */
/* Whether the process is in a cgroup with the container's id in its path. */
struct presence rt_is_in_cgroup(pid_t pid, const char *id, struct err *e) MUST_CHECK;

/* ---- exec_spec.c ---- */
struct rt_exec_spec;
#define RT_OOM_SCORE_SIZE 8 /* "-1000" */
/* The process specification, JSON: the member `process` of a bundle's config.json, with other arguments and
 * terminal. malloc'ed; contains the environment: wipe it. *ret_oom_score: its oomScoreAdj, or "-".
 * ERR_DATA_LOSS: not a config.json, or an argument that is not UTF-8. */
enum err_code rt_exec_process_build(const char *config, size_t n, const struct rt_exec_spec *spec, char **ret,
                                    char ret_oom_score[RT_OOM_SCORE_SIZE], struct err *e) MUST_CHECK;
/* Converts the runtime's log (JSON lines) for a process that could not be started to *e, and 127
 * (ERR_NOT_FOUND), 126 (ERR_PERMISSION) or 0. False: the log has no error. */
bool rt_exec_failure(const char *log, int *ret_exit_code, struct err *e);

/* ---- exec_leftover.c ---- */
#define RT_EXEC_FOLDER "exec" /* in a bundle: a folder for each running process */
/* After the end of a `coracle-exec`: kills its process's session if it still runs, and removes the folder. */
enum err_code rt_exec_clear(struct rt *rt, const char *id, const char *folder, struct err *e) MUST_CHECK;
/* All folders of a container, except those of this run of the agent. */
enum err_code rt_exec_clear_all(struct rt *rt, const char *id, struct err *e) MUST_CHECK;
#endif
