/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that change, go and come back while they are used. */
#include "oracle_run.h"

#include "tests/unit/base/failing.h"

#define LIST(name, type)                                                                                     \
    "{\"cniVersion\":\"1.0.0\",\"name\":\"" name "\",\"plugins\":[{\"type\":\"" type "\"}]}"

struct want { /* the default network's name; NULL: none */
    struct cni *c;
    const char *name;
};

static bool is_default(void *arg)
{
    const struct want *w = arg;
    const char *name = cni_default_network(w->c, NULL);

    return w->name != NULL ? name != NULL && strcmp(name, w->name) == 0 : name == NULL;
}

static void wait_for(struct place *p, struct cni *c, const char *name)
{
    struct want w = { c, name };

    run_until(p, is_default, &w);
}

static bool was_added(void *arg)
{
    return calls(arg, "ADD", "main", NULL, NULL) > 0;
}

/* A plugin that answers its ADD when it is let go. */
static void hold_add(struct place *p)
{
    oracle_put(p, "main");
    oracle_put(p, "meta");
    oracle_put(p, "other");
    oracle_tell(p, "main", "ADD", "file gate\n");
    assert_int_equal(mkfifo(in_place(p, "gate"), 0600), 0);
}

static void let_go(struct place *p)
{
    static const char answer[] = "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.9/24\"}]}";
    int fd = open(in_place(p, "gate"), O_WRONLY | O_CLOEXEC);

    assert_int_equal(write(fd, answer, strlen(answer)), strlen(answer));
    close(fd);
}

static void an_attachment_is_made_and_undone_by_the_list_it_began_with(void **state)
{
    struct place *p = *state;
    struct ended d = { 0 };
    struct cni_op o;
    struct cni *c;

    hold_add(p);
    put(p, "net.d/10.conflist",
        "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":\"main\"},{\"type\":\"meta\"}]}");
    c = open_cni(p);
    cni_add_start(&o, c, &web, on_ended, &d);
    run_until(p, was_added, p);
    put(p, "net.d/10.conflist", LIST("renamed", "other"));
    wait_for(p, c, "renamed");
    let_go(p);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_OK);
    assert_int_equal(calls(p, "ADD", "meta", NULL, NULL), 1);
    unlinkat(p->fd, "net.d/10.conflist", 0);
    wait_for(p, c, NULL);
    run_well(p, c, cni_del_start);
    assert_int_equal(calls(p, "DEL", "meta", NULL, NULL), 1);
    assert_int_equal(calls(p, "DEL", "main", NULL, NULL), 1);
    assert_int_equal(calls(p, "ADD", "other", NULL, NULL) + calls(p, "DEL", "other", NULL, NULL), 0);
    assert_int_equal(count(p, "cache"), 0);
    cni_close(c);
}

static void a_list_may_break_and_be_mended_and_its_folder_go_and_come_back(void **state)
{
    struct place *p = *state;
    struct err e = { 0 };
    const char *why = "";
    struct cni *c;

    oracle_put(p, "main");
    put(p, "net.d/10.conflist", LIST("net", "main"));
    c = open_cni(p);
    wait_for(p, c, "net");
    for (int i = 0; i < 3; i++) {
        put(p, "net.d/10.conflist", "{\"cniVersion\":\"1.0.0\",");
        wait_for(p, c, NULL);
        assert_null(cni_default_network(c, &why));
        assert_non_null(strstr(why, "10.conflist: "));
        assert_int_equal(run_one(p, c, cni_add_start, &web).code, ERR_UNAVAILABLE);
        put(p, "net.d/10.conflist", LIST("net", "main"));
        wait_for(p, c, "net");
        run_well(p, c, cni_add_start);
        assert_int_equal(fs_remove_tree(p->fd, "net.d", &e), ERR_OK);
        wait_for(p, c, NULL);
        run_well(p, c, cni_del_start); /* by the cached list */
        put(p, "net.d/10.conflist", LIST("again", "main"));
        wait_for(p, c, "again");
    }
    assert_int_equal(calls(p, "DEL", "main", NULL, NULL), 3);
    cni_close(c);
}

