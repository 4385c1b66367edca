/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_KUBE_INTERNAL_H
#define AGENT_KUBE_INTERNAL_H
#include "agent/kube/link/link.h"
#include "base/log.h"

/* From now on log lines go to the daemon as messages `log`; NULL: to standard error again. A line that cannot
 * be sent is dropped. */
void kube_log_to(struct kube_link *link);

/* From now on this process has no rights: another user than root, no capabilities, no files to write and few
 * to read (Landlock), no other programs and processes (seccomp), bounded memory. *ret_landlock: the version
 * that the kernel has; 0: none, and the rest holds. */
enum err_code kube_confine(int *ret_landlock, struct err *e) MUST_CHECK;
#endif
