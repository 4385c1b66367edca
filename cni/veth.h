/* SPDX-License-Identifier: Apache-2.0 */
/*
 * veth - the host ends of an attachment according to its cached result: links of kind veth outside the
 * sandbox. Such an end exists as long as the pod's end does, wherever a privileged pod has moved it and
 * however it has renamed it: KubeVirt renames eth0, programs that create their own sandboxes move it there. A
 * DEL finds it only by its name in the pod's namespace. Synchronous.
 */
#ifndef CNI_VETH_H
#define CNI_VETH_H
#include "cni/internal.h"

/* Removes the host ends that a DEL left, and thereby the other ends; links that other results name are kept.
 */
void cni_veth_remove(struct cni *c, const struct cni_entry *entry);
#endif
