/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of kinds, and finding one in it. Discovery, OpenAPI, tables and paths come from it. */
#include "agent/api/serve/internal.h"

#include "agent/api/schema/schema.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define SUB(name_, kind_, verbs_, ...)                                                                       \
    {                                                                                                        \
        .name = (name_), .kind = (kind_), .verbs = (verbs_), __VA_ARGS__                                     \
    }
#define KIND(group_, kind_, plural_, singular_, ...)                                                         \
    {                                                                                                        \
        .group = (group_), .version = "v1", .kind = (kind_), .plural = (plural_), .singular = (singular_),   \
        __VA_ARGS__                                                                                          \
    }
#define NAMESPACED .namespaced = true
#define IN_ALL .in_all = true
#define ACTED_ON .acted_on = true
#define SHORT(name_) .short_name = (name_)
#define VERBS(verbs_) .verbs = (verbs_)
#define SCHEMA_OF(schema_) .schema = &(schema_)
#define SUBS(subs_) .subresources = (subs_)
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

/* The order of groups is kube-apiserver's (by priority). */
const struct api_kind_row api_kinds[] = {
    KIND("", "ConfigMap", "configmaps", "configmap", SHORT("cm"), NAMESPACED, ACTED_ON,
         SCHEMA_OF(api_schema_config_map), VERBS(API_VERBS_ALL)),
    KIND("", "Endpoints", "endpoints", "endpoints", SHORT("ep"), NAMESPACED, SCHEMA_OF(api_schema_endpoints),
         VERBS(API_VERBS_ALL)),
    KIND("", "Event", "events", "event", SHORT("ev"), NAMESPACED, ACTED_ON, VERBS(API_VERBS_READ)),
    KIND("", "LimitRange", "limitranges", "limitrange", SHORT("limits"), NAMESPACED,
         SCHEMA_OF(api_schema_shown), VERBS(API_VERBS_ALL)),
    KIND("", "Namespace", "namespaces", "namespace", SHORT("ns"), SCHEMA_OF(api_schema_shown_cluster),
         VERBS(API_VERBS_ALL & ~(unsigned)API_VERB_DELETECOLLECTION), SUBS(namespace_subs)),
    KIND("", "Node", "nodes", "node", SHORT("no"), ACTED_ON, VERBS(API_VERBS_READ), SUBS(node_subs)),
    KIND("", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", SHORT("pvc"),
         NAMESPACED, ACTED_ON, SCHEMA_OF(api_schema_claim), VERBS(API_VERBS_ALL), SUBS(claim_subs)),
    KIND("", "PersistentVolume", "persistentvolumes", "persistentvolume", SHORT("pv"),
         SCHEMA_OF(api_schema_shown_cluster), VERBS(API_VERBS_ALL), SUBS(volume_subs)),
    KIND("", "Pod", "pods", "pod", SHORT("po"), NAMESPACED, IN_ALL, ACTED_ON, SCHEMA_OF(api_schema_pod),
         VERBS(API_VERBS_ALL), SUBS(pod_subs)),
    KIND("", "ResourceQuota", "resourcequotas", "resourcequota", SHORT("quota"), NAMESPACED,
         SCHEMA_OF(api_schema_shown), VERBS(API_VERBS_ALL)),
    KIND("", "Secret", "secrets", "secret", NAMESPACED, ACTED_ON, SCHEMA_OF(api_schema_secret),
         VERBS(API_VERBS_ALL)),
    KIND("", "ServiceAccount", "serviceaccounts", "serviceaccount", SHORT("sa"), NAMESPACED,
         SCHEMA_OF(api_schema_service_account), VERBS(API_VERBS_ALL)),
    KIND("", "Service", "services", "service", SHORT("svc"), NAMESPACED, IN_ALL, SCHEMA_OF(api_schema_shown),
         VERBS(API_VERBS_ALL), SUBS(service_subs)),
    KIND("apps", "DaemonSet", "daemonsets", "daemonset", SHORT("ds"), NAMESPACED, IN_ALL, ACTED_ON,
         SCHEMA_OF(api_schema_daemon_set), VERBS(API_VERBS_ALL), SUBS(daemon_set_subs)),
    KIND("apps", "Deployment", "deployments", "deployment", SHORT("deploy"), NAMESPACED, IN_ALL, ACTED_ON,
         SCHEMA_OF(api_schema_deployment), VERBS(API_VERBS_ALL), SUBS(deployment_subs)),
    KIND("apps", "ReplicaSet", "replicasets", "replicaset", SHORT("rs"), NAMESPACED, IN_ALL, ACTED_ON,
         SCHEMA_OF(api_schema_replica_set), VERBS(API_VERBS_ALL), SUBS(replica_set_subs)),
    KIND("apps", "StatefulSet", "statefulsets", "statefulset", SHORT("sts"), NAMESPACED, IN_ALL, ACTED_ON,
         SCHEMA_OF(api_schema_stateful_set), VERBS(API_VERBS_ALL), SUBS(stateful_set_subs)),
    KIND("events.k8s.io", "Event", "events", "event", SHORT("ev"), NAMESPACED, ACTED_ON,
         VERBS(API_VERBS_READ), .stored = "/v1/Event"),
    KIND("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview", ACTED_ON,
         VERBS(API_VERB_CREATE)),
    KIND("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
         "selfsubjectaccessreview", ACTED_ON, VERBS(API_VERB_CREATE)),
    KIND("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews",
         "selfsubjectrulesreview", ACTED_ON, VERBS(API_VERB_CREATE)),
    { .group = "autoscaling",
      .version = "v2",
      .kind = "HorizontalPodAutoscaler",
      .plural = "horizontalpodautoscalers",
      .singular = "horizontalpodautoscaler",
      SHORT("hpa"),
      NAMESPACED,
      IN_ALL,
      SCHEMA_OF(api_schema_shown),
      VERBS(API_VERBS_ALL) },
    KIND("batch", "CronJob", "cronjobs", "cronjob", SHORT("cj"), NAMESPACED, IN_ALL, ACTED_ON,
         SCHEMA_OF(api_schema_cron_job), VERBS(API_VERBS_ALL), SUBS(cron_job_subs)),
    KIND("batch", "Job", "jobs", "job", NAMESPACED, IN_ALL, ACTED_ON, SCHEMA_OF(api_schema_job),
         VERBS(API_VERBS_ALL), SUBS(job_subs)),
    KIND("networking.k8s.io", "IngressClass", "ingressclasses", "ingressclass",
         SCHEMA_OF(api_schema_shown_cluster), VERBS(API_VERBS_ALL)),
    KIND("networking.k8s.io", "Ingress", "ingresses", "ingress", SHORT("ing"), NAMESPACED,
         SCHEMA_OF(api_schema_shown), VERBS(API_VERBS_ALL)),
    KIND("networking.k8s.io", "NetworkPolicy", "networkpolicies", "networkpolicy", SHORT("netpol"),
         NAMESPACED, SCHEMA_OF(api_schema_shown), VERBS(API_VERBS_ALL)),
    KIND("policy", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget", SHORT("pdb"),
         NAMESPACED, SCHEMA_OF(api_schema_shown), VERBS(API_VERBS_ALL)),
    KIND("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding",
         SCHEMA_OF(api_schema_cluster_role_binding), VERBS(API_VERBS_ALL)),
    KIND("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", "clusterrole",
         SCHEMA_OF(api_schema_cluster_role), VERBS(API_VERBS_ALL)),
    KIND("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", "rolebinding", NAMESPACED,
         SCHEMA_OF(api_schema_role_binding), VERBS(API_VERBS_ALL)),
    KIND("rbac.authorization.k8s.io", "Role", "roles", "role", NAMESPACED, SCHEMA_OF(api_schema_role),
         VERBS(API_VERBS_ALL)),
    KIND("storage.k8s.io", "StorageClass", "storageclasses", "storageclass", SHORT("sc"),
         SCHEMA_OF(api_schema_storage_class), VERBS(API_VERBS_ALL)),
    KIND("scheduling.k8s.io", "PriorityClass", "priorityclasses", "priorityclass", SHORT("pc"), ACTED_ON,
         SCHEMA_OF(api_schema_priority_class), VERBS(API_VERBS_ALL)),
    KIND("coordination.k8s.io", "Lease", "leases", "lease", NAMESPACED, VERBS(API_VERBS_READ)),
    KIND("node.k8s.io", "RuntimeClass", "runtimeclasses", "runtimeclass", ACTED_ON,
         SCHEMA_OF(api_schema_runtime_class), VERBS(API_VERBS_ALL)),
    { .group = "metrics.k8s.io",
      .version = "v1beta1",
      .kind = "NodeMetrics",
      .plural = "nodes",
      .singular = "node",
      ACTED_ON,
      VERBS(API_VERB_GET | API_VERB_LIST) },
    { .group = "metrics.k8s.io",
      .version = "v1beta1",
      .kind = "PodMetrics",
      .plural = "pods",
      .singular = "pod",
      NAMESPACED,
      ACTED_ON,
      VERBS(API_VERB_GET | API_VERB_LIST) },
    { 0 },
};

