/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strays - attachments that no cache entry knows any more, found by what they left.
 *
 * An entry can be lost (damaged, a power cut, an emptied state folder) while rules and links of its
 * attachment remain.  portmap and ipMasq (plugins 0.9 to 1.5, iptables backend) write network and container
 * id into the comments of their rules; out of these an entry is made again, marked incomplete, with the
 * network's list of today and the ports and addresses that the rules tell.  A DEL then undoes it like any
 * other: portmap wants the ports, firewall the addresses, bandwidth finds its ifb by the names, ipMasq is
 * masq.h's.
 *
 * Whose a container is, its id must say: other programs on the machine may use a network of the same name.
 * Not found: rules of plugins that speak nftables natively (portmap from 1.6, bridge from 1.7; their GC does
 * that); rules of the other iptables after its alternative was switched (legacy, nft), which no plugin's DEL
 * finds either: who switches drains the node before, or reboots it; and an ifb of which there is nothing but
 * its name: that is told and left alone.
 */
#ifndef CNI_STRAYS_H
#define CNI_STRAYS_H
#include "base/process.h"
#include "cni/cni.h"
#include "cni/strs.h"

#define CNI_STRAYS_MAX 1024     /* containers; a node has some hundred pods */
#define CNI_STRAY_PORTS_MAX 256 /* of one container that are remembered: portmap removes all for one */
#define CNI_STRAYS_DEADLINE_MS 10000

struct cni_stray {
    char *network, *id;
    char dnat[32];         /* chain of its ports; "": none seen */
    struct strs addresses; /* without prefix length, each once */
    json_t *ports;         /* as portMappings; NULL: none */
    bool certain;          /* ours whatever its id is */
};

struct cni_stray_list {
    struct cni_stray *v;
    size_t n;
};

/* Adds what the text of iptables-save tells; rules of others are passed over.  Pure. */
enum err_code cni_strays_parse(struct cni_stray_list *list, const char *save, struct err *e) MUST_CHECK;
/* One that the caller knows by its address (without prefix length); false: no names, too many, or no memory.
 */
bool cni_strays_add(struct cni_stray_list *list, const char *network, const char *id, const char *address);
void cni_strays_done(struct cni_stray_list *list);

struct cni_strays {
    struct op op;
    size_t n_adopted; /* entries made; valid in done */
    char
        links[200]; /* ifb devices that belong to no attachment that is known here, "": none; valid in done */
    /* private */
    struct cni *c;
    struct proc proc;
    struct cni_stray_list found;
    char prefix[65], ifname[16];
};

/*
 * Makes entries for the containers whose id begins with `prefix`, and for `lost` (taken), where there is
 * none; the caller DELs those that nobody owns.  Operations that are started meanwhile wait until it is over.
 * Where some are under way already the rules are not looked at: they and the entries would be of different
 * moments.
 */
void cni_strays_start(struct cni_strays *s, struct cni *c, const char *prefix, const char *ifname,
                      struct cni_stray_list *lost, op_done_fn done, void *owner);

#endif
