/* SPDX-License-Identifier: Apache-2.0 */
/* watch - clients that follow pods or events. Each client gets all matching objects as ADDED, then the
 * changes. If a pod begins or ceases to match (its labels may change), it is ADDED or DELETED for that
 * client, as with an apiserver. */
#include "agent/status/internal.h"
#include "agent/status/reserve.h"

#include "base/codec/json.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

struct known { /* a pod known to the client */
    UT_hash_handle hh;
    char key[]; /* namespace/name */
};

struct watcher {
    LIST_ENTRY(watcher) all;
    uint64_t told_ns; /* uv_hrtime() of the last event sent */
    struct conn *conn;
    struct selection selection;
    struct known *known;
    struct object_keys rest; /* the rest of the first set: objects that were not sent yet */
};

enum { KEY_SIZE = STATUS_KEY_SIZE };

static void status_watch_key_of(const json_t *pod, char ret[KEY_SIZE])
{
    const json_t *meta = json_object_get(pod, "metadata");
    const char *namespace_ = json_str(meta, "namespace"), *name = json_str(meta, "name");

    snprintf(ret, KEY_SIZE, "%s/%s", namespace_ != NULL ? namespace_ : "", name != NULL ? name : "");
}

/* ---- versions ---- */

void status_key_of(enum status_kind kind, const json_t *object, char ret[STATUS_KEY_SIZE])
{
    char key[KEY_SIZE];

    status_watch_key_of(object, key);
    if (kind == KIND_POD)
        snprintf(ret, STATUS_KEY_SIZE, "%s", key);
    else
        snprintf(ret, STATUS_KEY_SIZE, "%.30s/%.320s", json_str(object, "kind"), key);
}

/* json_copy() drops members when out of memory. */
static json_t *copy_of(json_t *object)
{
    json_t *copy = json_copy(object);

    if (copy != NULL && json_object_size(copy) != json_object_size(object)) {
        json_decref(copy);
        copy = NULL;
    }
    return copy;
}

/* A copy that shares everything except the changed parts. */
json_t *set_version(json_t *pod, uint64_t version)
{
    json_t *copy = copy_of(pod), *meta = copy_of(json_object_get(pod, "metadata"));
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
    if (copy == NULL || meta == NULL || json_object_set_new(meta, "resourceVersion", json_string(text)) < 0 ||
        json_object_set(copy, "metadata", meta) < 0) {
        json_decref(copy);
        copy = NULL;
    }
    json_decref(meta);
    return copy;
}

uint64_t version_of(const struct status_server *s, const char *key)
{
    struct pod_version *v;

    HASH_FIND_STR(s->versions, key, v);
    return v != NULL ? v->version : s->first_version;
}

json_t *with_version(struct status_server *s, json_t *pod)
{
    char key[KEY_SIZE];

    status_watch_key_of(pod, key);
    return set_version(pod, version_of(s, key));
}

void note_version(struct status_server *s, const char *key, bool deleted)
{
    struct pod_version *v;

    s->version++;
    HASH_FIND_STR(s->versions, key, v);
    if (v != NULL && deleted) {
        HASH_DEL(s->versions, v);
        free(v);
    } else if (v == NULL && !deleted) {
        v = calloc(1, sizeof(*v) + strlen(key) + 1);
        if (v == NULL)
            return;
        strcpy(v->key, key);
        HASH_ADD_STR(s->versions, key, v);
        if (v->hh.tbl == NULL) {
            free(v);
            return;
        }
        v->version = s->version;
    } else if (v != NULL) {
        v->version = s->version;
    }
}

/* ---- watchers ---- */

static void watch_gone(struct conn *c)
{
    struct watcher *w = c->watch;
    struct known *known, *tmp;

    LIST_REMOVE(w, all);
    c->server->n_watches--;
    c->server->n_watches_others -= c->role != PEER_ROOT;
    HASH_ITER (hh, w->known, known, tmp) {
        HASH_DEL(w->known, known);
        free(known);
    }
    selection_done(&w->selection);
    keys_done(&w->rest);
    free(w);
    c->watch = NULL;
    c->source = NULL;
}

static bool learn(struct watcher *w, const char *key)
{
    struct known *known = calloc(1, sizeof(*known) + strlen(key) + 1);

    if (known == NULL)
        return false;
    strcpy(known->key, key);
    HASH_ADD_STR(w->known, key, known);
    if (known->hh.tbl == NULL) {
        free(known);
        return false;
    }
    return true;
}

static void send_event(struct watcher *w, const char *type, const char *object, size_t n)
{
    struct buf b = BUF_SECRET(SIZE_MAX - 1);
    struct conn *c = w->conn;

    w->told_ns = uv_hrtime();
    buf_addf(&b, "{\"type\":\"%s\",\"object\":", type);
    buf_add(&b, object, n);
    buf_adds(&b, "}\n");
    if (b.failed)
        conn_close(c);
    else
        conn_stream(c, b.p, b.n);
    buf_done(&b);
    if (c->state != CONN_CLOSING && conn_backlog(c) > STATUS_BACKLOG_MAX) {
        log_info("disconnecting a watching client: it fell too far behind");
        c->server->count.dropped++;
        conn_close(c);
    }
}

