/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/usage.h"

#include "agent/pod/core/usage_text.h"
#include "agent/pod/limits/hugepages.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/usage/internal.h"
#include "base/array.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define RATE_WAIT_MS (CG_RATE_MIN_NS / 1000000 + 10)

struct source { /* a cgroup that was requested */
    UT_hash_handle hh;
    struct cg_meter *meter;
    struct cg_rate rate;
    uint64_t round;
    char path[];
};

struct question {
    TAILQ_ENTRY(question) link;
    struct status_reply *reply;
    bool basic;
    bool root;               /* requested by root */
    bool last;               /* omit values that are still unknown */
    struct summary *summary; /* while it is being made */
    uint64_t due_ms;         /* clock_mono_ms() */
};

struct usage {
    struct node *node;
    struct cg_meters *meters;
    struct source *sources;
    uint64_t round;
    struct took {
        uint64_t ns, cpu_ns;
    } basic, full; /* the last reading of CG_PARTS_BASIC, of CG_PARTS_ALL */
    char page_sizes[CG_PAGE_SIZES_MAX][16];
    size_t n_page_sizes;
    uv_timer_t timer;                        /* active while requests wait for a second sample */
    TAILQ_HEAD(questions, question) waiting; /* for that */
    struct questions now;                    /* answered one by one, root's first */
    struct background turns;
    struct background_client turn, root_turn;
    int closing; /* handles */
};

static void pod_usage_on_turn(struct background_client *t);
static void pod_usage_on_root_turn(struct background_client *t);

static size_t descriptors(void)
{
    struct rlimit l;
    size_t quarter = getrlimit(RLIMIT_NOFILE, &l) == 0 ? (size_t)l.rlim_cur / 4 : 0;

    return quarter < USAGE_OPEN_MAX ? quarter : USAGE_OPEN_MAX;
}

/* Made on the first request; NULL when out of memory. */
static struct usage *pod_usage_of(struct node *n)
{
    struct usage_node *part = usage_node(n);
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX];
    struct cg_meters_options o = { .tree = n->o.cgroups, .keep_open = descriptors() };
    struct usage *u = part->usage;
    struct err e = { 0 };
    size_t found;

    if (u != NULL)
        return u;
    u = calloc(1, sizeof(*u));
    if (u == NULL)
        return NULL;
    found = hugepages_sizes(n, sizes);
    for (size_t i = 0; i < found && i < CG_PAGE_SIZES_MAX; i++)
        memcpy(u->page_sizes[u->n_page_sizes++], sizes[i].cgroup, sizeof(u->page_sizes[0]));
    o.page_sizes = u->page_sizes;
    o.n_page_sizes = u->n_page_sizes;
    if (cg_meters_open(&u->meters, &o, &e) != ERR_OK) {
        free(u);
        return NULL;
    }
    u->node = n;
    TAILQ_INIT(&u->waiting);
    TAILQ_INIT(&u->now);
    background_init(&u->turns, n->o.loop);
    u->turn = (struct background_client){ .run = pod_usage_on_turn };
    u->root_turn = (struct background_client){ .run = pod_usage_on_root_turn, .first = true };
    uv_timer_init(n->o.loop, &u->timer);
    u->timer.data = u;
    part->usage = u;
    return u;
}

size_t usage_page_sizes(struct node *n, const char (**ret)[16])
{
    struct usage *u = pod_usage_of(n);

    *ret = u != NULL ? (const char(*)[16])u->page_sizes : NULL;
    return u != NULL ? u->n_page_sizes : 0;
}

/* ---- sources ---- */

static void pod_usage_drop(struct usage *u, struct source *s)
{
    HASH_DEL(u->sources, s);
    cg_meter_free(s->meter);
    free(s);
}

static struct source *source_of(struct usage *u, const char *path)
{
    size_t n = strlen(path);
    struct err e = { 0 };
    struct source *s;

    HASH_FIND(hh, u->sources, path, n, s);
    if (s != NULL)
        return s;
    s = calloc(1, sizeof(*s) + n + 1);
    if (s == NULL)
        return NULL;
    memcpy(s->path, path, n + 1);
    if (cg_meter_new(&s->meter, u->meters, path, &e) != ERR_OK) {
        free(s);
        return NULL;
    }
    HASH_ADD(hh, u->sources, path[0], n, s);
    if (s->hh.tbl == NULL) {
        cg_meter_free(s->meter);
        free(s);
        return NULL;
    }
    return s;
}

