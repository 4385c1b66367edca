/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/write.h"

#include "agent/pod/show/internal.h"
#include "agent/pod/show/provider.h"
#include "agent/pod/show/write_audit.h"
#include "agent/pod/show/write_file.h"
#include "agent/pod/show/write_held.h"
#include "agent/pod/show/write_node.h"
#include "agent/source/folder.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/siphash.h"
#include "base/work.h"

#include <string.h>

#define WRITES_MAX 64
#define AWAIT_MS 10000 /* for the folder to read a file that is written */

struct provider_write {
    TAILQ_ENTRY(provider_write) link;
    struct node *node;
    struct status_reply *reply; /* NULL: the agent's own */
    struct work work;
    struct src_await await;
    struct write_file file;
    json_t *request; /* owned, wiped */
    enum status_kind shown;
    const char *namespace_, *name; /* of the request */
    bool remove, started;
    bool held, released; /* finalizers: a DELETE that marks the object, a write that removes it */
    json_t *asked;       /* the object that a DELETE named; name and namespace_ point into it */
    int64_t grace_s;     /* of a Pod that is removed; -1: its own */
    json_t *last;        /* the object that is removed */
};

static void writes_next(struct node *n);

/* ---- one object ---- */

/* One that a manifest may have. */
static enum err_code find_kind(const char *api_version, const char *kind, enum api_kind *ret, struct err *e)
{
    const struct api_kind_row *row =
        kind != NULL && api_version != NULL ? api_kind_of_object(api_version, kind) : NULL;

    if (row == NULL || row->held == API_HELD_NOT)
        return err_set(e, ERR_INVALID, "objects of kind %.64s cannot be written on this node",
                       kind != NULL ? kind : "none");
    *ret = row->id;
    return ERR_OK;
}

json_t *provider_stored(void *arg, const char *api_version, const char *kind, const char *namespace_,
                        const char *name, struct err *e)
{
    struct node *n = arg;
    enum api_kind found;
    json_t *object;
    char mark[WRITE_MARK_SIZE];

    if (str_eq(kind, "Node") && str_eq(api_version, "v1"))
        return write_node_stored(n, name, e);
    if (find_kind(api_version, kind, &found, e) != ERR_OK)
        return NULL;
    object = provider_whole(n, provider_status_kind(found), namespace_ != NULL ? namespace_ : "", name, e);
    if (object == NULL)
        return NULL;
    write_mark_of(object, mark);
    object = json_pack("{s:o, s:s}", "object", write_versioned(n, provider_status_kind(found), object),
                       "mark", mark);
    if (object == NULL)
        err_nomem(e);
    return object;
}

/* ---- the end of a write ---- */

static void write_free(struct provider_write *w)
{
    struct node *n = w->node;

    TAILQ_REMOVE(&show_node(n)->writes, w, link);
    write_file_done(&w->file);
    api_json_wipe(w->request);
    json_decref(w->request);
    json_decref(w->last);
    json_decref(w->asked);
    free(w);
    writes_next(n);
    node_check_idle(n);
}

/* The folder may be read before the end of the write, so the pod's grace period is set first. */
static void tell_grace(struct provider_write *w, bool asked)
{
    struct pod *p = w->shown == KIND_POD ? pods_find(w->node, w->namespace_, w->name) : NULL;

    if (p == NULL || !(w->remove || w->held) || w->grace_s < 0 || w->file.dry)
        return;
    p->grace_asked = asked;
    p->asked_grace_s = w->grace_s;
}

/* Nobody asked for the agent's own. */
static void say(const struct provider_write *w, int code)
{
    const struct write_said said = { .request = w->request,
                                     .remove = (w->remove && !w->released) || w->held,
                                     .create = w->file.create && !w->remove,
                                     .file = code < 300 ? w->file.name : NULL,
                                     .code = code };

    if (w->reply != NULL)
        write_audit(&said);
}

static void write_fail(struct provider_write *w, const struct err *e)
{
    json_t *status;

    tell_grace(w, false);
    say(w, e->code == ERR_RANGE ? 422 : status_http_code(e->code));
    if (w->reply == NULL) {
        log_warn("cannot remove an object from its file", F_STR("kind", api_kind_name(w->file.key.kind)),
                 F_STR("namespace", w->namespace_), F_STR("name", w->name), F_ERR(e));
    } else if (e->code != ERR_RANGE) {
        status_reply_err(w->reply, e);
    } else {
        status = json_pack("{s:s, s:s, s:s, s:{s:O*}, s:s, s:s, s:i}", "kind", "Status", "apiVersion", "v1",
                           "status", "Failure", "details", "causes", w->file.causes, "message", e->text,
                           "reason", "Invalid", "code", 422);
        status_reply_json(w->reply, 422, status);
    }
    write_free(w);
}

static void write_answer(struct provider_write *w, json_t *object /* stolen */)
{
    say(w, w->file.create ? 201 : 200);
    if (w->reply != NULL)
        status_reply_json(w->reply, w->file.create ? 201 : 200,
                          json_pack("{s:o, s:s*, s:b, s:b}", "object",
                                    write_versioned(w->node, w->shown, object), "file", w->file.name, "held",
                                    (int)w->held, "released", (int)w->released));
    else
        json_decref(object);
    write_free(w);
}

