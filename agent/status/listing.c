/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing - a list of objects, sent in pieces: each turn of the loop writes the text of a few of them, and
 * continues when the client has accepted the last piece. A list that fits in one piece has a Content-Length,
 * a longer one is chunked.
 *
 * Objects created after the request are omitted, as are those deleted before their turn.
 */
#include "agent/status/internal.h"

#include "base/codec/json.h"

struct listing {
    const struct listing_of *of;
    struct object_keys keys;
    struct selection selection;
    struct buf out;
    bool pretty, begun, any;
};

static void listing_add_head(struct listing *l, const struct status_server *s)
{
    const char *line = l->pretty ? "\n  " : "", *space = l->pretty ? " " : "";

    buf_addf(&l->out, "{%s\"kind\":%s\"%s\",%s\"apiVersion\":%s\"%s\",%s\"metadata\":%s{", line, space,
             l->of->list, line, space, l->of->api_version, line, space);
    if (l->of->versioned)
        buf_addf(&l->out, "%s\"resourceVersion\":%s\"%llu\"%s", l->pretty ? "\n    " : "", space,
                 (unsigned long long)s->version, line);
    buf_addf(&l->out, "},%s\"items\":%s[", line, space);
}

static void listing_add_object(struct listing *l, json_t *object /* stolen; NULL: no memory */)
{
    if (l->any)
        buf_addc(&l->out, ',');
    l->any = true;
    if (l->pretty)
        buf_adds(&l->out, "\n    ");
    json_add_text(&l->out, object, l->pretty, 4);
    json_decref(object);
}

static void listing_add_end(struct listing *l)
{
    buf_adds(&l->out, !l->pretty ? "]}\n" : l->any ? "\n  ]\n}\n" : "]\n}\n");
}

static void listing_gone(struct conn *c)
{
    struct listing *l = c->listing;

    c->listing = NULL;
    c->source = NULL;
    keys_done(&l->keys);
    selection_done(&l->selection);
    buf_done(&l->out);
    free(l);
}

static void listing_fail(struct conn *c)
{
    const bool begun = c->listing->begun;

    if (begun) {
        conn_close(c); /* the client detects that the end is missing */
        return;
    }
    listing_gone(c);
    conn_json(c, 500, NULL);
}

/* Ends the turn, since sending takes time, too. */
static void listing_flush(struct conn *c, bool complete)
{
    struct listing *l = c->listing;

    if (complete && !l->begun) {
        struct buf out = l->out;

        l->out = (struct buf)BUF_INIT(0);
        listing_gone(c);
        conn_answer(c, 200, "application/json", NULL, out.p, out.n);
        buf_done(&out);
        return;
    }
    if (!l->begun) {
        l->begun = true;
        conn_stream_begin(c, "application/json");
        complete = complete || c->parser.request.method == METHOD_HEAD;
    }
    if (c->state != CONN_CLOSING && c->parser.request.method != METHOD_HEAD)
        conn_stream(c, l->out.p, l->out.n);
    if (c->state == CONN_CLOSING)
        return;
    buf_done(&l->out);
    if (complete) {
        listing_gone(c);
        conn_stream_end(c);
    } else {
        conn_await(c);
    }
}

static void listing_turn(struct conn *c)
{
    struct listing *l = c->listing;
    const uint64_t began = uv_hrtime();

    while (l->keys.next < l->keys.n && l->out.n < STATUS_PIECE && !l->out.failed && !l->selection.failed &&
           uv_hrtime() - began < BACKGROUND_PIECE_NS) {
        struct err e = { 0 };
        json_t *one = keys_next(&l->keys, c->server, &e);

        if (one == NULL && e.code != ERR_NOT_FOUND)
            l->out.failed = true;
        if (one != NULL && selection_matches(&l->selection, one))
            listing_add_object(l, l->of->kind == KIND_POD ? with_version(c->server, one) : json_incref(one));
        json_decref(one);
    }
    if (l->keys.next == l->keys.n)
        listing_add_end(l);
    if (l->out.failed || l->selection.failed)
        listing_fail(c);
    else if (l->keys.next == l->keys.n || l->out.n >= STATUS_PIECE)
        listing_flush(c, l->keys.next == l->keys.n);
    else
        conn_next_turn(c);
}

static const struct conn_source listing_source = { .gone = listing_gone, .turn = listing_turn };

void listing_begin(struct conn *c, const struct listing_of *of, struct selection *selection)
{
    struct listing *l = calloc(1, sizeof(*l));
    struct err e = { 0 };

    if (l == NULL) {
        conn_json(c, 500, NULL);
        return;
    }
    buf_init_secret(&l->out, SIZE_MAX - 1);
    if (keys_read(&l->keys, c->server, of->kind, selection, &e) != ERR_OK) {
        free(l);
        conn_err(c, &e);
        return;
    }
    l->of = of;
    l->selection = *selection;
    *selection = (struct selection){ 0 };
    l->pretty = c->pretty;
    listing_add_head(l, c->server);
    c->listing = l;
    c->source = &listing_source;
    c->finite = true;
    conn_next_turn(c);
}
