/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leases - the addresses that are taken are those that pods have, again, at each start.  Given back is what
 * host-local (the IPAM plugin whose state we keep below the state folder) gave to a sandbox that no pod and
 * no cached result knows.  Such remain after a power cut that took the result's file, or where that was
 * damaged; each would be an address less, for ever. Taken again is the address of a running pod whose file is
 * gone or says another's name: it would be given out a second time.
 *
 *     <state>/cni/networks/<network>/<address>     first line: container id, second: interface
 *
 * `alone`: at the start, when plugins of an earlier run have been killed and none of this one has begun: a
 * file that names no id was cut off, and is not just being written.  Loop thread only; a small file for each
 * pod is read.
 */
#ifndef AGENT_POD_SANDBOX_LEASES_H
#define AGENT_POD_SANDBOX_LEASES_H
#include "agent/pod/core/pod.h"
#include "cni/strays.h"

/* Sandboxes of nobody, of whom there may be more than an address, are added to `lost`, to be DELed. */
void leases_sweep(struct node *n, bool alone, struct cni_stray_list *lost);
#endif
