/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with images that are there: verified, pinned, counted, and what may not happen meanwhile. */
#include "tests/unit/agent_image/image_helper.h"

struct task {
    struct img_task t;
    int calls;
    struct err result;
    json_t *answer;
};

static void on_task(struct op *op, const struct err *result)
{
    struct task *t = op->owner;

    t->calls++;
    t->result = *result;
    t->answer = json_incref(t->t.answer);
}

static void wait_task(struct world *w, struct task *t)
{
    assert_int_equal(t->calls, 0); /* never from inside of start */
    while (t->calls == 0 && uv_run(&w->loop, UV_RUN_ONCE) != 0)
        ;
    assert_int_equal(t->calls, 1);
}

static void verify(struct world *w, const char *reference, struct task *t)
{
    *t = (struct task){ 0 };
    img_verify_start(&t->t, w->store, reference, on_task, t);
    wait_task(w, t);
}

static void pin(struct world *w, const char *reference, bool on, enum err_code wanted)
{
    struct task t = { 0 };

    img_pin_start(&t.t, w->store, reference, on, on_task, &t);
    wait_task(w, &t);
    assert_int_equal(t.result.code, wanted);
}

/* Three images, two of which share a layer. */
static void three(struct world *w)
{
    open_store(w);
    bring(w, "/a", "one");
    write_file(w, "unpack.answer", 0644, "image c b\n");
    bring(w, "/b", "two");
    write_file(w, "unpack.answer", 0644, "image d e\n");
    bring(w, "/d", "three");
}

static const json_t *item(const json_t *list, const char *id)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (str_eq(json_str(one, "id"), id))
            return one;
    return NULL;
}

/* ---- verify ---------------------------------------------------------------------------------- */

static void the_helper_gets_each_part_once_and_a_damaged_layer_damages_all_its_images(void **state)
{
    struct world *w = *state;
    struct task t;
    str_auto order = NULL;
    const json_t *items;

    three(w);
    write_file(w, "unpack.answer", 0644,
               "cat > $D/order; echo '{\"problems\":[{\"part\":\"layer '$(hex b)'\",\"what\":\"it is bad\"}],"
               "\"orphans\":[\"layers/x\"],\"bytes\":9}'\n");
    verify(w, NULL, &t);
    assert_int_equal(t.result.code, ERR_OK);
    order = read_file(w, "order");
    assert_non_null(strstr(order, "config " HEX("a") "\n"));
    assert_non_null(strstr(order, "layer " HEX("b") "\n"));
    assert_null(strstr(strstr(order, "layer " HEX("b")) + 1, "layer " HEX("b")));
    items = json_object_get(t.answer, "items");
    assert_int_equal(json_array_size(items), 3);
    for (const char *const *id = (const char *const[]){ ID("a"), ID("c"), NULL }; *id != NULL; id++)
        assert_string_equal(
            json_string_value(json_array_get(json_object_get(item(items, *id), "problems"), 0)),
            "layer " HEX("b") ": it is bad");
    assert_int_equal(json_array_size(json_object_get(item(items, ID("d")), "problems")), 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(t.answer, "orphans"), 0)),
                        "layers/x");
    json_decref(t.answer);
}

static void what_could_not_be_looked_at_is_not_damaged(void **state)
{
    struct world *w = *state;
    const json_t *items;
    struct task t;

    three(w);
    write_file(w, "unpack.answer", 0644,
               "echo '{\"problems\":[{\"part\":\"layer '$(hex b)'\",\"what\":\"open: no\",\"unknown\":true}],"
               "\"orphans\":[],\"bytes\":9}'\n");
    verify(w, NULL, &t);
    assert_int_equal(t.result.code, ERR_OK);
    items = json_object_get(t.answer, "items");
    assert_int_equal(json_array_size(json_object_get(item(items, ID("a")), "problems")), 0);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(item(items, ID("a")), "unknown"), 0)),
        "layer " HEX("b") ": open: no");
    json_decref(t.answer);
}

