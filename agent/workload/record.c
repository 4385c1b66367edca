/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - the state of Jobs, CronJobs and StatefulSets that is not in their pods, on disk:
 * <state>/jobs/<uid>.json, one file each, replaced by rename. The record of a CronJob's Job also has its
 * manifest; the record of a revision has only its manifest.
 */
#include "agent/workload/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_MAX (4 * 1024 * 1024) /* mostly a Job's manifest */
#define SUFFIX ".json"

static bool is_kept(enum api_kind kind)
{
    return kind == API_KIND_JOB || kind == API_KIND_CRON_JOB || kind == API_KIND_STATEFUL_SET;
}

static bool may_be_revision(enum api_kind kind)
{
    return kind == API_KIND_REPLICA_SET || kind == API_KIND_CONTROLLER_REVISION;
}

/* ---- writing ---- */

static enum err_code write_it(struct workloads *w, const char *uid, const json_t *o, struct err *e)
{
    str_auto text = o != NULL ? json_dumps(o, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
    str_auto path = str_printf("%s/%s" SUFFIX, w->dir, uid);

    if (text == NULL || path == NULL)
        return err_nomem(e);
    if (fs_mkdirs(w->dir, 0700, e) != ERR_OK)
        return e->code;
    return fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, true, e);
}

static json_t *job_json(const struct workload *one)
{
    const struct job_facts *f = one->job;

    return json_pack("{s:s, s:I, s:b, s:I, s:s*, s:s*, s:I, s:I, s:O*}", "hash", f->hash, "started",
                     (json_int_t)f->started_ns, "suspended", f->was_suspended, "turned",
                     (json_int_t)f->turned_ns, "end", job_end_reason(f->end), "message", f->message, "ended",
                     (json_int_t)f->ended_ns, "finished", (json_int_t)f->finished_ns, "status", f->status);
}

static json_t *cron_json(const struct workload *one)
{
    const struct cron_facts *f = one->cron;

    return json_pack("{s:s*, s:I, s:I, s:I}", "clock", f->clock, "since", (json_int_t)f->since_s, "last",
                     (json_int_t)f->last_s, "success", (json_int_t)f->success_ns);
}

static json_t *set_json(const struct workload *one)
{
    return json_pack("{s:s}", "current", one->before);
}

void workload_record_save(struct workloads *w, const struct workload *one)
{
    const struct api_meta *meta = &one->object->meta;
    json_auto_t *o = one->job != NULL ? job_json(one) : one->cron != NULL ? cron_json(one) : set_json(one);
    struct err e = { 0 };

    json_object_set_new(o, "version", json_integer(1));
    json_put_str(o, "kind", api_kind_name(one->kind));
    json_put_str(o, "namespace", meta->namespace);
    json_put_str(o, "name", meta->name);
    json_object_set_new(o, "created", json_integer((json_int_t)one->created_ns));
    if (one->owner[0] != '\0')
        json_object_set_new(o, "made", json_loads(one->object->json, 0, NULL));
    if (write_it(w, one->uid, o, &e) != ERR_OK)
        log_error("cannot record a workload", F_STR("kind", api_kind_name(one->kind)),
                  F_STR("namespace", meta->namespace), F_STR("name", meta->name), F_ERR(&e));
}

enum err_code workload_record_made(struct workloads *w, const char *uid, int64_t created_ns,
                                   const json_t *made, struct err *e)
{
    json_auto_t *o = json_pack("{s:i, s:s*, s:I, s:O}", "version", 1, "kind", json_str(made, "kind"),
                               "created", (json_int_t)created_ns, "made", made);

    return write_it(w, uid, o, e);
}

void workload_record_remove(struct workloads *w, const char *uid)
{
    str_auto path = str_printf("%s/%s" SUFFIX, w->dir, uid);

    if (path != NULL)
        fs_remove_quietly(AT_FDCWD, path);
}

/* ---- reading ---- */

