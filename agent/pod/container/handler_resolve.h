/* SPDX-License-Identifier: Apache-2.0 */
/* handler_resolve - converts a probe's or hook's handler from the manifest for agent/probe and agent/runtime:
 * port names, the pod's address, headers, expanded commands. Pure, except for reading the pod's state. */
#ifndef AGENT_POD_CONTAINER_HANDLER_RESOLVE_H
#define AGENT_POD_CONTAINER_HANDLER_RESOLVE_H
#include "agent/pod/core/pod.h"
#include "agent/probe/probe.h"
#include "base/arena.h"

/* kubelet's name towards servers; 1.36 is the version we follow. */
#define HANDLER_PROBE_AGENT "kube-probe/1.36"
#define HANDLER_HOOK_AGENT "kube-lifecycle/1.36"

struct probe_world handler_resolve_world(const struct pod *p);

/* A number, or the name of a port of the container. ERR_NOT_FOUND with kubelet's (Go's) words. */
enum err_code handler_resolve_port(const struct api_container *c, const char *port, unsigned *ret,
                                   struct err *e) MUST_CHECK;

/* The pod's first address, the node's for hostNetwork; "" if there is none. */
const char *handler_resolve_pod_ip(const struct pod *p);

/* An httpGet handler; allocated in the arena. `user_agent` as above. */
enum err_code handler_resolve_http(const struct ctr *c, const struct api_handler *h, const char *user_agent,
                                   struct arena *a, struct probe_http *ret, struct err *e) MUST_CHECK;

/* An exec handler's command; allocated in the arena. A probe's is expanded with the literal entries of `env`
 * only, as in kubelet; a hook's is not. */
enum err_code handler_resolve_command(const struct ctr *c, const struct api_handler *h, bool expand,
                                      struct arena *a, const char *const **ret, struct err *e) MUST_CHECK;

/* The command's words separated by blanks. */
void handler_resolve_add_command(const char *const *argv, struct buf *out);
#endif
