/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/record_internal.h"

#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* Truncates between characters. */
char *ev_record_text(const char *text)
{
    size_t n = text != NULL ? strnlen(text, EV_RECORD_TEXT_MAX + 1) : 0;

    if (n > EV_RECORD_TEXT_MAX)
        for (n = EV_RECORD_TEXT_MAX; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
            n--;
    return text != NULL ? strndup(text, n) : NULL;
}

static void ranked_free(struct ev_ranked *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].pod);
        free(v[i].uid);
    }
    free(v);
}

void ev_record_free(struct ev_record *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n_reclaimed; i++)
        free(r->reclaimed[i].what);
    for (size_t i = 0; i < r->n_victims; i++) {
        free(r->victims[i].pod);
        free(r->victims[i].uid);
    }
    ranked_free(r->ranked, r->n_ranked);
    free(r->pod);
    free(r->uid);
    free(r->message);
    free(r->outcome);
    free(r->saved);
    free(r);
}

struct ev_records *ev_records_new(void)
{
    struct ev_records *r = calloc(1, sizeof(*r));

    if (r != NULL)
        r->next = 1;
    return r;
}

void ev_records_free(struct ev_records *r)
{
    if (r == NULL)
        return;
    while (r->n > 0)
        ev_record_free(r->v[--r->n]);
    free(r);
}

void ev_records_append(struct ev_records *r, struct ev_record *one)
{
    if (r->n == EV_RECORDS_MAX) {
        ev_record_free(r->v[0]);
        memmove(&r->v[0], &r->v[1], (EV_RECORDS_MAX - 1) * sizeof(r->v[0]));
        r->n--;
    }
    r->v[r->n++] = one;
}

static struct ev_record *begin(struct ev_records *r, int64_t wall_ns)
{
    struct ev_record *one = calloc(1, sizeof(*one));

    if (one == NULL)
        return NULL;
    one->number = r->next++;
    one->wall_ns = wall_ns;
    ev_records_append(r, one);
    return one;
}

/* Returns a record for modification, and drops its saved form. */
static struct ev_record *to_change(struct ev_records *r, uint64_t number)
{
    for (size_t i = r->n; i-- > 0;)
        if (r->v[i]->number == number) {
            free(take_ptr(&r->v[i]->saved));
            return r->v[i];
        }
    return NULL;
}

uint64_t ev_records_add(struct ev_records *r, const struct ev_crossing *c, int64_t wall_ns)
{
    struct ev_record *one = begin(r, wall_ns);

    if (one == NULL)
        return 0;
    one->crossing = *c;
    return one->number;
}

uint64_t ev_records_add_local(struct ev_records *r, const char *pod_key, const char *pod_uid,
                              const char *message, int64_t wall_ns)
{
    struct ev_record *one = begin(r, wall_ns);

    if (one == NULL)
        return 0;
    one->local = true;
    one->pod = ev_record_text(pod_key);
    one->uid = ev_record_text(pod_uid);
    one->message = ev_record_text(message);
    return one->number;
}

void ev_records_reclaimed(struct ev_records *r, uint64_t number, const char *what, uint64_t bytes,
                          uint64_t objects)
{
    struct ev_record *one = to_change(r, number);
    char *text = ev_record_text(what);

    if (one == NULL || text == NULL || one->n_reclaimed == EV_RECORD_RECLAIMED_MAX) {
        free(text);
        return;
    }
    one->reclaimed[one->n_reclaimed++] =
        (struct ev_reclaimed){ .what = text, .bytes = bytes, .objects = objects };
}

static struct ev_ranked ranked_of(enum ev_signal s, enum ev_layout layout, const struct ev_pod *p)
{
    struct ev_ranked ret = { .pod = ev_record_text(p->key),
                             .uid = ev_record_text(p->uid),
                             .priority = p->priority,
                             .critical = p->critical };

    ret.known = ev_usage(s, layout, p, &ret.usage, &ret.request);
    return ret;
}

static void set_ranking(struct ev_record *one, enum ev_signal s, enum ev_layout layout,
                        const struct ev_choice *c)
{
    const size_t n = c->n_ranked < EV_RECORD_RANKED_MAX ? c->n_ranked : EV_RECORD_RANKED_MAX;
    struct ev_ranked *v = calloc(n + 1, sizeof(*v));

    if (v == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        v[i] = ranked_of(s, layout, c->ranked[i]);
    ranked_free(one->ranked, one->n_ranked);
    one->ranked = v;
    one->n_ranked = n;
}

void ev_records_ranked(struct ev_records *r, uint64_t number, enum ev_signal s, enum ev_layout layout,
                       const struct ev_choice *c)
{
    struct ev_record *one = to_change(r, number);

    if (one == NULL)
        return;
    set_ranking(one, s, layout, c);
    for (size_t i = 0; i < c->n_victims && one->n_victims < EV_RECORD_VICTIMS_MAX; i++) {
        const struct ev_pod *p = c->ranked[c->victims[i]];

        one->victims[one->n_victims++] = (struct ev_victim){ .pod = ev_record_text(p->key),
                                                             .uid = ev_record_text(p->uid),
                                                             .killed_us = UINT64_MAX };
    }
}

void ev_records_killed(struct ev_records *r, uint64_t number, const char *pod_uid, uint64_t after_us)
{
    struct ev_record *one = to_change(r, number);

    for (size_t i = 0; one != NULL && i < one->n_victims; i++) {
        struct ev_victim *v = &one->victims[i];

        if (v->uid != NULL && v->killed_us == UINT64_MAX && strcmp(v->uid, pod_uid) == 0)
            v->killed_us = after_us;
    }
}

void ev_records_ended(struct ev_records *r, uint64_t number, const char *outcome, const struct ev_value *now,
                      uint64_t after_us)
{
    struct ev_record *one = to_change(r, number);

    if (one == NULL)
        return;
    free(one->outcome);
    one->outcome = ev_record_text(outcome);
    one->after = now != NULL ? *now : (struct ev_value){ 0 };
    one->took_us = after_us;
}

static struct ev_unfinished unfinished_of(const struct ev_record *one)
{
    struct ev_unfinished u = { .number = one->number,
                               .wall_ns = one->wall_ns,
                               .signal = one->crossing.threshold.signal };

    for (size_t i = 0; i < one->n_victims; i++)
        if (one->victims[i].killed_us == UINT64_MAX)
            u.uids[u.n_victims++] = one->victims[i].uid;
    return u;
}

void ev_records_unfinished(struct ev_records *r, void (*fn)(const struct ev_unfinished *u, void *arg),
                           void *arg)
{
    for (size_t i = 0; i < r->n; i++) {
        struct ev_unfinished u;

        if (r->v[i]->local || r->v[i]->outcome != NULL)
            continue;
        u = unfinished_of(r->v[i]);
        fn(&u, arg);
    }
}
