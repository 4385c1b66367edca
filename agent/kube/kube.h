/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube - the parts of coracle-kube on one loop: the link to the daemon, the client, `sync` and `server`.
 * Messages go to the parts by their type. Loop thread only.
 */
#ifndef AGENT_KUBE_KUBE_H
#define AGENT_KUBE_KUBE_H
#include "base/error.h"

#include <uv.h>

struct kube;

/* fd: the link; taken also on failure. on_end: once, from the loop, after the daemon sent `stop`, or is gone
 * (`why` has a text then). */
enum err_code kube_open(struct kube **ret, uv_loop_t *loop, int fd,
                        void (*on_end)(const struct err *why, void *arg), void *arg,
                        struct err *e) MUST_CHECK;
/* The loop must run until nothing is left on it; then kube_free(). */
void kube_close(struct kube *k);
void kube_free(struct kube *k);
#endif
