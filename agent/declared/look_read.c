/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the result of a scan in the agent. The result comes from a child, so it is checked. */
#include "agent/declared/look.h"
#include "agent/declared/look_internal.h"
#include "base/codec/json.h"
#include "deviceplugin/device_id.h"

#include <stdlib.h>
#include <string.h>

struct reader {
    struct arena *arena;
    bool wrong, no_memory;
};

static const char *copy_text(struct reader *r, const char *text)
{
    const char *copy = arena_strdup(r->arena, text);

    r->no_memory = r->no_memory || (copy == NULL && text != NULL);
    return copy;
}

static const char *const *copy_texts(struct reader *r, const json_t *list, size_t max, size_t *ret_n)
{
    size_t i, n = json_array_size(list);
    const char **v = arena_alloc(r->arena, (n + 1) * sizeof(v[0]));
    json_t *item;

    r->wrong = r->wrong || n > max;
    r->no_memory = r->no_memory || v == NULL;
    if (r->wrong || r->no_memory)
        return NULL;
    json_array_foreach (list, i, item) {
        r->wrong = r->wrong || !json_is_string(item);
        v[i] = copy_text(r, json_string_value(item));
    }
    *ret_n = n;
    return v;
}

static int by_id(const void *a, const void *b)
{
    const struct look_match *x = a, *y = b;
    int order = dp_id_compare(x->id, y->id);

    return order != 0 ? order : strcmp(x->path, y->path);
}

static void read_match(struct reader *r, const json_t *o, struct look_match *m)
{
    const char *path = json_str(o, "path"), *id = json_str(o, "id");

    if (path == NULL || id == NULL || id[0] == '\0') {
        r->wrong = true;
        return;
    }
    m->path = copy_text(r, path);
    m->id = copy_text(r, id);
    m->node = copy_text(r, json_str(o, "node"));
    m->numa = json_int(o, "numa", -1);
    m->inside = copy_texts(r, json_object_get(o, "inside"), LOOK_INSIDE_MAX, &m->n_inside);
}

static void read_member(struct reader *r, const json_t *o, struct look_member *m)
{
    const json_t *list = json_object_get(o, "v");
    size_t i, n = json_array_size(list);
    struct look_match *v = arena_alloc(r->arena, (n + 1) * sizeof(*v));
    json_t *item;

    r->wrong = r->wrong || !json_is_array(list) || n > LOOK_MATCHES_MAX;
    if (v == NULL) {
        r->no_memory = true;
        return;
    }
    m->unknown = copy_text(r, json_str(o, "unknown"));
    m->problems = copy_texts(r, json_object_get(o, "problems"), LOOK_PROBLEMS_MAX, &m->n_problems);
    json_array_foreach (list, i, item)
        if (!r->wrong && !r->no_memory)
            read_match(r, item, &v[i]);
    if (r->wrong || r->no_memory)
        return;
    qsort(v, n, sizeof(*v), by_id);
    m->v = v;
    m->n = n;
}

static void read_watches(struct reader *r, const json_t *o, struct look *l)
{
    const char *dir;
    json_t *names;

    l->watch = arena_alloc(r->arena, (json_object_size(o) + 1) * sizeof(l->watch[0]));
    r->no_memory = r->no_memory || l->watch == NULL;
    r->wrong = r->wrong || !json_is_object(o) || json_object_size(o) > LOOK_WATCH_MAX;
    if (r->wrong || r->no_memory)
        return;
    json_object_foreach ((json_t *)o, dir, names) {
        struct look_watch *w = &l->watch[l->n_watch++];
        w->dir = copy_text(r, dir);
        w->names = copy_texts(r, names, LOOK_NAMES_MAX, &w->n_names);
    }
}

enum err_code look_read(const char *text, size_t n, size_t n_members, struct look *ret, struct err *e)
{
    struct look l = { 0 };
    struct reader r = { .arena = &l.arena };
    json_auto_t *answer = NULL;
    const json_t *members;
    json_t *item;
    size_t i;

    if (json_parse(text, n, LOOK_OUT_MAX, &answer, "the answer of a look at devices", e) != ERR_OK)
        return e->code;
    members = json_object_get(answer, "members");
    r.wrong = json_array_size(members) != n_members;
    l.members = arena_alloc(&l.arena, (n_members + 1) * sizeof(l.members[0]));
    r.no_memory = l.members == NULL;
    json_array_foreach (members, i, item)
        if (!r.wrong && !r.no_memory)
            read_member(&r, item, &l.members[i]);
    l.n_members = n_members;
    read_watches(&r, json_object_get(answer, "watch"), &l);
    if (!r.wrong && !r.no_memory) {
        *ret = l;
        return ERR_OK;
    }
    look_done(&l);
    return r.no_memory ? err_nomem(e)
                       : err_set(e, ERR_INTERNAL, "the result of a device scan has an invalid member");
}

void look_done(struct look *l)
{
    arena_done(&l->arena);
    *l = (struct look){ 0 };
}
