/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masq - what a bridge or ptp plugin with ipMasq leaves when it is killed in its ADD or DEL: a chain
 * CNI-<hash> in nat and the jump to it from POSTROUTING.  Its DEL finds them by the addresses of a link that
 * may be gone, and calls a missing link a success, so nobody would ever remove them.  The chain's name is
 * known: the first 24 hex digits of SHA-512(network name + container id), as in containernetworking/plugins
 * pkg/utils (taken from coreutils' sha512sum, since this is rare and the agent needs no hash otherwise).
 */
#ifndef CNI_MASQ_H
#define CNI_MASQ_H
#include "base/process.h"
#include "cni/conf.h"

struct cni_masq {
    struct op op;
    /* private */
    struct proc proc;
    char chain[32];
    int cgroup_fd;
    const char *cgroup_procs; /* borrowed until done */
};

#define CNI_MASQ_DEADLINE_MS 30000

/* Does any plugin of the list masquerade? */
bool cni_masq_wanted(const struct cni_list *l);
/* Removes chain and jumps of this attachment, of IPv4 and IPv6; not there is success. */
void cni_masq_start(struct cni_masq *m, uv_loop_t *loop, const char *network, const char *container_id,
                    int cgroup_fd, const char *cgroup_procs, op_done_fn done, void *owner);

/* Input for iptables-restore --noflush that removes `chain` as iptables-save shows it; "" when it is not
 * there. Pure. */
enum err_code cni_masq_removal(const char *save, const char *chain, struct buf *ret,
                               struct err *e) MUST_CHECK;
#endif
