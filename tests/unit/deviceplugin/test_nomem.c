/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of messages and of the inventory fails once: an error, no leak, nothing half done. */
#include "base/scope.h"
#include "deviceplugin/message/messages.h"
#include "tests/unit/base/helper.h"
#include "tests/unit/base/nomem.h"
#include "tests/unit/deviceplugin/wire_fixtures.h"

static void messages_without_memory(void **state)
{
    static const char *const ids[] = { "dev-0", "dev-1" };
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct dp_registration r = { 0 };
        struct dp_list l = { 0 };
        struct dp_info i = { 0 };
        struct dp_options o;
        struct dp_answer *a = NULL;
        uint8_t *raw = NULL;
        uint8_t *packed = NULL;
        uint8_t *request = NULL;
        char **preferred = NULL;
        struct err e = { 0 };
        size_t n = 0;

        ok = dp_registration_unpack(&r, wire_register, wire_register_n, &e) == ERR_OK &&
             dp_list_unpack(&l, wire_list, wire_list_n, &e) == ERR_OK &&
             dp_info_unpack(&i, wire_info, wire_info_n, &e) == ERR_OK &&
             dp_options_unpack(&o, wire_options_both, wire_options_both_n, &e) == ERR_OK &&
             dp_preferred_unpack(&preferred, wire_preferred_answer, wire_preferred_answer_n, &e) == ERR_OK &&
             dp_allocated_unpack(&a, &raw, &n, wire_allocated, wire_allocated_n, &e) == ERR_OK &&
             dp_answer_pack(a, &packed, &n, &e) == ERR_OK &&
             dp_allocate_pack(ids, 2, &request, &n, &e) == ERR_OK;
        if (!ok)
            assert_int_equal(e.code, ERR_EXHAUSTED);
        dp_registration_done(&r);
        dp_list_done(&l);
        dp_info_done(&i);
        free(preferred);
        free(a);
        free(raw);
        free(packed);
        free(request);
    });
}

static void on_change(const struct dp_resource *r, enum dp_change what, void *arg)
{
    (void)r;
    (void)what;
    (void)arg;
}

static void an_inventory_without_memory(void **state)
{
    static const int64_t numa[] = { 0 };
    static const struct dp_device devices[] = { { "dev-1", true, numa, 1 }, { "dev-0", false, NULL, 0 } };
    struct dp_provider p = { .rank = DP_RANK_PLUGIN, .kind = "plugin" };
    struct dp_options o = { 0 };
    uv_loop_t loop;
    bool ok = false;

    (void)state;
    uv_loop_init(&loop);
    NOMEM_EACH(ok, {
        struct boot_timers *timers = boot_timers_new(&loop);
        struct dp_inventory *v = NULL;
        struct err e = { 0 };

        ok = timers != NULL && dp_inventory_new(&v, timers, on_change, NULL, &e) == ERR_OK &&
             dp_inventory_provide(v, "example.com/a", &p, o, &e) == ERR_OK &&
             dp_inventory_provide(v, "example.com/b", &p, o, &e) == ERR_OK &&
             dp_inventory_list(v, &p, "example.com/a", devices, 2, &e) == ERR_OK;
        if (v != NULL) {
            const struct dp_resource *r = dp_inventory_find(v, "example.com/a");

            assert_true(r == NULL || r->n_devices == (ok ? 2 : 0));
            dp_inventory_withdraw(v, &p, "example.com/a");
        }
        dp_inventory_free(v);
        boot_timers_free(timers);
        uv_run(&loop, UV_RUN_DEFAULT);
    });
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_without_memory),
        cmocka_unit_test(an_inventory_without_memory),
    };

    return NOMEM_RUN(tests);
}
