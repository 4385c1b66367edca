/* SPDX-License-Identifier: Apache-2.0 */
/* Merging an applied configuration into a live value, and removing fields from one. */
#include "agent/api/patch/apply/typed.h"

#include "agent/api/patch/apply/fields.h"
#include "base/buf.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* *ret NULL: there is no value.  False: out of memory. */
static bool merge(const struct typed *type, const json_t *live, const json_t *config, json_t **ret);

static bool merge_maps(const struct typed *t, const json_t *live, const json_t *config, json_t *to)
{
    const json_t *const sides[] = { live, config };
    const char *name;
    json_t *v, *merged;

    for (size_t k = 0; k < 2; k++) {
        json_object_foreach ((json_t *)sides[k], name, v) {
            bool known;
            struct typed type = typed_member(t, name, &known);

            if (k == 1 && json_object_get(live, name) != NULL)
                continue;
            if (!merge(&type, json_object_get(live, name), json_object_get(config, name), &merged))
                return false;
            if (merged != NULL && json_object_set_new(to, name, merged) != 0)
                return false;
        }
    }
    return true;
}

/* ---- lists ---- */

struct side {
    const json_t *list;
    char **paths;    /* n, malloc'ed */
    json_t *by_path; /* element by path; null where it occurs twice */
    size_t n;
};

static void side_done(struct side *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->paths[i]);
    free(s->paths);
    json_decref(s->by_path);
}

static bool side_begin(const struct typed *t, const json_t *list, struct side *s)
{
    json_t *element;
    size_t i;

    s->list = list;
    s->by_path = json_object();
    s->paths = calloc(json_array_size(list) + 1, sizeof(*s->paths));
    if (s->by_path == NULL || s->paths == NULL)
        return false;
    json_array_foreach ((json_t *)list, i, element) {
        bool missing;
        char *path = typed_element_path(t, element, &missing);

        if (path == NULL && missing) /* it is like no other */
            path = str_printf("i:%zu", i);
        if (path == NULL)
            return false;
        s->paths[s->n++] = path;
        if (json_object_set(s->by_path, path,
                            json_object_get(s->by_path, path) != NULL ? json_null() : element) != 0)
            return false;
    }
    return true;
}

static const json_t *element_of(const struct side *s, const char *path)
{
    const json_t *v = json_object_get(s->by_path, path);

    return json_is_null(v) ? NULL : v;
}

struct list_merge {
    struct typed element;
    struct side live, config;
    json_t *to;
    json_t *merged; /* paths of `config` that are in `to` */
    size_t shared;  /* the place in `config` of the next path that `live` has, too; n: none */
};

/* Advances to the next path of both. */
static void next_shared(struct list_merge *m, size_t from)
{
    for (m->shared = from; m->shared < m->config.n; m->shared++)
        if (json_object_get(m->live.by_path, m->config.paths[m->shared]) != NULL)
            return;
}

static bool take_merged(struct list_merge *m, const json_t *live, const json_t *config)
{
    json_t *v = NULL;

    if (!merge(&m->element, live, config, &v))
        return false;
    return v == NULL || json_array_append_new(m->to, v) == 0;
}

static bool take_both(struct list_merge *m, const char *path)
{
    return json_object_set_new(m->merged, path, json_true()) == 0 &&
           take_merged(m, element_of(&m->live, path), element_of(&m->config, path));
}

/*
 * Elements of the configuration keep its order, others precede the elements that followed them in the live
 * list: the order of structured-merge-diff's list merge, step by step.
 */
static bool merge_in_order(struct list_merge *m)
{
    size_t l = 0, c = 0;

    next_shared(m, 0);
    while (l < m->live.n || c < m->config.n) {
        const char *live = l < m->live.n ? m->live.paths[l] : NULL;
        const char *config = c < m->config.n ? m->config.paths[c] : NULL;
        bool in_both = live != NULL && json_object_get(m->config.by_path, live) != NULL;

        if (live != NULL && config != NULL) {
            if (strcmp(live, config) == 0) {
                if (!take_both(m, live))
                    return false;
                next_shared(m, m->shared < m->config.n ? m->shared + 1 : m->config.n);
                l++;
                c++;
                continue;
            }
            if (in_both && m->shared < m->config.n && strcmp(m->config.paths[m->shared], live) != 0) {
                l++; /* its turn comes with the configuration's */
                continue;
            }
        }
        if (live != NULL && !in_both) {
            if (!take_merged(m, json_array_get(m->live.list, l), NULL))
                return false;
            l++;
            continue;
        }
        if (live != NULL && json_object_get(m->merged, live) != NULL)
            l++;
        if (config != NULL) {
            if (!take_both(m, config))
                return false;
            c++;
            if (m->shared < m->config.n && strcmp(m->config.paths[m->shared], config) == 0)
                next_shared(m, m->shared + 1);
        }
    }
    return true;
}

