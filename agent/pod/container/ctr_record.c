/* SPDX-License-Identifier: Apache-2.0 */
/* ctr_record - containers and their runs in the pod's record: "containers":{name:{...}}. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/env_age.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/probes.h"
#include "agent/pod/core/record_field.h"
#include "agent/pod/limits/cpu_memory.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <string.h>

/* ---- written ---- */

static json_t *instance_json(const struct instance *i)
{
    json_t *o = json_object();

    json_put_str(o, "id", i->id);
    json_object_set_new(o, "attempt", json_integer(i->attempt));
    json_object_set_new(o, "created", json_integer(i->created_ns));
    json_object_set_new(o, "started", json_integer(i->started_ns));
    json_object_set_new(o, "startedBoot", json_integer(i->started_at.ns));
    json_put_str(o, "imageID", i->image_id);
    json_put_str(o, "imageRef", i->image_ref);
    json_put_str(o, "messageFile", i->message_file);
    json_put_str(o, "why", i->why);
    cpu_memory_save(&i->sizes, o);
    if (i->ended) {
        json_object_set_new(o, "finished", json_integer(i->finished_ns));
        json_object_set_new(o, "finishedBoot", json_integer(i->ended_at.ns));
        json_object_set_new(o, "exitCode", json_integer(i->exit_code));
        json_put_str(o, "reason", i->reason);
        json_put_str(o, "message", i->message);
    }
    return o;
}

static json_t *current_json(const struct ctr *c)
{
    const struct ctr_own *own = own_of(c);
    json_t *o = instance_json(&c->cur);

    if (own->env_sources != NULL)
        json_object_set(o, "envSources", own->env_sources);
    if (own->env_told != NULL)
        json_object_set(o, "envTold", own->env_told);
    return o;
}

static json_t *ctr_json(const struct ctr *c)
{
    const struct ctr_own *own = own_of(c);
    json_t *j = json_object();

    json_object_set_new(j, "restarts", json_integer(c->restarts));
    json_object_set_new(j, "backoffMs", json_integer((json_int_t)own->backoff_ms));
    json_object_set_new(j, "backoffAtBoot", json_integer(own->backoff_at.ns));
    if (c->replace)
        json_object_set_new(j, "replace", json_true());
    if (c->again)
        json_object_set_new(j, "again", json_true());
    if (own->asked)
        json_object_set_new(j, "asked", json_true());
    if (probes_result(c, PROBE_READINESS) == RESULT_SUCCESS)
        json_object_set_new(j, "ready", json_true());
    if (probes_result(c, PROBE_STARTUP) == RESULT_SUCCESS)
        json_object_set_new(j, "started", json_true());
    if (own->post != POST_NONE) /* an interrupted one runs again; a failed one fails again */
        json_object_set_new(j, "postStart", json_true());
    if (c->cur.id[0] != '\0')
        json_object_set_new(j, "current", current_json(c));
    if (c->last.id[0] != '\0')
        json_object_set_new(j, "last", instance_json(&c->last));
    return j;
}

void ctr_record_save(const struct pod *p, json_t *record)
{
    json_t *ctrs = json_object();

    for (size_t i = 0; i < p->n_ctrs; i++)
        json_object_set_new(ctrs, p->ctrs[i]->spec->name, ctr_json(p->ctrs[i]));
    json_object_set_new(record, "containers", ctrs);
}

/* ---- read ---- */

static bool instance_read(const struct record_clock *k, const json_t *o, int64_t ended_shift_ns,
                          struct instance *i)
{
    const char *id = json_str(o, "id"), *message = json_str(o, "message"), *image = json_str(o, "imageID");
    const char *file = json_str(o, "messageFile"), *ref = json_str(o, "imageRef");

    if (o == NULL || id == NULL)
        return true;
    if (!record_id_is_sane(id) || (file != NULL && !fs_path_is_safe(file)))
        return false;
    record_copy(i->id, sizeof(i->id), id);
    i->attempt = (unsigned)record_number(o, "attempt", INT32_MAX);
    i->created_ns = record_time(o, "created");
    i->started_ns = record_time(o, "started");
    i->started_at = record_moment(k, o, "startedBoot", i->started_ns, true);
    i->image_id = image != NULL ? strdup(image) : NULL;
    i->image_ref = ref != NULL ? strdup(ref) : NULL;
    record_copy(i->message_file, sizeof(i->message_file), file);
    if (json_str(o, "why") != NULL)
        instance_add_why(i, "%s", json_str(o, "why"));
    cpu_memory_load(&i->sizes, o);
    if (json_object_get(o, "finished") != NULL) {
        i->ended = true;
        i->finished_ns = record_time(o, "finished");
        i->ended_at = record_moment(k, o, "finishedBoot", i->finished_ns + ended_shift_ns, true);
        i->exit_code = (int)record_number(o, "exitCode", 255);
        record_copy(i->reason, sizeof(i->reason), json_str(o, "reason"));
        i->message = message != NULL ? strdup(message) : NULL;
    }
    return true;
}

static bool current_read(const struct record_clock *k, struct ctr *c, const json_t *o, int64_t ended_shift_ns)
{
    struct ctr_own *own = own_of(c);

    if (!instance_read(k, o, ended_shift_ns, &c->cur))
        return false;
    if (c->cur.id[0] != '\0' && env_age_is_sane(json_object_get(o, "envSources")))
        own->env_sources = json_incref(json_object_get(o, "envSources"));
    if (own->env_sources != NULL && env_age_is_sane(json_object_get(o, "envTold")))
        own->env_told = json_incref(json_object_get(o, "envTold"));
    return true;
}

/* Into fields as they are: nothing of it is a change. */
static void ctr_read(const struct record_clock *k, struct ctr *c, const json_t *j)
{
    struct ctr_own *own = own_of(c);

    c->restarts = (unsigned)record_number(j, "restarts", INT32_MAX);
    own->backoff_ms = (uint64_t)record_number(j, "backoffMs", BACKOFF_MAX_MS);
    own->backoff_at = record_moment(k, j, "backoffAtBoot", record_time(j, "backoffAt"), true);
    c->replace = json_flag(j, "replace");
    c->again = json_flag(j, "again");
    own->asked = json_flag(j, "asked");
    own->was_ready = json_flag(j, "ready");
    own->was_started = json_flag(j, "started");
    own->post = json_flag(j, "postStart") ? POST_RUNNING : POST_NONE;
    if (!current_read(k, c, json_object_get(j, "current"), record_shift(j, "endedShift")) ||
        !instance_read(k, json_object_get(j, "last"), 0, &c->last))
        log_warn("pod record: ignoring an invalid instance", F_STR("pod", c->pod->key),
                 F_STR("podUID", c->pod->uid), F_STR("containerName", c->spec->name));
    /* Until the runtime has been queried (containers_recover()), the container is alive according to the
     * record. */
    if (c->cur.id[0] != '\0' && !c->cur.ended)
        c->state = c->cur.started_ns != 0 ? CTR_RUNNING : CTR_CREATED;
    own->recovered = c->state == CTR_RUNNING;
    if (!own->recovered)
        own->post = POST_NONE;
    c->state_began = c->cur.started_at;
}

void ctr_record_load(struct pod *p, const json_t *record)
{
    const struct record_clock k = record_clock_of(record, p->rebooted);
    const json_t *ctrs = json_object_get(record, "containers");

    for (size_t i = 0; i < p->n_ctrs; i++)
        ctr_read(&k, p->ctrs[i], json_object_get(ctrs, p->ctrs[i]->spec->name));
}
