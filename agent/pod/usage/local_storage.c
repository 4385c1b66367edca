/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/local_storage.h"

#include "agent/pod/core/evict.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/project/project.h"
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
    size_t asked;            /* trees with waiting requests */
    void (*on_asked)(struct node *n);
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

bool local_storage_path(const struct pod *p, enum local_kind kind, size_t index, bool scan, char *ret,
                        size_t size)
{
    const char *id = kind != LOCAL_VOLUME ? p->ctrs[index]->cur.id : "";

    switch (kind) {
    case LOCAL_VOLUME:
        return volumes_ready(p) &&
               volumes_host_path(p, &p->api->spec.volumes[index], ret, size, ERR_IGNORED) == ERR_OK;
    case LOCAL_LAYER:
        if (id[0] == '\0')
            return false;
        return scan ? rt_writable_dir(p->node->rt, id, ret, size) : project_layer_path(p, id, ret, size);
    case LOCAL_LOG:
        return project_log_path(p->ctrs[index], ret, size);
    }
    return false;
}

/* ---- known figures ---- */

static bool read_quota(struct local_tree *t)
{
    struct quota_usage u;
    char path[1024];

    if (!local_storage_path(t->pod, t->kind, t->index, false, path, sizeof(path)) ||
        !project_usage(t->pod->node, path, &u))
        return false;
    t->known = true;
    t->sum = (struct disk_usage_sum){ .bytes = u.bytes, .inodes = u.inodes };
    t->at_ns = clock_wall_ns();
    if (t->kind == LOCAL_LAYER)
        snprintf(t->id, sizeof(t->id), "%s", t->pod->ctrs[t->index]->cur.id);
    return true;
}

static struct local_tree *tree_of(struct local_pod *l, enum local_kind kind, size_t index)
{
    for (size_t i = 0; l != NULL && i < l->n; i++)
        if (l->trees[i].kind == kind && l->trees[i].index == index)
            return &l->trees[i];
    return NULL;
}

const struct local_tree *local_storage_find(const struct pod *p, enum local_kind kind, size_t index)
{
    const struct usage_pod *part_of = usage_of_pod(p);
    struct local_tree *t = tree_of(part_of->local, kind, index);

    t = t != NULL ? t : tree_of(part_of->others, kind, index);
    if (t == NULL)
        return NULL;
    if (t->quota)
        (void)read_quota(t);
    return t->known && (kind != LOCAL_LAYER || str_eq(t->id, p->ctrs[index]->cur.id)) ? t : NULL;
}

/* "2048 KiB together; emptyDir cache: 2040 KiB; log of web: 8 KiB" */
static bool add_measured(const struct pod *p, struct buf *b, int64_t *ret_newest_ns);

static void evict(struct pod *p, char *why)
{
    buf_auto measured = BUF_INIT(2000);
    int64_t newest_ns = 0;
    struct pod_eviction eviction = { .message = why, .grace_s = 1 };

    if (add_measured(p, &measured, &newest_ns))
        eviction.measured = buf_detach(&measured);
    (void)pod_evict(p, &eviction);
}

static bool is_active(const struct pod *p)
{
    return p->state == POD_STARTING || p->state == POD_RUNNING;
}

/* What exceeds enforced limits in spite of them was written at one moment into several trees, and none of
 * them can grow any more. */
void local_storage_judge(struct pod *p)
{
    const struct local_pod *l = usage_of_pod(p)->local;
    str_auto why = NULL;

    if (l == NULL || l->enforced)
        return;
    if (is_active(p) && !p->node->closing && local_limits_exceeded(p, &why) && why != NULL)
        evict(p, take_ptr(&why));
}

/* A scanned tree uses up the shares of its neighbours with quotas. */
static void counted(struct pod *p)
{
    const struct local_pod *l = usage_of_pod(p)->local;
    bool some = false;

    for (size_t i = 0; i < l->n; i++)
        some = some || l->trees[i].quota;
    local_storage_judge(p);
    if (some)
        local_quota_arm(p);
}

/* No request waits for it any more. */
static void answered(struct local_storage *s, struct local_tree *t)
{
    if (!t->asked)
        return;
    t->asked = false;
    s->asked--;
    if (s->on_asked != NULL)
        s->on_asked(s->node);
}

static void tree_rests(struct local_storage *s, struct local_tree *t)
{
    t->due_ms = t->limited ? clock_mono_ms() + LOCAL_PERIOD_MS : LOCAL_NEVER;
    answered(s, t);
}

/* A missing one uses nothing: a removed container, or one without a log yet. */
static void take_result(struct local_storage *s, struct local_tree *t, const struct err *result)
{
    t->scan = take_ptr(&s->job.scan);
    if (t->scan != NULL)
        return;
    tree_rests(s, t);
    if (result->code == ERR_OK || result->code == ERR_NOT_FOUND) {
        t->known = true;
        t->sum = result->code == ERR_OK ? s->job.sum : (struct disk_usage_sum){ 0 };
        t->at_ns = clock_wall_ns();
        if (t->limited)
            counted(t->pod);
        return;
    }
    log_warn("cannot measure local storage of a pod", F_STR("pod", t->pod->key), F_ERR(result));
}

static void on_slice(struct op *op, const struct err *result)
{
    struct local_storage *s = op->owner;
    struct local_tree *t = take_ptr(&s->tree);
    uint64_t share = s->asked > 0 ? LOCAL_SHARE_ASKED : LOCAL_SHARE;

    s->busy = false;
    s->rest_until_ms =
        clock_mono_ms() + s->job.cost_ns / 1000000 * share + s->job.cost_ns % 1000000 * share / 1000000;
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
        snprintf(t->id, sizeof(t->id), "%s", t->pod->ctrs[t->index]->cur.id);
    s->tree = t;
    s->busy = true;
    work_start(&s->work, "measure local storage", t->pod->key, scan_slice, s, s->node->o.loop, on_slice, s);
}