static bool merge_lists(const struct typed *t, const json_t *live, const json_t *config, json_t **ret)
{
    struct list_merge m = { .element = typed_element(t), .to = json_array(), .merged = json_object() };
    bool ok = m.to != NULL && m.merged != NULL && side_begin(t, live, &m.live) &&
              side_begin(t, config, &m.config) && merge_in_order(&m);

    side_done(&m.live);
    side_done(&m.config);
    json_decref(m.merged);
    if (ok && json_array_size(m.to) > 0)
        *ret = json_incref(m.to);
    json_decref(m.to);
    return ok;
}

/* ---- both ---- */

static bool is_empty(const json_t *v)
{
    return json_object_size(v) == 0 && json_array_size(v) == 0;
}

static bool merge(const struct typed *type, const json_t *live, const json_t *config, json_t **ret)
{
    struct typed t = typed_of_value(type, config != NULL ? config : live);
    bool holds = t.form == TYPED_OBJECT || t.form == TYPED_MAP || t.form == TYPED_LIST;
    json_t *to;

    *ret = NULL;
    if (t.atomic || !holds || (is_empty(live) && is_empty(config))) {
        *ret = json_incref((json_t *)(config != NULL ? config : live));
        return true;
    }
    if (t.form == TYPED_LIST)
        return merge_lists(&t, live, config, ret);
    to = json_object();
    if (to == NULL || !merge_maps(&t, live, config, to)) {
        json_decref(to);
        return false;
    }
    if (json_object_size(to) > 0)
        *ret = to;
    else
        json_decref(to);
    return true;
}

json_t *typed_merge(const struct typed *t, const json_t *live, const json_t *config)
{
    json_t *to = NULL;

    if (!merge(t, live, config, &to))
        return NULL;
    return to != NULL ? to : json_object();
}

/* ---- remove ---- */

static json_t *removed_from_list(const struct typed *t, const json_t *v, const json_t *set)
{
    json_t *to = json_array(), *element, *kept;
    struct typed type = typed_element(t);
    bool ok = to != NULL;
    size_t i;

    json_array_foreach ((json_t *)v, i, element) {
        bool missing;
        mem_auto char *path = typed_element_path(t, element, &missing);
        const json_t *below = path != NULL ? fields_below(set, path) : NULL;

        ok = ok && (path != NULL || missing);
        if (!ok || (path != NULL && fields_has(set, path)))
            continue;
        kept = below != NULL ? typed_remove(&type, element, below) : json_incref(element);
        ok = kept != NULL && json_array_append_new(to, kept) == 0;
    }
    if (ok)
        return to;
    json_decref(to);
    return NULL;
}

static json_t *removed_from_map(const struct typed *t, const json_t *v, const json_t *set)
{
    json_t *to = json_object(), *member, *kept;
    const char *name;
    bool ok = to != NULL;

    json_object_foreach ((json_t *)v, name, member) {
        str_auto element = str_printf("f:%s", name);
        bool known;
        struct typed type = typed_member(t, name, &known);
        const json_t *below = element != NULL ? fields_below(set, element) : NULL;

        ok = ok && element != NULL;
        if (!ok || fields_has(set, element))
            continue;
        kept = below != NULL ? typed_remove(&type, member, below) : json_incref(member);
        ok = kept != NULL && json_object_set_new(to, name, kept) == 0;
    }
    if (ok)
        return to;
    json_decref(to);
    return NULL;
}

json_t *typed_remove(const struct typed *type, const json_t *v, const json_t *set)
{
    struct typed t = typed_of_value(type, v);

    if (json_is_object(v) && !t.atomic && t.form != TYPED_LIST)
        return removed_from_map(&t, v, set);
    if (json_is_array(v) && !t.atomic && t.form == TYPED_LIST)
        return removed_from_list(&t, v, set);
    return json_incref((json_t *)v);
}
