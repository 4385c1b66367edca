/* SPDX-License-Identifier: Apache-2.0 */
/* The content of all folders: its names, and the resolution of a list of names. */
#include "agent/cdi/internal.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

struct cdi_content *cdi_content_ref(struct cdi_content *c)
{
    c->refs++;
    return c;
}

void cdi_content_unref(struct cdi_content *c)
{
    if (c == NULL || --c->refs > 0)
        return;
    free(c->specs);
    free(c->entries);
    api_problems_done(&c->problems);
    arena_done(&c->arena);
    free(c);
}

/* ---- names ---- */

/* By name; of equal names the one of the latest folder is first; then by path, so that messages are always
 * the same. */
static int content_compare(const void *a, const void *b)
{
    const struct cdi_entry *x = a, *y = b;
    int names = strcmp(x->device->name, y->device->name);

    if (names != 0)
        return names;
    if (x->spec->folder != y->spec->folder)
        return x->spec->folder > y->spec->folder ? -1 : 1;
    return strcmp(x->spec->path, y->spec->path);
}

static void report_conflict(struct cdi_content *c, const struct cdi_entry *a, const struct cdi_entry *b)
{
    api_problems_add(&c->problems, a->spec->path, "conflicting device \"%.200s\" (specs \"%s\", \"%s\")",
                     a->device->name, a->spec->path, b->spec->path);
}

enum err_code cdi_index(struct cdi_content *c, struct err *e)
{
    size_t n = 0;

    c->entries = calloc(c->n_devices + 1, sizeof(*c->entries));
    if (c->entries == NULL)
        return err_nomem(e);
    for (size_t s = 0; s < c->n_specs; s++)
        for (size_t d = 0; d < c->specs[s].n_devices; d++)
            c->entries[n++] = (struct cdi_entry){ &c->specs[s].devices[d], &c->specs[s], false };
    qsort(c->entries, n, sizeof(*c->entries), content_compare);
    c->n_entries = 0;
    for (size_t i = 0; i < n; i++) {
        struct cdi_entry *last = c->n_entries > 0 ? &c->entries[c->n_entries - 1] : NULL;

        if (last == NULL || strcmp(last->device->name, c->entries[i].device->name) != 0) {
            c->entries[c->n_entries++] = c->entries[i];
        } else if (last->spec->folder == c->entries[i].spec->folder) {
            report_conflict(c, last, &c->entries[i]);
            last->conflict = true;
        }
    }
    return ERR_OK;
}

const struct cdi_entry *cdi_find(const struct cdi_content *c, const char *name)
{
    size_t low = 0, high = c->n_entries;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, c->entries[middle].device->name);

        if (order == 0)
            return c->entries[middle].conflict ? NULL : &c->entries[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- a list of names ---- */

struct merge {
    struct arena *arena;
    struct rt_edits *to;
    bool counting; /* the first pass counts sizes */
    bool fit;
};

#define MERGE(list, count)                                                                                   \
    do {                                                                                                     \
        if (!m->counting && from->count > 0)                                                                 \
            memcpy((void *)(uintptr_t)(m->to->list + m->to->count), from->list,                              \
                   from->count * sizeof(*from->list));                                                       \
        m->to->count += from->count;                                                                         \
        m->fit = m->fit && m->to->count <= CDI_EDITS_MAX;                                                    \
    } while (0)

static bool merge_edits(struct merge *m, const struct rt_edits *from)
{
    MERGE(env, n_env);
    MERGE(nodes, n_nodes);
    MERGE(mounts, n_mounts);
    MERGE(hooks, n_hooks);
    MERGE(net_devices, n_net_devices);
    MERGE(gids, n_gids);
    if (from->rdt != NULL)
        m->to->rdt = from->rdt;
    return m->fit;
}

#define ROOM(list, count)                                                                                    \
    do {                                                                                                     \
        to.list = arena_alloc(m->arena, (m->to->count + 1) * sizeof(*to.list));                              \
        ok = ok && to.list != NULL;                                                                          \
    } while (0)

static bool make_room(struct merge *m)
{
    struct rt_edits to = { 0 };
    bool ok = true;

    ROOM(env, n_env);
    ROOM(nodes, n_nodes);
    ROOM(mounts, n_mounts);
    ROOM(hooks, n_hooks);
    ROOM(net_devices, n_net_devices);
    ROOM(gids, n_gids);
    *m->to = to;
    m->counting = false;
    return ok;
}

static bool merge_entries(struct merge *m, const struct cdi_entry *const *entries, size_t n)
{
    bool fit = true;

    for (size_t i = 0; fit && i < n; i++) {
        bool first = true;

        for (size_t k = 0; first && k < i; k++)
            first = entries[k]->spec != entries[i]->spec;
        fit = (!first || merge_edits(m, &entries[i]->spec->edits)) &&
              merge_edits(m, &entries[i]->device->edits);
    }
    return fit;
}

/* The entries of all names, each once; or an error that lists all unresolvable names. */
static enum err_code find_all(const struct cdi_content *c, const char *const *names, size_t n,
                              const struct cdi_entry **ret, size_t *ret_n, struct err *e)
{
    buf_auto missing = BUF_INIT(sizeof(e->text));

    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct cdi_entry *entry = cdi_find(c, names[i]);
        size_t k = 0;

        if (entry == NULL) {
            buf_adds(&missing, missing.n > 0 ? ", " : "");
            buf_adds(&missing, names[i]);
            continue;
        }
        while (k < *ret_n && ret[k] != entry)
            k++;
        if (k == *ret_n)
            ret[(*ret_n)++] = entry;
    }
    return missing.n == 0 && !missing.failed
               ? ERR_OK
               : err_set(e, ERR_NOT_FOUND, CDI_FAILED ": unresolvable CDI devices %.*s", (int)missing.n,
                         missing.n > 0 ? missing.p : "");
}

enum err_code cdi_content_resolve(struct cdi_content *c, const char *const *names, size_t n,
                                  struct cdi_resolved *ret, struct err *e)
{
    struct cdi_resolved r = { 0 };
    mem_auto const struct cdi_entry **entries = calloc(n + 1, sizeof(*entries));
    struct merge m = { .arena = &r.arena, .to = &r.edits, .counting = true, .fit = true };
    size_t found;

    if (entries == NULL)
        return err_nomem(e);
    if (find_all(c, names, n, entries, &found, e) != ERR_OK)
        return e->code;
    if (!merge_entries(&m, entries, found))
        return err_set(e, ERR_EXHAUSTED, CDI_FAILED ": more than %d edits of a kind", CDI_EDITS_MAX);
    if (!make_room(&m) || !merge_entries(&m, entries, found)) {
        arena_done(&r.arena);
        return err_nomem(e);
    }
    r.content = cdi_content_ref(c);
    *ret = r;
    return ERR_OK;
}

void cdi_resolved_done(struct cdi_resolved *r)
{
    arena_done(&r->arena);
    cdi_content_unref(r->content);
    *r = (struct cdi_resolved){ 0 };
}
