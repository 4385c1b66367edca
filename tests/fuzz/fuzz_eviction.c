/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eviction: records of decisions and thresholds. An object with "records" is a file of records: what is kept
 * of it is saved and loaded as the same again, and takes a new decision. Any other has the maps of the
 * configuration: the thresholds that come of them are followed over a few looks.
 */
#include "agent/eviction/record.h"

#include "base/codec/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *saved_of(struct ev_records *r)
{
    buf_auto text = BUF_INIT(1 << 24);
    struct err e = { 0 };
    json_t *ret = NULL;

    assert(ev_records_save(r, &text, &e) == ERR_OK);
    assert(json_parse(text.p, text.n, 1 << 24, &ret, "saved", &e) == ERR_OK);
    return ret;
}

static void load(const json_t *v)
{
    struct ev_records *a = ev_records_new(), *b = ev_records_new();
    json_t *first, *second;
    const struct ev_crossing c = { .threshold.signal = EV_PID };
    size_t bad;

    assert(a != NULL && b != NULL);
    ev_records_load(a, v, &bad);
    first = saved_of(a);
    ev_records_load(b, first, &bad);
    assert(bad == 0);
    second = saved_of(b);
    assert(json_equal(first, second));
    json_decref(second);
    second = ev_records_json(b);
    assert(second != NULL && json_array_size(second) <= EV_RECORDS_MAX);
    assert(ev_records_add(b, &c, 0) >
           (uint64_t)json_int(json_array_get(json_object_get(first, "records"), 0), "number", 0));
    json_decref(first);
    json_decref(second);
    ev_records_free(a);
    ev_records_free(b);
}

static void look(const struct ev_settings *s, enum ev_layout layout)
{
    static const uint64_t capacities[] = { 0, 1, 1000, 1ull << 40, UINT64_MAX };
    struct ev_manager *m = ev_manager_new(s, layout);

    assert(m != NULL);
    for (uint64_t i = 0; i < 20; i++) {
        struct ev_observation o = { 0 };
        struct ev_check l;

        for (size_t k = 0; k < EV_SIGNALS; k++)
            o.v[k] = (struct ev_value){ true, capacities[i % 5] / (i / 5 + 1), capacities[i % 5] };
        ev_manager_check(m, &o, 1000 + i * 7000, &l);
        assert((l.todo == EV_DO_NOTHING) == (l.n_all == 0));
        for (size_t k = 0; k < l.n_all; k++) {
            assert(l.all[k].value.available < l.all[k].goal);
            assert(ev_manager_pressure(m, ev_signal_condition(l.all[k].threshold.signal), NULL));
        }
    }
    ev_manager_free(m);
}

static void parse(const json_t *v)
{
    struct ev_settings s = { 0 };
    struct err e = { 0 };

    if (ev_settings_parse(&s, json_object_get(v, "hard"), json_object_get(v, "soft"),
                          json_object_get(v, "grace"), json_object_get(v, "reclaim"), &e) != ERR_OK) {
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
        return;
    }
    for (enum ev_layout layout = EV_LAYOUT_ONE; layout <= EV_LAYOUT_SPLIT; layout++) {
        struct ev_settings complete = s;

        ev_settings_complete(&complete, layout, true);
        assert(complete.n <= EV_THRESHOLDS_MAX);
        look(&complete, layout);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    json_t *v = NULL;

    if (json_parse((const char *)data, size, 1 << 20, &v, "input", &e) != ERR_OK)
        return 0;
    if (json_object_get(v, "records") != NULL || json_object_get(v, "next") != NULL)
        load(v);
    else
        parse(v);
    json_decref(v);
    return 0;
}
