/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/pod_payloads.h"
#include "agent/pod/core/events.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/volume/csi_volumes.h"
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/live_sub_path.h"
#include "agent/pod/volume/payload_set.h"
#include "agent/pod/volume/storage_volumes.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

/* Delay until a payload with outdated content is retried: doubled from the first to the last. */
#define REFRESH_RETRY_FIRST_MS 200
#define REFRESH_RETRY_MAX_MS 30000
/* How many large sets may be on the pool at a time: records and images are written there too. */
#define WRITES_MAX 2
#define WRITE_WAIT_MS 1000 /* at most, after which the pod tries for a slot itself */
#define MS INT64_C(1000000)

bool volumes_use_config(const struct api_pod *api, enum api_config_kind kind, const char *name)
{
    if (kind == API_SECRET && (csi_volumes_use_secret(api, name) || storage_volumes_use_secret(api, name)))
        return true;
    for (size_t i = 0; i < api->spec.n_volumes; i++)
        for (size_t j = 0; j < api->spec.volumes[i].n_sources; j++) {
            const struct api_payload_source *s = &api->spec.volumes[i].sources[j];
            if (s->kind == (kind == API_SECRET ? API_SRC_SECRET : API_SRC_CONFIG_MAP) &&
                strcmp(s->name, name) == 0)
                return true;
        }
    return false;
}

/* `found`: the whole pod's, `"a" of ...; volume "w": ...`; "" : none. */
void payloads_note_overlaps(struct pod *p, const struct buf *found)
{
    struct pod_volumes *vols = volumes_of(p);
    const char *now = found->n > 0 && !found->failed ? found->p : NULL;

    if (str_eq(now, vols->overlaps))
        return;
    free(vols->overlaps);
    vols->overlaps = now != NULL ? strdup(now) : NULL;
    vols->overlaps_since_ns = clock_wall_ns();
    if (vols->overlaps != NULL) {
        log_warn("files of a volume are hidden by later sources", F_STR("pod", p->key),
                 F_STR("files", vols->overlaps));
        pod_event(p, NULL, true, "VolumeFilesHidden", "%s", vols->overlaps);
    }
}

json_t *volumes_overlaps_json(const struct pod *p)
{
    const struct pod_volumes *vols = volumes_of(p);
    char since[CLOCK_RFC3339_SIZE];
    json_t *o;

    if (vols->overlaps == NULL)
        return NULL;
    o = json_object();
    clock_format_s(vols->overlaps_since_ns, since);
    json_put_str(o, "type", "coracle.dev/VolumeFilesHidden");
    json_put_str(o, "status", "True");
    json_put_str(o, "lastTransitionTime", since);
    json_put_str(o, "reason", "LaterSourceWins");
    json_put_str(o, "message", vols->overlaps);
    return o;
}

/* Superseded versions stay a moment for their readers (volumes.h). */
static void tidy_later(struct pod *p)
{
    volumes_of(p)->vols_tidy_at = clock_boot_in_ms(VOL_KEEP_MS);
}

/* ---- on the loop, or on the pool ---- */

static enum err_code write_on_pool(void *arg, struct err *e)
{
    (void)e;
    payload_set_write(arg);
    return ERR_OK;
}

/* All of them: one that is woken may have no use for the place any more. */
static void wake_waiting(struct node *n)
{
    pods_each (n, p)
        if (volumes_of(p)->write_waits)
            pod_wake(p, "there is a place to write volumes");
}

static void payloads_on_written(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct pod_volumes *vols = volumes_of(p);
    scoped(payload_set_free) struct payload_set *s = take_ptr(&vols->writing);

    volume_node(p->node)->writes--;
    vols->written(p, result->code == ERR_OK ? s : NULL);
    wake_waiting(p->node);
    pod_wake(p, "volumes were written");
}

bool payloads_working(const struct pod *p)
{
    return op_live(&volumes_of(p)->write.op);
}

bool payloads_wait(struct pod *p)
{
    if (!volumes_of(p)->write_waits || volume_node(p->node)->writes < WRITES_MAX)
        return false;
    pod_wake_at(p, clock_boot_in_ms(WRITE_WAIT_MS), "volumes wait for others to be written");
    return true;
}

