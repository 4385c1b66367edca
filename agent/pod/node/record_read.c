/* SPDX-License-Identifier: Apache-2.0 */
/* record_read - makes a pod from its record. Impossible numbers or names are treated as absent. */
#include "agent/pod/core/start_times.h"
#include "agent/pod/record/record.h"
#include "agent/pod/worker/pods.h"
#include "agent/pod/worker/worker.h"

#include "agent/pod/container/env_age.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <string.h>

#define TIME_MAX_NS (INT64_MAX / 2) /* the year 2116: adding a grace period cannot overflow */

static void read_sizes(const json_t *o, struct cpu_memory *s)
{
    json_int_t v[4];

    if (json_unpack(json_object_get(o, "sizes"), "[I,I,I,I]", &v[0], &v[1], &v[2], &v[3]) == 0)
        *s = (struct cpu_memory){ true, v[0], v[1], v[2], v[3] };
}

static void record_read_copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from != NULL ? from : "");
}

/* A whole number of at most `max`, otherwise 0: derived values must fit their type. */
static int64_t record_read_number(const json_t *o, const char *key, int64_t max)
{
    json_int_t v = json_int(o, key, 0);

    return v > 0 && v <= max ? v : 0;
}

static int64_t record_read_time_of(const json_t *o, const char *key)
{
    return record_read_number(o, key, TIME_MAX_NS);
}

/* An earlier version recorded how far the wall clock had been set. */
static int64_t shift_of(const json_t *o, const char *key)
{
    json_int_t v = json_int(o, key, 0);

    return v > -TIME_MAX_NS / 4 && v < TIME_MAX_NS / 4 ? v : 0;
}

/* ---- moments ---- */

struct record_clock {
    bool rebooted;            /* since it was written */
    int64_t boot_ns, wall_ns; /* both clocks then; 0: written by an earlier version */
    bool synchronised;        /* the wall clock, then */
    int64_t older_offset_ns;  /* from boot to wall clock, from an earlier version; 0: unknown */
};

static struct record_clock record_clock_of(const json_t *o, bool rebooted)
{
    return (struct record_clock){ .rebooted = rebooted,
                                  .boot_ns = record_read_time_of(o, "writtenBoot"),
                                  .wall_ns = record_read_time_of(o, "written"),
                                  .synchronised = json_flag(o, "synchronised"),
                                  .older_offset_ns = record_read_time_of(o, "clockOffset") };
}

/*
 * Before this boot: as long ago as the wall clock says, if it is to be believed, and at least as long as was
 * counted until the record was written and since the boot.
 */
static struct boot_time record_moment_before_boot(int64_t wall_ns, int64_t counted_ns, bool by_wall)
{
    int64_t up_ns = clock_boot().ns, least_ns = up_ns + counted_ns;
    int64_t age_ns = by_wall ? clock_wall_ns() - wall_ns : 0;
    int64_t at_ns = up_ns - (age_ns > least_ns ? age_ns : least_ns);

    return (struct boot_time){ at_ns != 0 ? at_ns : -1 };
}

/* `older_ns`: the same by the wall clock, in a record of an earlier version. */
static struct boot_time record_moment(const struct record_clock *k, const json_t *o, const char *key,
                                      int64_t older_ns, bool by_wall)
{
    json_int_t boot_ns = json_int(o, key, 0);

    if (boot_ns < -TIME_MAX_NS / 2 || boot_ns > TIME_MAX_NS || (k->boot_ns != 0 && boot_ns > k->boot_ns))
        boot_ns = 0;
    if (boot_ns != 0 && !k->rebooted)
        return (struct boot_time){ boot_ns < clock_boot().ns ? boot_ns : clock_boot().ns };
    if (boot_ns != 0 && k->boot_ns != 0)
        return record_moment_before_boot(k->wall_ns - k->boot_ns + boot_ns, k->boot_ns - boot_ns, by_wall);
    if (older_ns == 0)
        return CLOCK_BOOT_NONE;
    if (k->rebooted)
        return record_moment_before_boot(older_ns, 0, by_wall);
    return clock_boot_of_wall(
        older_ns + (k->older_offset_ns == 0 ? 0 : clock_wall_ns() - clock_boot().ns - k->older_offset_ns));
}

/* ---- the parts ---- */

static int32_t priority_of(const json_t *o)
{
    json_int_t v = json_int(o, "priority", 0);

    return v >= INT32_MIN && v <= INT32_MAX ? (int32_t)v : 0;
}

static bool id_is_sane(const char *id) /* becomes part of paths */
{
    return id == NULL || (strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64);
}

static bool instance_read(const struct record_clock *k, const json_t *o, int64_t ended_shift_ns,
                          struct instance *i)
{
    const char *id = json_str(o, "id"), *message = json_str(o, "message"), *image = json_str(o, "imageID");
    const char *file = json_str(o, "messageFile"), *ref = json_str(o, "imageRef");

