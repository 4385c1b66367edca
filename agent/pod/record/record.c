/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod's record: facts that cannot be read back from the kernel or the runtime after the agent was killed.
 *
 *     <state>/pods/<uid>.json   {"version":1, "uid", "bootID", "manifest":{...}, "state", "startTime", ...
 *                                "sandboxID", "containers":{name:{...}}}
 *     <run>/records/<uid>.json  the same, where the disk did not take it: full, read-only, broken
 *
 * Written by atomic rename whenever something of it changed, then synced (record_sync.c).  A damaged one, or
 * one of a newer version than this program knows, is set aside and reported; where the power was cut while it
 * was on its way to the disk, <uid>.json.synced takes its place.  Without that its remains are leftovers of
 * nobody, which node_sources_ready() clears away.  No Secret ever stands in it: environments are not kept.
 *
 * Moments of waits are written by the boot clock ("...Boot").  After a reboot they are converted
 * (record_read.c), by both clocks as they were when the record was written: "writtenBoot", "written",
 * "synchronised".
 *
 * A version is counted up only when an older program would misread the record; a mere addition has defaults.
 */
#include "agent/pod/record/record.h"

#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/record/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/siphash.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define END ",\"number\":"                /* what follows is different each time */
#define CLOCK_STEP_NS INT64_C(1000000000) /* smaller differences of the clocks do not matter */

static json_t *record_to_json(const struct pod *p)
{
    json_t *o = json_object();

    json_object_set_new(o, "version", json_integer(RECORD_VERSION));
    json_put_str(o, "uid", p->uid);
    json_put_str(o, "bootID", p->node->boot_id);
    json_put_str(o, "manifestFile", p->manifest_file);
    json_put_str(o, "state", pod_state_name(p->state));
    json_object_set_new(o, "stateSince", json_integer(p->state_since_ns));
    json_object_set_new(o, "stateSinceBoot", json_integer(p->state_began.ns));
    json_object_set_new(o, "created", json_integer(p->created_ns));
    json_object_set_new(o, "startTime", json_integer(p->start_time_ns));
    json_object_set_new(o, "startTimeBoot", json_integer(p->active_began.ns));
    json_object_set_new(o, "admitted", json_boolean(p->admitted));
    json_object_set_new(o, "rejected", json_boolean(p->rejected));
    json_object_set_new(o, "finishing", json_boolean(p->finishing));
    json_object_set_new(o, "initialized", json_boolean(p->initialized));
    json_put_str(o, "phase", p->phase);
    json_put_str(o, "reason", p->reason);
    json_put_str(o, "message", p->message);
    json_put_str(o, "measured", p->measured);
    json_object_set_new(o, "deletion", json_integer(p->deletion_ns));
    json_object_set_new(o, "graceSeconds", json_integer(p->grace_seconds));
    if (p->shutdown_ns != 0)
        json_object_set_new(o, "shutdown", json_integer(p->shutdown_ns));
    if (p->evicted_ns != 0)
        json_object_set_new(o, "evicted", json_integer(p->evicted_ns));
    if (p->disrupted)
        json_object_set_new(o, "disrupted", json_true());
    if (p->disruptions != 0)
        json_object_set_new(o, "disruptions", json_integer(p->disruptions));
    if (p->kill_now)
        json_object_set_new(o, "killNow", json_true());
    if (p->preempting)
        json_object_set_new(o, "preempting", json_true());
    if (p->preempted_ns != 0)
        json_object_set_new(o, "preempted", json_integer(p->preempted_ns));
    if (p->api->origin == API_FROM_SERVER) {
        json_put_str(o, "source", "apiserver");
        json_put_str(o, "problem", p->api->served.problem);
        json_put_str(o, "othersConditions", p->api->served.conditions);
    }
    json_put_str(o, "sandboxID", p->sandbox_id);
    json_object_set_new(o, "priority", json_integer(p->priority));
    rooms_save_pod(p, o);
    return o;
}

/* The pod's file, as known now; unchanged if the folder is already closed. */
static void note_file(struct pod *p)
{
    const char *file =
        p->node->folder != NULL && p->api->origin == API_FROM_FOLDER
            ? src_folder_file_of_pod(p->node->folder, p->api->meta.namespace, p->api->meta.name)
            : NULL;

    if (file != NULL)
        snprintf(p->manifest_file, sizeof(p->manifest_file), "%s", file);
}