static enum err_code payloads_begin(struct pod *p, struct payload_set *set, payloads_written_fn written,
                                    struct err *e)
{
    scoped(payload_set_free) struct payload_set *s = set;
    struct pod_volumes *vols = volumes_of(p);

    if (s == NULL)
        return err_nomem(e);
    vols->write_waits = false;
    if (!payload_set_is_large(s, &vols->payload_entries)) {
        payload_set_write(s);
        written(p, s);
        return ERR_OK;
    }
    vols->write_waits = volume_node(p->node)->writes >= WRITES_MAX;
    if (payloads_wait(p))
        return err_set(e, ERR_UNAVAILABLE, "waiting for other pods' volumes to be written");
    volume_node(p->node)->writes++;
    vols->writing = take_ptr(&s);
    vols->written = written;
    work_start(&vols->write, "write volumes", p->key, write_on_pool, vols->writing, p->node->o.loop,
               payloads_on_written, p);
    return ERR_OK;
}

enum err_code payloads_write(struct pod *p, payloads_written_fn written, struct err *e)
{
    volumes_of(p)->tokens_renew_at = CLOCK_BOOT_NONE;
    return payloads_begin(p, payload_set_new(p), written, e);
}

void payloads_note(struct pod *p, const struct api_volume *v, const struct payload_result *r,
                   struct buf *overlaps)
{
    struct pod_volumes *vols = volumes_of(p);

    if (r->overlaps != NULL)
        buf_addf(overlaps, "%svolume \"%s\": %s", overlaps->n > 0 ? "; " : "", v->name, r->overlaps);
    if (clock_boot_is_set(r->renew_at) && (!clock_boot_is_set(vols->tokens_renew_at) ||
                                           clock_boot_is_before(r->renew_at, vols->tokens_renew_at)))
        vols->tokens_renew_at = r->renew_at;
    if (r->kept)
        tidy_later(p);
}

bool payloads_have_token(const struct api_volume *v)
{
    for (size_t i = 0; i < v->n_sources; i++)
        if (v->sources[i].kind == API_SRC_TOKEN)
            return true;
    return false;
}

/*
 * For a pod taken over from an earlier run of the agent: the published content stays even if its source is
 * missing or unsuitable, as it would if the agent had kept running.
 */
bool payloads_keep_content(struct pod *p, const struct api_volume *v, struct err *e)
{
    struct pod_volumes *vols = volumes_of(p);
    struct err unseen = { 0 };

    /* A token is being requested, which may take long if the apiserver does not answer: the last token
     * stays. */
    bool token = e->code == ERR_UNAVAILABLE && payloads_have_token(v) && sandbox_net(p) == NET_READY;

    if (v->kind != API_VOL_PAYLOAD || (e->code != ERR_PRECONDITION && e->code != ERR_EXHAUSTED && !token))
        return false;
    switch (presence_of(vol_payload_published(p->node->o.volumes, p->uid, v->name, &unseen))) {
    case PRESENCE_UNKNOWN: /* return the error of this read, which may be temporary, so that it is retried */
        *e = unseen;
        return false;
    case PRESENCE_ABSENT:
        return false;
    case PRESENCE_PRESENT:
        break;
    }
    *e = (struct err){ 0 };
    vols->payload_stale = true;
    vols->vols_retry_at = CLOCK_BOOT_NONE;
    tidy_later(p); /* remains of that run's last publish */
    return true;
}

/* ---- after a change ---- */

static void not_refreshed(struct pod *p, const struct api_volume *v, const struct err *e)
{
    struct pod_volumes *vols = volumes_of(p);
    char text[512];

    log_warn("cannot refresh volume", F_STR("pod", p->key), F_STR("volume", v->name), F_ERR(e));
    pod_event(p, NULL, true, "FailedMount",
              "MountVolume.SetUp failed for volume \"%s\" : %s; it keeps its old content", v->name, e->text);
    snprintf(text, sizeof(text), "volume \"%s\" keeps its old content: %.400s", v->name, e->text);
    str_keep(&vols->vols_error, text);
}

