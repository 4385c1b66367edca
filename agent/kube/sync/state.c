/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the room's state, for users: the number of requests by verb, their answers, failing parts with time
 * and reason, and the lifetime of the certificates. It is sent to the daemon as a message `parts`: within
 * STATE_EVERY_MS of a part's failure, when a client requests metrics from the node's port, otherwise a minute
 * after a request.
 */
#include "agent/kube/sync/internal.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

#define STATE_EVERY_MS 1000
#define STATE_COUNTS_MS 60000

struct state_part {
    struct kube_sync *sync;
    struct sync_timer timer;
    json_t *parts;    /* {part: {since, error}} */
    json_t *requests; /* {verb: count} */
    bool stopped;
};

void state_part_send(struct state_part *t)
{
    json_int_t sum = 0;
    const char *verb;
    json_t *n;

    json_object_foreach (t->requests, verb, n)
        sum += json_integer_value(n);
    sync_send(t->sync,
              json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "type", "parts", "requests", sum, "verbs",
                        json_deep_copy(t->requests), "answers", kube_client_answers(t->sync->o.client),
                        "certificates", certs_part_state(t->sync->certs), "parts", json_deep_copy(t->parts)));
}

static void state_on_timer(void *owner)
{
    state_part_send(owner);
}

static void state_due(struct state_part *t, uint64_t in_ms)
{
    if (t->stopped || (t->timer.runs && clock_boot_left_ns(t->timer.at) <= (int64_t)in_ms * 1000000))
        return;
    sync_timer_start(t->sync, &t->timer, in_ms, state_on_timer, t);
}

struct state_part *state_part_new(struct kube_sync *s)
{
    struct state_part *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->sync = s;
    t->parts = json_object();
    t->requests = json_object();
    return t;
}

void state_part_count(struct state_part *t, const struct kube_request_spec *spec)
{
    json_int_t n = json_int(t->requests, spec->method, 0);

    json_object_set_new(t->requests, spec->method, json_integer(n + 1));
    state_due(t, STATE_COUNTS_MS);
}

void state_part_changed(struct state_part *t)
{
    state_due(t, STATE_EVERY_MS);
}

void state_part_report(struct state_part *t, const char *part, const char *text)
{
    const json_t *before = json_object_get(t->parts, part);
    char now[CLOCK_RFC3339_SIZE];

    if (text == NULL ? before == NULL : before != NULL && strcmp(json_str(before, "error"), text) == 0)
        return;
    clock_format_s(clock_wall_ns(), now);
    if (text == NULL)
        json_object_del(t->parts, part);
    else
        json_object_set_new(t->parts, part,
                            json_pack("{s:s, s:o}", "since", before != NULL ? json_str(before, "since") : now,
                                      "error", json_string_of(text)));
    state_due(t, STATE_EVERY_MS);
}

void state_part_stop(struct state_part *t)
{
    t->stopped = true;
    sync_timer_stop(t->sync, &t->timer);
}

void state_part_free(struct state_part *t)
{
    if (t == NULL)
        return;
    json_decref(t->parts);
    json_decref(t->requests);
    free(t);
}