static void set_aside(struct workloads *w, const char *file, const struct err *why)
{
    char kept[DAMAGED_FILE_NAME_SIZE] = "";
    struct err e = { 0 };
    fd_auto dir = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir >= 0 && damaged_file_set_aside(dir, file, kept, &e) != ERR_OK)
        log_error("cannot set a damaged file aside", F_STR("file", file), F_ERR(&e));
    log_error("the record of a workload is damaged", F_STR("file", file), F_STR("kept", kept), F_ERR(why));
}

/* NULL: there is no record, or it is damaged. */
static json_t *read_it(struct workloads *w, const char *file)
{
    str_auto path = str_printf("%s/%s", w->dir, file);
    str_auto text = NULL;
    struct err e = { 0 };
    json_t *o = NULL;
    size_t n = 0;

    if (path == NULL)
        return NULL;
    switch (presence_of(fs_read_if_there(AT_FDCWD, path, RECORD_MAX, &text, &n, &e))) {
    case PRESENCE_UNKNOWN:
        log_error("cannot read the record of a workload", F_STR("file", path), F_ERR(&e));
        return NULL;
    case PRESENCE_ABSENT:
        return NULL;
    case PRESENCE_PRESENT:
        break;
    }
    if (json_parse(text, n, RECORD_MAX, &o, "record", &e) == ERR_OK && json_is_object(o) &&
        json_int(o, "version", 0) == 1)
        return o;
    if (e.code == ERR_OK)
        err_set(&e, ERR_INVALID, "its version is not supported");
    set_aside(w, file, &e);
    json_decref(o);
    return NULL;
}

static enum job_end end_of(const char *reason)
{
    for (enum job_end end = JOB_COMPLETE; reason != NULL && end <= JOB_MAX_FAILED_INDEXES; end++)
        if (strcmp(job_end_reason(end), reason) == 0)
            return end;
    return JOB_RUNS;
}

/* Converts a wall time, also of an earlier boot, to the boot clock. */
static struct boot_time moment(int64_t wall_ns)
{
    int64_t ago = clock_wall_ns() - wall_ns;

    return wall_ns == 0 ? CLOCK_BOOT_NONE : clock_boot_in_ns(ago > 0 ? -ago : 0);
}

static void take_job(struct job_facts *f, json_t *o)
{
    const char *hash = json_str(o, "hash"), *message = json_str(o, "message");

    snprintf(f->hash, sizeof(f->hash), "%s", hash != NULL ? hash : "");
    f->started_ns = json_int(o, "started", 0);
    f->began = moment(f->started_ns);
    f->was_suspended = json_flag(o, "suspended");
    f->turned_ns = json_int(o, "turned", 0);
    f->end = end_of(json_str(o, "end"));
    f->message = message != NULL ? strdup(message) : NULL;
    f->ended_ns = json_int(o, "ended", 0);
    f->finished_ns = f->end != JOB_RUNS ? json_int(o, "finished", 0) : 0;
    f->finished = moment(f->finished_ns);
    f->status = f->finished_ns != 0 ? json_incref(json_object_get(o, "status")) : NULL;
}

static void take_cron(struct cron_facts *f, const json_t *o)
{
    const char *clock = json_str(o, "clock");

    f->clock = clock != NULL ? strdup(clock) : NULL;
    f->since_s = json_int(o, "since", 0);
    f->last_s = json_int(o, "last", 0);
    f->success_ns = json_int(o, "success", 0);
}

static void take_set(struct workload *one, const json_t *o)
{
    const char *current = json_str(o, "current");

    snprintf(one->before, sizeof(one->before), "%s", current != NULL ? current : "");
}

static void take_owner(struct workload *one)
{
    json_auto_t *o = json_loads(one->object->json, 0, NULL);
    const char *uid = json_str(json_array_get(json_at(o, "metadata.ownerReferences"), 0), "uid");

    snprintf(one->owner, sizeof(one->owner), "%s", uid != NULL ? uid : "");
}

/* Without a record it is no revision. */
static bool take_revision(struct workloads *w, struct workload *one, const char *file)
{
    json_auto_t *o = read_it(w, file);

    if (json_object_get(o, "made") == NULL)
        return true;
    one->revision = calloc(1, sizeof(*one->revision));
    if (one->revision == NULL)
        return false;
    one->created_ns = json_int(o, "created", clock_wall_ns());
    take_owner(one);
    revision_take(one);
    return true;
}

