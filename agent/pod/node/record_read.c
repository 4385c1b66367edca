/* SPDX-License-Identifier: Apache-2.0 */
/* record_read - makes a pod from its record. Impossible numbers or names are treated as absent. */
#include "agent/pod/core/record_field.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/node/record_load.h"
#include "agent/pod/record/record.h"
#include "agent/pod/worker/pods.h"

#include "base/clock.h"
#include "base/codec/json.h"

#include <string.h>

/* ---- the parts ---- */

static int32_t priority_of(const json_t *o)
{
    json_int_t v = json_int(o, "priority", 0);

    return v >= INT32_MIN && v <= INT32_MAX ? (int32_t)v : 0;
}

static enum pod_state state_of(const char *name)
{
    for (int s = POD_PENDING; s <= POD_TERMINATED; s++)
        if (str_eq(pod_state_name((enum pod_state)s), name))
            return (enum pod_state)s;
    return POD_PENDING;
}

static enum err_code decode_served(const json_t *o, struct api_pod *pod, struct err *e)
{
    const char *problem = json_str(o, "problem"), *conditions = json_str(o, "othersConditions");
    const struct api_served served = { .problem = (char *)(uintptr_t)problem,
                                       .conditions = (char *)(uintptr_t)conditions };

    return api_pod_serve(pod, &served, e);
}

static enum err_code decode_manifest(const json_t *o, struct api_pod **ret, struct err *e)
{
    struct api_problems problems = { 0 };

    if ((api_decode_pod(json_object_get(o, "manifest"), ret, &problems, e) != ERR_OK || *ret == NULL) &&
        e->code == ERR_OK)
        err_set(e, ERR_INVALID, "manifest: %s: %s", problems.n > 0 ? problems.v[0].field : "?",
                problems.n > 0 ? problems.v[0].message : "?");
    api_problems_done(&problems);
    if (e->code == ERR_OK && str_eq(json_str(o, "source"), "apiserver"))
        return decode_served(o, *ret, e);
    return e->code;
}

static void record_read_pod(const struct record_clock *k, struct pod *p, const json_t *o)
{
    record_copy(p->manifest_file, sizeof(p->manifest_file), json_str(o, "manifestFile"));
    p->state = state_of(json_str(o, "state"));
    p->rebooted = k->rebooted;
    p->state_since_ns = record_time(o, "stateSince");
    p->state_began =
        record_moment(k, o, "stateSinceBoot", p->state_since_ns + record_shift(o, "endingShift"), true);
    p->seen_at = CLOCK_BOOT_NONE;
    p->created_ns = record_time(o, "created") != 0 ? record_time(o, "created") : p->created_ns;
    p->start_time_ns = record_time(o, "startTime");
    p->active_began = record_moment(k, o, "startTimeBoot", p->start_time_ns, k->synchronised);
    p->start_times = (struct start_times){ 0 };
    p->priority = priority_of(o);
    p->admitted = json_flag(o, "admitted");
    p->rejected = json_flag(o, "rejected");
    p->finishing = json_flag(o, "finishing");
    p->initialized = json_flag(o, "initialized");
    record_copy(p->phase, sizeof(p->phase), json_str(o, "phase"));
    record_copy(p->reason, sizeof(p->reason), json_str(o, "reason"));
    p->message = json_str(o, "message") != NULL ? strdup(json_str(o, "message")) : NULL;
    p->measured = json_str(o, "measured") != NULL ? strdup(json_str(o, "measured")) : NULL;
    p->deletion_ns = record_time(o, "deletion");
    p->shutdown_ns = record_time(o, "shutdown");
    p->preempted_ns = record_time(o, "preempted");
    p->evicted_ns = record_time(o, "evicted");
    p->disrupted = json_flag(o, "disrupted");
    p->disruptions = (unsigned)record_number(o, "disruptions", UINT16_MAX);
    p->kill_now = json_flag(o, "killNow");
    p->preempting = json_flag(o, "preempting");
    p->grace_seconds = record_number(o, "graceSeconds", GRACE_MAX_SECONDS);
    record_copy(p->sandbox_id, sizeof(p->sandbox_id), json_str(o, "sandboxID"));
    rooms_load_pod(p, o);
}

static bool was_before_reboot(const struct node *n, const char *boot)
{
    return boot != NULL && boot[0] != '\0' && n->boot_id[0] != '\0' && strcmp(boot, n->boot_id) != 0;
}

enum err_code record_read(struct node *n, const char *name, const char *text, size_t size, bool durable,
                          struct err *e)
{
    json_auto_t *o = NULL;
    scoped(api_pod_unref) struct api_pod *api = NULL;
    struct record_clock clock;
    const char *uid;
    struct pod *p;

    if (json_parse(text, size, RECORD_MAX, &o, "pod record", e) != ERR_OK)
        return e->code;
    uid = json_str(o, "uid");
    if (json_int(o, "version", 0) != RECORD_VERSION)
        return err_set(e, ERR_INVALID, "version %lld is not %d", (long long)json_int(o, "version", 0),
                       RECORD_VERSION);
    if (uid == NULL || strlen(uid) + 5 != strlen(name) || strncmp(name, uid, strlen(uid)) != 0 ||
        !record_id_is_sane(json_str(o, "sandboxID")))
        return err_set(e, ERR_INVALID, "invalid uid or sandbox id");
    if (decode_manifest(o, &api, e) != ERR_OK)
        return e->code;
    if (pods_find(n, api->meta.namespace, api->meta.name) != NULL)
        return err_set(e, ERR_EXISTS, "another record names the same pod %s/%s", api->meta.namespace,
                       api->meta.name);
    p = pods_new(n, api, uid);
    if (p == NULL)
        return err_nomem(e);
    p->recovered = true;
    p->record_durable = durable;
    p->record_dirty = !durable;
    p->wanted = true; /* until the sources are ready */
    clock = record_clock_of(o, was_before_reboot(n, json_str(o, "bootID")));
    record_read_pod(&clock, p, o);
    if (durable)
        record_is_saved(p, text, o);
    return ERR_OK;
}
