/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_internal - what the files of the container half share among themselves.
 *
 * Everything is named by paths, not by descriptors: a bundle is removed in a forked child, and with
 * hostUsers: false made in one, and such a child begins with all descriptors closed.
 */
#ifndef AGENT_RUNTIME_CONTAINER_INTERNAL_H
#define AGENT_RUNTIME_CONTAINER_INTERNAL_H
#include "agent/runtime/container.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/process.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    RT_ID_SIZE = 65,   /* 64 hex digits and NUL */
    RT_ROOT_MAX = 256, /* of run_dir and state_dir, so that every path below them fits struct rt_path */
    RT_CGROUP_PATH_MAX = 512,
};

/* ---- container.c: the object ----------------------------------------------------------------- */

struct rt_watch { /* a conmon whose end is waited for */
    char id[RT_ID_SIZE];
    struct rt *rt;
    int pidfd;
    uv_poll_t poll; /* last user of the memory: freed in its close callback */
    UT_hash_handle hh;
};

struct rt {
    uv_loop_t *loop;
    char *run_dir, *state_dir, *conmon_path, *runtime_path;
    char *exec_path, *unpack_path; /* NULL: none */
    char *seccomp_profile;
    char *localhost_seccomp_dir; /* NULL: none */
    struct cg_tree *cgroups;
    rt_event_fn on_event;
    void *arg;
    struct rt_features features;
    bool cgroup_v2;
    bool swap_accounting; /* memory.swap can be set */
    uint64_t own_caps;    /* our effective set: what ALL and privileged can mean */
    char seccomp_problem[256];
    struct rt_watch *watches; /* by id */
    struct watch_set *exits;
    size_t open_handles;    /* uv_close() calls still to come back; the memory goes with the last */
    unsigned execs;         /* begun; part of their folders' names */
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
/* An absolute path whose last element is the id: everything in it may be killed. */
bool rt_cgroup_path_valid(const char *path, const char *id);

/*
 * How the OCI runtime is called: its environment, and its arguments before the command.  With an id it writes
 * its messages into that bundle's log, which also makes those on standard error plain text; NULL where there
 * may be no bundle.
 */
enum { RT_GLOBAL_ARGS = 4 };
struct rt_runtime_args {
    struct rt_path root, log;
    const char *v[RT_GLOBAL_ARGS + 1];
    size_t n;
    /*
     * "_LIBCONTAINER_STATEDIR=<folder>": crun, when it starts, bind-mounts its own binary over a temporary
     * file (against CVE-2019-5736); killed at that moment it leaves both.  Without this they lie in /tmp; so
     * they lie in the bundle and go with it, or (no bundle) in <run>/runtime, which rt_open() empties.
     */
    struct rt_path clone_env;
    const char *env[3]; /* PATH and that */
};
void rt_runtime_args(const struct rt *rt, const char *id, struct rt_runtime_args *ret);
/* The runtime's last words in the bundle's log (its JSON lines), malloc'ed; NULL: none. */
char *rt_runtime_words(const struct rt *rt, const char *id);

/* ---- features.c ------------------------------------------------------------------------------ */
enum err_code rt_features_probe(struct rt *rt, struct err *e) MUST_CHECK;
/* "crun version 1.8.1\n..." -> name and version; false when it is not such a text. */
bool rt_features_parse_version(const char *text, struct rt_features *ret);
/* The answer to `features` (OCI's features.md).  ERR_INVALID: it is none, nothing was changed. */
enum err_code rt_features_parse(const char *text, struct rt_features *ret, struct err *e) MUST_CHECK;
/* What is known of the versions before that command existed. */
void rt_features_by_version(struct rt_features *f);

/* ---- exits.c --------------------------------------------------------------------------------- */
enum err_code rt_exits_open(struct rt *rt, struct err *e) MUST_CHECK;
void rt_exits_close(struct rt *rt);
/* Takes the pidfd, also on failure. */
enum err_code rt_watch_add(struct rt *rt, const char *id, int pidfd, struct err *e) MUST_CHECK;
void rt_watch_remove(struct rt *rt, const char *id);
struct rt_watch *rt_watch_find(struct rt *rt, const char *id);
bool rt_pidfd_ended(int pidfd); /* true is proven */

/* ---- conmon.c -------------------------------------------------------------------------------- */
/*
 * A pidfd of the container's conmon, by conmon.pid and checked against its command line; absent: it ended, or
 * nobody knows its number; then and when it is unknown *ret_pidfd is -1.  *ret_pid may be NULL.
 */
struct presence rt_conmon_open(const struct rt *rt, const char *id, int *ret_pidfd, pid_t *ret_pid,
                               struct err *e) MUST_CHECK;
/*
 * Kills whatever is at creating this container: its conmon, also one that has not written conmon.pid yet, and
 * the OCI runtime below it, which dies with conmon but a moment later.  Looks at every process; *ret_n is how
 * many there were, so again until 0.  An error: some could not be looked at.
 */
enum err_code rt_kill_creators(const struct rt *rt, const char *id, size_t *ret_n, struct err *e) MUST_CHECK;
struct rt_conmon_args {
    const char *v[48];
    char runtime_args[RT_GLOBAL_ARGS][640];
    char real_runtime[PATH_MAX + 20], streams[40];
    struct rt_runtime_args runtime;
    struct rt_path bundle, pid_file, conmon_pid_file, exits;
    char log[4200], log_max[24];
};
void rt_conmon_args(const struct rt *rt, const struct rt_config *c, struct rt_conmon_args *ret);
/* One line from the sync pipe: the pid, or ERR_UNKNOWN with the runtime's words. */
enum err_code rt_conmon_parse_sync(const char *line, size_t n, pid_t *ret, struct err *e) MUST_CHECK;
/* The text without what crun and runc put before it when they log to a terminal or in logfmt; in place. */
void rt_words_tidy(char *text);

/* ---- bundle.c -------------------------------------------------------------------------------- */
#define RT_MAPPED_MOUNTS "mounts"  /* folder of a bundle: volumes as a pod's users have them */
#define RT_SUPERVISED "supervised" /* file of a bundle: a conmon may be at creating the container */
#define RT_STARTED "started"       /* file of a bundle: when, in nanoseconds */
struct rt_bundle_job {
    const struct rt *rt;
    const struct rt_config *config;
};
/* proc_call function, maybe in a thread: arg is a rt_bundle_job.  Succeeds always; the outcome is the struct
 * err in `out`, so that nothing is put in front of texts that people compare. */
enum err_code rt_bundle_make(const void *arg, struct buf *out, struct err *e);
struct rt_bundle_removal {
    struct rt_path bundle, rootfs, mapped, layer, exit_file, oci;
};
/* proc_call function: unmounts and removes; arg is a rt_bundle_removal. */
enum err_code rt_bundle_remove(const void *arg, struct buf *out, struct err *e);

/* ---- state.c --------------------------------------------------------------------------------- */
void rt_record_start(const struct rt *rt, const char *id);
/* A whole number in a small file of ours; absent: there is no such file, or something else is in it. */
struct presence rt_look_number(const char *path, int64_t min, int64_t max, int64_t *ret,
                               struct err *e) MUST_CHECK;

/* ---- signal.c -------------------------------------------------------------------------------- */
/* Whether the process is in a cgroup with the container's id in its path. */
struct presence rt_look_in_cgroup(pid_t pid, const char *id, struct err *e) MUST_CHECK;

/* ---- exec_spec.c ----------------------------------------------------------------------------- */
struct rt_exec_spec;
#define RT_OOM_SCORE_SIZE 8 /* "-1000" */
/*
 * The process specification, JSON: the member `process` of a bundle's config.json, with other arguments and
 * terminal.  malloc'ed; holds the environment: wipe it.  *ret_oom_score: its oomScoreAdj, "-" without one.
 * ERR_DATA_LOSS: not a config.json, or an argument
 * that is not UTF-8.
 */
enum err_code rt_exec_process_build(const char *config, size_t n, const struct rt_exec_spec *spec, char **ret,
                                    char ret_oom_score[RT_OOM_SCORE_SIZE], struct err *e) MUST_CHECK;
/* The runtime's words (its log, JSON lines) about a process that could not be started -> *e, and 127
 * (ERR_NOT_FOUND), 126 (ERR_PERMISSION) or 0.  False: the log holds no error. */
bool rt_exec_failure(const char *log, int *ret_exit_code, struct err *e);

/* ---- exec_leftover.c ------------------------------------------------------------------------- */
#define RT_EXEC_FOLDER "exec" /* of a bundle: a folder for each process under way */
/* After a `coracle-exec` that is gone: kills its process's session if that still runs, removes the folder. */
enum err_code rt_exec_clear(struct rt *rt, const char *id, const char *folder, struct err *e) MUST_CHECK;
/* All of a container's but those of this run of the agent. */
enum err_code rt_exec_clear_all(struct rt *rt, const char *id, struct err *e) MUST_CHECK;

/* ---- spec_*.c -------------------------------------------------------------------------------- */
struct rt_user {
    uint32_t uid, gid;
    uint32_t *gids; /* sorted, unique, with gid; free() */
    size_t n_gids;
    char *home; /* of the image's /etc/passwd, else "/"; free() */
};
void rt_user_done(struct rt_user *u);
enum err_code rt_user_check_non_root(const struct rt_config *c, struct err *e) MUST_CHECK;
/* From the texts of the image's /etc/passwd and /etc/group, which are cut up (and fuzzed). */
enum err_code rt_user_choose(const struct rt_config *c, char *passwd, char *group, struct rt_user *ret,
                             struct err *e) MUST_CHECK;
enum err_code rt_user_resolve(const struct rt_config *c, int rootfs_fd, struct rt_user *ret,
                              struct err *e) MUST_CHECK;

#define RT_CAP_BIT(n) (UINT64_C(1) << (n))
enum err_code rt_caps_resolve(const struct rt *rt, const struct api_security *s, uint64_t *ret,
                              struct err *e) MUST_CHECK;
json_t *rt_caps_names(uint64_t caps); /* ["CAP_CHOWN", ...]; NULL: no memory */
int rt_cap_number(const char *name);  /* with or without CAP_, any case; -1: unknown */

/* OCI linux.seccomp for the container; *ret NULL: unconfined. */
enum err_code rt_seccomp_resolve(const struct rt *rt, const struct rt_config *c, uint64_t caps, json_t **ret,
                                 struct err *e) MUST_CHECK;
struct rt_seccomp_host { /* what conditions in a profile are compared with */
    const char *machine; /* uname -m */
    unsigned kernel_major, kernel_minor;
    uint64_t caps;
};
/* A profile in the form of the containers package or of Docker, or OCI's own, made into OCI's own. */
enum err_code rt_seccomp_convert(const json_t *profile, const struct rt_seccomp_host *host, json_t **ret,
                                 struct err *e) MUST_CHECK;

enum err_code rt_mounts_build(const struct rt *rt, const struct rt_config *c, json_t *ret_mounts,
                              const char **ret_root_propagation, struct err *e) MUST_CHECK;
/*
 * Makes the folders of the image's volumes in the root that rootfs_fd is, which is mounted; where the pod or
 * the runtime mounts something at or above one, that goes first.  *ret is the config; with a root that is to
 * be read-only it also has a writable mount for each, its list in the arena.
 */
enum err_code rt_volumes_add(const struct rt_config *c, int rootfs_fd, struct arena *arena,
                             struct rt_config *ret, struct err *e) MUST_CHECK;
/* linux.devices and linux.resources.devices. */
enum err_code rt_devices_build(const struct rt_config *c, json_t *ret_devices, json_t *ret_rules,
                               struct err *e) MUST_CHECK;
json_t *rt_limits_build(void); /* process.rlimits; NULL: no memory */
enum err_code rt_env_build(const struct rt_config *c, const char *home, json_t *ret_list,
                           struct err *e) MUST_CHECK;
enum err_code rt_args_build(const struct rt_config *c, json_t *ret_list, struct err *e) MUST_CHECK;
static inline bool rt_privileged(const struct rt_config *c)
{
    return c->security != NULL && c->security->has_privileged && c->security->privileged;
}
static inline bool rt_read_only_root(const struct rt_config *c)
{
    return c->security != NULL && c->security->has_read_only_root_filesystem &&
           c->security->read_only_root_filesystem;
}
#endif
