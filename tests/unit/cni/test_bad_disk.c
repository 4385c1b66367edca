/* SPDX-License-Identifier: Apache-2.0 */
/* ADD and DEL on a state folder that is full or read-only, and of namespaces whose pin somebody removed. */
#include "oracle_run.h"
#include "rootns.h"

#define SIZE "64k"

static const char *why_not;

static struct cni *open_on_small_disk(struct place *p)
{
    put(p, "net.d/10.conflist",
        "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":\"main\"},{\"type\":\"meta\"}]}");
    oracle_put(p, "main");
    oracle_put(p, "meta");
    assert_int_equal(mkdirat(p->fd, "cache", 0700), 0);
    assert_int_equal(mount("coracle-cni-test", in_place(p, "cache"), "tmpfs", 0, "size=" SIZE), 0);
    return open_cni(p);
}

static void fill(const struct place *p)
{
    static const char page[4096];
    int fd = openat(p->fd, "cache/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    while (write(fd, page, sizeof(page)) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static void make_room(const struct place *p)
{
    assert_int_equal(unlinkat(p->fd, "cache/filler", 0), 0);
}

static void set_read_only(const struct place *p, bool on)
{
    assert_int_equal(mount(NULL, in_place(p, "cache"), NULL, MS_REMOUNT | (on ? MS_RDONLY : 0), "size=" SIZE),
                     0);
}

static bool was_added(void *arg)
{
    return calls(arg, "ADD", "main", NULL, NULL) > 0;
}

static void on_a_full_disk_nothing_is_added_and_all_can_be_deleted(void **state)
{
    struct place *p = *state;
    struct cni *c;
    struct err e;

    if (why_not != NULL)
        SKIP(why_not);
    c = open_on_small_disk(p);
    run_well(p, c, cni_add_start);
    fill(p);
    run_well(p, c, cni_del_start);
    assert_int_equal(count(p, "cache"), 1);
    forget_calls(p);
    fill(p); /* the entry's room, too */
    e = run(p, c, cni_add_start);
    assert_int_equal(e.sys, ENOSPC);
    assert_true(str_starts(e.text, "CNI result cache: "));
    assert_int_equal(calls(p, "ADD", "main", NULL, NULL), 0);
    run_well(p, c, cni_del_start);
    make_room(p);
    run_well(p, c, cni_add_start);
    run_well(p, c, cni_del_start);
    assert_int_equal(count(p, "cache"), 0);
    cni_close(c);
}

static void a_disk_that_fills_up_amid_an_add_fails_it_and_the_del_knows_what_began(void **state)
{
    static const char answer[] = "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.9/24\"}]}";
    struct place *p = *state;
    struct ended d = { 0 };
    struct cni_op o;
    struct cni *c;
    int fd;

    if (why_not != NULL)
        SKIP(why_not);
    c = open_on_small_disk(p);
    assert_int_equal(mkfifo(in_place(p, "gate"), 0600), 0);
    oracle_tell(p, "main", "ADD", "file gate\n");
    cni_add_start(&o, c, &web, on_ended, &d);
    run_until(p, was_added, p);
    fill(p);
    fd = open(in_place(p, "gate"), O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, answer, strlen(answer)), strlen(answer));
    close(fd);
    run_until_ended(p, &d);
    assert_int_equal(d.result.sys, ENOSPC);
    assert_int_equal(calls(p, "ADD", "meta", NULL, NULL), 0);
    assert_int_equal(run(p, c, cni_add_start).code, ERR_PRECONDITION);
    run_well(p, c, cni_del_start);
    assert_int_equal(calls(p, "DEL", "main", NULL, NULL), 1);
    make_room(p);
    assert_int_equal(count(p, "cache"), 0);
    cni_close(c);
}

static void a_read_only_disk_keeps_the_entry_until_it_can_be_removed(void **state)
{
    struct place *p = *state;
    struct cni *c;

    if (why_not != NULL)
        SKIP(why_not);
    c = open_on_small_disk(p);
    set_read_only(p, true);
    assert_int_equal(run(p, c, cni_add_start).sys, EROFS);
    assert_int_equal(calls(p, "ADD", "main", NULL, NULL), 0);
    set_read_only(p, false);
    run_well(p, c, cni_add_start);
    set_read_only(p, true);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(run(p, c, cni_del_start).sys, EROFS);
        assert_int_equal(calls(p, "DEL", "main", NULL, NULL), i);
    }
    set_read_only(p, false);
    assert_int_equal(count(p, "cache"), 1);
    run_well(p, c, cni_del_start);
    assert_int_equal(count(p, "cache"), 0);
    cni_close(c);
}

static void of_a_removed_pin_plugins_are_told_that_there_is_no_namespace(void **state)
{
    struct cni_attachment pinned = web;
    struct place *p = *state;
    str_auto text = NULL;
    str_auto pin = NULL;
    struct cni *c;

    one_plugin(p, "1.0.0", "");
    c = open_cni(p);
    put(p, "pin", ""); /* what is left when somebody unmounts it */
    pin = strdup(in_place(p, "pin"));
    pinned.netns = pin;
    assert_int_equal(run_one(p, c, cni_add_start, &pinned).code, ERR_OK);
    assert_int_equal(run_one(p, c, cni_del_start, &pinned).code, ERR_OK);
    calls(p, "DEL", "main", &text, NULL);
    assert_non_null(strstr(text, "\nenv CNI_NETNS=\n"));
    cni_close(c);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(on_a_full_disk_nothing_is_added_and_all_can_be_deleted),
        TEST(a_disk_that_fills_up_amid_an_add_fails_it_and_the_del_knows_what_began),
        TEST(a_read_only_disk_keeps_the_entry_until_it_can_be_removed),
        TEST(of_a_removed_pin_plugins_are_told_that_there_is_no_namespace),
    };

    if (oracle_is_called())
        return oracle_main(argc, argv);
    why_not = rootns_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
