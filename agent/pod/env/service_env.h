/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_env - the Service variables that kubelet adds to every container (pkg/kubelet/kubelet_pods.go
 * getServiceEnvVarMap, pkg/kubelet/envvars/envvars.go): WEB_SERVICE_HOST, WEB_SERVICE_PORT, docker's
 * WEB_PORT...
 *
 * Always includes `kubernetes` of the namespace default, through which clients inside a cluster find the
 * apiserver; with enableServiceLinks also all Services of the pod's namespace, whose `kubernetes` takes
 * precedence. Pure. Loop thread only.
 */
#ifndef AGENT_POD_ENV_SERVICE_ENV_H
#define AGENT_POD_ENV_SERVICE_ENV_H
#include "agent/pod/core/cluster_link.h"
#include "agent/pod/env/env.h"

struct service_env { /* sorted by name, each name once; allocated in the caller's arena */
    struct env_var *v;
    size_t n;
    bool known; /* the node has all Services; otherwise some may be missing */
};

/* `c` NULL: the node has joined none, nothing is known. ERR_INVALID: more than ENV_MAX or ENV_BYTES_MAX. */
enum err_code service_env_make(const struct node_cluster *c, const char *namespace_, bool links,
                               struct arena *a, struct service_env *ret, struct err *e) MUST_CHECK;
const struct env_var *service_env_find(const struct service_env *s, const char *name); /* NULL: none */
const char *service_env_get(const struct service_env *s, const char *name);            /* NULL: none */
#endif
