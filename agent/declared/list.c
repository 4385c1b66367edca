/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/declared/list.h"

#include "base/array.h"
#include "base/list.h"
#include "base/scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_PROBLEMS_MAX 20
#define NONE SIZE_MAX

struct known { /* a text in use: the id of a device, or an exclusive node */
    UT_hash_handle hh;
    char text[];
};

struct maker {
    struct decl_list *l;
    struct known *ids, *nodes;
    bool full;
};

struct group {
    const struct decl_group *g;
    const struct look_member *found;  /* of g->n members */
    unsigned *uses[DECL_MEMBERS_MAX]; /* of each match */
    size_t n_required, n_made;
};

/* The matches that form one device, by member; NONE: an optional one is missing. */
struct pick {
    size_t v[DECL_MEMBERS_MAX];
};

/* ---- texts ---- */

static bool is_known(struct known *all, const char *text)
{
    struct known *k = NULL;

    HASH_FIND_STR(all, text, k);
    return k != NULL;
}

static enum err_code remember(struct known **all, const char *text, struct err *e)
{
    struct known *k = malloc(sizeof(*k) + strlen(text) + 1);

    if (k == NULL)
        return err_nomem(e);
    strcpy(k->text, text);
    HASH_ADD_STR(*all, text, k);
    if (k->hh.tbl == NULL) {
        free(k);
        return err_nomem(e);
    }
    return ERR_OK;
}

static void forget(struct known **all)
{
    struct known *k, *tmp;

    HASH_ITER (hh, *all, k, tmp) {
        HASH_DEL(*all, k);
        free(k);
    }
}

static enum err_code note(struct maker *m, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4);

static enum err_code note(struct maker *m, struct err *e, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return m->l->problems.n >= LIST_PROBLEMS_MAX || strs_add_once(&m->l->problems, text) ? ERR_OK
                                                                                         : err_nomem(e);
}

/* ---- free matches ---- */

static bool is_same_as_before(const struct look_member *f, size_t i)
{
    return i > 0 && strcmp(f->v[i - 1].id, f->v[i].id) == 0;
}

static bool is_ambiguous(const struct look_member *f, size_t i)
{
    return is_same_as_before(f, i) || (i + 1 < f->n && is_same_as_before(f, i + 1));
}

static bool is_free(const struct maker *m, const struct group *g, size_t member, size_t i)
{
    const struct decl_member *d = &g->g->v[member];
    const struct look_match *x = &g->found[member].v[i];

    if (g->uses[member][i] >= d->limit || is_same_as_before(&g->found[member], i))
        return false;
    return d->limit > 1 || x->node == NULL || !is_known(m->nodes, x->node);
}

/* The first of the least used matches. */
static size_t free_match(const struct maker *m, const struct group *g, size_t member)
{
    size_t best = NONE;

    for (size_t i = 0; i < g->found[member].n; i++)
        if (is_free(m, g, member, i) && (best == NONE || g->uses[member][i] < g->uses[member][best]))
            best = i;
    return best;
}

/* ---- a device ---- */

/* A group whose members are all optional is named by their patterns. */
static enum err_code base_id(const struct group *g, const struct pick *p, struct buf *id, struct err *e)
{
    for (size_t k = 0; k < g->g->n; k++) {
        const struct decl_member *d = &g->g->v[k];
        const char *comma = id->n > 0 ? "," : "";

        if (g->n_required == 0)
            buf_addf(id, "%s%s%s", comma,
                     d->path != NULL ? d->path : "usb:", d->path != NULL ? "" : d->match.vendor);
        else if (!d->optional)
            buf_addf(id, "%s%s", comma, g->found[k].v[p->v[k]].id);
    }
    return id->failed ? err_set(e, ERR_EXHAUSTED, "an id longer than %d bytes", DP_ID_MAX) : ERR_OK;
}

static bool add_env(struct maker *m, struct decl_device *d, const char *name, const char *path)
{
    struct arena *a = &m->l->arena;

    for (size_t i = 0; i < d->n_envs; i++)
        if (strcmp(d->envs[i].name, name) == 0)
            return (d->envs[i].value = arena_printf(a, "%s,%s", d->envs[i].value, path)) != NULL;
    d->envs[d->n_envs] = (struct dp_kv){ arena_strdup(a, name), path };
    return d->envs[d->n_envs++].name != NULL;
}

static bool add_node(struct maker *m, struct decl_device *d, const struct decl_member *member,
                     const char *container, const char *host)
{
    struct dp_node *n = &d->nodes[d->n_nodes++];

    n->container_path = container;
    n->host_path = host;
    n->permissions = arena_strdup(&m->l->arena, member->permissions);
    return container != NULL && host != NULL && n->permissions != NULL;
}

/* Sorted, each once. */
static void add_numa(struct decl_device *d, int64_t numa)
{
    size_t i = d->n_numa;

    for (size_t k = 0; k < d->n_numa; k++)
        if (d->numa[k] == numa)
            return;
    if (numa < 0)
        return;
    for (; i > 0 && d->numa[i - 1] > numa; i--)
        d->numa[i] = d->numa[i - 1];
    d->numa[i] = numa;
    d->n_numa++;
}

