/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files - the small files shared by a pod's containers: /etc/hosts, /etc/hostname, /etc/resolv.conf.
 *
 *     <root>/pods/<uid>/etc-hosts                  written in place (containers have the inode mounted)
 *     <root>/pods/<uid>/{hostname,resolv.conf}
 *
 * Containers may write to them, as under kubelet, so they are on the disk with the pod's other files, not in
 * the run folder, whose tmpfs is shared by all pods and the agent. They are removed with the pod's volumes.
 */
#ifndef AGENT_POD_SANDBOX_FILES_H
#define AGENT_POD_SANDBOX_FILES_H
#include "agent/pod/sandbox/sandbox.h"

const char *
files_hostname(const struct pod *p); /* borrowed from the pod; with the host's network the host's */

/* Determines the pod's hostname; ERR_INVALID: its FQDN is too long. Also done by files_write_static(). */
enum err_code files_name_host(struct pod *p, struct err *e) MUST_CHECK;
/* Folders, an empty hosts file, hostname and resolv.conf: everything that does not need the network. */
enum err_code files_write_static(struct pod *p, struct err *e) MUST_CHECK;
enum err_code files_write_hosts(struct pod *p, const char *const *ips, size_t n_ips,
                                struct err *e) MUST_CHECK;

/* The texts themselves, for tests. */
void files_hosts_text(const struct api_pod *pod, const char *hostname, const char *cluster_domain,
                      const char *const *ips, size_t n_ips,
                      const char *host_file /* content of the node's file, hostNetwork only */,
                      struct buf *out);
/* Hostname by kubelet's rule: spec.hostnameOverride, spec.hostname or the pod's name, truncated to 63. */
void files_hostname_text(const struct api_pod *pod, char ret[65]);
#endif
