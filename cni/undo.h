/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undo - restores the machine to its original state: undoes the changes that CNI plugins make to the host and
 * never revert.
 *
 * cni_undo_record_start(), before the first ADD, records the current state in the cache folder (undo.json):
 * links, forwarding sysctls, the plugins' shared iptables chains, tables and chains of nf_tables. A record of
 * the current boot is kept, so that it survives a kill and describes the machine before the first of several
 * runs. cni_undo_start(), after the last DEL and cni_remove_bridges(), restores only what differs:
 * - removes chains CNI-HOSTPORT-*, CNI-FORWARD, CNI-ADMIN, CNI-ISOLATION-STAGE-* that did not exist and are
 *   unused (see scaffold.h), of iptables and ip6tables, whichever variant is in PATH
 * - removes empty tables nat and filter with built-in chains created by iptables-nft (see nft.h)
 * - restores ip_forward, forwarding, route_localnet, accept_redirects
 * and removes the record; without a record it does nothing. After a failure the record is kept for another
 * try. No ADD or DEL may be running. Loop thread only.
 *
 * Not undone: loaded kernel modules, and tables of plugins that use nftables natively (portmap from 1.6,
 * bridge from 1.7: "inet cni_hostport", "inet cni_plugins_masquerade").
 */
#ifndef CNI_UNDO_H
#define CNI_UNDO_H
#include "cni/cni.h"
#include "cni/host/iptables.h"

struct cni_undo {
    struct op op;
    /* private */
    struct cni *c;
    struct cni_iptables rules;
    json_t *record; /* being recorded or undone */
    struct err first;
    bool undoing;
};

#define CNI_UNDO_DEADLINE_MS 60000 /* iptables may wait while other processes hold the xtables lock */

void cni_undo_record_start(struct cni_undo *u, struct cni *c, op_done_fn done, void *owner);
void cni_undo_start(struct cni_undo *u, struct cni *c, op_done_fn done, void *owner);
/* True if the link existed according to the record, so it is not ours to remove. */
bool cni_undo_link_existed(const struct cni *c, const char *name);
#endif
