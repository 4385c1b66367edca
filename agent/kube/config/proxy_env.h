/* SPDX-License-Identifier: Apache-2.0 */
/* proxy_env - the proxy for a server where its cluster has no proxy-url. Pure. */
#ifndef AGENT_KUBE_CONFIG_PROXY_ENV_H
#define AGENT_KUBE_CONFIG_PROXY_ENV_H

/* `server`: kube_choice.server. NULL: none (or out of memory). A URL, malloc'ed. */
char *kube_proxy_of(const char *const *environment, const char *server);
#endif