static void one_image_is_verified_alone(void **state)
{
    struct world *w = *state;
    struct task t;
    str_auto order = NULL;

    three(w);
    write_file(w, "unpack.answer", 0644, "cat > $D/order; echo '{\"problems\":[],\"orphans\":[]}'\n");
    verify(w, "three", &t);
    assert_int_equal(t.result.code, ERR_OK);
    order = read_file(w, "order");
    assert_string_equal(order, "config " HEX("d") "\nlayer " HEX("e") "\n");
    json_decref(t.answer);
    verify(w, "nothing", &t);
    assert_int_equal(t.result.code, ERR_NOT_FOUND);
    assert_string_equal(t.result.text, "no such image: \"nothing\"");
}

static void what_the_helper_says_is_not_believed(void **state)
{
    static const struct {
        const char *answer;
        enum err_code code;
    } cases[] = {
        { "echo hello\n", ERR_INVALID },
        { "echo '{}'\n", ERR_INVALID },
        { "echo '{\"error\":\"disk on fire\",\"code\":\"DATA_LOSS\"}'; exit 1\n", ERR_DATA_LOSS },
        { "exit 3\n", ERR_UNKNOWN },
    };
    struct world *w = *state;
    struct task t;

    three(w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_file(w, "unpack.answer", 0644, "%s", cases[i].answer);
        verify(w, NULL, &t);
        assert_int_equal(t.result.code, cases[i].code);
        assert_null(t.answer);
    }
}

static void what_was_brought_meanwhile_is_not_told_as_rubbish(void **state)
{
    struct world *w = *state;
    struct task t = { 0 };
    int gate;

    three(w);
    write_file(w, "unpack.answer", 0644, "gate; echo '{\"problems\":[],\"orphans\":[\"layers/x\"]}'\n");
    img_verify_start(&t.t, w->store, NULL, on_task, &t);
    gate = at_gate(w);
    write_file(w, "unpack.answer", 0644, "image f 0\n");
    bring(w, "/f", "four");
    close(gate);
    wait_task(w, &t);
    assert_int_equal(t.result.code, ERR_OK);
    assert_int_equal(json_array_size(json_object_get(t.answer, "orphans")), 0);
    json_decref(t.answer);
}

