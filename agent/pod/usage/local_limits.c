/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of local storage and what they include: kubelet's pkg/kubelet/eviction (localStorageEviction). */
#include "agent/api/annotations.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/usage/internal.h"
#include "agent/pod/usage/local_storage.h"

/* ---- the limits ---- */

static const struct quantity *local_limits_ctr_limit(const struct ctr *c)
{
    const struct quantity *q = api_resource_get(&c->spec->resources.limits, "ephemeral-storage");

    return q != NULL && quantity_value(q) > 0 ? q : NULL;
}

static bool on_disk(const struct pod *p, const struct api_volume *v)
{
    return v->kind == API_VOL_EMPTY_DIR && (v->medium == NULL || v->medium[0] == '\0') &&
           volumes_is_mounted(p, v->name);
}

static bool has_size_limit(const struct api_volume *v)
{
    return v->has_size_limit && quantity_value(&v->size_limit) > 0;
}

/* A container's limit is part of the pod's: those without one use up the same sum. */
static struct quantity local_limits_pod_limit(const struct pod *p)
{
    return resources_pod_limit(p->api, "ephemeral-storage", NULL);
}

static void local_limits_add(struct local_pod *l, struct pod *p, enum local_kind kind, size_t index)
{
    l->trees[l->n++] = (struct local_tree){ .pod = p, .kind = kind, .index = index };
}

bool local_limits_whole(const struct pod *p)
{
    struct quantity of_pod = local_limits_pod_limit(p);

    return usage_of_pod(p)->local != NULL && quantity_value(&of_pod) > 0;
}

/* As in kubelet, critical pods are never evicted. */
static bool is_limited(const struct pod *p, bool *ret_pod)
{
    struct quantity of_pod = local_limits_pod_limit(p);
    bool limited;

    limited = *ret_pod = quantity_value(&of_pod) > 0;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++)
        limited =
            limited || (has_size_limit(&p->api->spec.volumes[i]) && on_disk(p, &p->api->spec.volumes[i]));
    return limited && !preempt_is_critical(p);
}

struct local_pod *local_limits_trees(struct pod *p)
{
    const struct api_pod_spec *s = &p->api->spec;
    struct local_pod *l;
    bool whole;

    if (!is_limited(p, &whole))
        return NULL;
    l = calloc(1, sizeof(*l) + (s->n_volumes + 2 * p->n_ctrs) * sizeof(l->trees[0]));
    if (l == NULL)
        return NULL;
    for (size_t i = 0; i < p->n_ctrs && whole; i++) {
        local_limits_add(l, p, LOCAL_LAYER, i);
        local_limits_add(l, p, LOCAL_LOG, i);
    }
    for (size_t i = 0; i < s->n_volumes; i++)
        if (on_disk(p, &s->volumes[i]) && (whole || has_size_limit(&s->volumes[i])))
            local_limits_add(l, p, LOCAL_VOLUME, i);
    return l;
}

static bool has_tree(const struct local_pod *l, enum local_kind kind, size_t index)
{
    for (size_t i = 0; l != NULL && i < l->n; i++)
        if (l->trees[i].kind == kind && l->trees[i].index == index)
            return true;
    return false;
}

struct local_pod *local_limits_others(struct pod *p)
{
    const struct local_pod *limited = usage_of_pod(p)->local;
    const struct api_pod_spec *s = &p->api->spec;
    struct local_pod *l = calloc(1, sizeof(*l) + (s->n_volumes + 2 * p->n_ctrs) * sizeof(l->trees[0]));

    if (l == NULL)
        return NULL;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        if (!has_tree(limited, LOCAL_LAYER, i))
            local_limits_add(l, p, LOCAL_LAYER, i);
        if (!has_tree(limited, LOCAL_LOG, i))
            local_limits_add(l, p, LOCAL_LOG, i);
    }
    for (size_t i = 0; i < s->n_volumes; i++)
        if (on_disk(p, &s->volumes[i]) && !has_tree(limited, LOCAL_VOLUME, i))
            local_limits_add(l, p, LOCAL_VOLUME, i);
    if (l->n == 0)
        free(take_ptr(&l));
    return l;
}

