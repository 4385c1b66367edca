/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/csi_usage.h"

#include "agent/pod/core/pod.h"
#include "base/log.h"

#include <stdlib.h>
#include <sys/random.h>

/* kubelet's volumeStatsAggPeriod, which jitter makes up to twice as long. */
#define USAGE_MS 60000

static void plan(struct csi_vol_usage *u)
{
    uint32_t chance = 0;

    if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
        chance = 0;
    u->next_at = clock_boot_in_ms(USAGE_MS + chance % USAGE_MS);
}

static void on_usage(struct op *op, const struct err *result)
{
    struct csi_vol_usage *u = op->owner;

    u->known = result->code == ERR_OK;
    u->at_ns = clock_wall_ns();
    if (u->known)
        u->last = u->asked->usage;
    else
        log_debug("a CSI driver does not say how full a volume is", F_STR("pod", u->pod->key), F_ERR(result));
    plan(u);
    pod_wake(u->pod, "the usage of a CSI volume was asked for");
}

void csi_usage_step(struct csi_vol_usage *u, struct pod *p, const char *driver, const char *handle,
                    const char *path)
{
    if (csi_usage_busy(u))
        return;
    if (!clock_boot_is_due(u->next_at)) {
        pod_wake_at(p, u->next_at, "the usage of a CSI volume");
        return;
    }
    u->pod = p;
    if (u->asked == NULL)
        u->asked = calloc(1, sizeof(*u->asked));
    if (u->asked == NULL)
        plan(u);
    else
        csi_stats_start(u->asked, p->node->csi, driver, handle, path, on_usage, u);
}

bool csi_usage_busy(const struct csi_vol_usage *u)
{
    return u->asked != NULL && op_live(&u->asked->op);
}

void csi_usage_cancel(struct csi_vol_usage *u)
{
    if (csi_usage_busy(u))
        op_cancel(&u->asked->op);
}

void csi_usage_free(struct csi_vol_usage *u)
{
    free(u->asked);
    u->asked = NULL;
}