/* Setting record_dirty does not imply that the record changes; most container state changes are not recorded.
 * So compare hashes. */
static bool is_written(struct pod *p, const struct buf *text)
{
    struct pod_record *r = record_of(p);
    uint64_t hash = siphash_part(0, text->p, text->n);
    bool same = hash == r->hash && r->written;

    r->hash = hash;
    return same;
}

/* The clocks of record_end() are still the ones of now: after a reboot they would convert the record's
 * moments. */
static bool has_these_clocks(const json_t *record)
{
    int64_t before = json_int(record, "written", 0) - json_int(record, "writtenBoot", 0);
    int64_t step = clock_wall_ns() - clock_boot().ns - before;

    return step > -CLOCK_STEP_NS && step < CLOCK_STEP_NS &&
           json_is_true(json_object_get(record, "synchronised")) == clock_wall_is_synchronised();
}

void record_is_saved(struct pod *p, const char *text, const json_t *record)
{
    struct pod_record *r = record_of(p);
    const char *end = NULL;

    for (const char *at = text; (at = strstr(at, END)) != NULL; at++)
        end = at;
    if (end == NULL || !has_these_clocks(record))
        return;
    r->hash = siphash_part(0, text, (size_t)(end - text));
    r->written = true;
}

/* If the disk accepts no writes, at least a restart of the agent, which keeps the run folder, finds the
 * running containers. record_load.c uses the record with the higher number. */
static bool write_aside(struct pod *p, const struct buf *text)
{
    struct err e = { 0 };
    char path[512];

    snprintf(path, sizeof(path), "%s/records/%s.json", p->node->o.run_dir, p->uid);
    record_of(p)->aside = true;
    if (fs_replace_at(AT_FDCWD, path, text->p, text->n, 0600, false, &e) != ERR_OK)
        log_debug("cannot write the pod record in the run folder", F_STR("pod", p->key), F_ERR(&e));
    return e.code == ERR_OK;
}

/* A failed removal is noted for the next save. */
static void remove_aside(struct pod *p)
{
    struct pod_record *r = record_of(p);
    char path[512];

    if (!r->aside)
        return;
    snprintf(path, sizeof(path), "%s/records/%s.json", p->node->o.run_dir, p->uid);
    r->aside = unlink(path) != 0 && errno != ENOENT;
}

/* Without its end, which is different each time. */
static enum err_code record_text(const struct pod *p, struct buf *text, struct err *e)
{
    json_auto_t *o = record_to_json(p);
    str_auto head = o != NULL ? json_text(o) : NULL;

    if (head == NULL)
        return err_nomem(e);
    /* The manifest is already available as text: insert it without parsing. */
    buf_add(text, head, strlen(head) - 1);
    buf_adds(text, ",\"manifest\":");
    buf_adds(text, p->api->json);
    return buf_check(text, e);
}

static enum err_code record_end(const struct pod *p, struct buf *text, struct err *e)
{
    buf_addf(text, END "%" PRIu64 ",\"writtenBoot\":%" PRId64 ",\"written\":%" PRId64 "%s}",
             ++record_of(p)->number, clock_boot().ns, clock_wall_ns(),
             clock_wall_is_synchronised() ? ",\"synchronised\":true" : "");
    return buf_check(text, e);
}

enum err_code record_save(struct pod *p, bool *ret_written, struct err *e)
{
    struct pod_record *r = record_of(p);
    buf_auto text = BUF_INIT(RECORD_MAX);
    char path[512];

    *ret_written = false;
    note_file(p);
    if (record_text(p, &text, e) != ERR_OK)
        return e->code;
    if (is_written(p, &text))
        return ERR_OK;
    if (record_end(p, &text, e) != ERR_OK)
        return e->code;
    snprintf(path, sizeof(path), "%s/pods/%s.json", p->node->o.state_dir, p->uid);
    r->written = *ret_written = fs_replace_lazily_at(AT_FDCWD, path, text.p, text.n, 0600, e) == ERR_OK;
    if (r->written)
        remove_aside(p);
    else
        write_aside(p, &text);
    return e->code;
}

bool record_save_ahead(struct pod *p)
{
    buf_auto text = BUF_INIT(RECORD_MAX);
    struct err e = { 0 };

    return record_text(p, &text, &e) == ERR_OK && record_end(p, &text, &e) == ERR_OK && write_aside(p, &text);
}

void record_remove(struct pod *p)
{
    sweep_record(p->node, p->uid);
    record_of(p)->aside = false;
}
