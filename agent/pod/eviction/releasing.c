/* SPDX-License-Identifier: Apache-2.0 */
/*
 * releasing - the amount that a victim is expected to release, kept with its record: an agent that is started
 * while it ends waits for it like the one that chose it. What it has in memory and how many processes it runs
 * is read from its cgroup; files that are being removed are not measured, so they count as they did when it
 * was chosen.
 */
#include "agent/pod/core/facts.h"
#include "agent/pod/core/record_field.h"
#include "agent/pod/eviction/internal.h"
#include "agent/pod/usage/usage.h"
#include "base/codec/json.h"

static struct eviction_pod *releasing(const struct pod *p)
{
    return p->parts[ROOM_EVICTION];
}

const struct eviction_pod *releasing_of(const struct pod *p)
{
    return releasing(p)->chosen ? releasing(p) : NULL;
}

static bool add_disk(struct ev_disk *to, struct storage_part more)
{
    to->bytes += more.bytes;
    to->inodes += more.inodes;
    return more.known;
}

/* Chosen again, as it ends slowly: its usage is known from the first time. */
void releasing_note(struct pod *p, const struct ev_crossing *c)
{
    struct eviction_pod *r = releasing(p);
    struct eviction_pod now = {
        .memory = r->memory, .chosen = true, .signal = c->threshold.signal, .available = c->value.available
    };

    if (r->chosen && r->disk_known)
        return;
    now.disk_known = add_disk(&now.volumes, storage_usage_volumes(p));
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const bool layer = add_disk(&now.layers, storage_usage_layer(p, i)),
                   log = add_disk(&now.logs, storage_usage_log(p, i));

        now.disk_known = now.disk_known && ((layer && log) || !ctr_alive(p->ctrs[i]));
    }
    *r = now;
    p->record_dirty = true;
}

/* ---- the record ---- */

static void put_disk(json_t *to, const char *key, const struct ev_disk *d)
{
    json_t *v = json_object();

    json_object_set_new(v, "bytes", json_integer((json_int_t)d->bytes));
    json_object_set_new(v, "inodes", json_integer((json_int_t)d->inodes));
    json_object_set_new(to, key, v);
}

void releasing_save(const struct pod *p, json_t *record)
{
    const struct eviction_pod *r = releasing(p);
    json_t *o;

    if (!r->chosen)
        return;
    o = json_object();
    json_put_str(o, "signal", ev_signal_name(r->signal));
    json_object_set_new(o, "available", json_integer((json_int_t)r->available));
    if (r->disk_known) {
        put_disk(o, "volumes", &r->volumes);
        put_disk(o, "layers", &r->layers);
        put_disk(o, "logs", &r->logs);
    }
    json_object_set_new(record, "releases", o);
}

/* Sums of them stay numbers. */
#define DISK_MAX (INT64_MAX / 8)

static struct ev_disk read_disk(const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);

    return (struct ev_disk){ .bytes = (uint64_t)record_number(v, "bytes", DISK_MAX),
                             .inodes = (uint64_t)record_number(v, "inodes", DISK_MAX) };
}

void releasing_load(struct pod *p, const json_t *record)
{
    const json_t *o = json_object_get(record, "releases");
    const char *name = json_str(o, "signal");
    enum ev_signal s = name != NULL ? ev_signal_parse(name) : EV_SIGNALS;

    if (s == EV_SIGNALS)
        return;
    *releasing(p) = (struct eviction_pod){ .chosen = true,
                                           .signal = s,
                                           .available = (uint64_t)record_number(o, "available", INT64_MAX),
                                           .disk_known = json_object_get(o, "volumes") != NULL,
                                           .volumes = read_disk(o, "volumes"),
                                           .layers = read_disk(o, "layers"),
                                           .logs = read_disk(o, "logs") };
}

void releasing_reset(struct pod *p)
{
    *releasing(p) = (struct eviction_pod){ 0 };
}
