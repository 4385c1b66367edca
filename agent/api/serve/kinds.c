/* SPDX-License-Identifier: Apache-2.0 */
/* The server's support of each kind: its verbs and subresources. */
#include "agent/api/serve/internal.h"

#include <string.h>

#define SUB(name_, kind_, verbs_, ...)                                                                       \
    {                                                                                                        \
        .name = (name_), .kind = (kind_), .verbs = (verbs_), __VA_ARGS__                                     \
    }
#define STREAM (API_VERB_CREATE | API_VERB_GET) /* by POST (SPDY) and GET (WebSocket) */

static const struct api_subresource pod_subs[] = {
    SUB("attach", "PodAttachOptions", STREAM),
    SUB("ephemeralcontainers", "Pod", API_VERBS_EDIT),
    SUB("eviction", "Eviction", API_VERB_CREATE, .group = "policy", .version = "v1"),
    SUB("exec", "PodExecOptions", STREAM),
    SUB("log", "Pod", API_VERB_GET),
    SUB("portforward", "PodPortForwardOptions", STREAM),
    SUB("resize", "Pod", API_VERBS_EDIT),
    SUB("status", "Pod", API_VERB_GET),
    { 0 },
};

#define STATUS_OF(kind) SUB("status", kind, API_VERB_GET)
#define SCALE SUB("scale", "Scale", API_VERBS_EDIT, .group = "autoscaling", .version = "v1")
static const struct api_subresource namespace_subs[] = { STATUS_OF("Namespace"), { 0 } };
static const struct api_subresource node_subs[] = { STATUS_OF("Node"), { 0 } };
static const struct api_subresource claim_subs[] = { STATUS_OF("PersistentVolumeClaim"), { 0 } };
static const struct api_subresource volume_subs[] = { STATUS_OF("PersistentVolume"), { 0 } };
static const struct api_subresource service_subs[] = { STATUS_OF("Service"), { 0 } };
static const struct api_subresource daemon_set_subs[] = { STATUS_OF("DaemonSet"), { 0 } };
static const struct api_subresource deployment_subs[] = { SCALE, STATUS_OF("Deployment"), { 0 } };
static const struct api_subresource replica_set_subs[] = { SCALE, STATUS_OF("ReplicaSet"), { 0 } };
static const struct api_subresource stateful_set_subs[] = { SCALE, STATUS_OF("StatefulSet"), { 0 } };
static const struct api_subresource job_subs[] = { STATUS_OF("Job"), { 0 } };
static const struct api_subresource cron_job_subs[] = { STATUS_OF("CronJob"), { 0 } };

/* Kinds that are not here have all verbs and no subresources. */
static const struct api_service services[API_KINDS] = {
    [API_KIND_EVENT] = { API_VERBS_READ },
    [API_KIND_NAMESPACE] = { API_VERBS_ALL & ~(unsigned)API_VERB_DELETECOLLECTION, namespace_subs },
    [API_KIND_NODE] = { API_VERBS_READ | API_VERB_PATCH | API_VERB_UPDATE, node_subs },
    [API_KIND_CLAIM] = { API_VERBS_ALL, claim_subs },
    [API_KIND_PERSISTENT_VOLUME] = { API_VERBS_ALL, volume_subs },
    [API_KIND_POD] = { API_VERBS_ALL, pod_subs },
    [API_KIND_SERVICE] = { API_VERBS_ALL, service_subs },
    [API_KIND_DAEMON_SET] = { API_VERBS_ALL, daemon_set_subs },
    [API_KIND_DEPLOYMENT] = { API_VERBS_ALL, deployment_subs },
    [API_KIND_REPLICA_SET] = { API_VERBS_ALL, replica_set_subs },
    [API_KIND_STATEFUL_SET] = { API_VERBS_ALL, stateful_set_subs },
    [API_KIND_NEW_EVENT] = { API_VERBS_READ },
    [API_KIND_SELF_REVIEW] = { API_VERB_CREATE },
    [API_KIND_ACCESS_REVIEW] = { API_VERB_CREATE },
    [API_KIND_RULES_REVIEW] = { API_VERB_CREATE },
    [API_KIND_CRON_JOB] = { API_VERBS_ALL, cron_job_subs },
    [API_KIND_JOB] = { API_VERBS_ALL, job_subs },
    [API_KIND_LEASE] = { API_VERBS_READ },
    [API_KIND_NODE_METRICS] = { API_VERB_GET | API_VERB_LIST },
    [API_KIND_POD_METRICS] = { API_VERB_GET | API_VERB_LIST },
};

const struct api_service *api_service_of(const struct api_kind_row *kind)
{
    static const struct api_service ordinary = { .verbs = API_VERBS_ALL };

    return services[kind->id].verbs != 0 ? &services[kind->id] : &ordinary;
}

const struct api_subresource *api_subresource_find(const struct api_kind_row *kind, const char *name)
{
    for (const struct api_subresource *s = api_service_of(kind)->subresources; s != NULL && s->name != NULL;
         s++) {
        if (strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}
