/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sysctls - which kernel settings a pod may ask for (pkg/kubelet/sysctl/allowlist.go): kubelet's safe list,
 * and what --allowed-unsafe-sysctls adds, as names or as prefixes ("net.core.*"), with dots or slashes.
 * Only settings of the IPC and the network namespace can be added; those of a namespace that the pod shares
 * with the host stay forbidden.
 */
#ifndef AGENT_API_SYSCTLS_H
#define AGENT_API_SYSCTLS_H
#include "agent/api/types.h"
#include "base/error.h"

/* ERR_INVALID in kubelet's words: not a pattern, or nothing that is known to be namespaced.  NULL-terminated.
 */
enum err_code sysctls_check_patterns(const char *const *patterns, struct err *e) MUST_CHECK;

/* ERR_PRECONDITION: the message of reason SysctlForbidden.  `patterns` as above, checked; NULL: none. */
enum err_code sysctls_admit(const struct api_pod_spec *spec, const char *const *patterns,
                            struct err *e) MUST_CHECK;
#endif
