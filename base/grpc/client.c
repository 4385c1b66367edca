/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a channel: when they are opened, and what happens when they end. */
#include "base/grpc/channel.h"

#include "base/codec/go_quote.h"
#include "base/scope.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CONNECT_MS 10000
#define KEEPALIVE_OUT_MS 20000 /* grpc-go's default */
#define BACKOFF_FIRST_MS 1000  /* gRPC's "connection backoff": 1 s, x 1.6, +-20%, at most 120 s */
#define BACKOFF_MAX_MS 120000

static void on_timer(uv_timer_t *timer);
static void close_link(struct grpc_link *l);

static void channel_maybe_free(struct grpc_channel *c)
{
    if (!c->closing || !c->timer_closed || !LIST_EMPTY(&c->links))
        return;
    for (size_t i = 0; i < ARRAY_LEN(c->texts); i++)
        free(c->texts[i]);
    free(c);
}

static void set_state(struct grpc_channel *c, enum grpc_channel_state state)
{
    c->state = state;
    uv_timer_stop(&c->timer);
}

static void arm(struct grpc_channel *c, uint64_t ms)
{
    uv_timer_start(&c->timer, on_timer, ms, 0);
}

/* ---- failures ---- */

static void fail_waiting(struct grpc_channel *c)
{
    struct grpc_call_run *run;

    while ((run = TAILQ_FIRST(&c->waiting)) != NULL)
        grpc_run_fail(run, ERR_UNAVAILABLE, "%s", c->last.text);
}

/* 1.6 times the last pause, with a random part: several channels must not reconnect at the same moment. */
static uint64_t next_pause(struct grpc_channel *c)
{
    uint64_t pause, most = c->o.backoff_max_ms;
    uint8_t chance = 128;

    c->pause_ms = c->pause_ms == 0 ? BACKOFF_FIRST_MS : c->pause_ms * 8 / 5;
    if (c->pause_ms > most)
        c->pause_ms = most;
    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
        chance = 128;
    pause = c->pause_ms * 4 / 5 + c->pause_ms * 2 * chance / (5 * 255);
    return pause < most ? pause : most;
}

/* `text` is grpc-go's, without the reason. */
static void connect_failed(struct grpc_channel *c, const char *text)
{
    buf_auto quoted = BUF_INIT(2000);

    go_quote(&quoted, text, strlen(text));
    c->last = (struct err){ 0 };
    err_set(&c->last, ERR_UNAVAILABLE, "connection error: desc = %s", quoted.p);
    if (c->o.once) {
        set_state(c, GRPC_CHANNEL_BROKEN);
        fail_waiting(c);
        return;
    }
    set_state(c, GRPC_CHANNEL_IDLE);
    c->rests_until_ms = uv_now(c->o.loop) + next_pause(c);
    grpc_channel_step(c);
}

/* Go's text for a failed connect. */
static void dial_failed(struct grpc_channel *c, int sys)
{
    const char *target = c->o.target;
    bool local = c->address.to.any.sa_family == AF_UNIX;
    char reason[96], text[400];

    snprintf(reason, sizeof(reason), "%s", strerror(sys));
    reason[0] = (char)tolower((unsigned char)reason[0]);
    snprintf(text, sizeof(text), "transport: Error while dialing: dial %s %s: connect: %s",
             local ? "unix" : "tcp", local ? c->address.to.un.sun_path : target, reason);
    connect_failed(c, text);
}

/* ---- the events of a connection ---- */

static void link_greeted(void *arg)
{
    struct grpc_link *l = arg;
    struct grpc_channel *c = l->channel;

    if (c->link != l)
        return;
    c->pause_ms = 0;
    c->last = (struct err){ 0 };
    set_state(c, GRPC_CHANNEL_READY);
    grpc_channel_step(c);
}

static void link_leaving(uint32_t http2_error, void *arg)
{
    struct grpc_link *l = arg;
    struct grpc_channel *c = l->channel;

    (void)http2_error;
    if (c->link != l)
        return;
    c->link = NULL;
    if (c->state == GRPC_CHANNEL_READY)
        set_state(c, c->o.once ? GRPC_CHANNEL_BROKEN : GRPC_CHANNEL_IDLE);
    else if (c->state == GRPC_CHANNEL_CONNECTING)
        connect_failed(c, "error reading server preface: the server is leaving");
    if (c->o.once && c->last.code == ERR_OK)
        err_set(&c->last, ERR_UNAVAILABLE, "the connection is draining");
    grpc_channel_step(c);
}

static void link_pong(void *arg)
{
    struct grpc_link *l = arg;

    l->pinged = false;
}

static const struct grpc_session_events link_events = {
    .greeted = link_greeted,
    .message = grpc_run_message,
    .ended = grpc_run_ended,
    .leaving = link_leaving,
    .pong = link_pong,
};

static void link_connected(void *arg)
{
    struct grpc_link *l = arg;

    l->dialing = false;
}

