/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects - objects that pods refer to, followed while they do.
 *
 * ConfigMaps, Secrets and other single objects: a watch of one object each, from the first `need` to the last
 * `drop`, as kubelet's watch based managers have it (pkg/kubelet/util/manager). Claims, volumes and their
 * attachments may only be read by a node: one GET for each `need` and `look`. ClusterTrustBundles are chosen
 * by name or by signer: a watch with that field selector each, of certificates.k8s.io/v1beta1 or, where that
 * is not, v1. Services, RuntimeClasses and CSIDrivers are watched whole, as kubelet does, but only from the
 * first pod on. Nodes may read no PriorityClass: the apiserver wrote a pod's priority into its spec.
 *
 * At most OBJECTS_MAX are followed; more are `denied` with 429.
 */
#ifndef AGENT_KUBE_SYNC_OBJECTS_H
#define AGENT_KUBE_SYNC_OBJECTS_H
#include <stdbool.h>
#include <stddef.h>

#define OBJECTS_MAX 2048
#define OBJECTS_SERVICES_MAX 20000
#define OBJECTS_TRUST_MAX 1000 /* ClusterTrustBundles of one signer; others are left out, with a warning */

struct object_kind {
    const char *kind, *prefix, *plural;
    bool namespaced;
    enum { OBJECT_WATCHED, OBJECT_READ, OBJECT_CHOSEN, OBJECT_WHOLE, OBJECT_REFUSED } how;
};

const struct object_kind *object_kind_of(const char *kind); /* NULL: unknown */
/* "/api/v1/namespaces/default/configmaps"; malloc'ed; NULL: no memory. `name`: NULL or, to be read, its own
 * path. */
char *object_path(const struct object_kind *k, const char *namespace_, const char *name);
#endif
