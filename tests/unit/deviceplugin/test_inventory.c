/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/inventory.h"

#include "tests/unit/base/helper.h"
#include "tests/unit/script_clock.h"

#define R "example.com/dev"

struct fixture {
    uv_loop_t loop;
    struct boot_timers *timers;
    struct dp_inventory *v;
    char seen[512]; /* changes in order: "list:example.com/dev " */
    struct dp_provider plugin, second, declaration;
};

static void on_change(const struct dp_resource *r, enum dp_change what, void *arg)
{
    static const char *const names[] = { "list", "health", "provider", "count", "forgotten" };
    struct fixture *f = arg;
    size_t n = strlen(f->seen);

    snprintf(f->seen + n, sizeof(f->seen) - n, "%s:%s ", names[what], r->name);
}

static int setup(void **state)
{
    static struct fixture f;
    struct err e = { 0 };

    f = (struct fixture){
        .plugin = { .rank = DP_RANK_PLUGIN, .kind = "plugin" },
        .second = { .rank = DP_RANK_PLUGIN, .kind = "plugin" },
        .declaration = { .rank = DP_RANK_DECLARATION, .kind = "declaration" },
    };
    script_clock_reset();
    uv_loop_init(&f.loop);
    f.timers = boot_timers_new(&f.loop);
    *state = &f;
    return dp_inventory_new(&f.v, f.timers, on_change, &f, &e) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    dp_inventory_free(f->v);
    boot_timers_free(f->timers);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    return uv_loop_close(&f->loop);
}

static void provide(struct fixture *f, struct dp_provider *p)
{
    struct err e = { 0 };

    assert_int_equal(dp_inventory_provide(f->v, R, p, (struct dp_options){ .preferred = true }, &e), ERR_OK);
}

/* `ids`: "a b! c": those with ! are unhealthy. */
static void give(struct fixture *f, struct dp_provider *p, const char *ids)
{
    static const int64_t numa[] = { 0, 1 };
    struct dp_device v[16];
    struct err e = { 0 };
    char text[128], *rest = text, *id;
    size_t n = 0;

    snprintf(text, sizeof(text), "%s", ids);
    while ((id = strsep(&rest, " ")) != NULL) {
        size_t len = strlen(id);

        if (len == 0)
            continue;
        v[n] = (struct dp_device){ .id = id, .healthy = id[len - 1] != '!', .numa = numa, .n_numa = n % 3 };
        if (!v[n].healthy)
            id[len - 1] = '\0';
        n++;
    }
    assert_int_equal(dp_inventory_list(f->v, p, R, v, n, &e), ERR_OK);
}

static const struct dp_resource *get(struct fixture *f)
{
    return dp_inventory_find(f->v, R);
}

static void expect(struct fixture *f, const char *seen, int64_t capacity, int64_t allocatable)
{
    assert_string_equal(f->seen, seen);
    f->seen[0] = '\0';
    assert_int_equal(dp_resource_capacity(get(f)), capacity);
    assert_int_equal(dp_resource_allocatable(get(f)), allocatable);
}

