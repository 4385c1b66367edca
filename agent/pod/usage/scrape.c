/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/scrape.h"

#include "agent/pod/core/usage_text.h"
#include "agent/pod/usage/internal.h"
#include "agent/pod/usage/net_stats.h"
#include "agent/pod/usage/usage.h"
#include "base/background.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX (16u << 20) /* of all pods: no fewer than there can be */

struct scrape {
    TAILQ_ENTRY(scrape) link;
    enum { SCRAPE_WAITS, SCRAPE_READS, SCRAPE_TELLS, SCRAPE_TELLS_NET } state;
    enum status_metrics which;
    struct status_reply *reply;
    bool root; /* requested by root */
    struct buf out;
    struct buf keys; /* of the pods, each NUL-terminated */
    size_t next;     /* the key of the current turn; for the network, the name */
    struct usage_page *page;
    struct net_stats net;
};

struct counted_turns { /* of the loop, for one page */
    unsigned n;
    uint64_t longest_ns;
};

struct scrapes {
    struct node *node;
    struct background turns;
    struct background_client turn, root_turn; /* while there is one; one of root */
    TAILQ_HEAD(, scrape) queue;
    struct counted_turns now, last;
};

static void scrape_finish(struct scrapes *all, struct scrape *s, const struct err *e)
{
    TAILQ_REMOVE(&all->queue, s, link);
    if (e != NULL) {
        status_reply_err(s->reply, e);
        buf_done(&s->out);
    } else {
        status_reply_text(s->reply, &s->out);
    }
    usage_page_free(s->page);
    net_stats_done(&s->net);
    buf_done(&s->keys);
    free(s);
}

/* ---- steps ---- */

static enum err_code scrape_begin(struct node *n, struct scrape *s, struct err *e)
{
    pods_each (n, p)
        buf_add(&s->keys, p->key, strlen(p->key) + 1);
    s->page = usage_page_new(n, s->which == METRICS_RESOURCE);
    if (s->page == NULL || s->keys.failed)
        return err_nomem(e);
    usage_page_read(s->page, NULL);
    s->state = SCRAPE_READS;
    return ERR_OK;
}

static void read_next(struct node *n, struct scrape *s)
{
    const char *key = s->keys.p + s->next;
    struct pod *p;

    if (s->next == s->keys.n) {
        s->state = SCRAPE_TELLS;
        s->next = 0;
        return;
    }
    s->next += strlen(key) + 1;
    HASH_FIND_STR(n->pods, key, p);
    if (p == NULL)
        return;
    usage_page_read(s->page, p);
    if (s->which != METRICS_RESOURCE)
        net_stats_read(&s->net, p);
}

/* True: the page is complete. */
static bool tell_next(struct node *n, struct scrape *s)
{
    if (s->state == SCRAPE_TELLS && usage_page_write(s->page, &s->out))
        return false;
    if (s->which == METRICS_RESOURCE)
        return true;
    s->state = SCRAPE_TELLS_NET;
    if (s->next < NET_STATS_NAMES) {
        net_stats_write(&s->net, s->next++, &s->out);
        return false;
    }
    if (s->which == METRICS_ALL) {
        usage_metrics_agent(n, &s->out);
        scrapes_metrics(n, &s->out);
    }
    return true;
}

/* True: that was the last piece, and it was answered. */
static bool scrape_step(struct scrapes *all, struct scrape *s)
{
    struct err e = { 0 };

    if (!status_reply_wanted(s->reply)) {
        err_set(&e, ERR_CANCELLED, "the client has disconnected");
        scrape_finish(all, s, &e);
        return true;
    }
    switch (s->state) {
    case SCRAPE_WAITS:
        if (scrape_begin(all->node, s, &e) == ERR_OK)
            return false;
        scrape_finish(all, s, &e);
        return true;
    case SCRAPE_READS:
        read_next(all->node, s);
        return false;
    case SCRAPE_TELLS:
    case SCRAPE_TELLS_NET:
        if (!tell_next(all->node, s))
            return false;
        scrape_finish(all, s, NULL);
        return true;
    }
    return false;
}

/* Moves root's requests to the front. */
static void scrape_ask(struct scrapes *all)
{
    const struct scrape *s = TAILQ_FIRST(&all->queue);

    background_withdraw(&all->turns, &all->turn);
    background_withdraw(&all->turns, &all->root_turn);
    if (s != NULL)
        background_ask(&all->turns, s->root ? &all->root_turn : &all->turn);
}

