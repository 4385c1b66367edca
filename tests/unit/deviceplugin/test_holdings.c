/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/deviceplugin/helper.h"

#include "tests/unit/base/nomem.h"

static struct dp_holdings *holdings; /* of the test that runs */

static int make(void **state)
{
    (void)state;
    holdings = help_new();
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    dp_holdings_free(holdings);
    return 0;
}

/* All entries: "pod/container resource: devices;". */
static const char *all(void)
{
    static char text[8192];
    size_t at = 0;

    text[0] = '\0';
    for (const struct dp_holding *x = dp_holdings_next(holdings, NULL); x != NULL;
         x = dp_holdings_next(holdings, x))
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s/%s %s: %s;", x->pod_uid, x->container,
                               x->resource, help_text(x->devices, x->n_devices));
    return text;
}

static void assert_refused(const char *pod, const char *container, const char *devices, enum err_code code,
                           const char *text)
{
    uint64_t before = dp_holdings_generation(holdings);
    char entries[8192];
    struct err e = { 0 };

    snprintf(entries, sizeof(entries), "%s", all());
    assert_int_equal(help_put(holdings, pod, container, DEV, devices, &e), code);
    assert_string_equal(e.text, text);
    assert_string_equal(all(), entries);
    assert_int_equal(dp_holdings_generation(holdings), before);
}

static void an_entry_is_found_as_it_was_put(void **state)
{
    const struct dp_holding *x;

    (void)state;
    assert_null(dp_holdings_next(holdings, NULL));
    assert_null(dp_holdings_find(holdings, "a", "main", DEV));
    help_holds(holdings, "a", "main", "dev-10@1,0 dev-2@-1 dev-1@3,3,-1");
    x = dp_holdings_find(holdings, "a", "main", DEV);
    assert_non_null(x);
    assert_string_equal(x->pod_uid, "a");
    assert_string_equal(x->container, "main");
    assert_string_equal(x->resource, DEV);
    assert_string_equal(help_text(x->devices, x->n_devices), "dev-1@3 dev-2 dev-10@0,1");
    assert_int_equal(x->n_answer, 6);
    assert_memory_equal(x->answer, "answer", 6);
    assert_null(dp_holdings_find(holdings, "a", "side", DEV));
    assert_null(dp_holdings_find(holdings, "a", "main", "example.com/net"));
}

static void entries_come_in_the_order_of_pod_container_resource(void **state)
{
    struct err e = { 0 };

    (void)state;
    help_holds(holdings, "b", "main", "dev-3");
    assert_int_equal(help_put(holdings, "a", "main", "example.com/net", "net-0", &e), ERR_OK);
    help_holds(holdings, "a", "side", "dev-1");
    help_holds(holdings, "a", "main", "dev-2 dev-0");
    assert_string_equal(all(), "a/main example.com/dev: dev-0 dev-2;a/main example.com/net: net-0;"
                               "a/side example.com/dev: dev-1;b/main example.com/dev: dev-3;");
}

static void an_answer_without_bytes_is_not_a_missing_one(void **state)
{
    struct dp_holding x = { .pod_uid = "a", .container = "main", .resource = DEV };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_OK);
    assert_null(dp_holdings_find(holdings, "a", "main", DEV)->answer);
    x.answer = (const uint8_t *)"";
    assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_OK);
    assert_non_null(dp_holdings_find(holdings, "a", "main", DEV)->answer);
    assert_int_equal(dp_holdings_find(holdings, "a", "main", DEV)->n_answer, 0);
}

static void a_device_has_one_pod(void **state)
{
    struct err e = { 0 };

    (void)state;
    help_holds(holdings, "a", "init", "dev-0 dev-1");
    help_holds(holdings, "a", "main", "dev-1");
    assert_refused("b", "main", "dev-1 dev-2", ERR_EXISTS,
                   "device \"dev-1\" of example.com/dev: pod a holds it, pod b cannot have it");
    assert_null(dp_holdings_owner(holdings, DEV, "dev-2"));
    assert_string_equal(dp_holdings_owner(holdings, DEV, "dev-1"), "a");
    /* The same id of another resource is another device. */
    assert_int_equal(help_put(holdings, "b", "main", "example.com/net", "dev-1", &e), ERR_OK);
    assert_string_equal(dp_holdings_owner(holdings, "example.com/net", "dev-1"), "b");
}