/* False: it is tried again. Errors become events. */
static bool refreshed_one(struct pod *p, const struct api_volume *v, const struct payload_result *r)
{
    if (r->changed) {
        log_info("volume published", F_STR("pod", p->key), F_STR("volume", v->name));
        live_sub_path_due(p);
    }
    if (r->e.code == ERR_OK)
        return true;
    /*
     * A deleted object or key leaves the files unchanged, and so does a token that is being requested; any
     * other failure becomes an event.
     */
    if (r->e.code == ERR_PRECONDITION || (r->e.code == ERR_UNAVAILABLE && payloads_have_token(v))) {
        log_info("volume keeps its content", F_STR("pod", p->key), F_STR("volume", v->name), F_ERR(&r->e));
        return true;
    }
    not_refreshed(p, v, &r->e);
    return false;
}

static void try_refresh_again(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    vols->payload_backoff_ms =
        backoff_next_ms(vols->payload_backoff_ms, REFRESH_RETRY_FIRST_MS, REFRESH_RETRY_MAX_MS);
    if (!vols->payload_stale) /* otherwise something changed meanwhile, and the refresh is due now */
        vols->vols_retry_at = clock_boot_in_ms(vols->payload_backoff_ms);
    vols->payload_stale = true;
}

static void refreshed(struct pod *p, const struct payload_set *s)
{
    struct pod_volumes *vols = volumes_of(p);
    buf_auto overlaps = BUF_INIT(64 * 1024);
    bool all = true;

    if (s == NULL) {
        vols->payload_stale = true;
        return;
    }
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct payload_result *r = payload_set_result(s, i);

        if (r == NULL)
            continue;
        payloads_note(p, &p->api->spec.volumes[i], r, &overlaps);
        all = refreshed_one(p, &p->api->spec.volumes[i], r) && all;
    }
    if (all)
        vols->payload_backoff_ms = 0;
    else
        try_refresh_again(p);
    payloads_note_overlaps(p, &overlaps);
}

static void refresh(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);
    struct err e = { 0 };

    vols->payload_stale = false;
    vols->vols_retry_at = CLOCK_BOOT_NONE;
    str_keep(&vols->vols_error, "");
    if (payloads_write(p, refreshed, &e) == ERR_OK)
        return;
    if (e.code == ERR_UNAVAILABLE)
        vols->payload_stale = true;
    else
        try_refresh_again(p);
}

bool payloads_follow(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);
    bool due = (p->state == POD_STARTING || p->state == POD_RUNNING) && p->wanted && p->successor == NULL &&
               vols->vols == VOLS_READY && vols->payload_stale && clock_boot_is_due(vols->vols_retry_at) &&
               !payloads_working(p) && !payloads_wait(p);

    if (due)
        refresh(p);
    return due;
}

static void tidied(struct pod *p, const struct payload_set *s)
{
    bool kept = s == NULL;

    for (size_t i = 0; !kept && i < p->api->spec.n_volumes; i++) {
        const struct payload_result *r = payload_set_result(s, i);
        kept = r != NULL && r->kept;
    }
    if (kept)
        tidy_later(p);
}

static void tidy_step(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);
    struct err e = { 0 };

    if (payloads_working(p))
        return; /* this wakes the pod */
    if (clock_boot_is_set(vols->vols_tidy_at) && clock_boot_is_due(vols->vols_tidy_at)) {
        vols->vols_tidy_at = CLOCK_BOOT_NONE;
        if (payloads_begin(p, payload_set_new_tidy(p), tidied, &e) != ERR_OK)
            tidy_later(p);
    }
    if (clock_boot_is_set(vols->vols_tidy_at))
        pod_wake_at(p, vols->vols_tidy_at, "old volume content is removed");
}

void payloads_step(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    if (vols->vols != VOLS_READY)
        return;
    if (clock_boot_is_set(vols->tokens_renew_at) && clock_boot_is_due(vols->tokens_renew_at))
        vols->payload_stale = true;
    payloads_follow(p);
    if (vols->payload_stale && !payloads_working(p) && !vols->write_waits)
        pod_wake_at(p, vols->vols_retry_at, "volume content is tried again");
    if (clock_boot_is_set(vols->tokens_renew_at))
        pod_wake_at(p, vols->tokens_renew_at, "token is renewed");
    tidy_step(p);
}