/* ---- ending watches to free descriptors ---- */

static bool watch_goes_before(const struct watcher *a, const struct watcher *b)
{
    const bool a_root = a->conn->role == PEER_ROOT, b_root = b->conn->role == PEER_ROOT;
    const bool a_slow = conn_backlog(a->conn) > 0, b_slow = conn_backlog(b->conn) > 0;

    if (a_root != b_root)
        return b_root;
    if (a_slow != b_slow)
        return a_slow;
    return a_slow ? a->conn->took_ns < b->conn->took_ns : a->told_ns < b->told_ns;
}

static struct watcher *watch_first_to_go(struct watcher *first, struct watcher *found, bool also_root)
{
    for (struct watcher *w = first; w != NULL; w = LIST_NEXT(w, all))
        if ((also_root || w->conn->role != PEER_ROOT) && (found == NULL || watch_goes_before(w, found)))
            found = w;
    return found;
}

/* Ends the watch with a Status, as an apiserver does; a client that does not read is disconnected without it.
 */
static void watch_end_for_others(struct watcher *w)
{
    json_t *object = status_object(503, status_reason(503), NULL, NULL, STATUS_FEW_FILES);
    str_auto text = object != NULL ? json_text(object) : NULL;
    struct conn *c = w->conn;

    json_decref(object);
    log_info("a watch of the status socket is ended: too few file descriptors are left");
    c->server->count.few_files++;
    c->giving = true;
    c->server->n_giving++;
    if (text == NULL || conn_backlog(c) > 0) {
        conn_close(c);
        return;
    }
    send_event(w, "ERROR", text, strlen(text));
    if (c->state == CONN_CLOSING)
        return;
    watch_gone(c);
    c->last = true;
    conn_stream_end(c);
}

bool watch_give_way(struct status_server *s, bool root)
{
    while (reserve_lack(root) > s->n_giving) {
        struct watcher *w = watch_first_to_go(LIST_FIRST(&s->watchers), NULL, root);

        w = watch_first_to_go(LIST_FIRST(&s->event_watchers), w, root);
        if (w == NULL)
            return false;
        watch_end_for_others(w);
    }
    return true;
}

/* Called when pods change: pods that start need descriptors. */
static void watch_relieve(struct status_server *s)
{
    if (s->n_watches == 0 || uv_now(s->loop) - s->relief_ms < STATUS_RELIEF_MS)
        return;
    s->relief_ms = uv_now(s->loop);
    ERR_IGNORE(watch_give_way(s, true));
}

/* ---- events ---- */

/* An object of the first set. */
static void send_first(struct watcher *w, json_t *one, json_t *versioned /* stolen; NULL: no memory */)
{
    char *text = versioned != NULL ? json_text(versioned) : NULL;
    char key[KEY_SIZE];

    json_decref(versioned);
    status_watch_key_of(one, key);
    if (text == NULL || w->selection.failed || !learn(w, key))
        conn_close(w->conn);
    else
        send_event(w, "ADDED", text, strlen(text));
    free(text);
}

/* Sends the next objects of the first set, up to a piece; continues when the client has accepted them. */
static void watch_turn(struct conn *c)
{
    struct watcher *w = c->watch;
    const uint64_t began = uv_hrtime();

    while (w->rest.next < w->rest.n && conn_backlog(c) < STATUS_PIECE &&
           uv_hrtime() - began < BACKGROUND_PIECE_NS) {
        struct err e = { 0 };
        json_t *one = keys_next(&w->rest, c->server, &e);

        if (one == NULL && e.code != ERR_NOT_FOUND)
            conn_close(c);
        else if (one != NULL && (selection_matches(&w->selection, one) || w->selection.failed))
            send_first(w, one,
                       w->rest.kind == KIND_POD ? with_version(c->server, one)
                                                : set_version(one, c->server->first_version));
        json_decref(one);
        if (c->state == CONN_CLOSING)
            return; /* closing has freed the watcher */
    }
    if (w->rest.next == w->rest.n)
        keys_done(&w->rest);
    else if (conn_backlog(c) >= STATUS_PIECE)
        conn_await(c);
    else
        conn_next_turn(c);
}

static const struct conn_source watch_source = { .gone = watch_gone, .turn = watch_turn };