static void a_device_is_free_when_its_last_container_lets_it_go(void **state)
{
    (void)state;
    help_holds(holdings, "a", "init", "dev-0 dev-1");
    help_holds(holdings, "a", "main", "dev-1");
    dp_holdings_drop(holdings, "a", "init", DEV);
    assert_null(dp_holdings_owner(holdings, DEV, "dev-0"));
    assert_string_equal(dp_holdings_owner(holdings, DEV, "dev-1"), "a");
    dp_holdings_drop(holdings, "a", "main", DEV);
    assert_null(dp_holdings_owner(holdings, DEV, "dev-1"));
    help_holds(holdings, "b", "main", "dev-0 dev-1");
}

static void an_entry_that_is_put_again_is_replaced(void **state)
{
    const struct dp_holding *old;
    struct err e = { 0 };
    struct dp_holding x;

    (void)state;
    help_holds(holdings, "a", "main", "dev-0 dev-1");
    help_holds(holdings, "a", "main", "dev-1 dev-2");
    assert_string_equal(all(), "a/main example.com/dev: dev-1 dev-2;");
    assert_null(dp_holdings_owner(holdings, DEV, "dev-0"));
    /* Also by a copy that borrows from the old one: the answer came. */
    old = dp_holdings_find(holdings, "a", "main", DEV);
    x = *old;
    x.answer = (const uint8_t *)"new";
    x.n_answer = 3;
    assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_OK);
    assert_string_equal(all(), "a/main example.com/dev: dev-1 dev-2;");
    assert_memory_equal(dp_holdings_find(holdings, "a", "main", DEV)->answer, "new", 3);
}

static void dropping_says_of_which_pods_containers_and_resources(void **state)
{
    static const struct {
        const char *pod, *container, *resource, *left;
    } rows[] = {
        { "a", "main", "r/1", "a/main r/2: y;a/side r/1: z;b/main r/1: w;" },
        { "a", "main", NULL, "a/side r/1: z;b/main r/1: w;" },
        { "a", NULL, "r/1", "a/main r/2: y;b/main r/1: w;" },
        { "a", NULL, NULL, "b/main r/1: w;" },
        { NULL, "main", NULL, "a/side r/1: z;" },
        { NULL, NULL, "r/1", "a/main r/2: y;" },
        { NULL, NULL, NULL, "" },
        { "c", NULL, NULL, "a/main r/1: x;a/main r/2: y;a/side r/1: z;b/main r/1: w;" },
        { "", NULL, NULL, "a/main r/1: x;a/main r/2: y;a/side r/1: z;b/main r/1: w;" },
    };
    struct err e = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        dp_holdings_drop(holdings, NULL, NULL, NULL);
        assert_int_equal(help_put(holdings, "a", "main", "r/1", "x", &e), ERR_OK);
        assert_int_equal(help_put(holdings, "a", "main", "r/2", "y", &e), ERR_OK);
        assert_int_equal(help_put(holdings, "a", "side", "r/1", "z", &e), ERR_OK);
        assert_int_equal(help_put(holdings, "b", "main", "r/1", "w", &e), ERR_OK);
        dp_holdings_drop(holdings, rows[i].pod, rows[i].container, rows[i].resource);
        assert_string_equal(all(), rows[i].left);
    }
}

static void held_devices_of_a_resource_come_in_natural_order(void **state)
{
    const struct dp_owned *o;
    struct err e = { 0 };

    (void)state;
    assert_null(dp_holdings_owned_next(holdings, DEV, NULL));
    help_holds(holdings, "a", "main", "dev-10 dev-9");
    help_holds(holdings, "b", "main", "dev-1");
    assert_int_equal(help_put(holdings, "b", "main", "example.com/a", "dev-0", &e), ERR_OK);
    assert_int_equal(help_put(holdings, "b", "main", "example.com/z", "dev-5", &e), ERR_OK);
    o = dp_holdings_owned_next(holdings, DEV, NULL);
    assert_string_equal(o->id, "dev-1");
    assert_string_equal(o->pod_uid, "b");
    o = dp_holdings_owned_next(holdings, DEV, o);
    assert_string_equal(o->id, "dev-9");
    o = dp_holdings_owned_next(holdings, DEV, o);
    assert_string_equal(o->id, "dev-10");
    assert_string_equal(o->pod_uid, "a");
    assert_null(dp_holdings_owned_next(holdings, DEV, o));
}

