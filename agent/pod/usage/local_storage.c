/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/local_storage.h"

#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/usage/internal.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/work.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

struct local_storage { /* of the node; exists from the first measured pod on */
    struct node *node;
    uv_timer_t timer;             /* active while there is a tree and no job */
    TAILQ_HEAD(, local_tree) all; /* in the order of their turns */
    uint64_t rest_until_ms;       /* clock_mono_ms() */
    struct work work;
    bool busy;
    struct { /* the current slice: owned by the pool while busy */
        char path[1024];
        struct disk_usage *scan; /* NULL: begins */
        bool over;
        uint64_t cost_ns;
        struct disk_usage_sum sum;
    } job;
    struct local_tree *tree; /* the tree of the job; NULL: forgotten meanwhile */
};

/* ---- a slice, on the pool ---- */

static uint64_t local_storage_cpu_time_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static enum err_code scan_slice(void *arg, struct err *e)
{
    struct local_storage *s = arg;
    uint64_t began = local_storage_cpu_time_ns();

    s->job.over = true;
    if (s->job.scan == NULL && disk_usage_begin(&s->job.scan, s->job.path, e) != ERR_OK)
        return e->code;
    s->job.over = disk_usage_go_on(s->job.scan, LOCAL_SLICE_NS);
    s->job.sum = disk_usage_sum(s->job.scan);
    if (s->job.over)
        disk_usage_free(take_ptr(&s->job.scan));
    s->job.cost_ns = local_storage_cpu_time_ns() - began;
    return ERR_OK;
}

/* ---- whose turn it is ---- */

static void local_storage_go_on(struct local_storage *s);

static bool local_storage_path_of(struct local_tree *t, char *ret, size_t size)
{
    const struct pod *p = t->pod;
    const struct node_options *o = &p->node->o;
    const struct api_meta *m = &p->api->meta;

    switch (t->kind) {
    case LOCAL_VOLUME:
        return volumes_ready(p) &&
               volumes_host_path(p, &p->api->spec.volumes[t->index], ret, size, ERR_IGNORED) == ERR_OK;
    case LOCAL_LAYER:
        return p->ctrs[t->index].cur.id[0] != '\0' &&
               rt_writable_dir(p->node->rt, p->ctrs[t->index].cur.id, ret, size);
    case LOCAL_LOG:
        return (size_t)snprintf(ret, size, "%s/%s_%s_%s/%s", o->pod_logs_dir, m->namespace, m->name, p->uid,
                                p->ctrs[t->index].spec->name) < size;
    }
    return false;
}

/* "2048 KiB together; emptyDir cache: 2040 KiB; log of web: 8 KiB" */
static bool add_measured(const struct pod *p, struct buf *b, int64_t *ret_newest_ns);

static void evict(struct pod *p, char *why)
{
    buf_auto measured = BUF_INIT(2000);
    int64_t newest_ns = 0;

    log_warn("evicting a pod that exceeds its local storage limits", F_STR("pod", p->key),
             F_STR("podUID", p->uid), F_STR("why", why));
    pod_event(p, NULL, true, "Evicted", "%s", why);
    snprintf(p->phase, sizeof(p->phase), "Failed");
    snprintf(p->reason, sizeof(p->reason), "Evicted");
    free(p->message);
    p->message = why;
    free(take_ptr(&p->measured));
    if (add_measured(p, &measured, &newest_ns))
        p->measured = buf_detach(&measured);
    pod_ask_end(p, 1, "it exceeds its local storage limits");
    pod_wake(p, "evicted");
}

static void local_storage_judge(struct pod *p)
{
    str_auto why = NULL;

    if ((p->state == POD_STARTING || p->state == POD_RUNNING) && !p->node->closing &&
        local_limits_exceeded(p, &why) && why != NULL)
        evict(p, take_ptr(&why));
}