void watch_begin(struct conn *c, struct selection *selection, struct object_keys *keys)
{
    const bool other = c->role != PEER_ROOT;
    const bool full = c->server->n_watches >= STATUS_WATCHES_MAX ||
                      (other && c->server->n_watches_others >= STATUS_WATCHES_OTHERS);
    struct watcher *w = c->eof || full ? NULL : calloc(1, sizeof(*w));

    if (w == NULL) {
        keys_done(keys);
        if (full && !c->eof)
            conn_status(c, 503, status_reason(503), NULL, NULL, "too many watches");
        else if (c->eof)
            conn_close(c); /* a disconnected client would not be detected otherwise */
        else
            conn_json(c, 500, NULL);
        return;
    }
    w->conn = c;
    w->told_ns = uv_hrtime();
    c->server->n_watches++;
    c->server->n_watches_others += other;
    w->selection = *selection;
    *selection = (struct selection){ 0 };
    c->watch = w;
    c->source = &watch_source;
    w->rest = *keys;
    if (keys->kind == KIND_POD)
        LIST_INSERT_HEAD(&c->server->watchers, w, all);
    else
        LIST_INSERT_HEAD(&c->server->event_watchers, w, all);
    conn_stream_begin(c, "application/json");
    if (c->state != CONN_CLOSING && c->parser.request.method == METHOD_HEAD) {
        watch_gone(c);
        conn_stream_end(c);
        return;
    }
    if (c->state != CONN_CLOSING)
        watch_turn(c);
}

/* Whether the client will receive the object with the first set. */
static bool to_come(const struct watcher *w, const json_t *pod)
{
    const json_t *meta = json_object_get(pod, "metadata");
    const char *namespace_ = json_str(meta, "namespace"), *name = json_str(meta, "name");

    return w->rest.n > 0 && namespace_ != NULL && name != NULL && keys_to_come(&w->rest, namespace_, name);
}

static void status_watch_tell(struct watcher *w, bool deleted, const char *key, const json_t *pod,
                              const char *text, size_t n)
{
    const bool selected = selection_matches(&w->selection, pod), matches = selected && !deleted;
    struct known *known;

    if (w->selection.failed) {
        conn_close(w->conn); /* the client must start again, rather than miss a change */
        return;
    }
    if (to_come(w, pod)) {
        /* The client may have listed the object after the watch began. */
        if (selected && deleted)
            send_event(w, "DELETED", text, n);
        return;
    }
    HASH_FIND_STR(w->known, key, known);
    if (matches && known != NULL) {
        send_event(w, "MODIFIED", text, n);
    } else if (matches) {
        if (learn(w, key))
            send_event(w, "ADDED", text, n);
        else
            conn_close(w->conn);
    } else if (known != NULL) {
        HASH_DEL(w->known, known);
        free(known);
        send_event(w, "DELETED", text, n);
    }
}

/* `object`: NULL when out of memory. */
static void status_watch_notify_all(struct watcher *first, bool deleted, const char *key, json_t *object)
{
    char *text = object != NULL ? json_text(object) : NULL;
    struct watcher *w, *next;

    for (w = first; w != NULL; w = next) {
        next = LIST_NEXT(w, all); /* the notified watcher may be freed, but no other */
        if (text == NULL)
            conn_close(w->conn); /* the client would miss a change, so it has to start again */
        else
            status_watch_tell(w, deleted, key, object, text, strlen(text));
    }
    free(text);
}

void status_server_pod_event(struct status_server *s, const char *type, json_t *pod)
{
    bool deleted = strcmp(type, "DELETED") == 0;
    char key[KEY_SIZE];
    json_t *object;

    watch_relieve(s);
    status_watch_key_of(pod, key);
    note_version(s, key, deleted);
    if (LIST_EMPTY(&s->watchers) && LIST_EMPTY(&s->feeds))
        return;
    object = set_version(pod, s->version);
    feed_notify(s, type, object);
    status_watch_notify_all(LIST_FIRST(&s->watchers), deleted, key, object);
    json_decref(object);
}

bool status_server_has_watchers(const struct status_server *s)
{
    return !LIST_EMPTY(&s->watchers) || !LIST_EMPTY(&s->feeds);
}

void status_server_event(struct status_server *s, const char *type, json_t *event)
{
    char key[KEY_SIZE];
    json_t *object;

    watch_relieve(s);
    if (LIST_EMPTY(&s->event_watchers) && LIST_EMPTY(&s->feeds))
        return;
    status_watch_key_of(event, key);
    object = set_version(event, ++s->version);
    feed_notify(s, type, object);
    status_watch_notify_all(LIST_FIRST(&s->event_watchers), strcmp(type, "DELETED") == 0, key, object);
    json_decref(object);
}

bool status_server_has_event_watchers(const struct status_server *s)
{
    return !LIST_EMPTY(&s->event_watchers) || !LIST_EMPTY(&s->feeds);
}

void status_server_object_event(struct status_server *s, enum status_kind kind, const char *type,
                                json_t *object)
{
    bool deleted = strcmp(type, "DELETED") == 0;
    char key[STATUS_KEY_SIZE];
    json_t *versioned;

    status_key_of(kind, object, key);
    note_version(s, key, deleted);
    if (LIST_EMPTY(&s->feeds))
        return;
    versioned = set_version(object, s->version);
    feed_notify(s, type, versioned);
    json_decref(versioned);
}

json_t *status_server_versioned(const struct status_server *s, enum status_kind kind, json_t *object)
{
    char key[STATUS_KEY_SIZE];

    status_key_of(kind, object, key);
    return set_version(object, version_of(s, key));
}

bool status_server_is_fed(const struct status_server *s)
{
    return !LIST_EMPTY(&s->feeds);
}
