/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container - a container's life: create, start, probes, hooks, restart, stop, clean up; its logs and
 * messages. What drives it is the room's own (internal.h); struct ctr has what others may know. Loop thread
 * only.
 */
#ifndef AGENT_POD_CONTAINER_CONTAINER_H
#define AGENT_POD_CONTAINER_CONTAINER_H
#include "agent/pod/core/pod.h"

extern const struct room container_room;

/* ---- what is known of it ---- */
const char *pod_phase(const struct pod *p);
bool ctr_ready(const struct ctr *c);
bool ctr_started(const struct ctr *c); /* running, and its postStart hook and startup probe have succeeded */
bool ctr_shown_running(const struct ctr *c);
bool ctr_is_hidden(const struct ctr *c); /* running, but its postStart hook has not finished */
bool ctr_is_done(const struct ctr *c);   /* ended for good with success */
/* What a run that is being created gets (CTR_MOUNTING, CTR_CREATING). */
const struct cpu_memory *ctr_building(const struct ctr *c);
bool ctr_log_path(const struct ctr *c, unsigned attempt, char *ret, size_t size); /* false: too long */
bool restart_all_wanted(const struct pod *p); /* a rule requests it: RestartAllContainers */
/* The pod's condition EnvironmentOutdated; NULL if every environment is up to date. */
json_t *env_age_condition(const struct pod *p);

/* ---- what happens to it ---- */
/* After a restart of the agent: examines each instance that had not ended, and takes it over. */
void containers_recover(struct pod *p);
/* The sandbox is lost: running containers are killed, and the pod starts again in a new one, from its init
 * containers. */
void containers_begin_anew(struct pod *p);
/* A ConfigMap or Secret is new or changed: containers that wait for it try again. */
void containers_config_changed(struct pod *p, enum api_config_kind kind, const char *name);
void containers_services_known(struct pod *p); /* those that wait for Services try again */
void ctr_image_edited(struct ctr *c);          /* the manifest names another image for it now */
/* The run ends and the container is made anew, whatever its policy: it did not crash. The text is that of the
 * Killing event. */
void ctr_replace(struct ctr *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A user requests a restart: all containers except init containers, or the one of this name, end with their
 * grace period and start again in place. ERR_INVALID: there is no such container, or it does not last.
 * Returns the runs that end for it, new: [{"name", "containerID"}]; a container without one is being created,
 * or will be. NULL with ERR_PRECONDITION: the pod is not running; out of memory: nothing was requested. */
json_t *restart_ask(struct pod *p, const char *name /* may be NULL */, struct err *e) MUST_CHECK;

/* ---- steps of the worker ---- */
void ctr_refresh(struct ctr *c); /* reads the state of its newest instance */
/* Looks at the environments whose ConfigMaps or Secrets changed, and acts according to the annotation. */
void env_age_step(struct pod *p);
/* Starts, continues or stops checks as required by the container's state. Whenever the pod is reconciled. */
void probes_step(struct ctr *c);
void ctr_stop(struct ctr *c, int64_t grace_ns);       /* preStop hook, signal, kill at the deadline */
void ctr_kill(struct ctr *c);                         /* immediately, without its hook */
void ctr_stop_begin(struct ctr *c, int64_t grace_ns); /* only the hook: it is signalled later */
void reaps_step(struct pod *p);                       /* retries removals that are due */
/* The pod's end waits for removals; when it ended immediately, not for failed ones. */
bool reaps_hold(const struct pod *p);
/* Wakes as many creates waiting for a slot as there are slots. */
void create_limit_pump(struct node *n);

/* ---- for `coracle explain pod`: what each does or waits for ---- */
void containers_explain(const struct pod *p, json_t *steps);
void containers_cdi_explain(const struct node *n,
                            json_t *steps); /* CDI devices and bad specs, for `explain node` */
/* Of those that do not run well, or failed: the cause first (explain_why()). */
void containers_why(const struct pod *p, json_t *why);
void probes_explain(const struct pod *p, json_t *steps);
void probes_metrics(const struct node *n, struct buf *out); /* kubelet's prober_*, for /metrics/probes */
void reaps_explain(const struct pod *p, json_t *steps);
/* The subject of an operation names a run whose remains are being removed. */
bool reaps_named(const struct pod *p, const char *subject);
#endif
