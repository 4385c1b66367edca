/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_KUBE_INTERNAL_H
#define AGENT_KUBE_INTERNAL_H
#include "agent/kube/link/link.h"
#include "base/log.h"

/* From now on log lines go to the daemon as messages `log`; NULL: to standard error again. A line that cannot
 * be sent is dropped. */
void kube_log_to(struct kube_link *link);
#endif
