/* SPDX-License-Identifier: Apache-2.0 */
/* container - a container's life: create, start, restart, stop, reap; its logs and messages.  Loop thread
 * only. */
#ifndef AGENT_POD_CONTAINER_CONTAINER_H
#define AGENT_POD_CONTAINER_CONTAINER_H
#include "agent/pod/core/pod.h"

extern const struct room container_room;

void create_limit_init(struct node *n);
bool create_limit_take(struct ctr *c); /* false: the pod is woken when there is a place */
void create_limit_release(struct ctr *c);
/* Creates that waited for a place: told to try again, as many as there are places. */
void create_limit_pump(struct node *n);
bool restart_all_wanted(const struct pod *p); /* and holds now */
/*
 * Somebody asks for a restart: all containers but init containers end with their grace and start again in
 * place.  ERR_PRECONDITION: the pod does not run.
 */
enum err_code restart_ask(struct pod *p, struct err *e) MUST_CHECK;
/* Does so: true while containers are still to end, and none is to start. */
bool restart_all_step(struct pod *p);
void containers_step(struct pod *p);   /* of a pod that starts or runs: each container in its turn */
bool ctr_is_done(const struct ctr *c); /* ended for good with success */
void ctr_step(struct ctr *c);          /* towards running, if it should */
/*
 * kubelet starts containers one after the other, and a postStart hook is part of its container's start: those
 * after it wait.  (Without hooks nothing can be seen of that order, and they start side by side.)
 */
bool ctr_holds_others(const struct ctr *c);
/* What follows from a start: log link, event.  started_ns: wall clock, 0: now. */
void ctr_note_start(struct ctr *c, int64_t started_ns, struct boot_time started_at);
void ctr_refresh(struct ctr *c);                /* read the facts of its newest instance */
void ctr_stop(struct ctr *c, int64_t grace_ns); /* preStop hook, signal, kill at the deadline */
void ctr_stop_begin(struct ctr *c,
                    int64_t grace_ns); /* the hook only: its turn to be signalled comes later */
void ctr_kill(struct ctr *c);          /* at once, without its hook */
void ctr_stop_step(struct ctr *c);     /* time passed or facts changed */
void ctr_ended(struct ctr *c, int exit_code, const char *reason, const char *message, int64_t finished_ns);
void ctr_reap(struct pod *p, const char *id, const char *cgroup_path);
void reaps_step(struct pod *p); /* those that are due are tried again */
bool reaps_hold(
    const struct pod *p); /* the pod's end waits for them (asked to end at once: not for what failed) */
void reaps_clear(struct pod *p); /* the pod is being freed: none is under way */
void instance_clear(struct instance *i);
void ctr_waiting(struct ctr *c, const char *reason, const char *fmt, ...) PRINTF_LIKE(3, 4);
struct boot_time ctr_backoff_until(const struct ctr *c); /* none: it is not in its back-off */
#define CTR_BACKOFF_TEXT_SIZE 48
void ctr_backoff_text(uint64_t ms, char ret[CTR_BACKOFF_TEXT_SIZE]); /* "1m20s" */
char *ctr_message(const struct ctr *c, int exit_code); /* of cur, malloc'ed; NULL: it left none */
bool ctr_log_path(const struct ctr *c, unsigned attempt, char *ret, size_t size); /* false: too long */
void ctr_log_keep(struct ctr *c, unsigned attempt);  /* its rotated files, from now on; again is fine */
void ctr_log_ended(struct ctr *c, unsigned attempt); /* it writes no more, or never will */
void ctr_log_remove(const struct ctr *c, unsigned attempt);
void ctr_log_link(struct ctr *c); /* for log shippers, once it has started; again is fine */
void ctr_log_link_path(const struct ctr *c, const char *id, char *ret, size_t size);
struct ctr_run; /* owns everything an rt_config borrows */
enum err_code ctr_run_build(struct ctr *c, struct ctr_run **ret, struct err *e) MUST_CHECK;
const struct rt_config *ctr_run_config(const struct ctr_run *r);
/* Host file behind terminationMessagePath, below the pod's folder; removed with the run unless taken. */
const char *ctr_run_take_message_file(struct ctr_run *r);
json_t *ctr_run_take_env_sources(struct ctr_run *r); /* of that moment; env_age.h */
const char *ctr_run_image(const struct ctr_run *r);  /* what the manifest called it when the run was built */
/* Fills in fn and arg of a call that mounts image volumes and binds the container's sub paths; false when it
 * has none of either. */
bool ctr_run_subpaths(struct ctr_run *r, struct proc_call_spec *call);
#define IMAGE_VOLUME_FAILED                                                                                  \
    "ImageVolumeMountFailed" /* the runtimes' word: how an error of the former begins */
void ctr_run_redact(struct ctr_run *r,
                    struct err *e);   /* takes Secrets of its environment out of what is to be shown */
void ctr_run_free(struct ctr_run *r); /* NULL is fine */
#endif