void usage_forget(struct node *n, const char *path)
{
    struct usage_node *part = usage_node(n);
    size_t k = strlen(path);
    struct source *s, *tmp;

    if (part->usage == NULL || k == 0)
        return;
    HASH_ITER (hh, part->usage->sources, s, tmp)
        if (strncmp(s->path, path, k) == 0 && (s->path[k] == '\0' || s->path[k] == '/'))
            pod_usage_drop(part->usage, s);
}

/* ---- reading ---- */

/* Everything is read at once and reported afterwards: so the time to make the answer is not between two
 * samples, and the code of the kernel and ours stays in the CPU's cache. */
struct pass {
    struct usage *u;
    unsigned parts;
    struct usage_row *rows;
    size_t n;
    bool complete;
};

/* The next row; NULL when out of memory. */
static struct usage_row *next_row(struct pass *p)
{
    return array_room(p->rows, p->n) ? &p->rows[p->n] : NULL;
}

/* `row` identifies the cgroup. */
static void read_one(struct pass *p, const struct usage_row *row, const char *path)
{
    struct source *s = source_of(p->u, path);
    struct usage_row *to = next_row(p);
    struct err e;

    if (s == NULL || to == NULL) {
        p->complete = false;
        return;
    }
    *to = *row;
    to->cgroup = s->path;
    if (cg_meter_read(s->meter, p->parts, &to->s, &e) != ERR_OK) {
        log_debug("cannot read usage", F_ERR(&e)); /* it is being removed, or was never made */
        return;                                    /* s->round shows that it may be freed */
    }
    p->n++;
    s->round = p->u->round;
    if (to->s.parts & CG_PART_CPU) {
        to->rate_known = cg_rate_update(&s->rate, to->s.mono_ns, to->s.cpu.usage_ns);
        to->nano_cores = s->rate.nano_cores;
    }
}

static bool has_cgroup(const struct ctr *c)
{
    return c->cur.id[0] != '\0' && !c->cur.ended && c->state >= CTR_STARTING;
}

/* An ending pod may have been taken over from an earlier agent, which made its cgroup. */
static bool has_pod_cgroup(const struct pod *p)
{
    return p->state != POD_TERMINATED && (p->cgroup_made || p->state == POD_TERMINATING);
}

static void pod_usage_read_pod(struct pass *pass, struct pod *p)
{
    char path[512], below[600];
    struct err e = { 0 };

    if (!has_pod_cgroup(p) || resources_cgroup_path(p, path, sizeof(path), &e) != ERR_OK)
        return;
    read_one(pass, &(struct usage_row){ .kind = USAGE_POD, .pod = p }, path);
    for (size_t i = 0; i < p->n_ctrs; i++) {
        if (!has_cgroup(p->ctrs[i]))
            continue;
        snprintf(below, sizeof(below), "%s/%s", path, p->ctrs[i]->cur.id);
        read_one(pass, &(struct usage_row){ .kind = USAGE_CONTAINER, .pod = p, .ctr = p->ctrs[i] }, below);
    }
}

static void read_shared(struct pass *pass, struct node *n)
{
    static const enum cg_class classes[] = { CG_BURSTABLE, CG_BEST_EFFORT };
    struct err e = { 0 };
    char path[512];

    read_one(pass, &(struct usage_row){ .kind = USAGE_NODE }, "/");
    if (cg_class_path(n->o.cgroups, CG_GUARANTEED, path, sizeof(path), &e) == ERR_OK)
        read_one(pass, &(struct usage_row){ .kind = USAGE_PODS }, path);
    for (size_t i = 0; i < ARRAY_LEN(classes); i++)
        if (cg_class_path(n->o.cgroups, classes[i], path, sizeof(path), &e) == ERR_OK)
            read_one(pass, &(struct usage_row){ .kind = USAGE_CLASS, .class_ = classes[i] }, path);
}

static void pod_usage_tell(struct pass *pass, void (*fn)(const struct usage_row *row, void *arg), void *arg)
{
    for (size_t i = 0; i < pass->n; i++)
        fn(&pass->rows[i], arg);
    free(pass->rows);
}

/* Frees cgroups that were not found since that round. */
static void drop_unseen(struct usage *u, uint64_t round)
{
    struct source *s, *next;

    HASH_ITER (hh, u->sources, s, next)
        if (s->round < round)
            pod_usage_drop(u, s);
}

static uint64_t thread_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

