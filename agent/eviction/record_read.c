/* SPDX-License-Identifier: Apache-2.0 */
/* Reads decisions from a file whose content may be damaged. */
#include "agent/eviction/record_internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* Absent is allowed; false: not a text. A long text is truncated, because escaped bytes grow when they are
 * saved. */
static bool read_text(const json_t *from, const char *key, char **ret)
{
    const json_t *v = json_object_get(from, key);

    if (v == NULL)
        return true;
    if (!json_is_string(v))
        return false;
    *ret = ev_record_text(json_string_value(v));
    return *ret != NULL;
}

static bool read_number(const json_t *from, const char *key, uint64_t *ret)
{
    const json_t *v = json_object_get(from, key);

    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(v);
    return true;
}

static bool read_flag(const json_t *from, const char *key, bool *ret)
{
    const json_t *v = json_object_get(from, key);

    *ret = json_is_true(v);
    return json_is_boolean(v);
}

/* Absent is an empty list; false: not a list, or more than `most` items. */
static bool read_list(const json_t *from, const char *key, size_t most, size_t *ret_n)
{
    const json_t *list = json_object_get(from, key);

    *ret_n = json_array_size(list);
    return list == NULL || (json_is_array(list) && *ret_n <= most);
}

static bool read_reclaimed(const json_t *from, struct ev_record *r)
{
    size_t n;

    if (!read_list(from, "reclaimed", EV_RECORD_RECLAIMED_MAX, &n))
        return false;
    while (r->n_reclaimed < n) {
        const json_t *item = json_array_get(json_object_get(from, "reclaimed"), r->n_reclaimed);
        struct ev_reclaimed *one = &r->reclaimed[r->n_reclaimed++];

        if (!read_number(item, "bytes", &one->bytes) || !read_number(item, "objects", &one->objects) ||
            !read_text(item, "what", &one->what))
            return false;
    }
    return true;
}

static bool read_ranked_one(const json_t *item, struct ev_ranked *one)
{
    const json_t *priority = json_object_get(item, "priority");

    if (!json_is_integer(priority) || json_integer_value(priority) < INT32_MIN ||
        json_integer_value(priority) > INT32_MAX)
        return false;
    one->priority = (int32_t)json_integer_value(priority);
    return read_flag(item, "critical", &one->critical) && read_flag(item, "known", &one->known) &&
           read_number(item, "usage", &one->usage) && read_number(item, "request", &one->request) &&
           read_text(item, "pod", &one->pod) && read_text(item, "uid", &one->uid);
}

static bool read_ranked(const json_t *from, struct ev_record *r)
{
    size_t n;

    if (!read_list(from, "ranked", EV_RECORD_RANKED_MAX, &n))
        return false;
    r->ranked = calloc(n + 1, sizeof(*r->ranked));
    if (r->ranked == NULL)
        return false;
    while (r->n_ranked < n) {
        const json_t *item = json_array_get(json_object_get(from, "ranked"), r->n_ranked);

        if (!read_ranked_one(item, &r->ranked[r->n_ranked++]))
            return false;
    }
    return true;
}

static bool read_victims(const json_t *from, struct ev_record *r)
{
    size_t n;

    if (!read_list(from, "victims", EV_RECORD_VICTIMS_MAX, &n))
        return false;
    while (r->n_victims < n) {
        const json_t *item = json_array_get(json_object_get(from, "victims"), r->n_victims);
        struct ev_victim *one = &r->victims[r->n_victims++];

        one->killed_us = UINT64_MAX;
        if (!json_is_object(item) || !read_text(item, "pod", &one->pod) ||
            !read_text(item, "uid", &one->uid) ||
            (json_object_get(item, "killedAfterUs") != NULL &&
             !read_number(item, "killedAfterUs", &one->killed_us)))
            return false;
    }
    return true;
}

static bool read_crossing(const json_t *from, struct ev_crossing *c)
{
    const char *signal = json_str(from, "signal"), *line = json_str(from, "threshold");

    if (signal == NULL || line == NULL || strlen(line) >= QUANTITY_TEXT_SIZE)
        return false;
    c->threshold.signal = ev_signal_parse(signal);
    c->value.known = true;
    return c->threshold.signal != EV_SIGNALS &&
           ev_amount_parse(line, true, &c->threshold.value, ERR_IGNORED) == ERR_OK &&
           read_flag(from, "soft", &c->threshold.soft) && read_flag(from, "urgent", &c->urgent) &&
           read_number(from, "available", &c->value.available) &&
           read_number(from, "capacity", &c->value.capacity);
}

static bool read_outcome(const json_t *from, struct ev_record *r)
{
    if (!read_text(from, "outcome", &r->outcome))
        return false;
    if (r->outcome == NULL)
        return true;
    r->after.known = json_object_get(from, "availableAfter") != NULL;
    return read_number(from, "tookUs", &r->took_us) &&
           (!r->after.known || read_number(from, "availableAfter", &r->after.available));
}

static bool read_record(const json_t *from, struct ev_record *r)
{
    const char *when = json_str(from, "time");

    if (!read_number(from, "number", &r->number) || when == NULL || strlen(when) >= CLOCK_RFC3339_SIZE ||
        clock_parse(when, &r->wall_ns, ERR_IGNORED) != ERR_OK)
        return false;
    r->local = json_object_get(from, "signal") == NULL;
    if (r->local)
        return read_text(from, "pod", &r->pod) && read_text(from, "uid", &r->uid) &&
               read_text(from, "message", &r->message) && r->message != NULL;
    return read_crossing(from, &r->crossing) && read_reclaimed(from, r) && read_ranked(from, r) &&
           read_victims(from, r) && read_outcome(from, r);
}

struct ev_record *ev_record_read(const json_t *v)
{
    struct ev_record *r = calloc(1, sizeof(*r));

    if (r == NULL || read_record(v, r))
        return r;
    ev_record_free(r);
    return NULL;
}

/* Numbers must grow from record to record, and the next number must be above them, because find() and clients
 * rely on that. */
void ev_records_load(struct ev_records *r, const json_t *saved, size_t *ret_bad)
{
    const json_t *list = json_object_get(saved, "records");
    const size_t n = json_array_size(list);
    uint64_t next = 1;

    *ret_bad = !read_number(saved, "next", &next) || !json_is_array(list);
    while (r->n > 0)
        ev_record_free(r->v[--r->n]);
    r->next = 1;
    for (size_t i = n > EV_RECORDS_MAX ? n - EV_RECORDS_MAX : 0; i < n; i++) {
        struct ev_record *one = ev_record_read(json_array_get(list, i));

        if (one == NULL || one->number < r->next || one->number >= INT64_MAX / 2) {
            ev_record_free(one);
            ++*ret_bad;
            continue;
        }
        r->next = one->number + 1;
        ev_records_append(r, one);
    }
    if (next > r->next && next < INT64_MAX / 2)
        r->next = next;
}
