/* SPDX-License-Identifier: Apache-2.0 */
/* Which runtime a container has: of the configuration, and of its record. */
#include "rt_fixture.h"

#define META "containers/" FIXTURE_ID "/meta.json"

static const char *const options[] = { "--debug", "--x=1", NULL };

static struct rt_options with(const struct rt_handler_option *handlers, size_t n)
{
    return (struct rt_options){ .runtime_path = "/bin/true", .handlers = handlers, .n_handlers = n };
}

/* Gives the fixture these runtimes in place of its own. */
static void take(struct fixture *f, const struct rt_handler_option *handlers, size_t n)
{
    const struct rt_options o = with(handlers, n);
    struct err e = { 0 };

    f->rt.handlers = NULL;
    assert_int_equal(rt_handlers_copy(&f->rt, &o, &e), ERR_OK);
}

static const struct rt_handler *of_container(struct fixture *f)
{
    const struct rt_handler *h = NULL;
    struct err e = { 0 };

    assert_int_equal(rt_handler_of(&f->rt, FIXTURE_ID, &h, &e), ERR_OK);
    return h;
}

static void record(struct fixture *f, const struct rt_handler *h)
{
    json_auto_t *meta = json_pack("{s:o}", "runtime", rt_handler_record(h));
    str_auto text = json_dumps(meta, 0);

    fixture_write(f, META, text);
}

static void handlers_are_found_by_their_name(void **state)
{
    struct fixture *f = *state;
    const struct rt_handler_option two[] = { { "a", "/bin/sh", options }, { "b", "/bin/cat", NULL } };
    const char *names[3];

    take(f, two, 2);
    assert_string_equal(rt_handler_find(&f->rt, NULL)->program, "/bin/true");
    assert_string_equal(rt_handler_find(&f->rt, "")->program, "/bin/true");
    assert_string_equal(rt_handler_find(&f->rt, "a")->program, "/bin/sh");
    assert_int_equal(rt_handler_find(&f->rt, "a")->n_options, 2);
    assert_null(rt_handler_find(&f->rt, "c"));
    assert_null(rt_handler_features(&f->rt, "c"));
    assert_int_equal(rt_handler_names(&f->rt, names, 3), 3);
    assert_string_equal(names[0], "");
    assert_string_equal(names[2], "b");
    rt_handler_drop(&f->rt, f->rt.handlers->next);
    assert_null(rt_handler_find(&f->rt, "a"));
    assert_non_null(rt_handler_find(&f->rt, "b"));
    rt_handlers_free(&f->rt);
}

static void options_precede_the_command_for_crun_after_its_own(void **state)
{
    struct fixture *f = *state;
    const struct rt_handler_option one[] = { { "a", "/bin/sh", options } };
    struct rt_runtime_args args;
    struct rt_handler *h;

    take(f, one, 1);
    h = f->rt.handlers->next;
    snprintf(h->features.runtime_name, sizeof(h->features.runtime_name), "crun");
    rt_runtime_args(&f->rt, h, FIXTURE_ID, &args);
    assert_int_equal(args.n, 6);
    assert_string_equal(args.v[3], "--cgroup-manager=cgroupfs");
    assert_string_equal(args.v[4], "--debug");
    assert_string_equal(args.v[5], "--x=1");
    assert_null(args.v[6]);
    rt_handlers_free(&f->rt);
}

static void container_keeps_the_runtime_that_made_it(void **state)
{
    struct fixture *f = *state;
    const struct rt_handler_option one[] = { { "a", "/bin/sh", options } };
    const struct rt_handler *old;

    take(f, one, 1);
    snprintf(f->rt.handlers->next->features.runtime_name, sizeof(f->rt.handlers->features.runtime_name),
             "runc");
    record(f, rt_handler_find(&f->rt, "a"));
    assert_ptr_equal(of_container(f), rt_handler_find(&f->rt, "a"));
    rt_handlers_free(&f->rt);

    take(f, NULL, 0); /* a later run of the agent, without the handler */
    old = of_container(f);
    assert_string_equal(old->program, "/bin/sh");
    assert_string_equal(old->options[1], "--x=1");
    assert_string_equal(old->features.runtime_name, "runc");
    assert_null(rt_handler_find(&f->rt, "a"));
    assert_ptr_equal(of_container(f), old);
    rt_handlers_free(&f->rt);
}

static void without_a_usable_record_it_is_the_default(void **state)
{
    static const char *const texts[] = {
        "{}",
        "no JSON",
        "{\"runtime\":[]}",
        "{\"runtime\":{\"kind\":\"crun\",\"program\":\"crun\",\"options\":[]}}",
        "{\"runtime\":{\"kind\":\"crun\",\"program\":\"/bin/sh\",\"options\":[1]}}",
        "{\"runtime\":{\"program\":\"/bin/sh\",\"options\":[]}}",
    };
    struct fixture *f = *state;

    assert_ptr_equal(of_container(f), &f->crun);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        fixture_write(f, META, texts[i]);
        assert_ptr_equal(of_container(f), &f->crun);
    }
}

static void runtimes_that_cannot_be_are_refused(void **state)
{
    struct fixture *f = *state;
    char text[RT_HANDLER_OPTION_MAX + 2];
    const char *long_one[] = { text, NULL }, *empty[] = { "", NULL };
    const char *many[RT_HANDLER_OPTIONS_MAX + 2] = { NULL };
    const struct {
        struct rt_handler_option o;
        const char *problem;
    } cases[] = {
        { { "a", "runc", NULL }, "program \"runc\": not an absolute path" },
        { { "a", "/nonexistent", NULL }, "program /nonexistent: No such file or directory" },
        { { "a", "/bin/sh", empty }, "runtime handler \"a\": an option is empty or longer than 500 bytes" },
        { { "a", "/bin/sh", long_one },
          "runtime handler \"a\": an option is empty or longer than 500 bytes" },
        { { "a", "/bin/sh", many }, "runtime handler \"a\": more than 16 options" },
    };

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (size_t i = 0; i + 1 < ARRAY_LEN(many); i++)
        many[i] = "-x";
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct rt_options o = with(&cases[i].o, 1);
        struct err e = { 0 };

        f->rt.handlers = NULL;
        assert_int_not_equal(rt_handlers_copy(&f->rt, &o, &e), ERR_OK);
        assert_string_equal(e.text, cases[i].problem);
        rt_handlers_free(&f->rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(handlers_are_found_by_their_name),
        fixture_test(options_precede_the_command_for_crun_after_its_own),
        fixture_test(container_keeps_the_runtime_that_made_it),
        fixture_test(without_a_usable_record_it_is_the_default),
        fixture_test(runtimes_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