static bool add_match(struct maker *m, struct decl_device *d, const struct decl_member *member,
                      const struct look_match *x)
{
    struct arena *a = &m->l->arena;
    const char *host = arena_strdup(a, x->path), *to = member->mount_path, *container;
    const char *name = strrchr(x->path, '/') + 1;

    container = to == NULL ? host : arena_printf(a, "%s%s", to, str_ends(to, "/") ? name : "");
    if (host == NULL || container == NULL || (member->env != NULL && !add_env(m, d, member->env, container)))
        return false;
    add_numa(d, x->numa);
    if (member->type == DECL_MOUNT) {
        d->mounts[d->n_mounts++] = (struct dp_mount){ container, host, member->read_only };
        return true;
    }
    for (size_t i = 0; i < x->n_inside; i++)
        if (!add_node(m, d, member, arena_printf(a, "%s/%s", container, x->inside[i]),
                      arena_printf(a, "%s/%s", host, x->inside[i])))
            return false;
    return x->node == NULL || add_node(m, d, member, container, host);
}

static bool fill(struct maker *m, struct decl_device *d, const struct group *g, const struct pick *p)
{
    struct arena *a = &m->l->arena;
    size_t n_nodes = 0;

    for (size_t k = 0; k < g->g->n; k++)
        if (p->v[k] != NONE)
            n_nodes += 1 + g->found[k].v[p->v[k]].n_inside;
    d->nodes = arena_alloc(a, (n_nodes + 1) * sizeof(d->nodes[0]));
    d->mounts = arena_alloc(a, (g->g->n + 1) * sizeof(d->mounts[0]));
    d->envs = arena_alloc(a, (g->g->n + 1) * sizeof(d->envs[0]));
    if (d->nodes == NULL || d->mounts == NULL || d->envs == NULL)
        return false;
    for (size_t k = 0; k < g->g->n; k++) {
        if (p->v[k] == NONE)
            continue;
        d->ambiguous = d->ambiguous || is_ambiguous(&g->found[k], p->v[k]);
        if (!add_match(m, d, &g->g->v[k], &g->found[k].v[p->v[k]]))
            return false;
    }
    return true;
}

/* Adds the device, `count` times. */
static enum err_code add_copies(struct maker *m, struct decl_device *d, const char *id, size_t first,
                                unsigned count, struct err *e)
{
    for (size_t i = 0; i < count && !m->full; i++) {
        size_t number = first + i;

        if (m->l->n >= LIST_DEVICES_MAX) {
            m->full = true;
            return note(m, e, "more than %d devices; the rest is ignored", LIST_DEVICES_MAX);
        }
        d->id =
            number == 1 ? arena_strdup(&m->l->arena, id) : arena_printf(&m->l->arena, "%s#%zu", id, number);
        if (d->id == NULL || !array_room(m->l->v, m->l->n))
            return err_nomem(e);
        m->l->v[m->l->n++] = *d;
    }
    return ERR_OK;
}

static enum err_code claim(struct maker *m, struct group *g, const struct pick *p, struct err *e)
{
    for (size_t k = 0; k < g->g->n; k++) {
        const struct look_match *x = p->v[k] != NONE ? &g->found[k].v[p->v[k]] : NULL;

        if (x == NULL)
            continue;
        g->uses[k][p->v[k]]++;
        if (g->g->v[k].limit == 1 && x->node != NULL && remember(&m->nodes, x->node, e) != ERR_OK)
            return e->code;
    }
    g->n_made++;
    return ERR_OK;
}

/* If an earlier group has a device with this id, it is the same device. */
static enum err_code make_device(struct maker *m, struct group *g, const struct pick *p, struct err *e)
{
    buf_auto id = BUF_INIT(DP_ID_MAX - 16);
    struct decl_device d = { 0 };
    struct err why = { 0 };
    size_t first = g->n_required == 0 ? g->n_made * g->g->count + 1 : 1;

    if (base_id(g, p, &id, &why) != ERR_OK)
        return note(m, e, "%s; the device is ignored", why.text);
    if (claim(m, g, p, e) != ERR_OK)
        return e->code;
    if (first == 1) {
        if (is_known(m->ids, id.p))
            return ERR_OK;
        if (remember(&m->ids, id.p, e) != ERR_OK)
            return e->code;
    }
    if (!fill(m, &d, g, p))
        return err_nomem(e);
    if (d.ambiguous &&
        note(m, e, "two devices are %.200s, so neither is offered; name them by port", id.p) != ERR_OK)
        return e->code;
    return add_copies(m, &d, id.p, first, g->g->count, e);
}

/* ---- combination of matches ---- */

static void add_optional(const struct maker *m, const struct group *g, struct pick *p)
{
    for (size_t k = 0; k < g->g->n; k++)
        if (g->g->v[k].optional)
            p->v[k] = free_match(m, g, k);
}