static void an_image_stays_while_it_is_verified(void **state)
{
    struct world *w = *state;
    struct task t = { 0 };
    struct err e = { 0 };

    three(w);
    write_file(w, "unpack.answer", 0644, "gate; echo '{\"problems\":[],\"orphans\":[]}'\n");
    img_verify_start(&t.t, w->store, "one", on_task, &t);
    assert_int_equal(img_remove(w->store, "one", NULL, NULL, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.text, "image \"one\" is being verified, exported or pinned");
    pin(w, "one", true, ERR_OK); /* is beside it */
    assert_int_equal(img_remove(w->store, "three", NULL, NULL, &e), ERR_OK);
    close(at_gate(w));
    wait_task(w, &t);
    assert_int_equal(t.result.code, ERR_OK);
    json_decref(t.answer);
    assert_int_equal(img_remove(w->store, "one", NULL, NULL, &e), ERR_OK);
}

static void a_store_that_closes_ends_what_is_under_way(void **state)
{
    struct world *w = *state;
    struct task t = { 0 };

    three(w);
    write_file(w, "unpack.answer", 0644, "exec sleep 1000\n");
    img_verify_start(&t.t, w->store, NULL, on_task, &t);
    close_store(w);
    assert_int_equal(t.calls, 1);
    assert_int_equal(t.result.code, ERR_CANCELLED);
}

/* ---- pins, sizes, rubbish -------------------------------------------------------------------- */

static bool is_pinned(struct world *w, const char *id)
{
    json_t *list = img_list(w->store);
    bool pinned = json_flag(item(list, id), "pinned");

    json_decref(list);
    return pinned;
}

static void a_pin_holds_after_a_restart_until_it_is_taken_out(void **state)
{
    struct world *w = *state;

    three(w);
    pin(w, "one", true, ERR_OK);
    pin(w, "one", true, ERR_OK);
    pin(w, "nothing", true, ERR_NOT_FOUND);
    close_store(w);
    open_store(w);
    assert_true(is_pinned(w, ID("a")));
    assert_false(is_pinned(w, ID("c")));
    pin(w, "one", false, ERR_OK);
    close_store(w);
    open_store(w);
    assert_false(is_pinned(w, ID("a")));
}

static void own_bytes_are_those_of_layers_that_nobody_else_has(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    json_t *list;

    three(w);
    list = img_list(w->store);
    assert_int_equal(json_int(item(list, ID("a")), "ownBytes", -1), 0);
    assert_int_equal(json_int(item(list, ID("a")), "sharedBytes", -1), 5);
    assert_int_equal(json_int(item(list, ID("d")), "ownBytes", -1), 5);
    json_decref(list);
    assert_int_equal(img_remove(w->store, "two", NULL, NULL, &e), ERR_OK);
    assert_int_equal(img_own_bytes(w->store, ID("a")), 5);
    assert_int_equal(img_own_bytes(w->store, ID("c")), 0); /* not here any more */
}

static void count_seen(const struct img_seen *seen, void *arg)
{
    unsigned *counts = arg; /* all, held, without a name */

    counts[0]++;
    counts[1] += seen->held;
    counts[2] += seen->n_names == 0;
}

static void whoever_chooses_sees_what_is_held_and_what_has_no_name(void **state)
{
    struct world *w = *state;
    unsigned counts[3] = { 0 };
    struct img_image *held;
    struct err e = { 0 };

    three(w);
    write_file(w, "unpack.answer", 0644, "image f e\n");
    bring(w, "/f", "one"); /* takes the name away */
    held = img_lookup(w->store, "two");
    img_each(w->store, count_seen, counts);
    assert_int_equal(counts[0], 4);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 1);
    assert_int_equal(img_remove_id(w->store, ID("c"), &e), ERR_PRECONDITION);
    img_unref(held);
    assert_int_equal(img_remove_id(w->store, ID("c"), &e), ERR_OK);
    assert_int_equal(img_remove_id(w->store, ID("c"), &e), ERR_NOT_FOUND);
}

static void a_configuration_goes_with_its_image(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };

    three(w);
    write_file(w, "images/parts/" HEX("a") ".config", 0600, "{}");
    write_file(w, "images/parts/" HEX("7") ".config", 0600, "{}");
    write_file(w, "images/parts/.half", 0600, "{}");
    close_store(w);
    open_store(w);
    assert_true(have(w, "images/parts/" HEX("a") ".config"));
    assert_false(have(w, "images/parts/" HEX("7") ".config"));
    assert_false(have(w, "images/parts/.half"));
    assert_int_equal(img_remove(w->store, "one", NULL, NULL, &e), ERR_OK);
    assert_false(have(w, "images/parts/" HEX("a") ".config"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_helper_gets_each_part_once_and_a_damaged_layer_damages_all_its_images),
        T(what_could_not_be_looked_at_is_not_damaged),
        T(one_image_is_verified_alone),
        T(what_the_helper_says_is_not_believed),
        T(what_was_brought_meanwhile_is_not_told_as_rubbish),
        T(an_image_stays_while_it_is_verified),
        T(a_store_that_closes_ends_what_is_under_way),
        T(a_pin_holds_after_a_restart_until_it_is_taken_out),
        T(own_bytes_are_those_of_layers_that_nobody_else_has),
        T(whoever_chooses_sees_what_is_held_and_what_has_no_name),
        T(a_configuration_goes_with_its_image),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