size_t local_limits_list(const struct pod *p, struct plan_limit *ret, size_t max)
{
    const struct quantity of_pod = local_limits_pod_limit(p);
    size_t n = 0;

    for (size_t i = 0; i < p->api->spec.n_volumes && n < max; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];

        if (on_disk(p, v) && has_size_limit(v))
            ret[n++] = (struct plan_limit){ PLAN_OF_VOLUME, i, (uint64_t)quantity_value(&v->size_limit) };
    }
    if (quantity_value(&of_pod) > 0 && n < max)
        ret[n++] = (struct plan_limit){ PLAN_OF_POD, 0, (uint64_t)quantity_value(&of_pod) };
    for (size_t i = 0; i < p->n_ctrs && n < max; i++) {
        const struct ctr *c = p->ctrs[i];
        const struct quantity *limit = ctr_kind_lasts(c->kind) ? local_limits_ctr_limit(c) : NULL;

        if (limit != NULL)
            ret[n++] = (struct plan_limit){ PLAN_OF_CONTAINER, i, (uint64_t)quantity_value(limit) };
    }
    return n;
}

bool local_limits_enforced(const struct pod *p)
{
    const char *own = api_kvs_get(&p->api->meta.annotations, API_STORAGE_LIMITS);

    return own != NULL ? strcmp(own, "enforce") == 0 : p->node->o.storage_enforced;
}

/* ---- usage ---- */

/* Logs are bounded by rotation; beside a hard limit they do not count. */
static uint64_t local_limits_bytes_of(const struct pod *p, enum local_kind kind, size_t index)
{
    bool counts = kind != LOCAL_LOG || !usage_of_pod(p)->local->enforced;
    const struct local_tree *t = counts ? local_storage_find(p, kind, index) : NULL;

    return t != NULL ? t->sum.bytes : 0;
}

bool local_limits_sum(const struct pod *p, struct disk_usage_sum *ret)
{
    const struct usage_pod *part_of = usage_of_pod(p);
    bool all = part_of->local != NULL;

    *ret = (struct disk_usage_sum){ 0 };
    for (size_t i = 0; part_of->local != NULL && i < part_of->local->n; i++) {
        const struct local_tree *one = &part_of->local->trees[i],
                                *t = local_storage_find(p, one->kind, one->index);

        if (t == NULL) {
            all = all && one->kind != LOCAL_VOLUME && !ctr_alive(p->ctrs[one->index]);
            continue;
        }
        ret->bytes += t->sum.bytes;
        ret->inodes += t->sum.inodes;
        ret->partial = ret->partial || t->sum.partial;
    }
    return all;
}

/* ---- excess ---- */

static bool exceeds(uint64_t bytes, const struct quantity *limit)
{
    return bytes > (uint64_t)quantity_value(limit);
}

static bool volume_exceeds(const struct pod *p, char **ret)
{
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        char limit[QUANTITY_TEXT_SIZE];

        if (!on_disk(p, v) || !has_size_limit(v) ||
            !exceeds(local_limits_bytes_of(p, LOCAL_VOLUME, i), &v->size_limit))
            continue;
        quantity_format(&v->size_limit, limit);
        *ret = str_printf("Usage of EmptyDir volume \"%s\" exceeds the limit \"%s\". ", v->name, limit);
        return true;
    }
    return false;
}

/* The known part may already be too much. */
static bool pod_exceeds(const struct pod *p, char **ret)
{
    const struct local_pod *l = usage_of_pod(p)->local;
    struct quantity limit = local_limits_pod_limit(p);
    char text[QUANTITY_TEXT_SIZE];
    uint64_t bytes = 0;

    for (size_t i = 0; i < l->n; i++)
        bytes += local_limits_bytes_of(p, l->trees[i].kind, l->trees[i].index);
    if (quantity_value(&limit) <= 0 || !exceeds(bytes, &limit))
        return false;
    quantity_format(&limit, text);
    *ret = str_printf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", text);
    return true;
}

/* Init containers are excluded, except sidecars (Kubernetes 1.37). */
static bool ctr_exceeds(const struct pod *p, char **ret)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        const struct quantity *limit = ctr_kind_lasts(c->kind) ? local_limits_ctr_limit(c) : NULL;
        char text[QUANTITY_TEXT_SIZE];

        if (limit == NULL ||
            !exceeds(local_limits_bytes_of(p, LOCAL_LAYER, i) + local_limits_bytes_of(p, LOCAL_LOG, i),
                     limit))
            continue;
        quantity_format(limit, text);
        *ret = str_printf("Container %s exceeded its local ephemeral storage limit \"%s\". ", c->spec->name,
                          text);
        return true;
    }
    return false;
}

bool local_limits_exceeded(const struct pod *p, char **ret)
{
    *ret = NULL;
    if (usage_of_pod(p)->local == NULL)
        return false;
    return volume_exceeds(p, ret) || pod_exceeds(p, ret) || ctr_exceeds(p, ret);
}