static void link_ended(const struct err *why, void *arg)
{
    struct grpc_link *l = arg;
    struct grpc_channel *c = l->channel;
    struct grpc_session *session = grpc_wire_session(l->wire);
    bool current = c->link == l, connecting = current && c->state == GRPC_CHANNEL_CONNECTING;
    char text[sizeof(why->text) + 32];

    snprintf(text, sizeof(text), "error reading %s: %s",
             grpc_session_greeted(session) ? "from server" : "server preface", why->text);
    if (current) {
        c->link = NULL;
        set_state(c, c->o.once ? GRPC_CHANNEL_BROKEN : GRPC_CHANNEL_IDLE);
        c->last = (struct err){ 0 };
        err_set(&c->last, ERR_UNAVAILABLE, "%s", text);
    }
    grpc_session_lost(session, text);
    close_link(l);
    if (connecting && l->dialing)
        dial_failed(c, why->sys);
    else if (connecting)
        connect_failed(c, text);
    else if (current && c->o.on_end != NULL)
        c->o.on_end(c, why, c->o.arg);
    grpc_channel_step(c);
}

static void link_closed(void *arg)
{
    struct grpc_link *l = arg;
    struct grpc_channel *c = l->channel;

    LIST_REMOVE(l, all);
    free(l);
    channel_maybe_free(c);
}

static void close_link(struct grpc_link *l)
{
    grpc_wire_close(l->wire, link_closed);
}

/* ---- connecting ---- */

static enum err_code open_link(struct grpc_channel *c, int fd, bool connecting, struct err *e)
{
    struct grpc_session_options so = { .message_max = c->o.message_max, .on = &link_events };
    struct grpc_wire_options wo = { .loop = c->o.loop,
                                    .fd = fd,
                                    .connecting = connecting,
                                    .on_connect = link_connected,
                                    .on_end = link_ended };
    struct grpc_link *l = calloc(1, sizeof(*l));

    if (l == NULL) {
        close(fd);
        return err_nomem(e);
    }
    l->channel = c;
    l->dialing = connecting;
    so.arg = wo.arg = l;
    if (grpc_session_new(&wo.session, &so, e) != ERR_OK) {
        close(fd);
        free(l);
        return e->code;
    }
    if (grpc_wire_open(&l->wire, &wo, e) != ERR_OK) {
        grpc_session_free(wo.session);
        free(l);
        return e->code;
    }
    LIST_INSERT_HEAD(&c->links, l, all);
    c->link = l;
    return ERR_OK;
}

