/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nft - what iptables-nft leaves in nf_tables: tables "nat" and "filter" of ip and ip6 with built-in chains
 * that hold nothing.  iptables itself cannot remove a table; nf_tables can, and refuses in the kernel when
 * something is in it (NLM_F_NONREC), so there is no moment between looking and removing.  Netlink in the
 * network namespace of the calling thread; synchronous, local.  Kernels without nf_tables have nothing to
 * list.
 */
#ifndef CNI_NFT_H
#define CNI_NFT_H
#include "base/error.h"
#include "cni/strs.h"

/* "ip nat" for each table and "ip nat PREROUTING" for each chain of the families ip and ip6. */
enum err_code cni_nft_list(struct strs *ret, struct err *e) MUST_CHECK;

/*
 * Removes what is not in `before` (from cni_nft_list): empty built-in chains with policy accept, and tables
 * nat and filter without any content.  What is in use stays and is no error.
 */
enum err_code cni_nft_remove_empty(const struct strs *before, struct err *e) MUST_CHECK;
#endif
