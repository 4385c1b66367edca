/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taints - the effect of the node's labels and taints on workloads: whether a DaemonSet has a pod here, and
 * when pods of workloads end because of NoExecute taints. A pod without a toleration ends at once, a pod with
 * tolerationSeconds after that time, counted from the taint, or from the pod's start if that is later.
 * pkg/controller/tainteviction. Pods of the manifest folder stay, as kubelet's static pods do.
 */
#include "agent/pod/core/events.h"
#include "agent/pod/core/node_labels.h"
#include "agent/pod/core/node_written.h"
#include "agent/workload/internal.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- DaemonSets ---- */

/* DaemonSet: a new pod tolerates all taints, one that is there stays with those of NoSchedule
 * (pkg/controller/daemon: NodeShouldRunDaemonPod). What Kubernetes adds for its pods is in the expansion. */
static bool tolerates_node(const struct workloads *w, const struct workload *one)
{
    size_t n_taints = 0;
    const struct api_taint *taints = node_taints(w->o.node, &n_taints);
    const struct api_pod_spec *spec = &one->object->workload->pods.pod->spec;
    bool runs = false;

    for (size_t i = 0; i < one->n_seen; i++)
        runs = runs || one->seen[i].kept;
    for (size_t i = 0; i < n_taints; i++)
        if (!api_pod_tolerates(spec, &taints[i]) && strcmp(taints[i].effect, "PreferNoSchedule") != 0 &&
            !api_daemon_tolerates(&taints[i]) && !(runs && strcmp(taints[i].effect, "NoSchedule") == 0))
            return false;
    return true;
}

bool workload_fits(const struct workloads *w, const struct workload *one)
{
    const struct node *n = w->o.node;
    const struct api_pod_spec *spec = &one->object->workload->pods.pod->spec;
    struct api_kvs labels = { 0 };
    mem_auto struct api_kv *v = labels.v = node_labels(n, &labels.n);

    return one->kind != API_KIND_DAEMON_SET || v == NULL ||
           (api_pod_fits_node(spec, n->o.node_name, &labels) && tolerates_node(w, one));
}

/* ---- NoExecute ---- */

/* How long it may stay, in ms; below 0: for ever. */
static int64_t stays_ms(const struct node *n, const struct pod *p)
{
    size_t n_taints = 0;
    const struct api_taint *taints = node_taints(n, &n_taints);
    int64_t least = -1;

    for (size_t i = 0; i < n_taints; i++) {
        const int64_t tolerated = strcmp(taints[i].effect, "NoExecute") == 0
                                      ? api_pod_stays_seconds(&p->api->spec, &taints[i])
                                      : INT64_MAX,
                      since = node_taint_since_ns(n, i),
                      from = since > p->start_time_ns ? since : p->start_time_ns;
        int64_t rest;

        if (tolerated > INT64_MAX / WORKLOAD_SECOND_NS / 2)
            continue;
        rest = (from + tolerated * WORKLOAD_SECOND_NS - clock_wall_ns()) / WORKLOAD_MS + 1;
        if (tolerated == 0 || rest < 0)
            rest = 0;
        if (least < 0 || rest < least)
            least = rest;
    }
    return least;
}

void taints_step(struct workloads *w)
{
    const struct node *n = w->o.node;

    if (n->written == NULL)
        return;
    pods_each (n, p) {
        const struct api_meta *meta = &p->api->meta;
        const struct api_pod *kept = src_store_pod(w->store, API_FROM_FOLDER, meta->namespace, meta->name);
        int64_t ms;

        /* One that was not admitted waits for the node. */
        if (p->api->owner_uid == NULL || !p->admitted || p->state == POD_TERMINATED || kept == NULL ||
            !str_eq(kept->owner_uid, p->api->owner_uid))
            continue;
        ms = stays_ms(n, p);
        if (ms > 0)
            workloads_look_again(w, ms);
        if (ms != 0)
            continue;
        log_info("a taint of the node ends a pod", F_STR("pod", p->key), F_STR("podUID", p->uid));
        pod_event((struct pod *)(uintptr_t)p, NULL, false, "TaintManagerEviction",
                  "Marking for deletion Pod %s", p->key);
        src_store_remove(w->store, API_FROM_FOLDER, API_KIND_POD, meta->namespace, meta->name);
    }
}