bool usage_walk(struct node *n, struct usage_walk *w, unsigned parts, struct pod *p,
                void (*fn)(const struct usage_row *row, void *arg), void *arg)
{
    struct pass pass = { .u = pod_usage_of(n), .parts = parts, .complete = true };
    uint64_t began = uv_hrtime(), cpu_began = thread_ns();

    if (pass.u == NULL)
        return false;
    if (w->round == 0)
        w->round = ++pass.u->round;
    if (p == NULL)
        read_shared(&pass, n);
    else
        pod_usage_read_pod(&pass, p);
    w->ns += uv_hrtime() - began;
    w->cpu_ns += thread_ns() - cpu_began;
    pod_usage_tell(&pass, fn, arg);
    return pass.complete;
}

bool usage_read_pod(struct node *n, unsigned parts, const struct pod *p, struct cg_sample *ret,
                    bool *ret_absent)
{
    struct usage *u = pod_usage_of(n);
    struct source *s;
    char path[512];
    struct err e = { 0 };

    *ret_absent = false;
    if (u == NULL || !has_pod_cgroup(p) || resources_cgroup_path(p, path, sizeof(path), &e) != ERR_OK ||
        (s = source_of(u, path)) == NULL)
        return false;
    if (cg_meter_read(s->meter, parts, ret, &e) != ERR_OK) {
        *ret_absent = presence_is_absent(cg_has_processes(n->o.cgroups, path, &e));
        return false;
    }
    s->round = u->round;
    return true;
}

void usage_walked(struct node *n, const struct usage_walk *w, unsigned parts)
{
    struct usage *u = usage_node(n)->usage;

    if (u == NULL)
        return;
    drop_unseen(u, w->round);
    if (parts == CG_PARTS_ALL)
        u->full = (struct took){ w->ns, w->cpu_ns };
    else if (parts == CG_PARTS_BASIC)
        u->basic = (struct took){ w->ns, w->cpu_ns };
}

/* ---- questions about rates ---- */

static void on_second_sample(uv_timer_t *timer);

static void wait_for_next(struct usage *u)
{
    const struct question *q = TAILQ_FIRST(&u->waiting); /* in order of arrival */
    uint64_t now = clock_mono_ms();

    if (q != NULL)
        uv_timer_start(&u->timer, on_second_sample, q->due_ms > now ? q->due_ms - now : 1, 0);
}

static void pod_usage_ask(struct usage *u)
{
    const struct question *q = TAILQ_FIRST(&u->now);

    background_withdraw(&u->turns, &u->turn);
    background_withdraw(&u->turns, &u->root_turn);
    if (q != NULL)
        background_ask(&u->turns, q->root ? &u->root_turn : &u->turn);
}

static void pod_usage_enqueue(struct usage *u, struct question *q)
{
    if (q->root)
        TAILQ_INSERT_HEAD(&u->now, q, link);
    else
        TAILQ_INSERT_TAIL(&u->now, q, link);
    pod_usage_ask(u);
}

static void on_second_sample(uv_timer_t *timer)
{
    struct usage *u = timer->data;
    struct question *q;

    while ((q = TAILQ_FIRST(&u->waiting)) != NULL && q->due_ms <= clock_mono_ms()) {
        TAILQ_REMOVE(&u->waiting, q, link);
        pod_usage_enqueue(u, q);
    }
    wait_for_next(u);
}

/* All pods were read. */
static void pod_usage_conclude(struct usage *u, struct question *q)
{
    struct buf text = BUF_INIT(SIZE_MAX - 1);
    size_t missing = 0;
    bool whole = summary_end(q->summary, &text, &missing);

    TAILQ_REMOVE(&u->now, q, link);
    summary_free(q->summary);
    q->summary = NULL;
    if (whole && missing > 0 && !q->last && !u->node->closing) {
        buf_done(&text);
        q->last = true;
        q->due_ms = clock_mono_ms() + RATE_WAIT_MS;
        TAILQ_INSERT_TAIL(&u->waiting, q, link);
        if (!uv_is_active((uv_handle_t *)&u->timer))
            wait_for_next(u);
        return;
    }
    text.failed = text.failed || !whole;
    status_reply_json_text(q->reply, &text);
    free(q);
}

static void give_up(struct questions *from, struct question *q, const struct err *e)
{
    TAILQ_REMOVE(from, q, link);
    summary_free(q->summary);
    status_reply_err(q->reply, e);
    free(q);
}

