/* SPDX-License-Identifier: Apache-2.0 */
/* container - a container's life: create, start, restart, stop, clean up; its logs and messages. Loop thread
 * only. */
#ifndef AGENT_POD_CONTAINER_CONTAINER_H
#define AGENT_POD_CONTAINER_CONTAINER_H
#include "agent/pod/core/pod.h"

extern const struct room container_room;

void create_limit_init(struct node *n);
bool create_limit_take(struct ctr *c); /* false: the pod will be woken when there is a slot */
void create_limit_release(struct ctr *c);
/* Wakes as many creates waiting for a slot as there are slots. */
void create_limit_pump(struct node *n);
/* The run ends and the container is made anew, whatever its policy: it did not crash. The text is that of the
 * Killing event. */
void ctr_replace(struct ctr *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void ctr_image_edited(struct ctr *c); /* the manifest names another image for it now */
/* The sandbox is lost: what runs is killed, and all begins again, in a new sandbox, with the init containers.
 */
void containers_begin_anew(struct pod *p);
/* After a restart of the agent: examines each instance that had not ended, and takes it over. */
void containers_recover(struct pod *p);
/* A ConfigMap or Secret is new or changed: what waits for it is tried again. */
void containers_config_changed(struct pod *p, enum api_config_kind kind, const char *name);
/* What a run that is being created gets (CTR_MOUNTING, CTR_CREATING). */
const struct cpu_memory *ctr_building(const struct ctr *c);
bool restart_all_wanted(const struct pod *p); /* and applies now */
/* A user requests a restart: all containers except init containers end with their grace period and start
 * again in place. ERR_PRECONDITION: the pod is not running. */
enum err_code restart_ask(struct pod *p, struct err *e) MUST_CHECK;
/* Carries it out: true while containers still have to end, and none may start. */
bool restart_all_step(struct pod *p);
void containers_step(struct pod *p);   /* of a pod that starts or runs: each container in its turn */
bool ctr_is_done(const struct ctr *c); /* ended for good with success */
void ctr_step(struct ctr *c);          /* towards running, if it should */
/* kubelet starts containers one after the other, and a postStart hook is part of its container's start: later
 * ones wait. (Without hooks that order is not observable, and they start in parallel.) */
bool ctr_holds_others(const struct ctr *c);
/* Consequences of a start: log link, event. started_ns: wall clock, 0: now. */
void ctr_note_start(struct ctr *c, int64_t started_ns, struct boot_time started_at);
void ctr_refresh(struct ctr *c);                      /* reads the state of its newest instance */
void ctr_stop(struct ctr *c, int64_t grace_ns);       /* preStop hook, signal, kill at the deadline */
void ctr_stop_begin(struct ctr *c, int64_t grace_ns); /* only the hook: it is signalled later */
void ctr_kill(struct ctr *c);                         /* immediately, without its hook */
void ctr_stop_step(struct ctr *c);                    /* a timeout passed or its state changed */
void ctr_ended(struct ctr *c, int exit_code, const char *reason, const char *message, int64_t finished_ns);
void ctr_reap(struct pod *p, const char *id, const char *cgroup_path);
void reaps_step(struct pod *p); /* retries those that are due */
bool reaps_hold(
    const struct pod *p); /* the pod's end waits for them (when ended immediately: not for failed ones) */
void reaps_clear(struct pod *p); /* the pod is being freed: none is in progress */
void instance_clear(struct instance *i);
void ctr_waiting(struct ctr *c, const char *reason, const char *fmt, ...) PRINTF_LIKE(3, 4);
struct boot_time ctr_backoff_until(const struct ctr *c); /* none: not in back-off */
char *ctr_message(const struct ctr *c, int exit_code);   /* of cur, malloc'ed; NULL if it left none */
bool ctr_log_path(const struct ctr *c, unsigned attempt, char *ret, size_t size); /* false: too long */
void ctr_log_keep(struct ctr *c, unsigned attempt); /* keeps its rotated files from now on; may be repeated */
void ctr_log_ended(struct ctr *c, unsigned attempt); /* it writes no more, or never will */
void ctr_log_remove(const struct ctr *c, unsigned attempt);
void ctr_log_link(struct ctr *c); /* for log shippers, once it has started; may be repeated */
void ctr_log_link_path(const struct ctr *c, const char *id, char *ret, size_t size);
/* ---- for `coracle explain pod`: what each does or waits for ---- */
void containers_explain(const struct pod *p, json_t *steps);
void probes_explain(const struct pod *p, json_t *steps);
void reaps_explain(const struct pod *p, json_t *steps);
/* The subject of an operation names a run whose remains are being removed. */
bool reaps_named(const struct pod *p, const char *subject);
struct ctr_run; /* owns everything an rt_config borrows */
enum err_code ctr_run_build(struct ctr *c, struct ctr_run **ret, struct err *e) MUST_CHECK;
const struct rt_config *ctr_run_config(const struct ctr_run *r);
/* The host file for terminationMessagePath, below the pod's folder; removed with the run unless taken. */
const char *ctr_run_take_message_file(struct ctr_run *r);
json_t *ctr_run_take_env_sources(struct ctr_run *r); /* of that time; env_age.h */
const char *ctr_run_image(const struct ctr_run *r);  /* the manifest's name of it when the run was made */
/* Sets fn and arg of a call that mounts image volumes and binds the container's sub paths; false if it has
 * neither. */
bool ctr_run_subpaths(struct ctr_run *r, struct proc_call_spec *call);
/* the runtimes' term: prefix of errors of the former */
#define IMAGE_VOLUME_FAILED "ImageVolumeMountFailed"
void ctr_run_redact(struct ctr_run *r, struct err *e); /* redacts Secrets of its environment */
void ctr_run_free(struct ctr_run *r);                  /* NULL is fine */
#endif