static void a_folder_that_is_a_link_is_followed_wherever_it_points(void **state)
{
    struct place *p = *state;
    struct cni *c;

    oracle_put(p, "main");
    put(p, "first/10.conflist", LIST("one", "main"));
    put(p, "second/10.conflist", LIST("two", "main"));
    assert_int_equal(symlinkat("first", p->fd, "net.d"), 0);
    c = open_cni(p);
    wait_for(p, c, "one");
    assert_int_equal(symlinkat("second", p->fd, "new"), 0);
    assert_int_equal(renameat(p->fd, "new", p->fd, "net.d"), 0);
    wait_for(p, c, "two");
    put(p, "second/05.conflist", LIST("three", "main"));
    wait_for(p, c, "three");
    unlinkat(p->fd, "net.d", 0);
    wait_for(p, c, NULL);
    assert_int_equal(symlinkat("first", p->fd, "net.d"), 0);
    wait_for(p, c, "one");
    put(p, "first/10.conflist", LIST("four", "main"));
    wait_for(p, c, "four");
    cni_close(c);
}

static void a_plugin_that_writes_into_the_folders_makes_no_change(void **state)
{
    struct place *p = *state;
    int changes = 0;
    struct cni *c;

    oracle_put(p, "main");
    put(p, "net.d/10.conflist", LIST("net", "main"));
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    cni_on_change(c, on_change, &changes);
    put(p, "net.d/10.conflist", LIST("net", "main")); /* the same, written again */
    put(p, "net.d/plugin.state", "1");
    put(p, "bin/plugin.log", "ADD");
    put(p, "net.d/20.conflist", LIST("last", "main"));
    while (!cni_has_network(c, "last"))
        uv_run(&p->loop, UV_RUN_ONCE);
    run_until(p, changed, &changes);
    changes = 0;
    put(p, "net.d/plugin.state", "2");
    put(p, "net.d/10.conflist", LIST("net", "main"));
    put(p, "net.d/20.conflist", LIST("last", "main"));
    run_settled(p);
    assert_int_equal(changes, 0);
    put_mode(p, "bin/other", 0755, "#!/bin/sh\n"); /* of no list */
    put(p, "net.d/20.conflist", LIST("later", "main"));
    run_until(p, changed, &changes);
    assert_true(cni_has_network(c, "later"));
    run_well(p, c, cni_del_start);
    cni_close(c);
}

static void what_could_not_be_read_is_read_again_without_a_change(void **state)
{
    struct place *p = *state;
    struct cni *c;

    oracle_put(p, "main");
    put(p, "net.d/10.conflist", LIST("one", "main"));
    c = open_cni(p);
    wait_for(p, c, "one");
    put(p, "net.d/10.conflist", LIST("two", "main"));
    failing_arm("openat", "10.conflist", EIO, 4);
    while (failing_times > 0)
        uv_run(&p->loop, UV_RUN_ONCE);
    assert_string_equal(cni_default_network(c, NULL), "one"); /* as it was */
    assert_non_null(strstr(cni_problem(c, 0), "Input/output error"));
    wait_for(p, c, "two");
    assert_null(cni_problem(c, 0));
    cni_close(c);

    failing_arm("openat", "10.conflist", EIO, 2);
    c = open_cni(p); /* likewise from the start */
    assert_null(cni_default_network(c, NULL));
    wait_for(p, c, "two");
    cni_close(c);
}

static void another_program_in_a_plugins_place_is_a_change(void **state)
{
    struct place *p = *state;
    int changes = 0;
    char self[256];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    str_auto copy = strdup(in_place(p, "bin/.copy"));
    struct cni *c;
    uv_fs_t req;

    assert_true(n > 0);
    self[n] = '\0';
    oracle_put(p, "main");
    put(p, "net.d/10.conflist", LIST("net", "main"));
    c = open_cni(p);
    run_well(p, c, cni_add_start);
    cni_on_change(c, on_change, &changes);
    assert_int_equal(uv_fs_copyfile(NULL, &req, self, copy, 0, NULL), 0); /* which does the same */
    uv_fs_req_cleanup(&req);
    assert_int_equal(renameat(p->fd, "bin/.copy", p->fd, "bin/main"), 0);
    run_until(p, changed, &changes);
    run_well(p, c, cni_del_start);
    cni_close(c);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(an_attachment_is_made_and_undone_by_the_list_it_began_with),
        TEST(a_list_may_break_and_be_mended_and_its_folder_go_and_come_back),
        TEST(a_folder_that_is_a_link_is_followed_wherever_it_points),
        TEST(a_plugin_that_writes_into_the_folders_makes_no_change),
        TEST(what_could_not_be_read_is_read_again_without_a_change),
        TEST(another_program_in_a_plugins_place_is_a_change),
    };

    if (oracle_is_called())
        return oracle_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