static void channel_connect(struct grpc_channel *c)
{
    int fd = socket(c->address.to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct err e = { 0 };
    bool connecting = false;

    if (fd < 0) {
        dial_failed(c, errno);
        return;
    }
    if (c->address.to.any.sa_family != AF_UNIX) /* messages are small, and the peer waits for each */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    if (connect(fd, &c->address.to.any, c->address.n) != 0) {
        int sys = errno;
        connecting = sys == EINPROGRESS;
        if (!connecting) {
            close(fd);
            dial_failed(c, sys);
            return;
        }
    }
    set_state(c, GRPC_CHANNEL_CONNECTING);
    if (open_link(c, fd, connecting, &e) != ERR_OK) {
        connect_failed(c, e.text);
        return;
    }
    arm(c, c->o.connect_ms);
    grpc_wire_flush(c->link->wire);
}

static void send_waiting(struct grpc_channel *c)
{
    struct grpc_call_run *run;

    if (!TAILQ_EMPTY(&c->waiting) && !grpc_session_can_ask(grpc_wire_session(c->link->wire))) {
        c->link = NULL; /* its stream ids are used up */
        set_state(c, c->o.once ? GRPC_CHANNEL_BROKEN : GRPC_CHANNEL_IDLE);
        grpc_channel_step(c);
        return;
    }
    while ((run = TAILQ_FIRST(&c->waiting)) != NULL)
        grpc_run_send(run, c->link);
    if (c->o.keepalive_ms > 0 && !TAILQ_EMPTY(&c->active) && !uv_is_active((uv_handle_t *)&c->timer))
        arm(c, c->o.keepalive_ms);
    grpc_wire_flush(c->link->wire);
}

/* Without a call, no timer is due. */
static void stop_trying(struct grpc_channel *c)
{
    struct grpc_link *l = c->link;

    set_state(c, GRPC_CHANNEL_IDLE);
    if (l == NULL)
        return;
    c->link = NULL;
    close_link(l);
}

static void close_drained(struct grpc_channel *c)
{
    struct grpc_link *l;

    LIST_FOREACH (l, &c->links, all)
        if (l != c->link && grpc_session_streams(grpc_wire_session(l->wire)) == 0)
            close_link(l); /* no effect the second time */
}

void grpc_channel_step(struct grpc_channel *c)
{
    uint64_t now = uv_now(c->o.loop);

    if (c->closing)
        return;
    close_drained(c);
    switch (c->state) {
    case GRPC_CHANNEL_IDLE:
        if (TAILQ_EMPTY(&c->waiting))
            return;
        if (c->pause_ms > 0 && now < c->rests_until_ms) {
            set_state(c, GRPC_CHANNEL_RESTING);
            arm(c, c->rests_until_ms - now);
            return;
        }
        channel_connect(c);
        return;
    case GRPC_CHANNEL_CONNECTING:
    case GRPC_CHANNEL_RESTING:
        if (TAILQ_EMPTY(&c->waiting))
            stop_trying(c);
        return;
    case GRPC_CHANNEL_READY:
        if (TAILQ_EMPTY(&c->active) && TAILQ_EMPTY(&c->waiting))
            uv_timer_stop(&c->timer);
        send_waiting(c);
        return;
    case GRPC_CHANNEL_BROKEN:
        fail_waiting(c);
        return;
    }
}

/* ---- the timer ---- */

static void keep_alive(struct grpc_channel *c)
{
    uint64_t silent = uv_now(c->o.loop) - grpc_wire_heard_ms(c->link->wire);
    struct err e = { 0 };

    if (TAILQ_EMPTY(&c->active))
        return;
    if (c->link->pinged && silent >= c->o.keepalive_out_ms) {
        err_set(&e, ERR_UNAVAILABLE, "keepalive ping failed to receive ACK within timeout");
        link_ended(&e, c->link);
        return;
    }
    c->link->pinged = false;
    if (silent < c->o.keepalive_ms) {
        arm(c, c->o.keepalive_ms - silent);
        return;
    }
    c->link->pinged = true;
    grpc_session_ping(grpc_wire_session(c->link->wire));
    arm(c, c->o.keepalive_out_ms);
    grpc_wire_flush(c->link->wire);
}

static void on_timer(uv_timer_t *timer)
{
    struct grpc_channel *c = timer->data;
    struct grpc_link *l = c->link;

    switch (c->state) {
    case GRPC_CHANNEL_CONNECTING:
        c->link = NULL;
        close_link(l);
        connect_failed(c, "error reading server preface: context deadline exceeded");
        break;
    case GRPC_CHANNEL_RESTING:
        set_state(c, GRPC_CHANNEL_IDLE);
        c->rests_until_ms = 0;
        grpc_channel_step(c);
        break;
    case GRPC_CHANNEL_READY:
        keep_alive(c);
        break;
    case GRPC_CHANNEL_IDLE:
    case GRPC_CHANNEL_BROKEN:
        break;
    }
}

/* ---- life ---- */

static bool copy_text(struct grpc_channel *c, size_t at, const char **text)
{
    if (*text == NULL)
        return true;
    c->texts[at] = strdup(*text);
    *text = c->texts[at];
    return *text != NULL;
}

enum err_code grpc_channel_open(struct grpc_channel **ret, const struct grpc_channel_options *o,
                                struct err *e)
{
    struct grpc_channel *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    c->o = *o;
    c->o.message_max = o->message_max > 0 ? o->message_max : GRPC_MESSAGE_MAX;
    c->o.connect_ms = o->connect_ms > 0 ? o->connect_ms : CONNECT_MS;
    c->o.keepalive_out_ms = o->keepalive_out_ms > 0 ? o->keepalive_out_ms : KEEPALIVE_OUT_MS;
    c->o.backoff_max_ms = o->backoff_max_ms > 0 ? o->backoff_max_ms : BACKOFF_MAX_MS;
    if (o->authority == NULL)
        c->o.authority = "localhost";
    TAILQ_INIT(&c->waiting);
    TAILQ_INIT(&c->active);
    LIST_INIT(&c->links);
    if (!copy_text(c, 0, &c->o.target) || !copy_text(c, 1, &c->o.authority) ||
        !copy_text(c, 2, &c->o.user_agent))
        err_nomem(e);
    if (e->code != ERR_OK || grpc_address_parse(o->target, &c->address, e) != ERR_OK) {
        c->closing = c->timer_closed = true;
        channel_maybe_free(c);
        return e->code;
    }
    uv_timer_init(o->loop, &c->timer);
    c->timer.data = c;
    *ret = c;
    return ERR_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct grpc_channel *c = handle->data;

    c->timer_closed = true;
    channel_maybe_free(c);
}

void grpc_channel_close(struct grpc_channel *c)
{
    struct grpc_call_run *run;
    struct grpc_link *l;

    if (c == NULL)
        return;
    c->closing = true;
    while ((run = TAILQ_FIRST(&c->waiting)) != NULL || (run = TAILQ_FIRST(&c->active)) != NULL)
        grpc_run_fail(run, ERR_CANCELLED, "grpc: the client connection is closing");
    c->link = NULL;
    LIST_FOREACH (l, &c->links, all)
        close_link(l); /* freed on a later turn */
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

bool grpc_channel_peer(const struct grpc_channel *c, pid_t *ret_pid, uid_t *ret_uid)
{
    return c->link != NULL && c->state == GRPC_CHANNEL_READY &&
           grpc_wire_peer(c->link->wire, ret_pid, ret_uid);
}
