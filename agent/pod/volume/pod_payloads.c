/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/pod_payloads.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/live_sub_path.h"
#include "agent/pod/volume/payload.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

/* Delay until a payload with outdated content is retried: doubled from the first to the last. */
#define REFRESH_RETRY_FIRST_MS 200
#define REFRESH_RETRY_MAX_MS 30000
#define MS INT64_C(1000000)

bool volumes_use_config(const struct api_pod *api, enum api_config_kind kind, const char *name)
{
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

enum err_code payloads_publish(struct pod *p, const struct api_volume *v, struct buf *overlaps,
                               bool *ret_changed, struct err *e)
{
    struct pod_volumes *vols = volumes_of(p);
    struct arena a = { 0 };
    /* As programs find it under kubelet: ConfigMaps on disk, the others on a tmpfs with its default mode. */
    struct vol_payload payload = { .uid = p->uid, .name = v->name, .fs_group = -1, .root_mode = 01777 };
    struct payload made;
    enum err_code code;
    bool kept = false;

    if (!v->projected && v->n_sources == 1 && v->sources[0].kind == API_SRC_CONFIG_MAP)
        payload.root_mode = 0777;
    if (p->api->spec.security.has_fs_group)
        payload.fs_group = p->api->spec.security.fs_group;
    code = payload_build(p, v, &a, &made, e);
    if (code == ERR_OK) {
        if (made.overlaps != NULL)
            buf_addf(overlaps, "%svolume \"%s\": %s", overlaps->n > 0 ? "; " : "", v->name, made.overlaps);
        if (clock_boot_is_set(made.renew_at) && (!clock_boot_is_set(vols->tokens_renew_at) ||
                                                 clock_boot_is_before(made.renew_at, vols->tokens_renew_at)))
            vols->tokens_renew_at = made.renew_at;
        payload.files = made.files;
        payload.n_files = made.n_files;
        payload.ret_kept = &kept;
        code = vol_payload_publish(p->node->o.volumes, &payload, ret_changed, e);
    }
    if (kept)
        tidy_later(p);
    arena_done(&a);
    return code;
}

bool payloads_have_token(const struct api_volume *v)
{
    for (size_t i = 0; i < v->n_sources; i++)
        if (v->sources[i].kind == API_SRC_TOKEN)
            return true;
    return false;
}

/* Taken over from an earlier run of the agent: what it published stays, though its source is gone or does not
 * fit, as it would if the agent had not been away. The next look tells. */
bool payloads_keep_content(struct pod *p, const struct api_volume *v, struct err *e)
{
    struct pod_volumes *vols = volumes_of(p);
    struct err unseen = { 0 };

    if (v->kind != API_VOL_PAYLOAD || (e->code != ERR_PRECONDITION && e->code != ERR_EXHAUSTED))
        return false;
    switch (presence_of(vol_payload_published(p->node->o.volumes, p->uid, v->name, &unseen))) {
    case PRESENCE_UNKNOWN: /* of both errors the one that passes: it is tried again */
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
    tidy_later(p); /* what was left of that run's last publish */
    pod_wake(p, "volume content was kept");
    return true;
}

/* ---- after a change ---- */

/* Errors become events. */
static void refresh(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);
    uint64_t backoff_ms =
        backoff_next_ms(vols->payload_backoff_ms, REFRESH_RETRY_FIRST_MS, REFRESH_RETRY_MAX_MS);
    buf_auto overlaps = BUF_INIT(64 * 1024);

    vols->payload_stale = false;
    vols->vols_retry_at = vols->tokens_renew_at = CLOCK_BOOT_NONE;
    vols->vols_error[0] = '\0';
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        struct err e = { 0 };
        bool changed = false;

        if (v->kind != API_VOL_PAYLOAD || !volumes_is_mounted(p, v->name))
            continue;
        ERR_IGNORE(payloads_publish(p, v, &overlaps, &changed, &e));
        if (changed) {
            log_info("volume published", F_STR("pod", p->key), F_STR("volume", v->name));
            live_sub_path_due(p);
        }
        if (e.code != ERR_OK) {
            /* A deleted object or key leaves the files as they were, as does a token that is being asked for;
             * anything else is worth an event. */
            if (e.code == ERR_PRECONDITION || (e.code == ERR_UNAVAILABLE && payloads_have_token(v))) {
                log_info("volume keeps its content", F_STR("pod", p->key), F_STR("volume", v->name),
                         F_ERR(&e));
                continue;
            }
            log_warn("cannot refresh volume", F_STR("pod", p->key), F_STR("volume", v->name), F_ERR(&e));
            pod_event(p, NULL, true, "FailedMount",
                      "MountVolume.SetUp failed for volume \"%s\" : %s; it keeps its old content", v->name,
                      e.text);
            snprintf(vols->vols_error, sizeof(vols->vols_error),
                     "volume \"%s\" keeps its old content: %.400s", v->name, e.text);
            vols->payload_stale = true;
            vols->vols_retry_at = clock_boot_in_ms(backoff_ms);
        }
    }
    vols->payload_backoff_ms = vols->payload_stale ? backoff_ms : 0;
    payloads_note_overlaps(p, &overlaps);
}

void payloads_follow(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    if ((p->state == POD_STARTING || p->state == POD_RUNNING) && p->wanted && p->successor == NULL &&
        vols->vols == VOLS_READY && vols->payload_stale && clock_boot_is_due(vols->vols_retry_at))
        refresh(p);
}

static void tidy_step(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    if (clock_boot_is_set(vols->vols_tidy_at) && clock_boot_is_due(vols->vols_tidy_at)) {
        vols->vols_tidy_at = CLOCK_BOOT_NONE;
        for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
            const struct api_volume *v = &p->api->spec.volumes[i];
            bool kept = false;
            if (v->kind == API_VOL_PAYLOAD && volumes_is_mounted(p, v->name))
                vol_payload_tidy(p->node->o.volumes, p->uid, v->name, &kept);
            if (kept)
                tidy_later(p);
        }
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
    if (vols->payload_stale)
        pod_wake_at(p, vols->vols_retry_at, "volume content is tried again");
    if (clock_boot_is_set(vols->tokens_renew_at))
        pod_wake_at(p, vols->tokens_renew_at, "token is renewed");
    tidy_step(p);
}