bool workload_record_take(struct workloads *w, struct workload *one)
{
    str_auto file = str_printf("%s" SUFFIX, one->uid);
    json_auto_t *o = NULL;

    if (!is_kept(one->kind))
        return !may_be_revision(one->kind) || file == NULL || take_revision(w, one, file);
    if (one->kind == API_KIND_JOB)
        one->job = calloc(1, sizeof(*one->job));
    else if (one->kind == API_KIND_CRON_JOB)
        one->cron = calloc(1, sizeof(*one->cron));
    if (file == NULL || (one->kind != API_KIND_STATEFUL_SET && one->job == NULL && one->cron == NULL))
        return false;
    o = read_it(w, file);
    if (one->kind == API_KIND_STATEFUL_SET) { /* its pods say when it was created */
        take_set(one, o);
        return true;
    }
    one->created_ns = json_int(o, "created", clock_wall_ns());
    if (one->job != NULL) {
        take_owner(one);
        take_job(one->job, o);
    } else {
        take_cron(one->cron, o);
    }
    return true;
}

void workload_facts_free(struct workload *one)
{
    if (one->job != NULL) {
        free(one->job->message);
        free(one->job->seen);
        json_decref(one->job->status);
    }
    if (one->cron != NULL)
        free(one->cron->clock);
    free(one->job);
    free(one->cron);
    free(one->revision);
}

/* ---- at the start ---- */

static bool add_uid(const char *name, void *arg)
{
    struct strs *uids = arg;
    size_t n = strlen(name), end = strlen(SUFFIX);

    if (n != WORKLOAD_UID_SIZE - 1 + end || strcmp(name + n - end, SUFFIX) != 0)
        return true;
    return strs_take(uids, strndup(name, n - end));
}

bool workload_records_list(struct workloads *w, struct strs *ret)
{
    struct err e = { 0 };
    struct presence found = fs_list(AT_FDCWD, w->dir, add_uid, ret, &e);

    if (presence_is_unknown(found))
        log_error("cannot read the records of workloads", F_STR("folder", w->dir), F_ERR(&e));
    return !presence_is_unknown(found);
}

static void put_made(struct workloads *w, const char *uid)
{
    str_auto file = str_printf("%s" SUFFIX, uid);
    json_auto_t *o = file != NULL ? read_it(w, file) : NULL;
    json_t *made = json_object_get(o, "made");
    const char *api_version = json_str(made, "apiVersion"), *kind = json_str(made, "kind");
    const struct api_kind_row *row =
        api_version != NULL && kind != NULL ? api_kind_of_object(api_version, kind) : NULL;
    struct api_object object = { .kind = row != NULL ? row->id : API_KIND_JOB, .document = 1 };
    char own[WORKLOAD_UID_SIZE];
    struct err e = { 0 };

    if (made == NULL)
        return;
    if (row == NULL || (row->id != API_KIND_JOB && !may_be_revision(row->id)))
        err_set(&e, ERR_INVALID, "it is not the record of a Job or a revision");
    else if (api_make_generic(row->id, made, &object.generic, &e) == ERR_OK) {
        workload_uid(row->id, object.generic->meta.namespace, object.generic->meta.name, own);
        if (strcmp(own, uid) != 0)
            err_set(&e, ERR_INVALID, "it is the record of another object");
        else if (src_store_put(w->store, &object, &e) == ERR_OK)
            e.code = ERR_OK;
    }
    if (e.code != ERR_OK)
        log_error("cannot adopt an object that a workload created", F_STR("file", file), F_ERR(&e));
    api_generic_unref(object.generic);
}

enum err_code workload_records_load(struct workloads *w, struct err *e)
{
    struct strs uids = { 0 };

    if (fs_mkdirs(w->dir, 0700, e) != ERR_OK)
        return e->code;
    workload_records_list(w, &uids);
    for (size_t i = 0; i < uids.n; i++)
        put_made(w, uids.v[i]);
    strs_done(&uids);
    return ERR_OK;
}