static void pod_usage_run_turn(struct usage *u)
{
    struct question *q = TAILQ_FIRST(&u->now);
    const uint64_t began = uv_hrtime();
    struct err e = { 0 };

    if (q->summary == NULL && status_reply_wanted(q->reply))
        q->summary = summary_new(u->node, q->basic, status_reply_is_pretty(q->reply));
    if (!status_reply_wanted(q->reply)) {
        err_set(&e, ERR_CANCELLED, "the client has disconnected");
        give_up(&u->now, q, &e);
    } else if (q->summary == NULL) {
        err_nomem(&e);
        give_up(&u->now, q, &e);
    } else {
        bool more = true;

        while (more && uv_hrtime() - began < BACKGROUND_PIECE_NS)
            more = summary_step(q->summary);
        if (!more)
            pod_usage_conclude(u, q);
    }
    pod_usage_ask(u);
}

static void pod_usage_on_turn(struct background_client *t)
{
    pod_usage_run_turn((struct usage *)((char *)t - offsetof(struct usage, turn)));
}

static void pod_usage_on_root_turn(struct background_client *t)
{
    pod_usage_run_turn((struct usage *)((char *)t - offsetof(struct usage, root_turn)));
}

void usage_summary(struct node *n, bool basic, struct status_reply *r)
{
    struct usage *u = pod_usage_of(n);
    struct question *q = u != NULL ? calloc(1, sizeof(*q)) : NULL;
    struct err e = { 0 };

    if (q == NULL || n->closing) {
        if (n->closing)
            err_set(&e, ERR_UNAVAILABLE, "the agent is shutting down");
        else
            err_nomem(&e);
        free(q);
        status_reply_err(r, &e);
        return;
    }
    q->reply = r;
    q->basic = basic;
    q->root = status_reply_is_roots(r);
    pod_usage_enqueue(u, q);
}

void usage_cancel(struct node *n)
{
    struct usage *u = usage_node(n)->usage;
    struct err e = { 0 };
    struct question *q;

    if (u == NULL)
        return;
    uv_timer_stop(&u->timer);
    err_set(&e, ERR_UNAVAILABLE, "the agent is shutting down");
    while ((q = TAILQ_FIRST(&u->waiting)) != NULL)
        give_up(&u->waiting, q, &e);
    while ((q = TAILQ_FIRST(&u->now)) != NULL)
        give_up(&u->now, q, &e);
    pod_usage_ask(u);
}

static void on_part_closed(void *owner)
{
    struct usage *u = owner;

    if (--u->closing == 0)
        free(u);
}

static void pod_usage_on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

void usage_close(struct node *n)
{
    struct usage_node *part = usage_node(n);
    struct usage *u = part->usage;
    struct source *s, *tmp;

    if (u == NULL)
        return;
    usage_cancel(n);
    HASH_ITER (hh, u->sources, s, tmp)
        pod_usage_drop(u, s);
    cg_meters_close(u->meters);
    part->usage = NULL;
    u->closing = 2;
    background_close(&u->turns, on_part_closed, u);
    uv_close((uv_handle_t *)&u->timer, pod_usage_on_timer_closed);
}

/* ---- about itself ---- */

static void put_seconds(struct buf *out, const char *name, const char *help, uint64_t ns)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s gauge\n%s ", name, help, name, name);
    usage_value(out, ns, UNIT_NS);
    buf_addc(out, '\n');
}

void usage_metrics_agent(struct node *n, struct buf *out)
{
    const struct usage *u = usage_node(n)->usage;

    if (u == NULL)
        return;
    buf_addf(out,
             "# HELP coracle_usage_cgroups Cgroups whose usage is read.\n# TYPE coracle_usage_cgroups gauge\n"
             "coracle_usage_cgroups %u\n"
             "# HELP coracle_usage_open_files Cgroup files kept open.\n"
             "# TYPE coracle_usage_open_files gauge\ncoracle_usage_open_files %zu\n",
             HASH_COUNT(u->sources), cg_meters_kept(u->meters));
    put_seconds(out, "coracle_usage_read_seconds", "Duration of the last reading of everything.", u->full.ns);
    put_seconds(out, "coracle_usage_basic_read_seconds",
                "Duration of the last reading of CPU and memory only.", u->basic.ns);
    put_seconds(out, "coracle_usage_basic_read_cpu_seconds", "CPU time of that reading.", u->basic.cpu_ns);
}
