/* SPDX-License-Identifier: Apache-2.0 */
/*
 * veth - the host's ends of an attachment, as its cached result names them: links of the kind veth outside
 * the sandbox.  Such an end is there as long as the pod's is, wherever a pod with the right to do so has put
 * that and whatever it calls it now: KubeVirt renames eth0, programs that make sandboxes of their own move it
 * into them.  A DEL finds it by its name in the pod's namespace only.  Synchronous.
 */
#ifndef CNI_VETH_H
#define CNI_VETH_H
#include "cni/internal.h"

/* Removes those that a DEL left, and the other ends with them; not those that other results name. */
void cni_veth_remove(struct cni *c, const struct cni_entry *entry);
#endif
