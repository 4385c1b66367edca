/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaffold - finds and removes the iptables chains that CNI plugins create once and never remove, in the
 * output of iptables-save.
 *
 *     portmap    nat     CNI-HOSTPORT-DNAT  CNI-HOSTPORT-SETMARK  CNI-HOSTPORT-MASQ
 *     firewall   filter  CNI-FORWARD  CNI-ADMIN
 *     firewall   filter  CNI-ISOLATION-STAGE-1  CNI-ISOLATION-STAGE-2   (ingressPolicy: same-bridge)
 *
 * A group is removed as a whole or not at all: it is kept if one of its chains existed before, or while it is
 * in use (a pod's rule in it, an administrator's rule, a jump from a custom chain, an existing bridge). Names
 * and rules as of plugins 0.9 to 1.5 with their iptables backend. Pure functions.
 */
#ifndef CNI_HOST_SCAFFOLD_H
#define CNI_HOST_SCAFFOLD_H
#include "base/buf.h"
#include "base/strs.h"

/* "nat CNI-HOSTPORT-DNAT", ...: the existing chains of those above. */
enum err_code cni_scaffold_find(const char *save, struct strs *ret, struct err *e) MUST_CHECK;

/* Input for iptables-restore --noflush that removes the unused groups without a chain in `before` (from
 * cni_scaffold_find); "" if there is nothing to do. Rules are removed by their exact text and chains only
 * when empty, so a rule added in the meantime makes the restore fail as a whole. */
enum err_code cni_scaffold_removal(const char *save, const struct strs *before,
                                   bool (*link_exists)(const char *name), struct buf *ret,
                                   struct err *e) MUST_CHECK;
#endif
