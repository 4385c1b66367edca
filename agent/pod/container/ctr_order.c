/* SPDX-License-Identifier: Apache-2.0 */
/* ctr_order - in which order a pod's containers run. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/probes.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <string.h>

bool ctr_is_done(const struct ctr *c)
{
    return c->cur.ended && c->state == CTR_NONE && !c->replace && c->cur.exit_code == 0 &&
           !str_eq(c->cur.reason, "OOMKilled");
}

/* As in kubelet, one that started and ended since holds nothing up; a start includes hook and startup probe.
 */
static bool sidecar_started_once(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    const struct instance *cur = &c->cur;

    if (c->replace)
        own->started_once = false;
    else if (ctr_started(c) || (cur->started_ns != 0 && c->spec->startup == NULL &&
                                c->spec->post_start == NULL && !str_eq(cur->reason, "StartError")))
        own->started_once = true;
    return own->started_once;
}

/* Nothing holds them up, not even init containers that have not finished: they help to see why. */
static void ephemeral_step(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (p->ctrs[i]->kind == CTR_EPHEMERAL)
            ctr_step(p->ctrs[i]);
}

/*
 * Lets containers run in their order: init ones one after the other, sidecars stay, regular ones together. A
 * container that was reached once is not delayed again by a sidecar before it that has to restart.
 */
static void ctr_order_step(struct pod *p)
{
    size_t reached = 0;

    for (size_t i = 0; i < p->n_ctrs; i++)
        if (ctr_kind_of_init(p->ctrs[i]->kind) && p->ctrs[i]->cur.id[0] != '\0' && !p->ctrs[i]->replace)
            reached = i;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];

        switch (c->kind) {
        case CTR_INIT:
            if (p->initialized || ctr_is_done(c))
                continue;
            ctr_step(c);
            return;
        case CTR_SIDECAR:
            ctr_step(c);
            if (!p->initialized && !sidecar_started_once(c) && i >= reached)
                return;
            continue;
        case CTR_REGULAR:
            ctr_step(c);
            if (ctr_holds_others(c))
                return;
            continue;
        case CTR_EPHEMERAL:
            continue;
        }
    }
}

void containers_step(struct pod *p)
{
    if (!clock_boot_is_set(containers_of(p)->probes_since) && volumes_ready(p))
        containers_of(p)->probes_since = clock_boot();
    ephemeral_step(p);
    if (!restart_all_step(p))
        ctr_order_step(p);
    for (size_t i = 0; i < p->n_ctrs; i++)
        probes_step(p->ctrs[i]);
}
