/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of objects: their names and aliases, and their paths on the socket. */
#include "agent/cli/client/client.h"
#include "base/codec/percent.h"

#include <string.h>

const char *const cli_node_kinds[] = { "nodes", "node", "no", NULL };
static const char *const config_map_names[] = { "configmaps", "configmap", "cm", NULL };
static const char *const secret_names[] = { "secrets", "secret", NULL };
static const char *const class_names[] = { "priorityclasses", "priorityclass", "pc", NULL };
static const char *const image_names[] = { "images", "image", NULL };
/* Workloads, then kinds that are only kept and shown. */
static const char *const deployment_names[] = { "deployments", "deployment", "deploy", NULL };
static const char *const replicaset_names[] = { "replicasets", "replicaset", "rs", NULL };
static const char *const statefulset_names[] = { "statefulsets", "statefulset", "sts", NULL };
static const char *const daemonset_names[] = { "daemonsets", "daemonset", "ds", NULL };
static const char *const job_names[] = { "jobs", "job", NULL };
static const char *const service_names[] = { "services", "service", "svc", NULL };
static const char *const serviceaccount_names[] = { "serviceaccounts", "serviceaccount", "sa", NULL };
static const char *const namespace_names[] = { "namespaces", "namespace", "ns", NULL };
static const char *const endpoint_names[] = { "endpoints", "endpoint", "ep", NULL };
static const char *const persistentvolume_names[] = { "persistentvolumes", "persistentvolume", "pv", NULL };
static const char *const storageclass_names[] = { "storageclasses", "storageclass", "sc", NULL };
static const char *const ingress_names[] = { "ingresses", "ingress", "ing", NULL };
static const char *const ingressclass_names[] = { "ingressclasses", "ingressclass", "ingressclass", NULL };
static const char *const networkpolicy_names[] = { "networkpolicies", "networkpolicy", "netpol", NULL };
static const char *const role_names[] = { "roles", "role", "role", NULL };
static const char *const rolebinding_names[] = { "rolebindings", "rolebinding", "rolebinding", NULL };
static const char *const clusterrole_names[] = { "clusterroles", "clusterrole", "clusterrole", NULL };
static const char *const clusterrolebinding_names[] = { "clusterrolebindings", "clusterrolebinding",
                                                        "clusterrolebinding", NULL };
static const char *const poddisruptionbudget_names[] = { "poddisruptionbudgets", "poddisruptionbudget", "pdb",
                                                         NULL };
static const char *const horizontalpodautoscaler_names[] = { "horizontalpodautoscalers",
                                                             "horizontalpodautoscaler", "hpa", NULL };
static const char *const resourcequota_names[] = { "resourcequotas", "resourcequota", "quota", NULL };
static const char *const limitrange_names[] = { "limitranges", "limitrange", "limits", NULL };
const char *const cli_pod_kinds[] = { "pods", "pod", "po", NULL };

