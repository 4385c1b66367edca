/* SPDX-License-Identifier: Apache-2.0 */
/* sysctls - which sysctls a pod may set (pkg/kubelet/sysctl/allowlist.go): kubelet's safe list, plus
 * --allowed-unsafe-sysctls, as names or prefixes ("net.core.*"), with dots or slashes. Only sysctls of the
 * IPC and network namespaces can be added; those of a namespace shared with the host are always forbidden. */
#ifndef AGENT_API_SYSCTLS_H
#define AGENT_API_SYSCTLS_H
#include "agent/api/types.h"
#include "base/error.h"

/* ERR_INVALID in kubelet's words: not a pattern, or not known to be namespaced. NULL-terminated. */
enum err_code sysctls_check_patterns(const char *const *patterns, struct err *e) MUST_CHECK;

/* ERR_PRECONDITION: the message for reason SysctlForbidden. `patterns`: checked as above, or NULL. */
enum err_code sysctls_admit(const struct api_pod_spec *spec, const char *const *patterns,
                            struct err *e) MUST_CHECK;
#endif
