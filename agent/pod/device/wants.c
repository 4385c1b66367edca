/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/device/internal.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct device_want *)a)->resource, ((const struct device_want *)b)->resource);
}

/* By limits, as in kubelet; requests are equal to them. */
static size_t wants_add(const struct ctr *c, struct device_want *ret)
{
    const struct api_resource_list *l = &c->spec->resources.limits;
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        if (strchr(l->v[i].name, '/') != NULL)
            ret[n++] = (struct device_want){ .ctr = c->index,
                                             .resource = l->v[i].name,
                                             .count = quantity_value(&l->v[i].amount) };
    qsort(ret, n, sizeof(*ret), by_name);
    return n;
}

enum err_code device_wants(const struct pod *p, struct device_want **ret, size_t *ret_n, struct err *e)
{
    struct device_want *v;
    size_t n = 0;

    for (size_t i = 0; i < p->n_ctrs; i++)
        n += p->ctrs[i]->spec->resources.limits.n;
    v = calloc(n + 1, sizeof(*v));
    if (v == NULL)
        return err_nomem(e);
    n = 0;
    for (size_t i = 0; i < p->n_ctrs; i++)
        n += wants_add(p->ctrs[i], v + n);
    *ret = v;
    *ret_n = n;
    return ERR_OK;
}

static int64_t sum(int64_t a, int64_t b)
{
    return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a;
}

int64_t device_wants_sum(const struct pod *p, const struct device_want *v, size_t n, const char *resource)
{
    int64_t sidecars = 0, init = 0, regular = 0;

    for (size_t i = 0; i < n; i++) {
        if (strcmp(v[i].resource, resource) != 0)
            continue;
        switch (p->ctrs[v[i].ctr]->kind) {
        case CTR_INIT:
            if (sum(sidecars, v[i].count) > init)
                init = sum(sidecars, v[i].count);
            break;
        case CTR_SIDECAR:
            sidecars = sum(sidecars, v[i].count);
            break;
        case CTR_REGULAR:
            regular = sum(regular, v[i].count);
            break;
        case CTR_EPHEMERAL: /* requests nothing */
            break;
        }
    }
    regular = sum(regular, sidecars);
    return init > regular ? init : regular;
}

enum device_offer device_offer(const struct dp_resource *r)
{
    if (r == NULL)
        return OFFER_UNKNOWN;
    if (r->provider != NULL)
        return r->listed ? OFFER_HERE : OFFER_AWAY;
    /* If a provider went, a number is used only after the provider is forgotten. */
    return r->count >= 0 && !clock_boot_is_set(r->gone_at) ? OFFER_NUMBER : OFFER_AWAY;
}