const struct api_kind_row *api_kind_of_resource(const char *group, const char *version, const char *plural)
{
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++) {
        if (strcmp(k->plural, plural) == 0 && strcmp(k->group, group) == 0 &&
            strcmp(k->version, version) == 0)
            return k;
    }
    return NULL;
}

const struct api_kind_row *api_kind_of_object(const char *api_version, const char *kind)
{
    const char *slash = strchr(api_version, '/');
    const char *version = slash == NULL ? api_version : slash + 1;
    const size_t n = slash == NULL ? 0 : (size_t)(slash - api_version);

    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++) {
        if (strcmp(k->kind, kind) == 0 && strcmp(k->version, version) == 0 && strlen(k->group) == n &&
            strncmp(k->group, api_version, n) == 0)
            return k;
    }
    return NULL;
}

const struct api_subresource *api_subresource_find(const struct api_kind_row *kind, const char *name)
{
    for (const struct api_subresource *s = kind->subresources; s != NULL && s->name != NULL; s++) {
        if (strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

/* ---- paths ---- */

enum { PARTS_MAX = 9, PART_SIZE = 254 }; /* /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUB */

struct parts {
    char v[PARTS_MAX][PART_SIZE];
    size_t n;
};

static int hex(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);

    return at == NULL ? -1 : (int)(at - digits);
}

/* One part of the path, decoded. False: too long, a broken %XX, a NUL or a slash in it, no UTF-8. */
static bool decode_part(const char *text, size_t n, char ret[PART_SIZE])
{
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%') {
            const int high = i + 2 < n ? hex(text[i + 1]) : -1, low = i + 2 < n ? hex(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
            if (c == '\0' || c == '/')
                return false;
        }
        if (used + 1 >= PART_SIZE)
            return false;
        ret[used++] = c;
    }
    ret[used] = '\0';
    return used > 0 && utf8_is_valid(ret, used);
}

static bool split_path(const char *path, struct parts *ret)
{
    ret->n = 0;
    while (*path == '/') {
        const size_t n = strcspn(path + 1, "/");
        if (n == 0 && path[1] == '\0')
            break; /* a slash at the end */
        if (ret->n == PARTS_MAX || !decode_part(path + 1, n, ret->v[ret->n]))
            return false;
        ret->n++;
        path += 1 + n;
    }
    return *path == '\0' || path[1] == '\0';
}

/* After the group and the version: [namespaces NS] RESOURCE [NAME [SUB]]. */
static bool parse_resource(const struct parts *p, size_t at, const char *group, const char *version,
                           struct api_target *ret)
{
    if (at + 2 < p->n && strcmp(p->v[at], "namespaces") == 0) {
        const struct api_kind_row *inner = api_kind_of_resource(group, version, p->v[at + 2]);
        if (inner != NULL && inner->namespaced) {
            if (snprintf(ret->namespace, sizeof(ret->namespace), "%s", p->v[at + 1]) >=
                (int)sizeof(ret->namespace))
                return false;
            at += 2;
        }
    }
    if (at >= p->n || p->n - at > 3)
        return false;
    ret->kind = api_kind_of_resource(group, version, p->v[at]);
    if (ret->kind == NULL)
        return false;
    if (at + 1 < p->n) {
        if (ret->kind->namespaced && ret->namespace[0] == '\0')
            return false;
        strcpy(ret->name, p->v[at + 1]);
    }
    if (at + 2 < p->n)
        ret->sub = api_subresource_find(ret->kind, p->v[at + 2]);
    return at + 2 >= p->n || ret->sub != NULL;
}

bool api_target_parse(const char *path, struct api_target *ret)
{
    struct api_target t = { 0 };
    struct parts p;

    if (!split_path(path, &p) || p.n < 3)
        return false;
    if (strcmp(p.v[0], "api") == 0
            ? !parse_resource(&p, 2, "", p.v[1], &t)
            : strcmp(p.v[0], "apis") != 0 || !parse_resource(&p, 3, p.v[1], p.v[2], &t))
        return false;
    *ret = t;
    return true;
}
