/* SPDX-License-Identifier: Apache-2.0 */
/* The volumes of drivers for people, for /stats/summary and for the cluster. */
#include "agent/pod/core/explain_step.h"
#include "agent/pod/volume/csi_vol.h"
#include "agent/pod/volume/csi_volumes.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"

#include <string.h>

bool volumes_driver_usage(const struct pod *p, const char *volume, struct csi_usage *ret, int64_t *ret_at_ns)
{
    const struct csi_vol *v = csi_vol_find(p, volume);

    if (v == NULL || !v->usage.known)
        return false;
    *ret = v->usage.last;
    *ret_at_ns = v->usage.at_ns;
    return true;
}

bool volumes_driver_id(const struct pod *p, const char *volume, const char **ret_driver,
                       const char **ret_handle)
{
    const struct csi_vol *v = csi_vol_find(p, volume);

    if (v == NULL || v->spec_name == NULL || volumes_of(p)->csi.removed)
        return false;
    *ret_driver = v->driver;
    *ret_handle = v->handle;
    return true;
}

bool volumes_is_driver(const struct pod *p, const char *volume)
{
    const struct csi_vol *v = csi_vol_find(p, volume);

    return v != NULL && v->spec_name != NULL;
}

static const char *state_text(const struct csi_vol *v)
{
    if (v->error[0] != '\0')
        return v->error;
    return v->state == CSI_VOL_READY      ? "ready"
           : v->state == CSI_VOL_MOUNTING ? "the driver is asked"
                                          : "waiting";
}

static void explain_one(const struct csi_vol *v, json_t *steps)
{
    bool bad = v->error[0] != '\0', running = v->state == CSI_VOL_MOUNTING;
    char text[1300];

    snprintf(text, sizeof(text), "volume \"%s\" of driver %s: %s%s%s%s", v->name, v->driver, state_text(v),
             bad && running ? " (the last try); the driver is asked again" : "",
             v->grow_error[0] != '\0' ? "; " : "", v->grow_error);
    explain_step(steps, "CSI volume",
                 running                     ? "running"
                 : v->state == CSI_VOL_READY ? "done"
                 : bad                       ? "failed"
                                             : "waiting",
                 v->since_ns, text, clock_boot_to_wall_ns(v->retry_at));
}

void csi_volumes_explain(const struct pod *p, json_t *steps)
{
    const struct pod_csi *csi = &volumes_of(p)->csi;

    for (size_t i = 0; i < csi->n; i++)
        if (csi_vol_at(p, i)->spec_name != NULL && !csi->removed)
            explain_one(csi_vol_at(p, i), steps);
    if (csi->error != NULL)
        explain_step(steps, "removal of CSI volumes",
                     csi->remove != NULL && op_live(&csi->remove->op) ? "running" : "failed",
                     volumes_of(p)->vols_since_ns, csi->error, clock_boot_to_wall_ns(csi->retry_at));
}
