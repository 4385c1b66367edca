/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undo - leave the machine as it was found: what CNI plugins make for the host as a whole and never remove.
 *
 * cni_undo_record_start(), before the first ADD, notes in the cache folder (undo.json) what is there: links,
 * forwarding sysctls, the plugins' shared iptables chains, tables and chains of nf_tables.  A record of this
 * boot is kept as it is, so it survives a kill and describes the machine before the first of several runs.
 * cni_undo_start(), after the last DEL and after cni_remove_bridges(), puts back what differs, and only that:
 *   - chains CNI-HOSTPORT-*, CNI-FORWARD, CNI-ADMIN, CNI-ISOLATION-STAGE-* that were not there and that
 *     nobody uses (see scaffold.h), of iptables and ip6tables, whichever variant stands in PATH
 *   - empty tables nat and filter with built-in chains that iptables-nft made (see nft.h)
 *   - ip_forward, forwarding, route_localnet, accept_redirects
 * then removes the record; without a record nothing is done.  After a failure the record stays, for another
 * try.  No ADD or DEL may be running.  Loop thread only.
 *
 * Not undone: loaded kernel modules, and tables of plugins that speak nftables natively (portmap from 1.6,
 * bridge from 1.7: "inet cni_hostport", "inet cni_plugins_masquerade").
 */
#ifndef CNI_UNDO_H
#define CNI_UNDO_H
#include "base/process.h"
#include "cni/cni.h"

struct cni_undo {
    struct op op;
    /* private */
    struct cni *c;
    struct proc proc;
    json_t *record; /* being made, or being undone */
    struct err first;
    bool undoing;
};

#define CNI_UNDO_DEADLINE_MS 60000 /* iptables may wait for the xtables lock of others */

void cni_undo_record_start(struct cni_undo *u, struct cni *c, op_done_fn done, void *owner);
void cni_undo_start(struct cni_undo *u, struct cni *c, op_done_fn done, void *owner);
/* True if the record says that this link is not ours to remove. */
bool cni_undo_link_existed(const struct cni *c, const char *name);
#endif