/* A missing one uses nothing: a removed container, or one without a log yet. */
static void take_result(struct local_storage *s, struct local_tree *t, const struct err *result)
{
    t->scan = take_ptr(&s->job.scan);
    if (t->scan != NULL)
        return;
    t->due_ms = clock_mono_ms() + LOCAL_PERIOD_MS;
    if (result->code == ERR_OK || result->code == ERR_NOT_FOUND) {
        t->known = true;
        t->sum = result->code == ERR_OK ? s->job.sum : (struct disk_usage_sum){ 0 };
        t->at_ns = clock_wall_ns();
        local_storage_judge(t->pod); /* may free t */
        return;
    }
    log_warn("cannot measure local storage of a pod", F_STR("pod", t->pod->key), F_ERR(result));
}

static void on_slice(struct op *op, const struct err *result)
{
    struct local_storage *s = op->owner;
    struct local_tree *t = take_ptr(&s->tree);

    s->busy = false;
    s->rest_until_ms = clock_mono_ms() + s->job.cost_ns / 1000000 * LOCAL_SHARE +
                       s->job.cost_ns % 1000000 * LOCAL_SHARE / 1000000;
    if (t != NULL)
        take_result(s, t, result);
    disk_usage_free(take_ptr(&s->job.scan)); /* for a forgotten one */
    local_storage_go_on(s);
}

static void local_storage_start(struct local_storage *s, struct local_tree *t)
{
    s->job.scan = take_ptr(&t->scan);
    s->job.cost_ns = 0;
    if (t->kind == LOCAL_LAYER)
        snprintf(t->id, sizeof(t->id), "%s", t->pod->ctrs[t->index].cur.id);
    s->tree = t;
    s->busy = true;
    work_start(&s->work, "measure local storage", t->pod->key, scan_slice, s, s->node->o.loop, on_slice, s);
}

/* A scan of an outdated container is useless. */
static void drop_old_scan(struct local_tree *t)
{
    if (t->scan != NULL && t->kind == LOCAL_LAYER && !str_eq(t->id, t->pod->ctrs[t->index].cur.id))
        disk_usage_free(take_ptr(&t->scan));
}

static void local_storage_on_timer(uv_timer_t *timer)
{
    local_storage_go_on(timer->data);
}

/* The first one due; otherwise the time when the first will be. */
static struct local_tree *local_storage_next(struct local_storage *s, uint64_t now, uint64_t *ret_due_ms)
{
    struct local_tree *t;

    *ret_due_ms = UINT64_MAX;
    TAILQ_FOREACH (t, &s->all, link) {
        if (t->due_ms <= now)
            return t;
        *ret_due_ms = t->due_ms < *ret_due_ms ? t->due_ms : *ret_due_ms;
    }
    return NULL;
}

static void local_storage_go_on(struct local_storage *s)
{
    uint64_t now = clock_mono_ms(), due_ms;
    struct local_tree *t;

    if (s->busy || s->node->closing)
        return;
    uv_timer_stop(&s->timer);
    if (now < s->rest_until_ms && !TAILQ_EMPTY(&s->all)) {
        uv_timer_start(&s->timer, local_storage_on_timer, s->rest_until_ms - now, 0);
        return;
    }
    while ((t = local_storage_next(s, now, &due_ms)) != NULL) {
        TAILQ_REMOVE(&s->all, t, link);
        TAILQ_INSERT_TAIL(&s->all, t, link);
        drop_old_scan(t);
        if (local_storage_path_of(t, s->job.path, sizeof(s->job.path))) {
            local_storage_start(s, t);
            return;
        }
        t->due_ms = now + LOCAL_PERIOD_MS;
    }
    if (due_ms != UINT64_MAX)
        uv_timer_start(&s->timer, local_storage_on_timer, due_ms - now, 0);
}

/* ---- pods ---- */

static struct local_storage *opened(struct node *n)
{
    struct usage_node *part = usage_node(n);
    struct local_storage *s = part->local;

