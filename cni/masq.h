/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masq - removes the rules that a bridge or ptp plugin with ipMasq leaves behind when it is killed in ADD or
 * DEL: a chain CNI-<hash> in nat and the jump to it from POSTROUTING. The plugin's DEL finds them by the
 * addresses of a link that may no longer exist, and treats a missing link as success, so it would never
 * remove them. The chain's name is the first 24 hex digits of SHA-512(network name + container id), as in
 * containernetworking/plugins pkg/utils.
 */
#ifndef CNI_MASQ_H
#define CNI_MASQ_H
#include "cni/host/iptables.h"
#include "cni/plugin/conf.h"

struct cni_masq {
    struct cni_iptables rules; /* its op is the operation */
    /* private */
    char chain[32];
};

#define CNI_MASQ_DEADLINE_MS 30000

/* Whether any plugin of the list masquerades. */
bool cni_masq_wanted(const struct cni_list *l);
/* Removes this attachment's chain and jumps, for IPv4 and IPv6; success if there are none. */
void cni_masq_start(struct cni_masq *m, uv_loop_t *loop, const char *network, const char *container_id,
                    int cgroup_fd, const char *cgroup_procs, op_done_fn done, void *owner);

/* Input for iptables-restore --noflush that removes `chain` as shown by iptables-save; "" if it does not
 * exist. Pure. */
enum err_code cni_masq_removal(const char *save, const char *chain, struct buf *ret,
                               struct err *e) MUST_CHECK;
#endif
