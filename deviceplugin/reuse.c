/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/choose.h"

#include <string.h>

/*
 * The union of `old` and the devices of x, or `old` without the devices of x. Inputs and result are sorted.
 * False: out of memory.
 */
static bool merge(const struct strs *old, const struct dp_holding *x, bool add, struct strs *ret)
{
    size_t i = 0, k = 0;

    while (i < old->n || (add && k < x->n_devices)) {
        int order = i == old->n ? 1 : k == x->n_devices ? -1 : dp_id_compare(old->v[i], x->devices[k].id);

        if (order < 0 ? !strs_add(ret, old->v[i]) : (add && !strs_add(ret, x->devices[k].id)))
            return false;
        i += order <= 0;
        k += order >= 0;
    }
    return true;
}

enum err_code dp_reusable(const struct dp_holdings *h, const char *pod_uid, const char *resource,
                          const struct dp_predecessor *before, size_t n, struct strs *ret, struct err *e)
{
    struct strs pool = { 0 };

    for (size_t i = 0; i < n; i++) {
        const struct dp_holding *x = dp_holdings_find(h, pod_uid, before[i].container, resource);
        struct strs merged = { 0 };

        if (x == NULL)
            continue;
        if (!merge(&pool, x, before[i].reusable, &merged)) {
            strs_done(&merged);
            strs_done(&pool);
            return err_nomem(e);
        }
        strs_done(&pool);
        pool = merged;
    }
    strs_done(ret);
    *ret = pool;
    return ERR_OK;
}
