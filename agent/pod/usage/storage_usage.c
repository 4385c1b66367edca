/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/storage_usage.h"

#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/project/project.h"
#include "agent/pod/usage/internal.h"
#include "agent/pod/usage/local_storage.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

/* ---- of a tree ---- */

/* Its files are being removed, which takes a while: it counts as measured last until the pod has ended. */
static bool is_ending(const struct pod *p)
{
    return p->state == POD_TERMINATING;
}

/* Nothing can be there yet, or it is gone. */
static bool is_missing(const struct pod *p, enum local_kind kind, size_t index)
{
    const struct ctr *c = kind != LOCAL_VOLUME ? p->ctrs[index] : NULL;

    if (is_ending(p) && local_storage_find(p, kind, index) != NULL)
        return false;
    switch (kind) {
    case LOCAL_VOLUME:
        return !volumes_ready(p);
    case LOCAL_LAYER:
        return c->cur.id[0] == '\0' || c->cur.ended; /* an ended run's is removed at once */
    case LOCAL_LOG:
        return c->cur.id[0] == '\0' && c->last.id[0] == '\0';
    }
    return false;
}

static struct storage_part part_of_tree(const struct pod *p, enum local_kind kind, size_t index)
{
    struct storage_part ret = { .at_ns = clock_wall_ns() };
    const struct local_tree *t;
    struct quota_usage u;
    char path[1024];

    if (local_storage_path(p, kind, index, false, path, sizeof(path)) && project_usage(p->node, path, &u)) {
        ret.known = ret.exact = true;
        ret.bytes = u.bytes;
        ret.inodes = u.inodes;
        return ret;
    }
    if (is_missing(p, kind, index)) {
        ret.known = true;
        return ret;
    }
    t = local_storage_find(p, kind, index);
    if (t == NULL)
        return ret;
    return (struct storage_part){ .known = true,
                                  .partial = t->sum.partial,
                                  .bytes = t->sum.bytes,
                                  .inodes = t->sum.inodes,
                                  .at_ns = t->at_ns };
}

static bool is_local(const struct pod *p, size_t volume)
{
    const struct api_volume *v = &p->api->spec.volumes[volume];

    return v->kind == API_VOL_EMPTY_DIR && (v->medium == NULL || v->medium[0] == '\0') &&
           (volumes_is_mounted(p, v->name) || is_ending(p));
}

struct storage_part storage_usage_layer(const struct pod *p, size_t ctr)
{
    return part_of_tree(p, LOCAL_LAYER, ctr);
}

struct storage_part storage_usage_log(const struct pod *p, size_t ctr)
{
    return part_of_tree(p, LOCAL_LOG, ctr);
}

struct storage_part storage_usage_volume(const struct pod *p, size_t volume)
{
    return is_local(p, volume) ? part_of_tree(p, LOCAL_VOLUME, volume) : (struct storage_part){ 0 };
}

/* ---- sums ---- */

static void storage_usage_add(struct storage_part *sum, const struct storage_part *one)
{
    sum->known = sum->known && one->known;
    if (!one->known)
        return;
    sum->partial = sum->partial || one->partial;
    sum->exact = sum->exact && one->exact;
    sum->bytes += one->bytes;
    sum->inodes += one->inodes;
    sum->at_ns = sum->at_ns == 0 || one->at_ns < sum->at_ns ? one->at_ns : sum->at_ns;
}

struct storage_part storage_usage_volumes(const struct pod *p)
{
    struct storage_part sum = { .known = true, .exact = true };

    for (size_t i = 0; i < p->api->spec.n_volumes; i++)
        if (is_local(p, i)) {
            struct storage_part one = storage_usage_volume(p, i);
            storage_usage_add(&sum, &one);
        }
    return sum;
}

struct storage_part storage_usage_pod(const struct pod *p)
{
    struct storage_part sum = storage_usage_volumes(p);

    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct storage_part layer = storage_usage_layer(p, i), log = storage_usage_log(p, i);

        storage_usage_add(&sum, &layer);
        storage_usage_add(&sum, &log);
    }
    return sum;
}

/* ---- figures of all pods ---- */

struct storage_measure {
    struct node *node;
    uv_timer_t timer; /* its deadline; at 0 when nothing is missing */
    void (*done)(struct node *n, bool complete);
};

static void measure_over(uv_timer_t *timer)
{
    struct storage_measure *m = timer->data;
    void (*done)(struct node * n, bool complete) = take_ptr(&m->done);

    if (done != NULL)
        done(m->node, local_storage_asked(m->node) == 0);
}

static void measure_answered(struct node *n)
{
    struct storage_measure *m = usage_node(n)->measure;

    if (m != NULL && m->done != NULL && local_storage_asked(n) == 0 && !n->closing)
        uv_timer_start(&m->timer, measure_over, 0, 0);
}

static struct storage_measure *measure_opened(struct node *n)
{
    struct storage_measure *m = usage_node(n)->measure;

    if (m != NULL)
        return m;
    m = calloc(1, sizeof(*m));
    if (m == NULL)
        return NULL;
    m->node = n;
    uv_timer_init(n->o.loop, &m->timer);
    m->timer.data = m;
    usage_node(n)->measure = m;
    return m;
}

bool storage_usage_measure(struct node *n, uint64_t max_age_ms, uint64_t deadline_ms,
                           void (*done)(struct node *n, bool complete))
{
    int64_t since_ns = clock_wall_ns() - (int64_t)max_age_ms * 1000000;
    struct storage_measure *m = measure_opened(n);

    if (m == NULL)
        return false;
    m->done = done;
    pods_each (n, p)
        if (p->state == POD_STARTING || p->state == POD_RUNNING)
            local_storage_ask(p, since_ns);
    local_storage_on_asked(n, measure_answered);
    uv_timer_start(&m->timer, measure_over, local_storage_asked(n) == 0 ? 0 : deadline_ms, 0);
    return true;
}

static void measure_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void storage_usage_close(struct node *n)
{
    struct storage_measure *m = take_ptr(&usage_node(n)->measure);

    if (m != NULL)
        uv_close((uv_handle_t *)&m->timer, measure_closed);
}

void storage_usage_on_growth(struct node *n, void (*fn)(struct node *n, const char *path))
{
    usage_node(n)->growth = fn;
}
