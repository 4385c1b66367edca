/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nft - removes the leftovers of iptables-nft in nf_tables: tables "nat" and "filter" of ip and ip6 with
 * empty built-in chains. iptables cannot remove a table; nf_tables can, and the kernel refuses if it is not
 * empty (NLM_F_NONREC), so there is no race between checking and removing. Netlink in the network namespace
 * of the calling thread; synchronous, local. Without nf_tables the list is empty.
 */
#ifndef CNI_HOST_NFT_H
#define CNI_HOST_NFT_H
#include "base/error.h"
#include "base/strs.h"

/* "ip nat" for each table and "ip nat PREROUTING" for each chain of the families ip and ip6. */
enum err_code cni_nft_list(struct strs *ret, struct err *e) MUST_CHECK;

/* Removes entries that are not in `before` (from cni_nft_list): empty built-in chains with policy accept, and
 * empty tables nat and filter. Entries in use are kept without an error. */
enum err_code cni_nft_remove_empty(const struct strs *before, struct err *e) MUST_CHECK;
#endif
