/* SPDX-License-Identifier: Apache-2.0 */
/* provider - answers the status server's requests: pods, events, logs, images, metrics. Loop thread only. */
#ifndef AGENT_POD_SHOW_PROVIDER_H
#define AGENT_POD_SHOW_PROVIDER_H
#include "agent/pod/core/pod.h"

extern const struct room show_room;

void provider_init(struct node *n);
bool provider_busy(const struct node *n); /* an import or an exec is in progress */
void provider_cancel(struct node *n);

/* NULL: the annotated default, or the only one. NULL with *e set: not found, or ambiguous. */
struct ctr *provider_find_container(struct pod *p, const char *name, struct err *e);

/* ---- provider_images.c ---- */
void provider_image_add(void *arg, const char *source, const char *name, struct status_reply *r);
json_t *provider_image_progress(void *arg, const struct status_reply *r);
enum err_code provider_image_remove(void *arg, const char *name, struct err *e);
void provider_image_task(void *arg, const struct status_image_task *task, struct status_reply *r);
bool provider_images_busy(const struct node *n);
void provider_images_cancel(struct node *n);

/* ---- provider_objects.c ---- */
json_t *provider_node(struct node *n); /* the Node object as it is now; new */
json_t *provider_node_complete(struct node *n, int64_t max_images, int64_t port); /* node_object.h */
enum status_kind provider_status_kind(enum api_kind kind); /* of an object of the store */
json_t *provider_keys(void *arg, enum status_kind kind, struct err *e);
/* Of GET /store. */
json_t *provider_whole(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                       struct err *e);
/* A src_watch_fn; `arg`: the node. Sends the change to the clients of GET /store. */
void provider_on_store(enum src_change change, const struct api_object *object, void *arg);
json_t *provider_listed(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                        struct err *e);
json_t *provider_objects(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                         struct err *e);

/* ---- write.c ---- */
/* The agent's own: the object is taken out of its file. A failure is logged. */
void provider_remove(struct node *n, enum api_kind kind, const char *namespace_, const char *name);

/* ---- provider_exec.c ---- */
enum err_code provider_exec_check(void *arg, const char *namespace_, const char *name, const char *container,
                                  bool attach, struct err *e);
struct status_exec *provider_exec(void *arg, const struct status_exec_spec *spec, struct err *e);
struct status_exec *provider_forward(void *arg, const struct status_exec_spec *spec, struct err *e);
struct status_exec *provider_archive(void *arg, const struct status_exec_spec *spec, struct err *e);
enum err_code provider_attach(void *arg, const char *namespace_, const char *name, const char *container,
                              bool input, struct status_attached *ret, struct err *e);
void provider_exec_cancel(struct status_exec *x);
void provider_exec_cancel_all(struct node *n);

/* ---- podresources.c ---- */
/* After the records were read: listens. A failure is logged, and shown by `explain node`. */
void podresources_begin(struct node *n);

/* ---- node_events.c: events of the node, with kubelet's reasons and messages ---- */
/* Once, when the manifests are known: events of the node have no receiver before. */
void node_events_started(struct node *n);
/* Something that Ready depends on may have changed. A change is an event, and the cluster learns it at once.
 */
void node_events_ready(struct node *n);

/* Valid while the node exists. */
const struct status_provider *node_provider(struct node *n);
#endif
