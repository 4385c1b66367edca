/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "cni/plugin/watch.h"

struct told {
    struct cni_watch *w;
    int calls;
};

static void watch(struct place *p, struct told *t, const char *first, const char *second)
{
    const char *const dirs[] = { first, second, NULL };
    struct err e = { 0 };

    if (t->w == NULL)
        assert_int_equal(cni_watch_open(&t->w, &p->loop, on_change, &t->calls, &e), ERR_OK);
    if (cni_watch_set(t->w, dirs, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static void assert_told(struct place *p, struct told *t)
{
    run_until(p, changed, &t->calls);
    assert_int_equal(t->calls, 1);
    t->calls = 0;
}

static void assert_not_told(struct place *p, struct told *t)
{
    run_settled(p);
    assert_int_equal(t->calls, 0);
}

static void changes_of_files_are_told_once_for_a_burst(void **state)
{
    struct place *p = *state;
    struct told t = { 0 };

    put(p, "d/a", "1");
    watch(p, &t, in_place(p, "d"), NULL);
    for (int i = 0; i < 10; i++)
        put(p, "d/a", "2");
    assert_told(p, &t);
    assert_int_equal(unlinkat(p->fd, "d/a", 0), 0);
    assert_told(p, &t);
    assert_int_equal(symlinkat("x", p->fd, "d/link"), 0);
    assert_told(p, &t);
    assert_not_told(p, &t);
    cni_watch_close(t.w);
}

static void a_folder_that_does_not_exist_yet_is_noticed_when_it_comes(void **state)
{
    struct place *p = *state;
    struct told t = { 0 };

    watch(p, &t, in_place(p, "etc/cni/net.d"), NULL);
    put(p, "elsewhere", "other names in the parent do not matter");
    assert_not_told(p, &t);
    assert_int_equal(mkdirat(p->fd, "etc", 0755), 0);
    assert_told(p, &t);
    watch(p, &t, in_place(p, "etc/cni/net.d"), NULL);
    put(p, "etc/cni/net.d/10.conf", "x");
    assert_told(p, &t);
    watch(p, &t, in_place(p, "etc/cni/net.d"), NULL);
    put(p, "etc/cni/net.d/10.conf", "y");
    assert_told(p, &t);
    cni_watch_close(t.w);
}

static void a_folder_that_goes_and_comes_back_is_noticed(void **state)
{
    struct place *p = *state;
    struct told t = { 0 };
    struct err e = { 0 };

    put(p, "d/a", "1");
    watch(p, &t, in_place(p, "d"), NULL);
    assert_int_equal(fs_remove_tree(p->fd, "d", &e), ERR_OK);
    assert_told(p, &t);
    watch(p, &t, in_place(p, "d"), NULL);
    put(p, "d/a", "1");
    assert_told(p, &t);
    watch(p, &t, in_place(p, "d"), NULL);
    put(p, "d/b", "1");
    assert_told(p, &t);
    cni_watch_close(t.w);
}

static void a_link_that_is_turned_to_another_folder_is_noticed(void **state)
{
    struct place *p = *state;
    struct told t = { 0 };

    put(p, "v1/a", "1");
    put(p, "v2/a", "2");
    assert_int_equal(symlinkat("v1", p->fd, "current"), 0);
    watch(p, &t, in_place(p, "current"), NULL);
    assert_int_equal(symlinkat("v2", p->fd, "new"), 0);
    assert_int_equal(renameat(p->fd, "new", p->fd, "current"), 0);
    assert_told(p, &t);
    watch(p, &t, in_place(p, "current"), NULL);
    put(p, "v1/a", "the old folder is not ours any more");
    assert_not_told(p, &t);
    put(p, "v2/a", "3");
    assert_told(p, &t);
    cni_watch_close(t.w);
}

static void folders_can_be_added_and_dropped(void **state)
{
    struct place *p = *state;
    struct told t = { 0 };

    put(p, "one/a", "1");
    put(p, "two/a", "1");
    watch(p, &t, in_place(p, "one"), in_place(p, "two"));
    put(p, "two/a", "2");
    assert_told(p, &t);
    watch(p, &t, in_place(p, "one"), NULL);
    put(p, "two/a", "3");
    assert_not_told(p, &t);
    put(p, "one/a", "3");
    assert_told(p, &t);
    cni_watch_close(t.w);
}

static void a_change_is_not_told_after_closing(void **state)
{
    struct place *p = *state;
    struct told t = { 0 };

    put(p, "d/a", "1");
    watch(p, &t, in_place(p, "d"), NULL);
    put(p, "d/a", "2");
    uv_run(&p->loop, UV_RUN_NOWAIT); /* the settling time has begun */
    cni_watch_close(t.w);
    assert_not_told(p, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_of_files_are_told_once_for_a_burst, place_make, place_remove),
        cmocka_unit_test_setup_teardown(a_folder_that_does_not_exist_yet_is_noticed_when_it_comes, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(a_folder_that_goes_and_comes_back_is_noticed, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(a_link_that_is_turned_to_another_folder_is_noticed, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(folders_can_be_added_and_dropped, place_make, place_remove),
        cmocka_unit_test_setup_teardown(a_change_is_not_told_after_closing, place_make, place_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