static json_t *object_now(const struct provider_write *w)
{
    struct err e = { 0 };

    return provider_whole(w->node, w->shown, w->namespace_ != NULL ? w->namespace_ : "", w->name, &e);
}

/* A Pod's end has begun, with the requested grace period. */
static void write_ended(struct provider_write *w)
{
    struct node *n = w->node;
    struct pod *p = w->shown == KIND_POD ? pods_find(n, w->namespace_, w->name) : NULL;
    json_t *now;

    if (p != NULL)
        n->upward.end(p, w->grace_s >= 0 ? w->grace_s : p->api->spec.termination_grace_seconds, false,
                      "it is deleted");
    if (p != NULL)
        pod_wake(p, "it is deleted");
    now = p != NULL ? object_now(w) : NULL;
    write_answer(w, now != NULL ? now : json_incref(w->last));
}

static void write_on_await(enum src_awaited how, const struct src_file *f, void *arg)
{
    struct provider_write *w = arg;
    struct err e = { 0 };
    json_t *now;

    if (how == SRC_AWAITED_LATE)
        err_set(&e, ERR_DEADLINE, "%s has been written, but the manifest folder has not been read yet",
                w->file.name);
    else if (w->remove)
        ;
    else if (how == SRC_AWAITED_GONE)
        err_set(&e, ERR_ABORTED, "%s was removed at the same time", w->file.name);
    else if (!f->ok)
        err_set(&e, ERR_ABORTED, "%s: %.300s", w->file.name,
                f->n_problems > 0 ? f->problems[0].message : "it has problems");
    if (e.code != ERR_OK) {
        write_fail(w, &e);
        return;
    }
    if (w->remove) {
        write_ended(w);
        return;
    }
    now = object_now(w);
    if (now == NULL) {
        err_set(&e, ERR_ABORTED, "%s was changed at the same time", w->file.name);
        write_fail(w, &e);
        return;
    }
    write_answer(w, now);
}

static void write_on_run(struct op *op, const struct err *result)
{
    struct provider_write *w = op->owner;
    struct node *n = w->node;
    struct err e = *result;

    if (e.code == ERR_OK && !w->file.dry && (n->folder == NULL || n->closing))
        err_set(&e, ERR_UNAVAILABLE, "the agent is shutting down");
    if (e.code != ERR_OK)
        write_fail(w, &e);
    else if (w->file.dry)
        write_answer(w, json_incref(w->remove ? w->last : json_object_get(w->request, "object")));
    else
        src_folder_await(n->folder, &w->await, w->file.name,
                         w->remove && w->file.text == NULL && w->file.alone, AWAIT_MS, write_on_await, w);
}

/* ---- the beginning ---- */

static enum err_code hold(struct provider_write *w, const json_t *now, struct err *e)
{
    json_t *marked = write_held_marked(&api_kinds[w->file.key.kind], now);

    w->asked = json_incref(json_object_get(w->request, "object"));
    w->remove = false;
    w->held = true;
    return marked != NULL && json_object_set_new(w->request, "object", marked) == 0 ? ERR_OK : err_nomem(e);
}

/* Whether the object is unchanged since the client read it, and the place of its file. */
static enum err_code write_check(struct provider_write *w, struct err *e)
{
    struct node *n = w->node;
    const char *mark = json_str(w->request, "mark"), *home;
    const struct api_object *was = NULL;
    json_auto_t *now = object_now(w);
    char current[WRITE_MARK_SIZE];
    size_t n_objects = 0;

    if (now == NULL && (mark != NULL || w->remove))
        return err_set(e, ERR_NOT_FOUND, "\"%.253s\" not found", w->name);
    if (now != NULL && mark == NULL && !w->remove)
        return err_set(e, ERR_EXISTS, "\"%.253s\" already exists", w->name);
    if (now != NULL) {
        write_mark_of(now, current);
        if (mark != NULL && strcmp(mark, current) != 0)
            return err_set(e, ERR_ABORTED, "the object has been modified");
        w->last = json_incref(now);
    }
    home = src_folder_home(n->folder, w->file.key.kind, w->namespace_, w->name, &was, &n_objects);
    if (home == NULL && now != NULL && !w->remove)
        return err_set(
            e, ERR_PERMISSION,
            "the object is no file of the manifest folder: it is made by another object, or is ending");
    if (home == NULL && !w->remove && src_folder_full(n->folder))
        return err_set(e, ERR_EXHAUSTED, "the manifest folder %s has %d files, the maximum",
                       src_folder_dir(n->folder), SRC_FOLDER_FILES_MAX);
    w->file.create = home == NULL;
    w->file.alone = n_objects == 1;
    w->file.name = home != NULL ? strdup(home) : write_file_name(&w->file.key, false);
    w->file.dir = strdup(src_folder_dir(n->folder));
    if (home != NULL)
        w->file.was = api_object_ref(was);
    if (w->file.name == NULL || w->file.dir == NULL)
        return err_nomem(e);
    if (home != NULL && w->remove && write_held(now))
        return hold(w, now, e);
    w->released = !w->remove && write_held_released(now, json_object_get(w->request, "object"));
    w->remove = w->remove || w->released;
    return ERR_OK;
}

