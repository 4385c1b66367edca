/* SPDX-License-Identifier: Apache-2.0 */
/* held - limits the bytes pending in this process for all clients together. The size of one answer is limited
 * by the request; the total is limited here, so that clients that never read do not take memory from pods. */
#include "agent/status/internal.h"

#include "base/log.h"

/* The connection whose client has not accepted data for the longest time, root's last; NULL if there is none.
 */
static struct conn *slowest(const struct status_server *s, bool also_root)
{
    struct conn *c, *found = NULL;

    LIST_FOREACH (c, &s->conns, all) {
        const bool root = c->role == PEER_ROOT;

        if (c->state == CONN_CLOSING || c->held < STATUS_HELD_SMALL || (root && !also_root))
            continue;
        if (found == NULL || (found->role == PEER_ROOT && !root) ||
            ((found->role == PEER_ROOT) == root && c->took_ns < found->took_ns))
            found = c;
    }
    return found;
}

/* Makes room for n more bytes. False: not enough can be freed. */
static bool make_room(struct status_server *s, size_t n, bool also_root)
{
    struct conn *c;

    while (s->held + n > STATUS_HELD_MAX) {
        c = slowest(s, also_root);
        if (c == NULL)
            return false;
        s->count.cut_off++;
        log_info("disconnecting a client of the status socket: too much data is pending for all clients",
                 F_U64("bytes", c->held), F_U64("of", s->held));
        conn_close(c);
    }
    return true;
}

bool held_room(struct conn *c, size_t n)
{
    /* An answer larger than the limit is sent if no other is pending. */
    return n < STATUS_HELD_SMALL || make_room(c->server, n, c->role == PEER_ROOT) || c->server->held == 0;
}

static void held_on_turn(struct background_client *t)
{
    struct status_server *s = (struct status_server *)((char *)t - offsetof(struct status_server, cutting));

    if (s->n_writes != 1) /* a single answer may exceed the limit */
        make_room(s, 0, true);
}

void held_init(struct status_server *s)
{
    s->cutting = (struct background_client){ .run = held_on_turn, .first = true };
}

void held_add(struct conn *c, size_t n)
{
    struct status_server *s = c->server;

    if (c->writes++ == 0)
        c->took_ns = uv_hrtime();
    s->n_writes++;
    c->held += n;
    s->held += n;
    if (s->held > STATUS_HELD_MAX) /* deferred, because a loop over the clients may be running */
        background_ask(&s->turns, &s->cutting);
}

void held_input(struct conn *c)
{
    struct status_server *s = c->server;

    if (c->state == CONN_CLOSING)
        return;
    c->held += c->in.n - c->held_in;
    s->held += c->in.n - c->held_in;
    c->held_in = c->in.n;
    if (s->held > STATUS_HELD_MAX)
        background_ask(&s->turns, &s->cutting);
}

void held_remove(struct conn *c, size_t n)
{
    c->took_ns = uv_hrtime();
    c->writes--;
    c->server->n_writes--;
    if (c->state == CONN_CLOSING) /* held_forget() was called */
        return;
    c->held -= n;
    c->server->held -= n;
}

void held_forget(struct conn *c)
{
    c->server->held -= c->held;
    c->held = c->held_in = 0;
}
