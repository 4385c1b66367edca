/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's index of trees with a project; their usage; warnings about them. */
#include "agent/pod/project/project.h"

#include "agent/pod/core/node_options.h"
#include "agent/pod/project/internal.h"
#include "agent/runtime/container.h"
#include "base/array.h"
#include "base/log.h"

#include <linux/quota.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the index ---- */

static struct entry_key key_of(dev_t device, uint32_t id)
{
    return (struct entry_key){ .device = (uint64_t)device, .id = id };
}

static struct entry *index_find(const struct project_node *part, const char *path)
{
    struct entry *x;

    HASH_FIND_STR(part->by_path, path, x);
    return x;
}

static void entry_free(struct entry *x)
{
    free(x->path);
    free(x);
}

static void index_drop(struct project_node *part, struct entry *x)
{
    HASH_DEL(part->by_path, x);
    HASH_DELETE(hh_id, part->by_id, x);
    entry_free(x);
}

/* Without memory the tree is scanned; its id is released all the same at the next start. */
void index_add(struct project_node *part, const char *owner, const char *path, struct quota_fs *fs,
               uint32_t id)
{
    struct entry *x;

    index_remove(part, path);
    x = calloc(1, sizeof(*x));
    if (x == NULL || (x->path = strdup(path)) == NULL) {
        free(x);
        return;
    }
    snprintf(x->owner, sizeof(x->owner), "%s", owner);
    x->fs = fs;
    x->key = key_of(quota_fs_device(fs), id);
    HASH_ADD_KEYPTR(hh, part->by_path, x->path, strlen(x->path), x);
    if (x->hh.tbl == NULL) {
        entry_free(x);
        return;
    }
    HASH_ADD(hh_id, part->by_id, key, sizeof(x->key), x);
    if (x->hh_id.tbl == NULL) {
        HASH_DEL(part->by_path, x);
        entry_free(x);
    }
}

void index_remove(struct project_node *part, const char *path)
{
    struct entry *x = index_find(part, path);

    if (x != NULL)
        index_drop(part, x);
}

void index_remove_fs(struct project_node *part, const struct quota_fs *fs)
{
    struct entry *x, *tmp;

    HASH_ITER (hh, part->by_path, x, tmp)
        if (x->fs == fs)
            index_drop(part, x);
}

void index_clear(struct project_node *part)
{
    struct entry *x, *tmp;

    HASH_ITER (hh, part->by_path, x, tmp)
        index_drop(part, x);
}

/* ---- beginning ---- */

void project_begin(struct node *n)
{
    places_open(n);
    pool_stock(n);
}

void project_swept(struct node *n)
{
    struct request *r = project_node(n)->table != NULL ? request_new(REQUEST_SWEEP, "", 0) : NULL;

    project_gone(n, NULL);
    if (r != NULL)
        request_add(n, r);
}

/* The same request waits already, or one about all owners. */
static bool is_queued(const struct project_node *part, enum request_kind kind, const char *owner)
{
    const struct request *r;

    TAILQ_FOREACH (r, &part->queue, link)
        if (r->kind == kind && (r->owner[0] == '\0' || str_eq(owner, r->owner)))
            return true;
    return false;
}

void project_gone(struct node *n, const char *owner)
{
    struct project_node *part = project_node(n);
    struct request *r;
    struct entry *x, *tmp;

    if (part->table == NULL || n->closing || is_queued(part, REQUEST_GONE, owner))
        return;
    r = request_new(REQUEST_GONE, owner != NULL ? owner : "", HASH_COUNT(part->by_path));
    if (r == NULL)
        return; /* the next start frees them */
    HASH_ITER (hh, part->by_path, x, tmp) {
        if (owner != NULL && strcmp(x->owner, owner) != 0)
            continue;
        r->v[r->n].fs = x->fs;
        r->v[r->n].path = strdup(x->path);
        r->n += r->v[r->n].path != NULL;
    }
    if (r->n == 0)
        request_free(r);
    else
        request_add(n, r);
}

/* ---- for usage ---- */

bool project_find(const struct node *n, const char *path, struct project_tree *ret)
{
    const struct entry *x = index_find(project_node(n), path);

    if (x == NULL)
        return false;
    *ret =
        (struct project_tree){ .path = x->path, .owner = x->owner, .id = (uint32_t)x->key.id, .fs = x->fs };
    return true;
}

bool project_usage(struct node *n, const char *path, struct quota_usage *ret)
{
    struct entry *x = index_find(project_node(n), path);
    struct err e = { 0 };

    if (x == NULL)
        return false;
    if (quota_get(x->fs, (uint32_t)x->key.id, ret, &e) == ERR_OK)
        return true;
    if (e.code == ERR_PRECONDITION)
        places_lost(n, x->fs, &e);
    else
        log_debug("cannot read a quota", F_STR("path", path), F_ERR(&e));
    return false;
}

bool project_layer_path(const struct pod *p, const char *id, char *ret, size_t size)
{
    return (size_t)snprintf(ret, size, "%s/containers/%s", p->node->o.state_dir, id) < size;
}

bool project_log_path(const struct ctr *c, char *ret, size_t size)
{
    const struct pod *p = c->pod;

    return (size_t)snprintf(ret, size, "%s/%s_%s_%s/%s", p->node->o.pod_logs_dir, p->api->meta.namespace,
                            p->api->meta.name, p->uid, c->spec->name) < size;
}

bool project_warns(const struct node *n, const struct project_tree *t)
{
    return project_node(n)->warn != NULL && quota_fs_warns(t->fs) && quota_fs_enforces(t->fs);
}

void project_on_warning(struct node *n,
                        void (*fn)(struct node *n, const char *owner, const char *path, bool hard))
{
    project_node(n)->warned = fn;
}

void index_on_warning(const struct quota_warning *w, void *node)
{
    struct node *n = node;
    const struct project_node *part = project_node(n);
    struct entry_key key = key_of(w->device, w->project);
    struct entry *x = NULL;
    bool hard = w->type == QUOTA_NL_BHARDWARN || w->type == QUOTA_NL_IHARDWARN ||
                w->type == QUOTA_NL_BSOFTLONGWARN || w->type == QUOTA_NL_ISOFTLONGWARN;

    if (part->warned == NULL || n->closing)
        return;
    if (w->lost) {
        part->warned(n, NULL, NULL, false);
        return;
    }
    HASH_FIND(hh_id, part->by_id, &key, sizeof(key), x);
    if (x == NULL)
        return;
    str_auto owner = strdup(x->owner); /* it may be forgotten within */
    str_auto path = strdup(x->path);
    if (owner != NULL && path != NULL)
        part->warned(n, owner, path, hard);
}