static void pass(struct fixture *f, int64_t ns)
{
    script_clock_pass(ns);
    boot_timers_count_anew(f->timers);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void a_list_is_copied_sorted_and_counted(void **state)
{
    struct fixture *f = *state;

    provide(f, &f->plugin);
    assert_true(get(f)->provider == &f->plugin);
    assert_true(get(f)->options.preferred);
    assert_false(get(f)->listed);
    expect(f, "provider:" R " ", 0, 0);
    give(f, &f->plugin, "c a b!");
    expect(f, "list:" R " ", 3, 2);
    assert_true(get(f)->listed);
    assert_string_equal(get(f)->devices[0].id, "a");
    assert_int_equal(get(f)->devices[0].n_numa, 1);
    assert_int_equal(get(f)->devices[0].numa[0], 0);
    assert_int_equal(dp_resource_device(get(f), "b")->n_numa, 2);
    assert_int_equal(dp_resource_device(get(f), "b")->numa[1], 1);
    assert_false(dp_resource_device(get(f), "b")->healthy);
    assert_null(dp_resource_device(get(f), "d"));
}

static void the_first_of_two_devices_with_one_id_is_kept(void **state)
{
    struct fixture *f = *state;

    provide(f, &f->plugin);
    give(f, &f->plugin, "a! b a");
    expect(f, "provider:" R " list:" R " ", 2, 1);
}

static void only_what_changed_is_reported(void **state)
{
    struct fixture *f = *state;

    provide(f, &f->plugin);
    give(f, &f->plugin, "");
    expect(f, "provider:" R " list:" R " ", 0, 0);
    give(f, &f->plugin, "a b");
    expect(f, "list:" R " ", 2, 2);
    give(f, &f->plugin, "a b");
    expect(f, "", 2, 2);
    give(f, &f->plugin, "a! b");
    expect(f, "health:" R " ", 2, 1);
    give(f, &f->plugin, "a");
    expect(f, "list:" R " ", 1, 1);
}

static void without_its_provider_a_resource_keeps_its_devices_for_five_minutes(void **state)
{
    struct fixture *f = *state;

    provide(f, &f->plugin);
    give(f, &f->plugin, "a b");
    f->seen[0] = '\0';
    dp_inventory_withdraw(f->v, &f->plugin, R);
    expect(f, "provider:" R " ", 2, 0);
    assert_null(get(f)->provider);
    pass(f, 299 * SCRIPT_SECOND);
    expect(f, "", 2, 0);
    pass(f, 1 * SCRIPT_SECOND);
    expect(f, "forgotten:" R " ", 0, 0);
    assert_true(get(f)->forgotten);
    assert_false(clock_boot_is_set(get(f)->gone_at));

    provide(f, &f->plugin);
    give(f, &f->plugin, "a b");
    expect(f, "provider:" R " list:" R " ", 2, 2);
    assert_false(get(f)->forgotten);
    pass(f, 600 * SCRIPT_SECOND);
    expect(f, "", 2, 2);
}

static void a_provider_that_comes_back_in_time_stops_the_clock(void **state)
{
    struct fixture *f = *state;

    provide(f, &f->plugin);
    give(f, &f->plugin, "a b");
    dp_inventory_withdraw(f->v, &f->plugin, R);
    pass(f, 200 * SCRIPT_SECOND);
    provide(f, &f->second);
    assert_false(get(f)->listed);
    f->seen[0] = '\0';
    expect(f, "", 2, 0); /* known, unhealthy until its list */
    give(f, &f->second, "a b");
    expect(f, "list:" R " ", 2, 2);
    assert_false(uv_loop_alive(&f->loop)); /* no timer runs */
}

static void the_end_of_a_provider_that_was_replaced_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct dp_device d = { .id = "z", .healthy = true };
    struct err e = { 0 };

    provide(f, &f->plugin);
    give(f, &f->plugin, "a b");
    provide(f, &f->second);
    f->seen[0] = '\0';
    expect(f, "", 2, 2); /* the devices stay until its list */
    dp_inventory_withdraw(f->v, &f->plugin, R);
    expect(f, "", 2, 2);
    assert_int_equal(dp_inventory_list(f->v, &f->plugin, R, &d, 1, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "devices of " R ": this plugin does not provide them any more");
    give(f, &f->second, "c");
    expect(f, "list:" R " ", 1, 1);
    assert_true(get(f)->provider == &f->second);
}

struct problem {
    char text[256];
};

static void on_problem(const char *resource, const char *text, void *arg)
{
    struct problem *p = arg;

    snprintf(p->text, sizeof(p->text), "%s: %s", resource, text);
}

static void a_plugin_wins_over_a_declaration_until_it_is_forgotten(void **state)
{
    struct fixture *f = *state;
    struct problem problem = { "" };

    provide(f, &f->declaration);
    give(f, &f->declaration, "usb0");
    expect(f, "provider:" R " list:" R " ", 1, 1);
    provide(f, &f->plugin);
    give(f, &f->plugin, "a b");
    expect(f, "provider:" R " list:" R " ", 2, 2);
    give(f, &f->declaration, "usb0 usb1");
    expect(f, "", 2, 2);
    dp_inventory_problems(f->v, on_problem, &problem);
    assert_string_equal(problem.text,
                        R ": a declaration offers it, too, and is ignored: a plugin comes first");

    dp_inventory_withdraw(f->v, &f->plugin, R);
    expect(f, "provider:" R " ", 2, 0);
    pass(f, 300 * SCRIPT_SECOND);
    expect(f, "provider:" R " ", 2, 2);
    assert_true(get(f)->provider == &f->declaration);
    assert_true(get(f)->listed);
    assert_non_null(dp_resource_device(get(f), "usb1"));
    problem.text[0] = '\0';
    dp_inventory_problems(f->v, on_problem, &problem);
    assert_string_equal(problem.text, "");
}

static void a_number_counts_without_any_provider_only(void **state)
{
    struct fixture *f = *state;
    struct problem problem = { "" };
    struct err e = { 0 };

    assert_int_equal(dp_inventory_count(f->v, R, 7, &e), ERR_OK);
    expect(f, "count:" R " ", 7, 7);
    provide(f, &f->plugin);
    give(f, &f->plugin, "a");
    f->seen[0] = '\0';
    expect(f, "", 1, 1);
    dp_inventory_problems(f->v, on_problem, &problem);
    assert_string_equal(problem.text, R ": the configuration's number is ignored: a plugin comes first");
    dp_inventory_withdraw(f->v, &f->plugin, R);
    pass(f, 300 * SCRIPT_SECOND);
    f->seen[0] = '\0';
    expect(f, "", 7, 7);
    assert_int_equal(dp_inventory_count(f->v, R, -1, &e), ERR_OK);
    expect(f, "count:" R " ", 0, 0);
}

static void a_remembered_name_is_known_without_devices(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(dp_inventory_remember(f->v, R, &e), ERR_OK);
    assert_int_equal(dp_inventory_remember(f->v, R, &e), ERR_OK);
    expect(f, "", 0, 0);
    assert_false(get(f)->forgotten);
    pass(f, 300 * SCRIPT_SECOND);
    expect(f, "forgotten:" R " ", 0, 0);
}

static void names_are_in_order_and_bounded(void **state)
{
    struct fixture *f = *state;
    const struct dp_resource *r = NULL;
    struct err e = { 0 };
    char name[64], long_name[DP_RESOURCE_NAME_MAX + 2];
    unsigned n = 0;

    for (int i = DP_RESOURCES_MAX; i > 0; i--) {
        snprintf(name, sizeof(name), "example.com/r%03d", i);
        assert_int_equal(dp_inventory_provide(f->v, name, &f->plugin, (struct dp_options){ 0 }, &e), ERR_OK);
    }
    while ((r = dp_inventory_next(f->v, r)) != NULL) {
        snprintf(name, sizeof(name), "example.com/r%03u", ++n);
        assert_string_equal(r->name, name);
    }
    assert_int_equal(n, DP_RESOURCES_MAX);
    assert_int_equal(dp_inventory_provide(f->v, R, &f->second, (struct dp_options){ 0 }, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "resource " R ": the node already has 256 resources, the maximum");

    /* One that is forgotten gives its place. */
    dp_inventory_withdraw(f->v, &f->plugin, "example.com/r007");
    assert_int_equal(dp_inventory_provide(f->v, R, &f->second, (struct dp_options){ 0 }, &e), ERR_EXHAUSTED);
    pass(f, 300 * SCRIPT_SECOND);
    assert_int_equal(dp_inventory_provide(f->v, R, &f->second, (struct dp_options){ 0 }, &e), ERR_OK);
    assert_null(dp_inventory_find(f->v, "example.com/r007"));
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_int_equal(dp_inventory_remember(f->v, long_name, &e), ERR_INVALID);
}

static void a_list_that_is_too_long_leaves_the_earlier_one(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    provide(f, &f->plugin);
    give(f, &f->plugin, "a");
    f->seen[0] = '\0';
    assert_int_equal(dp_inventory_list(f->v, &f->plugin, R, NULL, DP_DEVICES_MAX + 1, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "devices of " R ": a list of 65537, at most 65536 are allowed");
    expect(f, "", 1, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_list_is_copied_sorted_and_counted),
        T(the_first_of_two_devices_with_one_id_is_kept),
        T(only_what_changed_is_reported),
        T(without_its_provider_a_resource_keeps_its_devices_for_five_minutes),
        T(a_provider_that_comes_back_in_time_stops_the_clock),
        T(the_end_of_a_provider_that_was_replaced_changes_nothing),
        T(a_plugin_wins_over_a_declaration_until_it_is_forgotten),
        T(a_number_counts_without_any_provider_only),
        T(a_remembered_name_is_known_without_devices),
        T(names_are_in_order_and_bounded),
        T(a_list_that_is_too_long_leaves_the_earlier_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
