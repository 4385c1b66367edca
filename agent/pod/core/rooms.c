/* SPDX-License-Identifier: Apache-2.0 */
/* rooms - the parts of the node and of pods, and the loops over the table of rooms. */
#include "agent/pod/core/pod.h"
#include "agent/pod/core/room.h"

#include <stdlib.h>

/* Parts lie behind one another: each begins where any type may. */
static size_t rooms_padded(size_t size)
{
    const size_t align = _Alignof(max_align_t);

    return (size + align - 1) / align * align;
}

/* ---- the node ---------------------------------------------------------------------------------- */

enum err_code rooms_make_node(struct node *n, const struct room *const *rooms, struct err *e)
{
    size_t size = 0;
    char *at;

    n->rooms = rooms;
    ROOMS_EACH(r, n)
    size += rooms_padded((*r)->node.size);
    at = n->parts_memory = calloc(1, size);
    if (at == NULL)
        return err_nomem(e);
    ROOMS_EACH(r, n)
    {
        n->parts[(*r)->id] = at;
        at += rooms_padded((*r)->node.size);
    }
    return ERR_OK;
}

void rooms_open_node(struct node *n)
{
    ROOMS_EACH(r, n)
    if ((*r)->node.open != NULL)
        (*r)->node.open(n);
}

bool rooms_node_busy(const struct node *n)
{
    ROOMS_EACH(r, n)
    if ((*r)->node.busy != NULL && (*r)->node.busy(n))
        return true;
    return false;
}

void rooms_cancel_node(struct node *n)
{
    ROOMS_EACH(r, n)
    if ((*r)->node.cancel != NULL)
        (*r)->node.cancel(n);
}

static void rooms_drop(struct node *n)
{
    if (--n->open_handles > 0)
        return;
    free(n->parts_memory);
    n->closed(n);
}

static void rooms_on_closed(uv_handle_t *handle)
{
    rooms_drop(handle->data);
}

void rooms_close_handle(struct node *n, uv_handle_t *handle)
{
    handle->data = n;
    n->open_handles++;
    uv_close(handle, rooms_on_closed);
}

void rooms_free_node(struct node *n, void (*closed)(struct node *n))
{
    n->closed = closed;
    n->open_handles++; /* this call's own, so that none is the last one before all are known */
    ROOMS_EACH(r, n)
    if ((*r)->node.free != NULL)
        (*r)->node.free(n);
    rooms_drop(n);
}

/* ---- a pod ------------------------------------------------------------------------------------- */

struct pod *rooms_make_pod(struct node *n, size_t max_ctrs)
{
    size_t size = rooms_padded(sizeof(struct pod));
    struct pod *p;
    char *at;

    ROOMS_EACH(r, n)
    size += rooms_padded((*r)->pod.size);
    p = calloc(1, size + max_ctrs * sizeof(*p->ctrs));
    if (p == NULL)
        return NULL;
    at = (char *)p + rooms_padded(sizeof(*p));
    p->node = n;
    ROOMS_EACH(r, n)
    {
        p->parts[(*r)->id] = at;
        at += rooms_padded((*r)->pod.size);
    }
    p->ctrs = (struct ctr **)at;
    p->max_ctrs = max_ctrs;
    return p;
}

struct ctr *rooms_add_ctr(struct pod *p)
{
    size_t size = rooms_padded(sizeof(struct ctr));
    struct ctr *c;
    char *at;

    if (p->n_ctrs == p->max_ctrs)
        return NULL;
    ROOMS_EACH(r, p->node)
    size += rooms_padded((*r)->pod.ctr_size);
    c = calloc(1, size);
    if (c == NULL)
        return NULL;
    at = (char *)c + rooms_padded(sizeof(*c));
    ROOMS_EACH(r, p->node)
    {
        c->parts[(*r)->id] = at;
        at += rooms_padded((*r)->pod.ctr_size);
    }
    c->pod = p;
    c->index = p->n_ctrs;
    p->ctrs[p->n_ctrs++] = c;
    return c;
}

void rooms_free_memory(struct pod *p)
{
    for (size_t i = 0; i < p->max_ctrs; i++)
        free(p->ctrs[i]);
    free(p);
}

void rooms_init_pod(struct pod *p)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.init != NULL)
        (*r)->pod.init(p);
}

void rooms_step_pod(struct pod *p)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.step != NULL)
        (*r)->pod.step(p);
}

bool rooms_pod_busy(const struct pod *p)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.busy != NULL && (*r)->pod.busy(p))
        return true;
    return false;
}

bool rooms_know(const struct node *n, const char *id)
{
    pods_each (n, p) {
        ROOMS_EACH(r, n)
        if ((*r)->pod.knows != NULL && (*r)->pod.knows(p, id))
            return true;
    }
    return false;
}

void rooms_cancel_pod(struct pod *p)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.cancel != NULL)
        (*r)->pod.cancel(p);
}

void rooms_end_pod(struct pod *p)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.end != NULL)
        (*r)->pod.end(p);
}

void rooms_reset_pod(struct pod *p)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.reset != NULL)
        (*r)->pod.reset(p);
}

void rooms_free_pod(struct pod *p)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.free != NULL)
        (*r)->pod.free(p);
}

void rooms_save_pod(const struct pod *p, json_t *record)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.save != NULL)
        (*r)->pod.save(p, record);
}

void rooms_load_pod(struct pod *p, const json_t *record)
{
    ROOMS_EACH(r, p->node)
    if ((*r)->pod.load != NULL)
        (*r)->pod.load(p, record);
}
