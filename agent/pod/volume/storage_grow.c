/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A volume whose PersistentVolume has become larger than its claim: the expandfs of its FlexVolume driver, or
 * of a local disk the tools of its file system. A new pod gets it only then; kubelet's rules.
 */
#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/storage_vol.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#include <string.h>

#define GROW_MS 125000

/* False: it is as large as its claim, or not known, or it cannot be expanded here. */
static bool wants(const struct pod *p, const struct api_volume *api, struct flex_sizes *ret)
{
    struct driver_bound bound = { 0 };
    const struct quantity *size;

    if (api == NULL || api->kind != API_VOL_CLAIM || driver_bound(p, api, &bound, ERR_IGNORED) != ERR_OK ||
        bound.claim_bytes <= 0 || bound.volume == NULL || bound.volume->pv == NULL)
        return false;
    if (bound.volume->pv->storage.kind != API_STORAGE_FLEX &&
        bound.volume->pv->storage.kind != API_STORAGE_LOCAL)
        return false;
    size = api_resource_get(&bound.volume->pv->capacity, "storage");
    if (size == NULL || quantity_value(size) <= bound.claim_bytes)
        return false;
    *ret =
        (struct flex_sizes){ .now = (uint64_t)quantity_value(size), .before = (uint64_t)bound.claim_bytes };
    return true;
}

static enum err_code grow_it(const void *arg, struct buf *out, struct err *e)
{
    const struct storage_job *job = arg;

    if ((job->is_flex ? flex_expand(&job->flex, job->sizes, e) : storage_expand(&job->spec, e)) != ERR_OK)
        buf_adds(out, e->text);
    return e->code;
}

static void grown(struct storage_vol *v, const struct api_volume *api, uint64_t bytes)
{
    struct pod *p = v->pod;

    v->growth.error[0] = '\0';
    v->growth.backoff_ms = 0;
    v->growth.retry_at = CLOCK_BOOT_NONE;
    if (v->state == STORAGE_MOUNTED) {
        v->error[0] = '\0';
        storage_vol_state(v, STORAGE_READY);
    }
    log_info("a volume was expanded", F_STR("pod", p->key), F_STR("volume", v->shown),
             F_I64("bytes", (int64_t)bytes));
    pod_event(p, NULL, false, "FileSystemResizeSuccessful",
              "MountVolume.NodeExpandVolume succeeded for volume \"%.200s\" %s", v->shown,
              p->node->o.node_name);
    if (api != NULL)
        driver_expanded(p, api, bytes, &(struct err){ 0 });
}

static void grow_failed(struct storage_vol *v, const struct api_volume *api, const struct err *why)
{
    struct storage_growth *g = &v->growth;
    char text[sizeof(g->error)];

    snprintf(text, sizeof(text), "%s for volume \"%.100s\" : %.300s",
             v->state == STORAGE_MOUNTED ? "MountVolume.Setup failed while expanding volume"
                                         : "NodeExpandVolume.NodeExpandVolume failed",
             v->shown, why->text);
    text_printable(text);
    g->backoff_ms = backoff_next_ms(g->backoff_ms, STORAGE_RETRY_FIRST_MS, STORAGE_RETRY_MAX_MS);
    g->retry_at = clock_boot_in_ms(g->backoff_ms);
    if (strcmp(text, g->error) != 0)
        log_warn("cannot expand a volume", F_STR("pod", v->pod->key), F_STR("volume", v->shown), F_ERR(why));
    strcpy(g->error, text);
    pod_event(v->pod, NULL, true, v->state == STORAGE_MOUNTED ? "FailedMount" : "VolumeResizeFailed", "%s",
              text);
    if (api != NULL)
        driver_expanded(v->pod, api, g->bytes, why);
}

static void on_grown(struct op *op, const struct err *result)
{
    struct storage_vol *v = op->owner;
    const struct api_volume *api = api_volume_find(&v->pod->api->spec, v->name);

    if (result->code == ERR_OK) {
        grown(v, api, v->growth.bytes);
    } else if (result->code != ERR_CANCELLED) {
        const struct err e = storage_call_error(&v->growth.call, result);

        grow_failed(v, api, &e);
    }
    pod_wake(v->pod, "a volume was expanded");
}

static void begin(struct storage_vol *v, const struct api_volume *api, struct flex_sizes sizes)
{
    struct pod *p = v->pod;
    struct arena memory = { 0 };
    struct storage_source source;
    struct storage_job job = { .is_flex = false };
    struct err e = { 0 };

    if (!storage_source_of(p, api, &source))
        return;
    v->growth.bytes = sizes.now;
    ERR_IGNORE(storage_job_make(p, &source, volume_node(p->node)->flex, &memory, &job, &e));
    job.sizes = sizes;
    if (e.code == ERR_OK && job.is_flex && !job.flex.caps.requires_resize) {
        if (v->state == STORAGE_MOUNTED) /* nothing is left to do on the node */
            storage_vol_state(v, STORAGE_READY);
    } else if (e.code == ERR_OK) {
        const struct proc_call_spec call = {
            .name = "expand a volume",
            .subject = p->key,
            .fn = grow_it,
            .arg = &job,
            .out_max = 1024,
            .deadline_ms = GROW_MS,
            CG_OPS(p->node->o.cgroups),
        };

        proc_call_start(&v->growth.call, &call, p->node->o.loop, on_grown, v);
    } else if (e.code == ERR_UNAVAILABLE) { /* the driver's answer about capabilities wakes the pod */
        v->growth.retry_at = clock_boot_in_ms(STORAGE_RETRY_MAX_MS);
        pod_wake_at(p, v->growth.retry_at, "a volume is expanded");
    } else {
        grow_failed(v, api, &e);
    }
    arena_done(&memory);
}

void storage_grow_first(struct storage_vol *v, const struct api_volume *api)
{
    struct flex_sizes sizes;

    storage_vol_state(v, wants(v->pod, api, &sizes) ? STORAGE_MOUNTED : STORAGE_READY);
}

void storage_grow_step(struct storage_vol *v, const struct api_volume *api)
{
    struct flex_sizes sizes;

    if (op_live(&v->growth.call.op))
        return;
    if (!wants(v->pod, api, &sizes)) {
        v->growth.error[0] = '\0';
        if (v->state == STORAGE_MOUNTED)
            storage_vol_state(v, STORAGE_READY);
        return;
    }
    if (clock_boot_is_due(v->growth.retry_at))
        begin(v, api, sizes);
    else
        pod_wake_at(v->pod, v->growth.retry_at, "a volume is expanded");
}
