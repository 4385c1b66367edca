/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/limits/admission_fit.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/limits/hugepages.h"
#include "agent/pod/limits/limits.h"

#include <string.h>

#define HUGE_PREFIX "hugepages-"

int64_t admission_fit_request(const struct api_pod *api, const char *resource)
{
    struct quantity q;

    if (strcmp(resource, "pods") == 0)
        return 1;
    q = resources_pod_request(api, resource);
    return strcmp(resource, "cpu") == 0 ? quantity_milli(&q) : quantity_value(&q);
}

bool admission_fit_counts(const struct pod *p)
{
    if (p->state == POD_PENDING)
        return p->preempting || devices_under_way(p);
    return p->admitted && !p->rejected && p->state != POD_TERMINATED;
}

size_t admission_fit_ending(const struct pod *p)
{
    size_t n = 0;

    pods_each (p->node, o)
        n += o != p && admission_fit_counts(o) && o->state == POD_TERMINATING;
    return n;
}

static int64_t used_by_others(const struct pod *p, const char *resource, bool ending)
{
    int64_t used = 0;

    pods_each (p->node, o)
        if (o != p && admission_fit_counts(o) && (ending || o->state != POD_TERMINATING) &&
            __builtin_add_overflow(used, admission_fit_request(o->api, resource), &used))
            return INT64_MAX;
    return used;
}

struct admission_fit {
    const struct pod *p;
    const struct api_pod *api;
    bool ending;
    struct shortage *ret;
    size_t n;
};

/* As in kubelet's device manager, devices that are held count even if they are unhealthy or gone by now:
 * requests of their pods count as well. */
static int64_t capacity_of(const struct node *n, const char *resource)
{
    int64_t capacity = node_allocatable(n, resource), held = 0;
    const struct dp_owned *one = NULL;

    if (capacity < 0 || strchr(resource, '/') == NULL || devices_holdings(n) == NULL)
        return capacity;
    while ((one = dp_holdings_owned_next(devices_holdings(n), resource, one)) != NULL)
        held++;
    return held > capacity ? held : capacity;
}

static void admission_fit_look_at(struct admission_fit *f, const char *resource)
{
    struct shortage s = { .resource = resource, .requested = admission_fit_request(f->api, resource) };

    if (s.requested <= 0 || f->n == ADMISSION_FIT_SHORTAGES_MAX)
        return;
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->ret[i].resource, resource) == 0)
            return;
    s.capacity = capacity_of(f->p->node, resource);
    if (s.capacity < 0 && !str_starts(resource, HUGE_PREFIX))
        return; /* as in kubelet, resources never offered by a plugin are ignored */
    if (s.capacity < 0)
        s.capacity = 0;
    s.used = used_by_others(f->p, resource, f->ending);
    if (s.requested > s.capacity - s.used)
        f->ret[f->n++] = s;
}

static void admission_fit_look_at_list(struct admission_fit *f, const struct api_resource_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_starts(l->v[i].name, HUGE_PREFIX) || strchr(l->v[i].name, '/') != NULL)
            admission_fit_look_at(f, l->v[i].name);
}

size_t admission_fit_shortages(const struct pod *p, const struct api_pod *api, bool ending,
                               struct shortage ret[ADMISSION_FIT_SHORTAGES_MAX])
{
    const struct api_pod_spec *s = &api->spec;
    struct admission_fit f = { p, api, ending, ret, 0 };

    admission_fit_look_at(&f, "pods");
    admission_fit_look_at(&f, "cpu");
    admission_fit_look_at(&f, "memory");
    admission_fit_look_at(&f, "ephemeral-storage");
    admission_fit_look_at_list(&f, &s->resources.requests);
    for (size_t i = 0; i < s->n_init_containers; i++)
        admission_fit_look_at_list(&f, &s->init_containers[i].resources.requests);
    for (size_t i = 0; i < s->n_containers; i++)
        admission_fit_look_at_list(&f, &s->containers[i].resources.requests);
    admission_fit_look_at_list(&f, &s->overhead);
    return f.n;
}

void admission_fit_text(const struct node *n, const struct shortage *s, char ret[ADMISSION_FIT_TEXT_SIZE])
{
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX];
    size_t k = (size_t)snprintf(
        ret, ADMISSION_FIT_TEXT_SIZE,
        "Node didn't have enough resource: %.320s, requested: %lld, used: %lld, capacity: %lld", s->resource,
        (long long)s->requested, (long long)s->used, (long long)s->capacity);

    if (!str_starts(s->resource, HUGE_PREFIX) || node_allocatable(n, s->resource) >= 0 ||
        k >= ADMISSION_FIT_TEXT_SIZE)
        return;
    /* kubelet's text ends here; point out that the size is a mistake. */
    k += (size_t)snprintf(ret + k, ADMISSION_FIT_TEXT_SIZE - k,
                          "; this machine has no huge pages of that size");
    for (size_t i = 0, all = hugepages_sizes(n, sizes); i < all && k < ADMISSION_FIT_TEXT_SIZE; i++)
        k += (size_t)snprintf(ret + k, ADMISSION_FIT_TEXT_SIZE - k, "%s%s", i == 0 ? ", it knows " : ", ",
                              sizes[i].resource);
}
