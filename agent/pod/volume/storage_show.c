/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that the node or a FlexVolume driver mounts, for people and for controllers. */
#include "agent/pod/core/explain_step.h"
#include "agent/pod/volume/storage_vol.h"
#include "agent/pod/volume/storage_volumes.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"

void volumes_each_attached(const struct pod *p, void (*fn)(const char *name, void *arg), void *arg)
{
    for (size_t i = 0; i < storage_of(p)->n && !storage_of(p)->removed; i++)
        if (storage_of(p)->v[i].attach_name[0] != '\0')
            fn(storage_of(p)->v[i].attach_name, arg);
}

void storage_volumes_explain(const struct pod *p, json_t *steps)
{
    const struct pod_storage *s = storage_of(p);

    for (size_t i = 0; i < s->n; i++) {
        const struct storage_vol *v = &s->v[i];
        bool bad = v->error[0] != '\0', running = v->state == STORAGE_MOUNTING;
        char text[1500];

        if (s->removed || v->shown[0] == '\0')
            continue;
        snprintf(text, sizeof(text), "volume \"%s\": %s%s%s%s", v->name,
                 bad                           ? v->error
                 : v->state == STORAGE_READY   ? "mounted"
                 : v->state == STORAGE_MOUNTED ? "mounted; it has to grow"
                 : running                     ? "it is being mounted"
                                               : "waiting",
                 bad && running ? " (the last try); it is being mounted again" : "",
                 v->growth.error[0] != '\0' ? "; " : "", v->growth.error);
        explain_step(steps, "mount",
                     running                     ? "running"
                     : v->state == STORAGE_READY ? "done"
                     : bad                       ? "failed"
                                                 : "waiting",
                     v->since_ns, text, clock_boot_to_wall_ns(v->retry_at));
    }
    if (s->error != NULL)
        explain_step(steps, "unmount", op_live(&s->removal.op) ? "running" : "failed",
                     volumes_of(p)->vols_since_ns, s->error, clock_boot_to_wall_ns(s->retry_at));
}
