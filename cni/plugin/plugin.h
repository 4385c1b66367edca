/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin - one run of a CNI plugin: environment, standard input, answer, errors.
 *
 * The child gets these variables, in this order, and nothing else:
 *    ADD DEL CHECK  CNI_COMMAND CNI_CONTAINERID CNI_NETNS CNI_IFNAME CNI_ARGS CNI_PATH PATH GOMAXPROCS
 *    GC STATUS      CNI_COMMAND CNI_PATH PATH GOMAXPROCS
 *    VERSION        CNI_COMMAND CNI_CONTAINERID CNI_NETNS CNI_IFNAME (all "dummy", as in libcni, because old
 *                   plugins require them) CNI_PATH PATH GOMAXPROCS
 * PATH is set because plugins call iptables. Most plugins are small Go programs that wait for such calls:
 * GOMAXPROCS=1 spares them Go's threads for further processors, which cost a twentieth of their time.
 * Errors have libcni's form, followed by the code:
 *    plugin type="bridge" failed (add): <msg>: <details> (CNI code 7)
 * Codes:
 *    ERR_PRECONDITION  its configuration must change first (CNI codes 1, 2, 7)
 *    ERR_UNAVAILABLE   the plugin asks for a retry (11), or no bin_dir has it (yet)
 *    ERR_EXHAUSTED     more than CNI_RESULT_MAX bytes of output
 *    ERR_INVALID       the plugin succeeded but its result cannot be used
 *    ERR_UNKNOWN       any other error that the plugin reported
 *    other codes       the plugin cannot be executed; ERR_DEADLINE, ERR_CANCELLED
 * An error object is an error whatever the exit status is. A program that is being written (ETXTBSY: its
 * installer is running) is tried up to 6 times, 1 s apart.
 */
#ifndef CNI_PLUGIN_PLUGIN_H
#define CNI_PLUGIN_PLUGIN_H
#include "base/presence.h"
#include "base/process/process.h"

#include <jansson.h>

enum cni_verb { CNI_ADD, CNI_DEL, CNI_CHECK, CNI_GC, CNI_STATUS, CNI_VERSION };

/* CNI error code 3: the container is unknown and nothing needs to be cleaned up. */
#define CNI_CODE_UNKNOWN_CONTAINER 3

struct cni_plugin_call { /* strings borrowed until done; input only during start */
    enum cni_verb verb;
    const char *type;
    /* ADD, DEL, CHECK; in other verbs container_id is for messages */
    const char *container_id, *netns, *ifname, *args;
    const char *const *bin_dirs;
    const json_t *input; /* from cni_plugin_stdin() */
    int config_version;  /* for a result without cniVersion */
    int cgroup_fd;
    const char *cgroup_procs;
    uint64_t deadline_at_ms; /* deadline, as clock_mono_ms() */
};

struct cni_plugin {
    struct op op;
    json_t *result; /* of a successful ADD or VERSION: owned by the caller in done */
    int cni_code;   /* the error's `code`; 0 if none */
    bool never_ran; /* the program does not exist or cannot be executed */
    /* private */
    struct cni_plugin_call call;
    struct proc proc;
    uv_timer_t retry;
    char *program, *input;
    char *env[9];
    int tries;
    bool waiting;
};

void cni_plugin_start(struct cni_plugin *p, const struct cni_plugin_call *call, uv_loop_t *loop,
                      op_done_fn done, void *owner);

/* *ret: the path of a plugin, malloc'ed, else NULL; the first regular file wins. */
struct presence cni_plugin_find(const char *const *bin_dirs, const char *type, char **ret,
                                struct err *e) MUST_CHECK;
/* The same for an entry of that name that is not a regular file, such as a folder. */
struct presence cni_plugin_find_other(const char *const *bin_dirs, const char *type, char **ret,
                                      struct err *e) MUST_CHECK;

/* A failed plugin's error as one line (for tests): `out` standard output, `err_out` standard error. */
enum err_code cni_plugin_error(const char *out, size_t out_n, const char *err_out, int wait_status,
                               int *ret_cni_code, struct err *e);
#endif
