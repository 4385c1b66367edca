/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_image/image_helper.h"

static void expect(const struct bring *t, const char *step, uint64_t bytes, uint32_t layers,
                   uint32_t of_layers)
{
    struct img_progress p;

    img_bring_progress(&t->b, &p);
    assert_string_equal(p.step, step);
    assert_int_equal(p.bytes, bytes);
    assert_int_equal(p.layers, layers);
    assert_int_equal(p.of_layers, of_layers);
}

static void what_the_helper_counts_is_seen_and_what_waits_is_said_to_wait(void **state)
{
    struct world *w = *state;
    struct bring one, two;
    int gate;

    open_store(w);
    /* 1000 bytes, 1 of 2 layers */
    write_file(
        w, "unpack.answer", 0644,
        "case $source in /a) printf '\\350\\003\\0\\0\\0\\0\\0\\0\\001\\0\\0\\0\\002\\0\\0\\0' >&3; gate ;; "
        "esac; image a b\n");
    start(w, &one, "/a", "x");
    start(w, &two, "/b", "x");
    gate = at_gate(w);
    expect(&one, "unpacking", 1000, 1, 2);
    expect(&two, "waiting", 0, 0, 0);
    close(gate);
    wait_for(w, &one);
    wait_for(w, &two);
    assert_int_equal(one.result.code + two.result.code, ERR_OK);
    img_unref(one.image);
    img_unref(two.image);
}

static void the_helper_cannot_take_the_page_away(void **state)
{
    struct world *w = *state;
    struct bring t;
    int gate;

    open_store(w);
    write_file(w, "unpack.answer", 0644,
               "(: > /proc/self/fd/3) 2> /dev/null && exit 9\nprintf '\\001' >&3; gate; image a b\n");
    start(w, &t, "/a", "x");
    gate = at_gate(w);
    expect(&t, "unpacking", 1, 0, 0);
    close(gate);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_OK);
    img_unref(t.image);
}

static void a_pull_asks_and_then_fetches(void **state)
{
    struct world *w = *state;
    struct bring t;
    int gate;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, "gate\n[ $verb = copy ] || echo " ID("e") "\n");
    write_file(w, "unpack.answer", 0644, "image a b\n");
    start(w, &t, "docker://busybox:1", NULL);
    expect(&t, "asking", 0, 0, 0);
    gate = at_gate(w);
    expect(&t, "asking", 0, 0, 0);
    close(gate);
    for (struct img_progress p = { .step = "asking" }; strcmp(p.step, "asking") == 0;) {
        uv_run(&w->loop, UV_RUN_ONCE);
        img_bring_progress(&t.b, &p);
    }
    gate = at_gate(w);
    expect(&t, "pulling", 0, 0, 0);
    close(gate);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_OK);
    img_unref(t.image);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_helper_counts_is_seen_and_what_waits_is_said_to_wait),
        TEST(the_helper_cannot_take_the_page_away),
        TEST(a_pull_asks_and_then_fetches),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