static size_t match_by_id(const struct look_member *f, const char *id, size_t n)
{
    for (size_t i = 0; i < f->n; i++)
        if (strncmp(f->v[i].id, id, n) == 0 && f->v[i].id[n] == '\0')
            return i;
    return NONE;
}

/* Whether the required matches named in an id exist and are free. */
static bool pick_by_id(const struct maker *m, const struct group *g, const char *id, struct pick *p)
{
    for (size_t k = 0; k < g->g->n; k++) {
        size_t n = strcspn(id, ",");

        p->v[k] = NONE;
        if (g->g->v[k].optional)
            continue;
        p->v[k] = match_by_id(&g->found[k], id, n);
        if (n == 0 || p->v[k] == NONE || !is_free(m, g, k, p->v[k]))
            return false;
        id += n + (id[n] == ',');
    }
    return id[0] == '\0' && g->n_required > 0;
}

static enum err_code keep_devices(struct maker *m, struct group *groups, size_t n,
                                  const struct decl_list *before, struct err *e)
{
    for (size_t i = 0; i < before->n; i++) {
        struct pick p = { 0 };

        if (strchr(before->v[i].id, '#') != NULL) /* a copy */
            continue;
        for (size_t g = 0; g < n; g++) {
            if (!pick_by_id(m, &groups[g], before->v[i].id, &p))
                continue;
            add_optional(m, &groups[g], &p);
            if (make_device(m, &groups[g], &p, e) != ERR_OK)
                return e->code;
            break;
        }
    }
    return ERR_OK;
}

static bool pick_next(const struct maker *m, const struct group *g, struct pick *p)
{
    bool any = g->n_required > 0;

    for (size_t k = 0; k < g->g->n; k++) {
        p->v[k] = g->g->v[k].optional ? NONE : free_match(m, g, k);
        if (!g->g->v[k].optional && p->v[k] == NONE)
            return false;
    }
    add_optional(m, g, p);
    for (size_t k = 0; k < g->g->n; k++)
        any = any || p->v[k] != NONE;
    return any;
}

/* The maximum number of devices is that of the member with the most matches: a limit alone adds none. */
static size_t most(const struct group *g)
{
    size_t n = 0;

    for (size_t k = 0; k < g->g->n; k++)
        if ((g->n_required == 0 || !g->g->v[k].optional) && g->found[k].n > n)
            n = g->found[k].n;
    return n;
}

static enum err_code add_devices(struct maker *m, struct group *g, struct err *e)
{
    struct pick p = { 0 };

    while (!m->full && g->n_made < most(g) && pick_next(m, g, &p))
        if (make_device(m, g, &p, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* ---- the list ---- */

static int by_id(const void *a, const void *b)
{
    return dp_id_compare(((const struct decl_device *)a)->id, ((const struct decl_device *)b)->id);
}

static enum err_code make_all(struct maker *m, struct group *groups, size_t n, const struct decl_list *before,
                              struct err *e)
{
    if (keep_devices(m, groups, n, before, e) != ERR_OK)
        return e->code;
    for (size_t g = 0; g < n; g++)
        if (add_devices(m, &groups[g], e) != ERR_OK)
            return e->code;
    if (m->l->n > 0)
        qsort(m->l->v, m->l->n, sizeof(m->l->v[0]), by_id);
    return ERR_OK;
}

static bool groups_init(struct group *groups, const struct decl_resource *r, const struct look_member *found,
                        struct arena *a)
{
    for (size_t i = 0; i < r->n_groups; i++) {
        struct group *g = &groups[i];

        g->g = &r->groups[i];
        g->found = found;
        for (size_t k = 0; k < g->g->n; k++, found++) {
            g->n_required += !g->g->v[k].optional;
            g->uses[k] = arena_alloc(a, (found->n + 1) * sizeof(unsigned));
            if (g->uses[k] == NULL)
                return false;
        }
    }
    return true;
}

enum err_code decl_list_make(struct decl_list *ret, const struct decl_resource *r,
                             const struct look_member *found, const struct decl_list *before, struct err *e)
{
    struct decl_list l = { 0 };
    struct maker m = { .l = &l };
    struct arena scratch = { 0 };
    struct group *groups = arena_alloc(&scratch, (r->n_groups + 1) * sizeof(*groups));

    if (groups == NULL || !groups_init(groups, r, found, &scratch))
        err_nomem(e);
    else if (make_all(&m, groups, r->n_groups, before, e) == ERR_OK)
        *ret = l;
    forget(&m.ids);
    forget(&m.nodes);
    arena_done(&scratch);
    if (e->code != ERR_OK)
        decl_list_done(&l);
    return e->code;
}

const struct decl_device *decl_list_find(const struct decl_list *l, const char *id)
{
    const struct decl_device key = { .id = id };

    return l->n > 0 ? bsearch(&key, l->v, l->n, sizeof(l->v[0]), by_id) : NULL;
}

void decl_list_done(struct decl_list *l)
{
    free(l->v);
    strs_done(&l->problems);
    arena_done(&l->arena);
    *l = (struct decl_list){ 0 };
}