    if (s != NULL)
        return s;
    s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->node = n;
    TAILQ_INIT(&s->all);
    uv_timer_init(n->o.loop, &s->timer);
    s->timer.data = s;
    part->local = s;
    return s;
}

void local_storage_step(struct pod *p)
{
    struct usage_pod *part_of = usage_of_pod(p);
    struct local_storage *s;

    if (part_of->local != NULL || !p->node->o.local_limits)
        return;
    part_of->local = local_limits_trees(p);
    if (part_of->local == NULL)
        return;
    s = opened(p->node);
    if (s == NULL) {
        free(take_ptr(&part_of->local));
        return;
    }
    for (size_t i = 0; i < part_of->local->n; i++) {
        part_of->local->trees[i].due_ms = clock_mono_ms() + LOCAL_PERIOD_MS;
        TAILQ_INSERT_TAIL(&s->all, &part_of->local->trees[i], link);
    }
    local_storage_go_on(s);
}

void local_storage_forget(struct pod *p)
{
    struct usage_pod *part_of = usage_of_pod(p);
    struct local_storage *s = usage_node(p->node)->local;

    for (size_t i = 0; part_of->local != NULL && i < part_of->local->n; i++) {
        struct local_tree *t = &part_of->local->trees[i];

        TAILQ_REMOVE(&s->all, t, link);
        disk_usage_free(t->scan);
        if (s->tree == t)
            s->tree = NULL;
    }
    free(take_ptr(&part_of->local));
}

void local_storage_now(struct node *n)
{
    local_storage_go_on(usage_node(n)->local);
}

/* ---- telling ---- */

static void add_part(const struct pod *p, const struct local_tree *one, struct buf *b)
{
    static const char *const kinds[] = { "emptyDir", "files of", "log of" };
    const struct local_tree *t = local_storage_find(p, one->kind, one->index);
    const char *name =
        one->kind == LOCAL_VOLUME ? p->api->spec.volumes[one->index].name : p->ctrs[one->index].spec->name;

    if (t == NULL)
        buf_addf(b, "; %s %s: unknown", kinds[one->kind], name);
    else
        buf_addf(b, "; %s %s: %" PRIu64 " KiB%s", kinds[one->kind], name, t->sum.bytes / 1024,
                 t->sum.partial ? " at least" : "");
    if (one->scan != NULL)
        buf_adds(b, ", being counted");
}

static bool add_measured(const struct pod *p, struct buf *b, int64_t *ret_newest_ns)
{
    const struct usage_pod *part_of = usage_of_pod(p);
    struct disk_usage_sum sum;
    bool all;

    if (part_of->local == NULL)
        return false;
    all = local_limits_sum(p, &sum);
    buf_addf(b, "%" PRIu64 " KiB together%s", sum.bytes / 1024, all && !sum.partial ? "" : " at least");
    for (size_t i = 0; i < part_of->local->n; i++) {
        const struct local_tree *t = &part_of->local->trees[i];

        *ret_newest_ns = t->at_ns > *ret_newest_ns ? t->at_ns : *ret_newest_ns;
        add_part(p, t, b);
    }
    return true;
}

void local_storage_explain(const struct pod *p, json_t *steps)
{
    buf_auto text = BUF_INIT(2000);
    int64_t newest_ns = 0;

    if (!add_measured(p, &text, &newest_ns))
        return;
    explain_step(steps, "local storage", newest_ns != 0 ? "done" : "waiting", newest_ns,
                 newest_ns != 0 ? text.p : "not measured yet", 0);
}

/* ---- ending ---- */

bool local_storage_busy(const struct node *n)
{
    const struct usage_node *part = usage_node(n);

    return part->local != NULL && part->local->busy;
}

static void local_storage_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void local_storage_close(struct node *n)
{
    struct local_storage *s = take_ptr(&usage_node(n)->local);

    if (s != NULL)
        uv_close((uv_handle_t *)&s->timer, local_storage_on_closed);
}
