/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation can fail: a choice is whole or an error, a record is no reason to fail, nothing leaks. */
#include "tests/unit/agent_eviction/helper.h"

#include "agent/eviction/record.h"
#include "base/codec/json.h"
#include "tests/unit/base/nomem.h"

static void a_choice_is_whole_or_an_error(void **state)
{
    struct ev_settings s = { .n = 1, .v[0] = { .signal = EV_MEMORY, .value.quantity = 1000 } };
    struct ev_manager *m = ev_manager_new(&s, EV_LAYOUT_ONE);
    struct ev_observation o = { .v[EV_MEMORY] = { true, 900, 5000 } };
    struct ev_check look;
    struct pods pods;
    bool ok = false;

    (void)state;
    read_pods("a 0 50 0; b 0 60 0", EV_MEMORY, &pods);
    ev_manager_check(m, &o, 1000, &look);
    NOMEM_EACH(ok, {
        struct ev_choice c = { 0 };
        struct err e = { 0 };
        enum err_code code = ev_manager_choose(m, &look, pods.v, pods.n, &c, &e);

        if (code != ERR_OK && (code != ERR_EXHAUSTED || c.ranked != NULL))
            abort();
        ok = code == ERR_OK;
        ev_choice_done(&c);
    });
    ev_manager_free(m);
}

static bool record_all(const struct ev_crossing *c, const struct ev_choice *choice)
{
    struct ev_records *r = ev_records_new();
    buf_auto text = BUF_INIT(1 << 20);
    json_t *saved = NULL;
    struct err e = { 0 };
    uint64_t n;
    size_t bad = 0;
    bool ok;

    if (r == NULL)
        return false;
    n = ev_records_add(r, c, 5);
    ev_records_reclaimed(r, n, "images", 1, 1);
    ev_records_ranked(r, n, EV_MEMORY, EV_LAYOUT_ONE, choice);
    ev_records_killed(r, n, "default/a", 1);
    ev_records_ended(r, n, "relieved", NULL, 2);
    if (ev_records_save(r, &text, &e) == ERR_OK &&
        json_parse(text.p, text.n, 1 << 20, &saved, "saved", &e) == ERR_OK)
        ev_records_load(r, saved, &bad);
    ok = n != 0 && saved != NULL && bad == 0;
    json_decref(saved);
    ev_records_free(r);
    return ok;
}

static void records_never_fail(void **state)
{
    const struct ev_crossing c = { .threshold = { .signal = EV_MEMORY, .value.quantity = 5 } };
    const struct ev_pod *ranked[1];
    struct ev_choice choice = { .ranked = ranked, .n_ranked = 1, .victims = (size_t[]){ 0 }, .n_victims = 1 };
    struct pods pods;
    bool ok = false;

    (void)state;
    read_pods("a 0 50 0", EV_MEMORY, &pods);
    ranked[0] = &pods.v[0];
    assert_true(record_all(&c, &choice)); /* libc keeps the time zone from now on */
    NOMEM_EACH(ok, { ok = record_all(&c, &choice); });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_is_whole_or_an_error),
        cmocka_unit_test(records_never_fail),
    };

    return NOMEM_RUN(tests);
}