static void scrape_run_turn(struct scrapes *all)
{
    struct scrape *s = TAILQ_FIRST(&all->queue);
    uint64_t began = uv_hrtime(), took = 0;
    bool over = false;

    for (unsigned i = 0; i < SCRAPE_TURN_PIECES && took < SCRAPE_TURN_NS && !over; i++) {
        over = scrape_step(all, s);
        took = uv_hrtime() - began;
    }
    all->now.n++;
    if (took > all->now.longest_ns)
        all->now.longest_ns = took;
    if (over) {
        all->last = all->now;
        all->now = (struct counted_turns){ 0 };
    }
    scrape_ask(all);
}

static void scrape_on_turn(struct background_client *t)
{
    scrape_run_turn((struct scrapes *)((char *)t - offsetof(struct scrapes, turn)));
}

static void scrape_on_root_turn(struct background_client *t)
{
    scrape_run_turn((struct scrapes *)((char *)t - offsetof(struct scrapes, root_turn)));
}

/* ---- the queue ---- */

static struct scrapes *scrapes_of(struct node *n)
{
    struct usage_node *part = usage_node(n);
    struct scrapes *all = part->scrapes;

    if (all != NULL)
        return all;
    all = calloc(1, sizeof(*all));
    if (all == NULL)
        return NULL;
    all->node = n;
    TAILQ_INIT(&all->queue);
    background_init(&all->turns, n->o.loop);
    all->turn = (struct background_client){ .run = scrape_on_turn };
    all->root_turn = (struct background_client){ .run = scrape_on_root_turn, .first = true };
    part->scrapes = all;
    return all;
}

void scrape_start(struct node *n, enum status_metrics which, struct buf *own, struct status_reply *r)
{
    struct scrapes *all = n->closing ? NULL : scrapes_of(n);
    struct scrape *s = all != NULL ? calloc(1, sizeof(*s)) : NULL;
    struct err e = { 0 };

    if (s == NULL) {
        if (n->closing)
            err_set(&e, ERR_UNAVAILABLE, "the agent is shutting down");
        else
            err_nomem(&e);
        status_reply_err(r, &e);
        buf_done(own);
        return;
    }
    s->which = which;
    s->reply = r;
    s->out = *own;
    buf_init(own, 0);
    buf_init(&s->keys, NAMES_MAX);
    net_stats_init(&s->net);
    s->root = status_reply_is_roots(r);
    if (s->root)
        TAILQ_INSERT_HEAD(&all->queue, s, link);
    else
        TAILQ_INSERT_TAIL(&all->queue, s, link);
    scrape_ask(all);
}

void scrapes_cancel(struct node *n)
{
    struct usage_node *part = usage_node(n);
    struct err e = { 0 };

    if (part->scrapes == NULL)
        return;
    err_set(&e, ERR_UNAVAILABLE, "the agent is shutting down");
    while (!TAILQ_EMPTY(&part->scrapes->queue))
        scrape_finish(part->scrapes, TAILQ_FIRST(&part->scrapes->queue), &e);
    scrape_ask(part->scrapes);
}

static void scrape_on_closed(void *all)
{
    free(all);
}

void scrapes_close(struct node *n)
{
    struct usage_node *part = usage_node(n);
    struct scrapes *all = part->scrapes;

    if (all == NULL)
        return;
    scrapes_cancel(n);
    part->scrapes = NULL;
    background_close(&all->turns, scrape_on_closed, all);
}

void scrapes_metrics(const struct node *n, struct buf *out)
{
    const struct scrapes *all = usage_node(n)->scrapes;

    if (all == NULL || all->last.n == 0)
        return;
    buf_addf(out,
             "# HELP coracle_metrics_turns Turns of the loop needed for the previous page of metrics.\n"
             "# TYPE coracle_metrics_turns gauge\ncoracle_metrics_turns %u\n"
             "# HELP coracle_metrics_longest_turn_seconds The longest of these turns.\n"
             "# TYPE coracle_metrics_longest_turn_seconds gauge\ncoracle_metrics_longest_turn_seconds ",
             all->last.n);
    usage_value(out, all->last.longest_ns, UNIT_NS);
    buf_addc(out, '\n');
}
