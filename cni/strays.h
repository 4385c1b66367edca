/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strays - finds attachments without a cache entry by their remaining rules and links.
 *
 * An entry can be lost (damage, power failure, emptied state folder) while rules and links of its attachment
 * remain. portmap and ipMasq (plugins 0.9 to 1.5, iptables backend) write network and container id in the
 * comments of their rules; from these an entry is reconstructed, marked incomplete, with the network's
 * current list and the ports and addresses found in the rules. A DEL then undoes it like any other: portmap
 * needs the ports, firewall the addresses, bandwidth finds its ifb by the names, ipMasq is handled by masq.h.
 *
 * The container's id must identify it as ours, because other programs may use a network of the same name. Not
 * found: native nftables rules (portmap from 1.6, bridge from 1.7; their GC removes them); rules of the other
 * iptables after its alternative was switched (legacy, nft), which no plugin's DEL finds either: drain the
 * node before switching, or reboot it; and an ifb device without any rule: it is logged and not removed.
 */
#ifndef CNI_STRAYS_H
#define CNI_STRAYS_H
#include "base/strs.h"
#include "cni/cni.h"
#include "cni/host/iptables.h"

#define CNI_STRAYS_MAX 1024     /* containers; a node has a few hundred pods */
#define CNI_STRAY_PORTS_MAX 256 /* remembered per container: portmap removes all for one */
#define CNI_STRAYS_DEADLINE_MS 10000

struct cni_stray {
    char *network, *id;
    char dnat[32];         /* the chain of its ports; "": none found */
    struct strs addresses; /* without prefix length, no duplicates */
    json_t *ports;         /* as portMappings; may be NULL */
    bool certain;          /* ours, regardless of its id */
};

struct cni_stray_list {
    struct cni_stray *v;
    size_t n;
};

/* Adds strays found in the output of iptables-save; ignores foreign rules. Pure. */
enum err_code cni_strays_parse(struct cni_stray_list *list, const char *save, struct err *e) MUST_CHECK;
/* Adds a stray that the caller identified by its address (without prefix length); false: invalid names, too
 * many, or out of memory. */
bool cni_strays_add(struct cni_stray_list *list, const char *network, const char *id, const char *address);
void cni_strays_done(struct cni_stray_list *list);

struct cni_strays {
    struct op op;
    size_t n_adopted; /* number of entries created; valid in done */
    /* ifb devices that belong to no known attachment, "": none; valid in done */
    char links[200];
    /* private */
    struct cni *c;
    struct cni_iptables rules;
    struct cni_stray_list found;
    char prefix[65], ifname[16];
};

/* Creates entries for containers whose id begins with `prefix`, and for `lost` (owned by the operation),
 * unless they have one; the caller then calls DEL for entries without an owner. Operations started meanwhile
 * wait for the end of this one. If operations are already running, the rules are not examined, because they
 * would not match the entries. */
void cni_strays_start(struct cni_strays *s, struct cni *c, const char *prefix, const char *ifname,
                      struct cni_stray_list *lost, op_done_fn done, void *owner);

#endif
