/* SPDX-License-Identifier: Apache-2.0 */
/* downward - the downward API's values: fields of the pod, resources of its containers (pkg/fieldpath,
 * pkg/api/v1/resource/helpers.go). */
#include "agent/pod/env/env.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/codec/go_quote.h"

#include <string.h>

static bool subscript(const char *path, const char *prefix, struct arena *a, char **ret_key)
{
    size_t n = strlen(prefix), len = strlen(path);

    if (strncmp(path, prefix, n) != 0 || len < n + 4 || path[n] != '[' || path[n + 1] != '\'' ||
        strcmp(path + len - 2, "']") != 0)
        return false;
    *ret_key = arena_strndup(a, path + n + 2, len - n - 4);
    return true;
}

static char *format_map(const struct api_kvs *m, struct arena *a)
{
    buf_auto b = BUF_INIT(2 * 1024 * 1024);

    for (size_t i = 0; i < m->n; i++) {
        buf_addf(&b, "%s%s=", i > 0 ? "\n" : "", m->v[i].key);
        go_quote(&b, m->v[i].value, strlen(m->v[i].value));
    }
    return b.failed ? NULL : arena_strndup(a, b.p, b.n);
}

static enum err_code pod_ips(const struct pod *p, bool all, struct arena *a, char **ret, struct err *e)
{
    buf_auto b = BUF_INIT(1024);

    if (p->api->spec.host_network) {
        *ret = arena_strdup(a, p->node->o.node_ip);
        return *ret != NULL ? ERR_OK : err_nomem(e);
    }
    if (sandbox_addresses(p)->n_ips == 0)
        return err_set(e, ERR_UNAVAILABLE, "the pod has no IP address yet");
    for (size_t i = 0; i < (all ? sandbox_addresses(p)->n_ips : 1); i++)
        buf_addf(&b, "%s%s", i > 0 ? "," : "", sandbox_addresses(p)->ips[i]);
    *ret = arena_strndup(a, b.p, b.n);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

enum err_code env_field(const struct pod *p, const char *path, struct arena *a, char **ret, struct err *e)
{
    const struct api_meta *m = &p->api->meta;
    char *key = NULL;
    const char *text = NULL;

    if (strcmp(path, "metadata.name") == 0)
        text = m->name;
    else if (strcmp(path, "metadata.namespace") == 0)
        text = m->namespace;
    else if (strcmp(path, "metadata.uid") == 0)
        text = p->uid;
    else if (strcmp(path, "spec.nodeName") == 0)
        text = p->node->o.node_name;
    else if (strcmp(path, "spec.serviceAccountName") == 0)
        text = p->api->spec.service_account_name != NULL ? p->api->spec.service_account_name : "";
    else if (strcmp(path, "status.hostIP") == 0 || strcmp(path, "status.hostIPs") == 0)
        text = p->node->o.node_ip;
    else if (strcmp(path, "status.podIP") == 0)
        return pod_ips(p, false, a, ret, e);
    else if (strcmp(path, "status.podIPs") == 0)
        return pod_ips(p, true, a, ret, e);
    else if (strcmp(path, "metadata.labels") == 0 || strcmp(path, "metadata.annotations") == 0) {
        *ret = format_map(path[9] == 'l' ? &m->labels : &m->annotations, a);
        return *ret != NULL ? ERR_OK : err_nomem(e);
    } else if (subscript(path, "metadata.labels", a, &key) ||
               subscript(path, "metadata.annotations", a, &key)) {
        if (key == NULL)
            return err_nomem(e);
        text = api_kvs_get(path[9] == 'l' ? &m->labels : &m->annotations, key);
        if (text == NULL)
            text = "";
    } else {
        return err_set(e, ERR_INVALID, "unsupported fieldPath: %s", path);
    }
    *ret = arena_strdup(a, text);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

/* As in kubelet, a limit of 0 means none. */
static const struct quantity *downward_limit_of(const struct api_resource_list *limits, const char *name)
{
    const struct quantity *q = api_resource_get(limits, name);

    return q != NULL && q->nano != 0 ? q : NULL;
}

enum err_code env_resource(const struct pod *p, const struct api_container *c,
                           const struct api_resource_field_ref *ref, struct arena *a, char **ret,
                           struct err *e)
{
    const struct api_pod_spec *s = &p->api->spec;
    const struct api_resources *r = c != NULL ? &c->resources : NULL;
    bool limit = str_starts(ref->resource, "limits.");
    const char *name = strchr(ref->resource, '.');
    struct quantity q = { 0 };
    const struct quantity *found;
    __int128 divisor, value;
    int64_t has;

    if (ref->container_name != NULL) {
        r = NULL;
        for (size_t i = 0; i < s->n_containers; i++)
            if (strcmp(s->containers[i].name, ref->container_name) == 0)
                r = &s->containers[i].resources;
        for (size_t i = 0; i < s->n_init_containers; i++)
            if (strcmp(s->init_containers[i].name, ref->container_name) == 0)
                r = &s->init_containers[i].resources;
        if (r == NULL)
            return err_set(e, ERR_INVALID, "container %s not found", ref->container_name);
    }
    if (name == NULL || r == NULL)
        return err_set(e, ERR_INVALID, "unsupported container resource: %s", ref->resource);
    name++;
    found = limit ? downward_limit_of(&r->limits, name) : api_resource_get(&r->requests, name);
    if (found == NULL && limit && s->has_resources)
        found = downward_limit_of(&s->resources.limits, name);
    if (found != NULL)
        q = *found;
    else if (limit && !str_starts(name, "hugepages-") && (has = node_allocatable(p->node, name)) > 0)
        /* no limit: the allocatable amount */
        q.nano = (__int128)has * (strcmp(name, "cpu") == 0 ? 1000000 : 1000000000);
    divisor = ref->divisor.nano != 0 ? ref->divisor.nano : 1000000000;
    value = (q.nano + divisor - 1) / divisor;
    *ret = arena_printf(a, "%lld", value > INT64_MAX ? (long long)INT64_MAX : (long long)value);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}