/* A scan of an outdated container is useless. */
static void drop_old_scan(struct local_tree *t)
{
    if (t->scan != NULL && t->kind == LOCAL_LAYER && !str_eq(t->id, t->pod->ctrs[t->index]->cur.id))
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

    *ret_due_ms = LOCAL_NEVER;
    TAILQ_FOREACH (t, &s->all, link) {
        if (t->due_ms <= now)
            return t;
        *ret_due_ms = t->due_ms < *ret_due_ms ? t->due_ms : *ret_due_ms;
    }
    return NULL;
}

/* Its quota sends no warnings. */
static void read_now(struct local_storage *s, struct local_tree *t)
{
    tree_rests(s, t);
    if (read_quota(t) && t->limited)
        local_storage_judge(t->pod);
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
        if (t->quota) {
            read_now(s, t);
        } else if (local_storage_path(t->pod, t->kind, t->index, true, s->job.path, sizeof(s->job.path))) {
            local_storage_start(s, t);
            return;
        } else {
            tree_rests(s, t);
        }
    }
    if (due_ms != LOCAL_NEVER)
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

static bool begin(struct local_pod *l, struct node *n, bool limited)
{
    struct local_storage *s = l != NULL ? opened(n) : NULL;

    if (s == NULL) {
        free(l);
        return false;
    }
    for (size_t i = 0; i < l->n; i++) {
        struct local_tree *t = &l->trees[i];

        t->limited = limited;
        t->due_ms = limited ? clock_mono_ms() + LOCAL_PERIOD_MS : LOCAL_NEVER;
        TAILQ_INSERT_TAIL(&s->all, t, link);
    }
    return true;
}

void local_storage_step(struct pod *p)
{
    struct usage_pod *part_of = usage_of_pod(p);

    if (part_of->local == NULL && p->node->o.local_limits) {
        struct local_pod *l = local_limits_trees(p);

        if (!begin(l, p->node, true))
            return;
        part_of->local = l;
        local_storage_go_on(usage_node(p->node)->local);
    }
    local_quota_step(p);
}

static void forget(struct local_storage *s, struct local_pod *l)
{
    for (size_t i = 0; l != NULL && i < l->n; i++) {
        struct local_tree *t = &l->trees[i];

        TAILQ_REMOVE(&s->all, t, link);
        disk_usage_free(t->scan);
        if (s->tree == t)
            s->tree = NULL;
        answered(s, t);
    }
    free(l);
}

static void rest(struct local_storage *s, struct local_pod *l)
{
    for (size_t i = 0; l != NULL && i < l->n; i++) {
        struct local_tree *t = &l->trees[i];

        disk_usage_free(take_ptr(&t->scan));
        if (s->tree == t)
            s->tree = NULL;
        t->limited = false;
        t->due_ms = LOCAL_NEVER;
        answered(s, t);
    }
}

void local_storage_rest(struct pod *p)
{
    struct usage_pod *part_of = usage_of_pod(p);
    struct local_storage *s = usage_node(p->node)->local;

    local_quota_forget(p);
    rest(s, part_of->local);
    rest(s, part_of->others);
}

void local_storage_forget(struct pod *p)
{
    struct usage_pod *part_of = usage_of_pod(p);
    struct local_storage *s = usage_node(p->node)->local;

    local_quota_forget(p);
    forget(s, take_ptr(&part_of->local));
    forget(s, take_ptr(&part_of->others));
}

void local_storage_now(struct node *n)
{
    if (usage_node(n)->local != NULL)
        local_storage_go_on(usage_node(n)->local);
}

/* ---- when a disk runs short ---- */

static void ask(struct local_storage *s, struct local_pod *l, int64_t older_than_ns)
{
    char path[1024];

    for (size_t i = 0; l != NULL && i < l->n; i++) {
        struct local_tree *t = &l->trees[i];

        if (t->asked || t->quota || (t->known && t->at_ns >= older_than_ns))
            continue;
        /* Of a container that never ran there is nothing to wait for, while the scans of others rest. */
        if (!local_storage_path(t->pod, t->kind, t->index, true, path, sizeof(path)))
            continue;
        t->asked = true;
        t->due_ms = 0;
        s->asked++;
    }
}

void local_storage_ask(struct pod *p, int64_t older_than_ns)
{
    struct usage_pod *part_of = usage_of_pod(p);
    struct local_storage *s;

    if (part_of->others == NULL) {
        struct local_pod *l = local_limits_others(p);

        if (begin(l, p->node, false))
            part_of->others = l;
    }
    local_quota_step(p);
    s = usage_node(p->node)->local;
    if (s == NULL)
        return;
    ask(s, part_of->local, older_than_ns);
    ask(s, part_of->others, older_than_ns);
    local_storage_go_on(s);
}

size_t local_storage_asked(const struct node *n)
{
    return usage_node(n)->local != NULL ? usage_node(n)->local->asked : 0;
}

void local_storage_on_asked(struct node *n, void (*fn)(struct node *n))
{
    if (usage_node(n)->local != NULL)
        usage_node(n)->local->on_asked = fn;
}

/* ---- telling ---- */

static void add_part(const struct pod *p, const struct local_tree *one, struct buf *b)
{
    static const char *const kinds[] = { "emptyDir", "files of", "log of" };
    const struct local_tree *t = local_storage_find(p, one->kind, one->index);
    const char *name =
        one->kind == LOCAL_VOLUME ? p->api->spec.volumes[one->index].name : p->ctrs[one->index]->spec->name;

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