static const struct cli_kind known[] = {
    { .names = cli_pod_kinds, .base = "/api/v1", .namespaced = true },
    { .names = cli_node_kinds, .base = "/api/v1" },
    { .names = config_map_names, .base = "/api/v1", .namespaced = true, .bare_list = true },
    { .names = secret_names, .base = "/api/v1", .namespaced = true },
    { .names = class_names, .base = "/apis/scheduling.k8s.io/v1" },
    { .names = image_names, .base = "" },
    { .names = deployment_names, .base = "/apis/apps/v1", .namespaced = true },
    { .names = replicaset_names, .base = "/apis/apps/v1", .namespaced = true },
    { .names = statefulset_names, .base = "/apis/apps/v1", .namespaced = true },
    { .names = daemonset_names, .base = "/apis/apps/v1", .namespaced = true },
    { .names = job_names, .base = "/apis/batch/v1", .namespaced = true },
    { .names = service_names, .base = "/api/v1", .namespaced = true },
    { .names = serviceaccount_names, .base = "/api/v1", .namespaced = true },
    { .names = namespace_names, .base = "/api/v1" },
    { .names = endpoint_names, .base = "/api/v1", .namespaced = true },
    { .names = persistentvolume_names, .base = "/api/v1" },
    { .names = storageclass_names, .base = "/apis/storage.k8s.io/v1" },
    { .names = ingress_names, .base = "/apis/networking.k8s.io/v1", .namespaced = true },
    { .names = ingressclass_names, .base = "/apis/networking.k8s.io/v1" },
    { .names = networkpolicy_names, .base = "/apis/networking.k8s.io/v1", .namespaced = true },
    { .names = role_names, .base = "/apis/rbac.authorization.k8s.io/v1", .namespaced = true },
    { .names = rolebinding_names, .base = "/apis/rbac.authorization.k8s.io/v1", .namespaced = true },
    { .names = clusterrole_names, .base = "/apis/rbac.authorization.k8s.io/v1" },
    { .names = clusterrolebinding_names, .base = "/apis/rbac.authorization.k8s.io/v1" },
    { .names = poddisruptionbudget_names, .base = "/apis/policy/v1", .namespaced = true },
    { .names = horizontalpodautoscaler_names, .base = "/apis/autoscaling/v2", .namespaced = true },
    { .names = resourcequota_names, .base = "/api/v1", .namespaced = true },
    { .names = limitrange_names, .base = "/api/v1", .namespaced = true },
    { .names = NULL },
};

bool cli_is_kind(const char *word, const char *const *kinds)
{
    size_t n = strcspn(word, "/");

    for (; *kinds != NULL; kinds++)
        if (strlen(*kinds) == n && strncmp(word, *kinds, n) == 0)
            return true;
    return false;
}

const struct cli_kind *cli_kind_find(const char *word)
{
    for (const struct cli_kind *k = known; k->names != NULL; k++)
        if (cli_is_kind(word, k->names))
            return k;
    return NULL;
}

const char *cli_resource_name(const char *word, const char *const *kinds)
{
    const char *slash = strchr(word, '/');

    if (slash == NULL)
        return word;
    return cli_is_kind(word, kinds) ? slash + 1 : NULL;
}

int cli_unknown_kind(struct cli *cli, const char *word, const char *more)
{
    buf_auto all = BUF_INIT(1024);

    for (const struct cli_kind *k = known; k->names != NULL && k->names != service_names; k++)
        buf_addf(&all, "%s%s", all.n > 0 ? ", " : "", k->names[0]);
    return cli_wrong(cli, "the server doesn't have a resource type \"%.*s\": there are %s%s",
                     (int)strcspn(word, "/"), word, all.p, more);
}

/* ---- from the socket ---- */

void cli_add_kind_path(struct buf *url, const struct cli_kind *kind, const char *namespace_, const char *name)
{
    buf_adds(url, kind->base);
    if (kind->namespaced && namespace_ != NULL) {
        buf_adds(url, "/namespaces/");
        percent_add(url, namespace_);
    }
    buf_addf(url, "/%s", kind->names[0]);
    if (name != NULL) {
        buf_adds(url, kind->names == image_names ? "?name=" : "/");
        percent_add(url, name);
    }
}

json_t *cli_get_one(struct cli *cli, const struct cli_kind *kind, const char *namespace_, const char *name,
                    int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_t *found;

    if (kind->names == cli_pod_kinds)
        return cli_get_pod(cli, namespace_, name, ret_code);
    cli_add_kind_path(&url, kind, namespace_, name);
    found = cli_get(cli, url.p, ret_code);
    if (kind->names == image_names && found != NULL) {
        json_t *image = json_incref(json_array_get(cli_at(found, "items"), 0));

        json_decref(found);
        found = image;
    }
    return found;
}

json_t *cli_get_all(struct cli *cli, const struct cli_kind *kind, const char *namespace_, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;

    cli_add_kind_path(&url, kind, namespace_, NULL);
    list = cli_get(cli, url.p, ret_code);
    return json_incref(cli_at(list, "items"));
}
