/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leases - at each start, makes the reserved addresses match those of existing pods. Released are addresses
 * that host-local (the IPAM plugin whose state is below the state folder) assigned to a sandbox unknown to
 * pods and cached results. They remain after a power failure that lost the result's file, or if that was
 * damaged, and would be lost forever. Reserved again is the address of a running pod whose file is missing or
 * names another one: it would be assigned a second time.
 *
 *     <state>/cni/networks/<network>/<address>     first line: container id, second: interface
 *
 * `alone`: at the start, when plugins of an earlier run were killed and none of this run has started: a file
 * without id was truncated, and is not just being written. Loop thread only; reads a small file per pod.
 */
#ifndef AGENT_POD_SANDBOX_LEASES_H
#define AGENT_POD_SANDBOX_LEASES_H
#include "agent/pod/core/pod.h"
#include "cni/strays.h"

/* Sandboxes without owner, which may have more than an address, are added to `lost`, for a DEL. Failed: the
 * first read or change that failed and may succeed later, or that concerns the address of a running pod; the
 * rest was done; call it again. *ret_stays: the first address without use that could not be read or released
 * and will not be by a retry (a folder with such a name, a read-only file system); ERR_OK if there is none.
 * It does not change if the sweep could not begin. */
enum err_code leases_sweep(struct node *n, bool alone, struct cni_stray_list *lost, struct err *ret_stays,
                           struct err *e) MUST_CHECK;
#endif
