/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler_resolve - from a probe's or hook's handler in the manifest to what agent/probe and agent/runtime
 * run: port names, the pod's address, headers, expanded commands.  Pure but for the pod's own state.
 */
#ifndef AGENT_POD_CONTAINER_HANDLER_RESOLVE_H
#define AGENT_POD_CONTAINER_HANDLER_RESOLVE_H
#include "agent/pod/core/pod.h"
#include "agent/probe/probe.h"
#include "base/arena.h"

/* kubelet names itself so to servers; 1.36 is the version whose behaviour this is. */
#define HANDLER_PROBE_AGENT "kube-probe/1.36"
#define HANDLER_HOOK_AGENT "kube-lifecycle/1.36"

struct probe_world handler_resolve_world(const struct pod *p);

/* A number, or the name of one of the container's ports.  ERR_NOT_FOUND with kubelet's (Go's) words. */
enum err_code handler_resolve_port(const struct api_container *c, const char *port, unsigned *ret,
                                   struct err *e) MUST_CHECK;

/* The pod's first address, the node's for hostNetwork; "" while there is none. */
const char *handler_resolve_pod_ip(const struct pod *p);

/* An httpGet handler; lives in the arena.  `user_agent` as above. */
enum err_code handler_resolve_http(const struct ctr *c, const struct api_handler *h, const char *user_agent,
                                   struct arena *a, struct probe_http *ret, struct err *e) MUST_CHECK;

/*
 * An exec handler's command; lives in the arena.  A probe's is expanded with the literal entries of `env`
 * only, as kubelet does; a hook's not at all.
 */
enum err_code handler_resolve_command(const struct ctr *c, const struct api_handler *h, bool expand,
                                      struct arena *a, const char *const **ret, struct err *e) MUST_CHECK;

/* The command's words with blanks between them. */
void handler_resolve_add_command(const char *const *argv, struct buf *out);
#endif