    if (o == NULL || id == NULL)
        return true;
    if (!id_is_sane(id) || (file != NULL && !fs_path_is_safe(file)))
        return false;
    record_read_copy(i->id, sizeof(i->id), id);
    i->attempt = (unsigned)record_read_number(o, "attempt", INT32_MAX);
    i->created_ns = record_read_time_of(o, "created");
    i->started_ns = record_read_time_of(o, "started");
    i->started_at = record_moment(k, o, "startedBoot", i->started_ns, true);
    i->image_id = image != NULL ? strdup(image) : NULL;
    i->image_ref = ref != NULL ? strdup(ref) : NULL;
    record_read_copy(i->message_file, sizeof(i->message_file), file);
    read_sizes(o, &i->sizes);
    if (env_age_is_sane(json_object_get(o, "envSources")))
        i->env_sources = json_incref(json_object_get(o, "envSources"));
    if (i->env_sources != NULL && env_age_is_sane(json_object_get(o, "envTold")))
        i->env_told = json_incref(json_object_get(o, "envTold"));
    if (json_object_get(o, "finished") != NULL) {
        i->ended = true;
        i->finished_ns = record_read_time_of(o, "finished");
        i->ended_at = record_moment(k, o, "finishedBoot", i->finished_ns + ended_shift_ns, true);
        i->exit_code = (int)record_read_number(o, "exitCode", 255);
        record_read_copy(i->reason, sizeof(i->reason), json_str(o, "reason"));
        i->message = message != NULL ? strdup(message) : NULL;
    }
    return true;
}

static enum pod_state state_of(const char *name)
{
    for (int s = POD_PENDING; s <= POD_TERMINATED; s++)
        if (str_eq(pod_state_name((enum pod_state)s), name))
            return (enum pod_state)s;
    return POD_PENDING;
}

static enum err_code decode_manifest(const json_t *o, struct api_pod **ret, struct err *e)
{
    struct api_problems problems = { 0 };

    if ((api_decode_pod(json_object_get(o, "manifest"), ret, &problems, e) != ERR_OK || *ret == NULL) &&
        e->code == ERR_OK)
        err_set(e, ERR_INVALID, "manifest: %s: %s", problems.n > 0 ? problems.v[0].where : "?",
                problems.n > 0 ? problems.v[0].what : "?");
    api_problems_done(&problems);
    return e->code;
}

static void read_ctr(const struct record_clock *k, struct ctr *c, const json_t *j, const char *name)
{
    c->restarts = (unsigned)record_read_number(j, "restarts", INT32_MAX);
    c->backoff_ms = (uint64_t)record_read_number(j, "backoffMs", BACKOFF_MAX_MS);
    c->backoff_at = record_moment(k, j, "backoffAtBoot", record_read_time_of(j, "backoffAt"), true);
    c->replace = json_flag(j, "replace");
    c->again = json_flag(j, "again");
    c->asked = json_flag(j, "asked");
    c->was_ready = json_flag(j, "ready");
    c->was_started = json_flag(j, "started");
    c->post = json_flag(j, "postStart") ? POST_RUNNING : POST_NONE;
    if (!instance_read(k, json_object_get(j, "current"), shift_of(j, "endedShift"), &c->cur) ||
        !instance_read(k, json_object_get(j, "last"), 0, &c->last))
        log_warn("pod record: ignoring an invalid instance", F_STR("record", name),
                 F_STR("containerName", c->spec->name));
    /* Until the runtime was asked (pods_recover): alive according to the record. */
    if (c->cur.id[0] != '\0' && !c->cur.ended)
        c->state = c->cur.started_ns != 0 ? CTR_RUNNING : CTR_CREATED;
    c->recovered = c->state == CTR_RUNNING;
    if (!c->recovered)
        c->post = POST_NONE;
    c->state_began = c->cur.started_at;
}

static void record_read_pod(const struct record_clock *k, struct pod *p, const json_t *o)
{
    record_read_copy(p->manifest_file, sizeof(p->manifest_file), json_str(o, "manifestFile"));
    p->state = state_of(json_str(o, "state"));
    p->rebooted = k->rebooted;
    p->state_since_ns = record_read_time_of(o, "stateSince");
    p->state_began =
        record_moment(k, o, "stateSinceBoot", p->state_since_ns + shift_of(o, "endingShift"), true);
    p->seen_at = CLOCK_BOOT_NONE;
    p->created_ns =
        record_read_time_of(o, "created") != 0 ? record_read_time_of(o, "created") : p->created_ns;
    p->start_time_ns = record_read_time_of(o, "startTime");
    p->active_began = record_moment(k, o, "startTimeBoot", p->start_time_ns, k->synchronised);
    p->start_times = (struct start_times){ 0 };
    p->priority = priority_of(o);
    p->admitted = json_flag(o, "admitted");
    p->rejected = json_flag(o, "rejected");
    p->finishing = json_flag(o, "finishing");
    p->initialized = json_flag(o, "initialized");
    record_read_copy(p->phase, sizeof(p->phase), json_str(o, "phase"));
    record_read_copy(p->reason, sizeof(p->reason), json_str(o, "reason"));
    p->message = json_str(o, "message") != NULL ? strdup(json_str(o, "message")) : NULL;
    p->deletion_ns = record_read_time_of(o, "deletion");
    p->shutdown_ns = record_read_time_of(o, "shutdown");
    p->preempted_ns = record_read_time_of(o, "preempted");
    p->preempting = json_flag(o, "preempting");
    p->grace_seconds = record_read_number(o, "graceSeconds", GRACE_MAX_SECONDS);
    record_read_copy(p->sandbox_id, sizeof(p->sandbox_id), json_str(o, "sandboxID"));
    read_sizes(o, &p->sizes);
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
        !id_is_sane(json_str(o, "sandboxID")))
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
    for (size_t i = 0; i < p->n_ctrs; i++)
        read_ctr(&clock, &p->ctrs[i],
                 json_object_get(json_object_get(o, "containers"), p->ctrs[i].spec->name), name);
    return ERR_OK;
}