static void every_change_is_a_new_generation(void **state)
{
    uint64_t before = dp_holdings_generation(holdings), after;

    (void)state;
    help_holds(holdings, "a", "main", "dev-0");
    after = dp_holdings_generation(holdings);
    assert_true(after > before);
    dp_holdings_drop(holdings, "b", NULL, NULL);
    assert_int_equal(dp_holdings_generation(holdings), after);
    dp_holdings_drop(holdings, "a", NULL, NULL);
    assert_true(dp_holdings_generation(holdings) > after);
}

static void odd_ids_are_refused_and_named_in_printable_text(void **state)
{
    char long_id[DP_ID_MAX + 2];

    (void)state;
    help_holds(holdings, "a", "main", "dev-0");
    assert_refused("b", "main", "dev-1 dev-1", ERR_INVALID,
                   "device \"dev-1\" of example.com/dev is listed twice");
    assert_refused("b", "main", "x\x1b[2J\xff", ERR_INVALID,
                   "device \"x?[2J?\" of example.com/dev: an id has 1 to 4096 bytes of UTF-8");
    memset(long_id, 'a', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    assert_int_equal(dp_holdings_put(holdings,
                                     &(struct dp_holding){ .pod_uid = "b",
                                                           .container = "main",
                                                           .resource = DEV,
                                                           .devices = &(struct dp_held){ .id = long_id },
                                                           .n_devices = 1 },
                                     ERR_IGNORED),
                     ERR_INVALID);
    assert_refused("", "main", "dev-1", ERR_INVALID,
                   "the name of a pod, a container or a resource is empty or not UTF-8");
    assert_refused("b", "\xff", "dev-1", ERR_INVALID,
                   "the name of a pod, a container or a resource is empty or not UTF-8");
}

static void their_number_is_bounded(void **state)
{
    struct dp_held *many = calloc(DP_HELD_MAX + 1, sizeof(*many));
    struct dp_holding x = { .pod_uid = "a", .container = "main", .resource = DEV, .devices = many };
    char *ids = malloc((size_t)(DP_HELD_MAX + 1) * 8);
    struct err e = { 0 };
    char name[16];

    (void)state;
    for (size_t i = 0; i <= DP_HELD_MAX; i++) {
        snprintf(ids + 8 * i, 8, "%zu", i);
        many[i].id = ids + 8 * i;
    }
    x.n_devices = DP_HELD_MAX + 1;
    assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "more than 1048576 devices are held");
    x.n_devices = 1000;
    assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_OK);
    x.container = "side";
    x.n_devices = DP_HELD_MAX - 999;
    assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_EXHAUSTED);
    x.n_devices = 0;
    for (int i = 1; i < DP_HOLDINGS_MAX; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        x.container = name;
        assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_OK);
    }
    x.container = "one-more";
    assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "more than 65536 containers with devices");
    x.container = "c1"; /* replaced, not added */
    assert_int_equal(dp_holdings_put(holdings, &x, &e), ERR_OK);
    free(ids);
    free(many);
}

static void without_memory_nothing_changes(void **state)
{
    struct err e = { 0 };
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct dp_holdings *h = NULL;

        ok = dp_holdings_new(&h, &e) == ERR_OK && help_put(h, "a", "init", DEV, "dev-0 dev-1", &e) == ERR_OK;
        if (ok && help_put(h, "a", "init", DEV, "dev-1 dev-2@0 dev-3", &e) != ERR_OK) {
            ok = false;
            assert_non_null(dp_holdings_owner(h, DEV, "dev-0"));
            assert_null(dp_holdings_owner(h, DEV, "dev-2"));
            assert_int_equal(dp_holdings_find(h, "a", "init", DEV)->n_devices, 2);
        }
        dp_holdings_free(h);
    });
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_entry_is_found_as_it_was_put),
        TEST(entries_come_in_the_order_of_pod_container_resource),
        TEST(an_answer_without_bytes_is_not_a_missing_one),
        TEST(a_device_has_one_pod),
        TEST(a_device_is_free_when_its_last_container_lets_it_go),
        TEST(an_entry_that_is_put_again_is_replaced),
        TEST(dropping_says_of_which_pods_containers_and_resources),
        TEST(held_devices_of_a_resource_come_in_natural_order),
        TEST(every_change_is_a_new_generation),
        TEST(odd_ids_are_refused_and_named_in_printable_text),
        TEST(their_number_is_bounded),
    };
    const struct CMUnitTest nomem[] = { cmocka_unit_test(without_memory_nothing_changes) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed + NOMEM_RUN(nomem);
}
