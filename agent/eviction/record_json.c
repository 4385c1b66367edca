/* SPDX-License-Identifier: Apache-2.0 */
/* A decision as JSON: for clients, and for the file. */
#include "agent/eviction/record_internal.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <inttypes.h>

static json_int_t number(uint64_t n)
{
    return n < INT64_MAX ? (json_int_t)n : INT64_MAX;
}

static bool put_number(json_t *to, const char *key, uint64_t n)
{
    return json_object_set_new(to, key, json_integer(number(n))) == 0;
}

static bool put_flag(json_t *to, const char *key, bool on)
{
    return json_object_set_new(to, key, json_boolean(on)) == 0;
}

static bool put_identity(json_t *to, const char *pod, const char *uid)
{
    return json_put_str(to, "pod", pod) && json_put_str(to, "uid", uid);
}

/* Appends an item to the list at `key`, which is created if missing; NULL: no memory. */
static json_t *item_of(json_t *to, const char *key)
{
    json_t *list = json_object_get(to, key), *item;

    if (list == NULL) {
        list = json_array();
        if (json_object_set_new(to, key, list) != 0)
            return NULL;
    }
    item = json_object();
    return json_array_append_new(list, item) == 0 ? item : NULL;
}

static bool put_reclaimed(json_t *to, const struct ev_reclaimed *one)
{
    json_t *item = item_of(to, "reclaimed");

    return item != NULL && json_put_str(item, "what", one->what) && put_number(item, "bytes", one->bytes) &&
           put_number(item, "objects", one->objects);
}

static bool put_ranked(json_t *to, const struct ev_ranked *one)
{
    json_t *item = item_of(to, "ranked");

    return item != NULL && put_identity(item, one->pod, one->uid) &&
           json_object_set_new(item, "priority", json_integer(one->priority)) == 0 &&
           put_flag(item, "critical", one->critical) && put_flag(item, "known", one->known) &&
           put_number(item, "usage", one->usage) && put_number(item, "request", one->request);
}

static bool put_victim(json_t *to, const struct ev_victim *one)
{
    json_t *item = item_of(to, "victims");

    return item != NULL && put_identity(item, one->pod, one->uid) &&
           (one->killed_us == UINT64_MAX || put_number(item, "killedAfterUs", one->killed_us));
}

static bool put_lists(json_t *to, const struct ev_record *r)
{
    bool ok = true;

    for (size_t i = 0; ok && i < r->n_reclaimed; i++)
        ok = put_reclaimed(to, &r->reclaimed[i]);
    for (size_t i = 0; ok && i < r->n_ranked; i++)
        ok = put_ranked(to, &r->ranked[i]);
    for (size_t i = 0; ok && i < r->n_victims; i++)
        ok = put_victim(to, &r->victims[i]);
    return ok;
}

static bool put_value(json_t *to, const char *key, const struct ev_crossing *c, uint64_t value)
{
    char text[QUANTITY_TEXT_SIZE];

    ev_value_text(c->threshold.signal, value, text);
    return json_put_str(to, key, text);
}

static bool put_crossing(json_t *to, const struct ev_record *r, bool file)
{
    const struct ev_crossing *c = &r->crossing;
    char line[QUANTITY_TEXT_SIZE];

    ev_amount_text(&c->threshold.value, c->value.capacity, line);
    if (!json_put_str(to, "signal", ev_signal_name(c->threshold.signal)) ||
        !put_flag(to, "soft", c->threshold.soft) || !put_flag(to, "urgent", c->urgent))
        return false;
    if (file)
        return json_put_str(to, "threshold", line) && put_number(to, "available", c->value.available) &&
               put_number(to, "capacity", c->value.capacity);
    return json_put_str(to, "resource", ev_signal_resource(c->threshold.signal)) &&
           json_put_str(to, "threshold", line) && put_value(to, "available", c, c->value.available) &&
           put_value(to, "capacity", c, c->value.capacity);
}

static bool put_outcome(json_t *to, const struct ev_record *r, bool file)
{
    if (r->outcome == NULL)
        return true;
    if (!json_put_str(to, "outcome", r->outcome) || !put_number(to, "tookUs", r->took_us))
        return false;
    if (!r->after.known)
        return true;
    return file ? put_number(to, "availableAfter", r->after.available)
                : put_value(to, "availableAfter", &r->crossing, r->after.available);
}

json_t *ev_record_json(const struct ev_record *r, bool file)
{
    json_auto_t *to = json_object();
    char when[CLOCK_RFC3339_SIZE];
    bool ok;

    clock_format_us(r->wall_ns, when);
    if (to == NULL || !put_number(to, "number", r->number) || !json_put_str(to, "time", when))
        return NULL;
    if (r->local)
        ok = put_identity(to, r->pod, r->uid) && json_put_str(to, "message", r->message);
    else
        ok = put_crossing(to, r, file) && put_lists(to, r) && put_outcome(to, r, file);
    return ok ? json_incref(to) : NULL;
}

json_t *ev_records_json(const struct ev_records *r)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < r->n; i++)
        if (json_array_append_new(list, ev_record_json(r->v[i], false)) != 0)
            return NULL;
    return json_incref(list);
}

/* ---- the file ---- */

static const char *saved_form(struct ev_record *r)
{
    json_auto_t *json = NULL;

    if (r->saved == NULL && (json = ev_record_json(r, true)) != NULL)
        r->saved = json_text(json);
    return r->saved;
}

enum err_code ev_records_save(struct ev_records *r, struct buf *ret, struct err *e)
{
    buf_addf(ret, "{\"next\": %" PRIu64 ", \"records\": [", r->next);
    for (size_t i = 0; i < r->n; i++) {
        const char *text = saved_form(r->v[i]);

        if (text == NULL)
            return err_nomem(e);
        buf_adds(ret, i > 0 ? ", " : "");
        buf_adds(ret, text);
    }
    buf_adds(ret, "]}\n");
    return buf_check(ret, e);
}
