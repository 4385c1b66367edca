/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed - every object of the node for a client that keeps a copy: coracle-kube, for the local API.
 *
 * First all of them, kind by kind, as ADDED; then a BOOKMARK; meanwhile and afterwards the changes. A change
 * of an object that was not sent yet is sent twice: the later state applies. A client that falls behind is
 * disconnected and starts again.
 */
#include "agent/status/internal.h"

#include "agent/api/manifest/decode.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

static const enum status_kind feed_first[] = { KIND_PRIORITY_CLASS, KIND_RUNTIME_CLASS, KIND_CONFIG_MAP,
                                               KIND_SECRET,         KIND_POD,           KIND_EVENT };

enum { FEED_KINDS = ARRAY_LEN(feed_first) + API_KINDS };

/* False: there is no such kind. */
static bool feed_kind(size_t i, enum status_kind *ret)
{
    size_t kind = i - ARRAY_LEN(feed_first);

    if (i < ARRAY_LEN(feed_first)) {
        *ret = feed_first[i];
        return true;
    }
    *ret = (enum status_kind)(KIND_GENERIC + (int)kind);
    return api_kind_is_generic((enum api_kind)kind);
}

struct feed {
    LIST_ENTRY(feed) all;
    struct conn *conn;
    size_t kind; /* index in the first set; the number of kinds: the set is complete */
    bool reading;
    struct object_keys rest;
};

static void feed_gone(struct conn *c)
{
    struct feed *f = c->feed;

    LIST_REMOVE(f, all);
    keys_done(&f->rest);
    free(f);
    c->feed = NULL;
    c->source = NULL;
}

/* Takes ownership of the text. May close the connection. */
static void feed_send(struct feed *f, const char *type, char *text)
{
    struct buf b = BUF_SECRET(SIZE_MAX - 1);
    struct conn *c = f->conn;

    buf_addf(&b, "{\"type\":\"%s\",\"object\":", type);
    buf_adds(&b, text != NULL ? text : "");
    buf_adds(&b, "}\n");
    if (b.failed || text == NULL)
        conn_close(c); /* the client must start again, rather than miss a change */
    else
        conn_stream(c, b.p, b.n);
    buf_done(&b);
    str_wipe(text);
    if (c->state != CONN_CLOSING && conn_backlog(c) > STATUS_BACKLOG_MAX) {
        log_info("disconnecting a client of the store: it fell too far behind");
        c->server->count.dropped++;
        conn_close(c);
    }
}

void feed_notify(struct status_server *s, const char *type, const json_t *object)
{
    struct feed *f, *next;

    for (f = LIST_FIRST(&s->feeds); f != NULL; f = next) {
        next = LIST_NEXT(f, all);
        feed_send(f, type, object != NULL ? json_text(object) : NULL);
    }
}

static void feed_end_first_set(struct feed *f)
{
    feed_send(
        f, "BOOKMARK",
        str_printf("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%llu\"}}",
                   (unsigned long long)f->conn->server->version));
}

/* False: the connection closes. */
static bool feed_next(struct feed *f)
{
    struct status_server *s = f->conn->server;
    const struct object_key *key = &f->rest.keys[f->rest.next++];
    enum status_kind kind = f->rest.kind;
    struct err e = { 0 };
    json_auto_t *one = s->provider.whole(s->provider.arg, kind, key->namespace_, key->name, &e);
    json_auto_t *versioned = NULL;
    char id[STATUS_KEY_SIZE];

    if (one == NULL && e.code == ERR_NOT_FOUND)
        return true;
    if (one != NULL) {
        status_key_of(kind, one, id);
        versioned = set_version(one, version_of(s, id));
    }
    feed_send(f, "ADDED", versioned != NULL ? json_text(versioned) : NULL);
    if (kind == KIND_SECRET)
        api_json_wipe(one); /* the copy shares its values */
    return f->conn->state != CONN_CLOSING;
}

static void feed_turn(struct conn *c)
{
    struct feed *f = c->feed;
    const uint64_t began = uv_hrtime();

    while (f->kind < FEED_KINDS && conn_backlog(c) < STATUS_PIECE &&
           uv_hrtime() - began < BACKGROUND_PIECE_NS) {
        enum status_kind kind;
        struct err e = { 0 };

        if (!f->reading && feed_kind(f->kind, &kind) &&
            keys_read(&f->rest, c->server, kind, NULL, &e) != ERR_OK) {
            conn_close(c);
            return;
        }
        f->reading = true;
        if (f->rest.next < f->rest.n) {
            if (!feed_next(f))
                return;
            continue;
        }
        keys_done(&f->rest);
        f->reading = false;
        if (++f->kind == FEED_KINDS) {
            feed_end_first_set(f);
            return;
        }
    }
    if (f->kind == FEED_KINDS)
        return;
    if (conn_backlog(c) >= STATUS_PIECE)
        conn_await(c);
    else
        conn_next_turn(c);
}

static const struct conn_source feed_source = { .gone = feed_gone, .turn = feed_turn };

void feed_begin(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    struct err e = { 0 };
    struct feed *f;

    (void)m;
    if (c->parser.request.n_segments > 1) {
        conn_value(c, p->whole(p->arg, KIND_NODE, "", "", &e), &e);
        return;
    }
    f = c->eof || c->parser.request.method == METHOD_HEAD ? NULL : calloc(1, sizeof(*f));
    if (f == NULL) {
        conn_json(c, 500, NULL);
        return;
    }
    f->conn = c;
    c->feed = f;
    c->source = &feed_source;
    LIST_INSERT_HEAD(&c->server->feeds, f, all);
    conn_stream_begin(c, "application/json");
    if (c->state != CONN_CLOSING)
        feed_turn(c);
}
