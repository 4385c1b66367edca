/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cdi/cdi.h"
#include "agent/pod/container/container.h"
#include "agent/pod/container/env_age.h"
#include "agent/pod/container/hooks.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/log_keep.h"
#include "agent/pod/container/probes.h"
#include "base/log.h"

#include <string.h>

static void container_open(struct node *n)
{
    struct container_node *part = container_node(n);
    struct err e = { 0 };

    create_limit_init(n);
    ctr_cdi_open(n);
    TAILQ_INIT(&part->probes_queue);
    if (n->o.log_max_files > 1 && log_keep_open(&part->logs, n->o.loop, n->o.log_max_files, &e) != ERR_OK)
        log_error("cannot keep rotated logs of containers", F_ERR(&e));
}

static bool container_node_busy(const struct node *n)
{
    const struct cdi *cdi = container_node(n)->cdi;

    return cdi != NULL && cdi_is_busy(cdi);
}

static void container_free(struct node *n)
{
    cdi_close(container_node(n)->cdi);
    log_keep_close(container_node(n)->logs);
    rooms_close_handle(n, (uv_handle_t *)&container_node(n)->create_timer);
}

static void container_init(struct pod *p)
{
    TAILQ_INIT(&containers_of(p)->reaps);
}

static bool container_busy(const struct pod *p)
{
    const struct reap *r;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        const struct ctr_own *own = own_of(c);
        if (probes_live(c) || hook_live(c) || op_live(&own->create.op) || op_live(&own->action.op) ||
            op_live(&own->subpaths.op))
            return true;
    }
    TAILQ_FOREACH (r, &containers_of(p)->reaps, link)
        if (!clock_boot_is_set(r->again_at))
            return true;
    return false;
}

/* An ended run is known only while its remains are being removed. */
static bool container_knows(const struct pod *p, const char *id)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (!p->ctrs[i]->cur.ended && strcmp(p->ctrs[i]->cur.id, id) == 0)
            return true;
    return reaps_has(p, id);
}

static void container_cancel(struct pod *p)
{
    struct reap *r;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        struct ctr_own *own = own_of(c);
        /* A create in progress is interrupted (it is repeated); a start is short and runs to its end. */
        if (op_live(&own->create.op))
            op_cancel(&own->create.op);
        if (op_live(&own->subpaths.op))
            op_cancel(&own->subpaths.op);
        probes_stop(c);
        hook_cancel(c);
    }
    TAILQ_FOREACH (r, &containers_of(p)->reaps, link)
        op_cancel(&r->action.op);
}

/* As at its start, but for the history: the next runs are restarts. */
static void container_reset(struct pod *p)
{
    pod_set_initialized(p, false);
    containers_of(p)->probes_since = CLOCK_BOOT_NONE;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        struct ctr_own *own = own_of(c);
        own->backoff_ms = 0; /* it did not crash */
        own->retry_at = CLOCK_BOOT_NONE;
        ctr_waits_no_more(c);
        if (ctr_kind_of_init(c->kind) && c->cur.id[0] != '\0')
            ctr_set_replace(c, true); /* init containers run again, from the first */
    }
}

static void container_forget(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        create_limit_release(c);
        instance_clear(&c->cur);
        instance_clear(&c->last);
        env_age_clear(c);
        env_age_forget_run(c);
        free(c->waiting_message);
        free(own_of(c)->post_message);
        probes_free(c);
    }
    reaps_clear(p);
}

const struct room container_room = {
    .id = ROOM_CONTAINER,
    .name = "container",
    .node = { .size = sizeof(struct container_node),
              .open = container_open,
              .busy = container_node_busy,
              .free = container_free },
    .pod = { .size = sizeof(struct pod_containers),
             .ctr_size = sizeof(struct ctr_own),
             .init = container_init,
             .step = containers_step,
             .busy = container_busy,
             .knows = container_knows,
             .cancel = container_cancel,
             .reset = container_reset,
             .free = container_forget,
             .save = ctr_record_save,
             .load = ctr_record_load },
};
