/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by the files of agent/kube/credentials. */
#ifndef AGENT_KUBE_CREDENTIALS_INTERNAL_H
#define AGENT_KUBE_CREDENTIALS_INTERNAL_H
#include "agent/kube/config/message.h"
#include "agent/kube/credentials/credentials.h"
#include "base/files/watches.h"
#include "base/process/process.h"
#include "base/work.h"

#include <stdint.h>

/* ---- job.c: work of the pool ---- */
struct cred_names {                                /* borrowed; they outlive every job */
    const char *kubeconfig, *bootstrap, *cert_dir; /* bootstrap NULL: none */
    const char *const *environment;
    bool rotate;
};

struct cred_load { /* one read of the files */
    const struct cred_names *names;
    bool want_bootstrap; /* the certificate of the kubeconfig file has expired */
    /* results */
    struct kube_message message;
    bool bootstrap;             /* the message is of the bootstrap file */
    struct strs folders, bases; /* to be watched, and which of their entries matter */
};
enum err_code cred_load_run(void *load, struct err *e) MUST_CHECK;
void cred_load_done(struct cred_load *l);
/* Adds the folder of the name, and that of the file which the name leads to. False: out of memory. */
bool cred_watch_path(struct cred_load *l, const char *path);
/* Writes the kubeconfig file that TLS bootstrap leaves, unless it is there as it would be written. */
enum err_code cred_write_kubeconfig(const struct cred_names *names, struct err *e) MUST_CHECK;

/* ---- follow.c ---- */
struct cred_follow {
    struct watch_set *set;
    struct strs folders, bases;
    void (*changed)(struct cred_follow *f);
};
/* Watches these instead of those of before. *ret_new: a folder was not watched before, so something may have
 * changed since it was read. */
enum err_code cred_follow(struct cred_follow *f, uv_loop_t *loop, const struct cred_load *l, bool *ret_new,
                          struct err *e) MUST_CHECK;
void cred_follow_done(struct cred_follow *f);

/* ---- plugin.c ---- */
struct cred_plugin {
    struct proc proc;
    bool running;
    char *version;
    void (*done)(struct cred_plugin *p, struct kube_exec_answer *answer, const struct err *result);
};
void cred_plugin_start(struct cred_plugin *p, const struct kube_exec *exec,
                       const struct kube_credentials_options *o);

/* ---- credentials.c, for issued.c ---- */
struct kube_credentials {
    struct kube_credentials_options o;
    struct cred_names names;
    char *kubeconfig, *bootstrap, *cert_dir;
    struct strs environment;
    uv_timer_t timer;
    bool timer_open;
    struct work work;
    struct cred_load *load; /* under way */
    bool again;             /* load once more */
    bool want_bootstrap, is_bootstrap;
    struct cred_follow follow;
    struct kube_message message; /* of the latest load */
    struct cred_plugin plugin;
    struct kube_exec ran; /* `answer` is its answer */
    struct kube_exec_answer answer;
    int64_t answered_ns;
    bool has_answer, run_anew;
    uint64_t loaded_ms, ran_ms, retry_ms;
    json_t *sent;
    struct err trouble;
    size_t writes; /* under way */
    bool closed;
};
void cred_free_if_over(struct kube_credentials *c);
void cred_due_in(struct kube_credentials *c, uint64_t ms); /* the next load */
#endif