/* A Pod or a Job that no file has: a workload's. */
static void write_end_made(struct provider_write *w)
{
    free(take_ptr(&w->file.name));
    if (!w->file.dry) {
        src_store_remove(w->node->o.store, API_FROM_FOLDER, w->file.key.kind, w->namespace_, w->name);
        write_ended(w);
    } else {
        write_answer(w, json_incref(w->last));
    }
}

static void write_start(struct provider_write *w)
{
    struct node *n = w->node;
    struct err e = { 0 };

    w->started = true;
    if (n->folder == NULL || n->closing || !src_store_ready(n->o.store))
        err_set(&e, ERR_UNAVAILABLE, "the manifest folder has not been read yet");
    else if (write_check(w, &e) == ERR_OK && !w->remove) {
        w->file.text = src_object_text(json_object_get(w->request, "object"));
        if (w->file.text == NULL)
            err_nomem(&e);
    }
    if (e.code != ERR_OK)
        write_fail(w, &e);
    else if (w->remove && w->file.create)
        write_end_made(w);
    else {
        tell_grace(w, true);
        work_start(&w->work, "write manifest", w->file.name, write_file_run, &w->file, n->o.loop,
                   write_on_run, w);
    }
}

/* Writes are done one after the other: each sees the results of earlier ones. */
static void writes_next(struct node *n)
{
    struct provider_write *first = TAILQ_FIRST(&show_node(n)->writes);

    if (first != NULL && !first->started)
        write_start(first);
}

static enum err_code write_read(struct provider_write *w, struct err *e)
{
    const json_t *object = json_object_get(w->request, "object"), *meta = json_object_get(object, "metadata");
    enum api_kind kind;

    if (find_kind(json_str(object, "apiVersion"), json_str(object, "kind"), &kind, e) != ERR_OK)
        return e->code;
    w->name = json_str(meta, "name");
    w->namespace_ = json_str(meta, "namespace");
    if (w->name == NULL || (api_kinds[kind].namespaced ? w->namespace_ == NULL : w->namespace_ != NULL))
        return err_set(e, ERR_INVALID, "metadata.name and metadata.namespace: required");
    w->shown = provider_status_kind(kind);
    w->file.key = (struct src_key){ kind, w->namespace_, w->name };
    w->file.secret = kind == API_KIND_SECRET;
    w->file.dry = json_flag(w->request, "dryRun");
    w->grace_s = json_int(w->request, "graceSeconds", -1);
    return ERR_OK;
}

static void write_begin(struct node *n, json_t *request /* stolen */, bool remove, struct status_reply *r)
{
    struct provider_write *w = calloc(1, sizeof(*w)), *other;
    struct err e = { 0 };
    size_t waiting = 0;

    TAILQ_FOREACH (other, &show_node(n)->writes, link)
        waiting++;
    if (w == NULL || waiting >= WRITES_MAX || n->cluster != NULL) {
        free(w);
        api_json_wipe(request);
        json_decref(request);
        err_set(&e, n->cluster != NULL ? ERR_UNIMPLEMENTED : ERR_UNAVAILABLE, "%s",
                n->cluster != NULL ? "on a node of a cluster, change objects in the cluster"
                : w == NULL        ? "out of memory"
                                   : "too many writes are waiting");
        if (r != NULL)
            status_reply_err(r, &e);
        else
            log_warn("cannot remove an object from its file", F_ERR(&e));
        return;
    }
    w->node = n;
    w->reply = r;
    w->request = request;
    w->remove = remove;
    TAILQ_INSERT_TAIL(&show_node(n)->writes, w, link);
    if (write_read(w, &e) != ERR_OK) {
        w->started = true;
        write_fail(w, &e);
    } else {
        writes_next(n);
    }
}

void provider_write(void *arg, json_t *request, bool remove, struct status_reply *r)
{
    const json_t *object = json_object_get(request, "object");

    if (!remove && str_eq(json_str(object, "kind"), "Node") && str_eq(json_str(object, "apiVersion"), "v1"))
        write_node(arg, request, r);
    else
        write_begin(arg, request, remove, r);
}

void provider_remove(struct node *n, enum api_kind kind, const char *namespace_, const char *name)
{
    json_t *request =
        json_pack("{s:{s:s, s:s, s:{s:s*, s:s}}}", "object", "apiVersion", api_kinds[kind].api_version,
                  "kind", api_kinds[kind].kind, "metadata", "namespace", namespace_, "name", name);

    if (request == NULL)
        log_warn("cannot remove an object from its file: out of memory", F_STR("name", name));
    else
        write_begin(n, request, true, NULL);
}

bool provider_writes_busy(const struct node *n)
{
    return !TAILQ_EMPTY(&show_node(n)->writes);
}
