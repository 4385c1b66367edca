/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write - the kubeconfig file that TLS bootstrap leaves, as kubelet writes it (pkg/kubelet/certificate/
 * bootstrap): names default-cluster, default-auth and default-context, namespace default; server and CA of
 * the bootstrap file (a path made absolute, or the data kept); certificate and key are one file. Unlike
 * kubelet it keeps tls-server-name, proxy-url and disable-compression: without them the file would not work.
 * Pure.
 */
#ifndef AGENT_KUBE_CONFIG_WRITE_H
#define AGENT_KUBE_CONFIG_WRITE_H
#include "agent/kube/config/config.h"

/* `pem`: the absolute path of kubelet-client-current.pem. YAML with sorted keys, malloc'ed; NULL: out of
 * memory. */
char *kube_config_written(const struct kube_choice *bootstrap, const char *pem);
#endif
