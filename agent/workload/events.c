/* SPDX-License-Identifier: Apache-2.0 */
/* events - events of a workload, in the words of Kubernetes' controllers; `kubectl describe` shows them. */
#include "agent/pod/core/events.h"

#include "agent/workload/internal.h"

#include <stdarg.h>

static const char *controller_of(enum api_kind kind)
{
    switch (kind) {
    case API_KIND_DEPLOYMENT:
        return "deployment-controller";
    case API_KIND_REPLICA_SET:
        return "replicaset-controller";
    case API_KIND_STATEFUL_SET:
        return "statefulset-controller";
    case API_KIND_DAEMON_SET:
        return "daemonset-controller";
    case API_KIND_CRON_JOB:
        return "cronjob-controller";
    default:
        return "job-controller";
    }
}

void workload_event(struct workloads *w, const struct workload *one, bool warning, const char *reason,
                    const char *fmt, ...)
{
    char text[1024]; /* an apiserver's limit for a message of events.k8s.io */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    object_event(w->o.node, controller_of(one->kind), one->kind, &one->object->meta, one->uid, warning,
                 reason, text);
}

/* ---- pods ---- */

void workload_event_pod(struct workloads *w, const struct workload *one, const struct api_pod *pod,
                        bool created)
{
    const char *reason = created ? "SuccessfulCreate" : "SuccessfulDelete";

    if (one->kind == API_KIND_STATEFUL_SET)
        workload_event(w, one, false, reason, "%s Pod %s in StatefulSet %s successful",
                       created ? "create" : "delete", pod->meta.name, one->object->meta.name);
    else
        workload_event(w, one, false, reason, "%s pod: %s", created ? "Created" : "Deleted", pod->meta.name);
}

void workload_event_failed(struct workloads *w, const struct workload *one, const char *pod, const char *why)
{
    if (one->kind == API_KIND_STATEFUL_SET)
        workload_event(w, one, true, "FailedCreate", "create Pod %s in StatefulSet %s failed error: %s", pod,
                       one->object->meta.name, why);
    else
        workload_event(w, one, true, "FailedCreate", "Error creating: %s", why);
}

/* ---- ReplicaSets of a Deployment ---- */

void workload_event_scaled(struct workloads *w, const struct workload *one)
{
    for (const struct workload *rev = one->revisions; rev != NULL; rev = rev->next) {
        const unsigned was = rev->counts.pods, is = was + rev->revision->made - rev->revision->removed;

        if (is != was)
            workload_event(w, one, false, "ScalingReplicaSet", "Scaled %s replica set %s from %u to %u",
                           is > was ? "up" : "down", rev->object->meta.name, was, is);
    }
}
