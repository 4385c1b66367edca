/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "cni/plugin/networks.h"
#include "tests/unit/base/failing.h"

#define LIST(name, type)                                                                                     \
    "{\"cniVersion\": \"1.0.0\", \"name\": \"" name "\", \"plugins\": [{\"type\": \"" type "\"}]}"

static struct cni_networks load(struct place *p)
{
    const char *const bin[] = { in_place(p, "bin1"), in_place(p, "bin2"), NULL };
    struct cni_networks n;
    struct err e = { 0 };

    put_mode(p, "bin2/a", 0755, "");
    assert_int_equal(cni_networks_load(&n, in_place(p, "net.d"), bin, NULL, NULL, &e), ERR_OK);
    return n;
}

static void a_folder_that_could_not_be_listed_is_not_empty(void **state)
{
    struct place *p = *state;
    const char *const bin[] = { in_place(p, "bin2"), NULL };
    struct cni_networks n;
    struct err e = { 0 };

    put_mode(p, "bin2/a", 0755, "");
    put(p, "net.d/10.conflist", LIST("one", "a"));
    failing_arm("readdir", "", EIO, 1);
    assert_int_not_equal(cni_networks_load(&n, in_place(p, "net.d"), bin, NULL, NULL, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
    failing_arm("openat", "net.d", EMFILE, 1);
    e = (struct err){ 0 };
    assert_int_not_equal(cni_networks_load(&n, in_place(p, "net.d"), bin, NULL, NULL, &e), ERR_OK);
    assert_int_equal(e.sys, EMFILE);
    failing_arm("openat", "10.conflist", EIO, 1); /* another list might become the default network */
    e = (struct err){ 0 };
    assert_int_not_equal(cni_networks_load(&n, in_place(p, "net.d"), bin, NULL, NULL, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
    failing_arm("fstatat", "bin2/a", EIO, 1);
    e = (struct err){ 0 };
    assert_int_not_equal(cni_networks_load(&n, in_place(p, "net.d"), bin, NULL, NULL, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
    e = (struct err){ 0 };
    assert_int_equal(cni_networks_load(&n, in_place(p, "net.d"), bin, NULL, NULL, &e), ERR_OK);
    assert_int_equal(n.n, 1);
    cni_networks_done(&n);
}

static void a_missing_or_empty_folder_has_no_network_and_says_so(void **state)
{
    struct place *p = *state;
    struct cni_networks n = load(p);
    char why[200];

    snprintf(why, sizeof(why), "no CNI configuration file in %s/net.d. Has your network provider started?",
             p->dir);
    assert_int_equal(n.n, 0);
    assert_int_equal(n.problems.n, 0);
    assert_string_equal(n.why, why);
    cni_networks_done(&n);

    put(p, "net.d/README", "not a configuration");
    n = load(p);
    assert_string_equal(n.why, why);
    cni_networks_done(&n);
}

static void the_first_file_by_name_is_the_default(void **state)
{
    struct place *p = *state;
    struct cni_networks n;

    put(p, "net.d/20-b.conflist", LIST("b", "a"));
    put(p, "net.d/10-z.conf", "{\"name\": \"z\", \"type\": \"a\"}");
    put(p, "net.d/9-last.json", "{\"name\": \"last\", \"type\": \"a\"}");
    put(p, "net.d/00-not-it.yaml", "x");
    put(p, "net.d/00-folder.conf/x", "x");
    n = load(p);
    assert_int_equal(n.n, 3);
    assert_string_equal(n.lists[0].name, "z");
    assert_string_equal(n.lists[1].name, "b");
    assert_string_equal(n.lists[2].name, "last");
    assert_null(n.why);
    assert_int_equal(n.problems.n, 0);
    cni_networks_done(&n);
}

static void a_bad_file_is_a_problem_and_the_next_one_counts(void **state)
{
    struct place *p = *state;
    struct cni_networks n;

    put(p, "net.d/10-broken.conflist", "{");
    put(p, "net.d/11-empty.conflist", "{\"name\": \"e\", \"plugins\": []}");
    assert_int_equal(mkfifoat(p->fd, "net.d/12-fifo.conf", 0644), 0);
    assert_int_equal(symlinkat("nowhere", p->fd, "net.d/13-dangling.conf"), 0);
    put(p, "net.d/14-good.conflist", LIST("good", "a"));
    n = load(p);
    assert_int_equal(n.n, 1);
    assert_string_equal(n.lists[0].name, "good");
    assert_int_equal(n.problems.n, 4);
    assert_string_equal(n.problems.v[0],
                        "10-broken.conflist: CNI configuration: line 1, column 1: string or '}' expected");
    assert_string_equal(n.problems.v[1], "11-empty.conflist: network \"e\": no plugins");
    assert_true(str_starts(n.problems.v[2], "12-fifo.conf: "));
    assert_true(str_starts(n.problems.v[3], "13-dangling.conf: "));
    cni_networks_done(&n);
}

static void when_all_are_bad_the_first_problem_is_the_reason(void **state)
{
    struct place *p = *state;
    struct cni_networks n;
    char why[300];

    put(p, "net.d/10-e.conflist", "{\"name\": \"e\", \"plugins\": []}");
    put(p, "net.d/11-e.conflist", "[]");
    n = load(p);
    snprintf(why, sizeof(why),
             "no usable CNI configuration in %s/net.d: 10-e.conflist: network \"e\": no plugins (and more)",
             p->dir);
    assert_string_equal(n.why, why);
    cni_networks_done(&n);
}

static void of_two_lists_with_one_name_the_first_counts(void **state)
{
    struct place *p = *state;
    struct cni_networks n;

    put(p, "net.d/10.conflist", LIST("same", "a"));
    put(p, "net.d/20.conflist", LIST("same", "a"));
    n = load(p);
    assert_int_equal(n.n, 1);
    assert_string_equal(n.problems.v[0],
                        "20.conflist: network \"same\" is already defined in an earlier file");
    cni_networks_done(&n);
}

static void a_list_with_missing_plugins_is_not_usable_and_they_are_named(void **state)
{
    struct place *p = *state;
    struct cni_networks n;
    char problem[400];

    put(p, "net.d/10.conflist",
        "{\"name\": \"n\", \"plugins\": [{\"type\": \"a\", \"ipam\": {\"type\": \"ip-giver\"}}, {\"type\": "
        "\"b\"},"
        " {\"type\": \"b\"}, {\"type\": \"bridge\", \"bridge\": \"br7\"}]}");
    put(p, "bin1/b/folder", "a folder is no plugin");
    n = load(p);
    assert_int_equal(n.n, 0);
    assert_int_equal(n.missing.n, 3);
    assert_string_equal(n.missing.v[0], "ip-giver");
    assert_string_equal(n.missing.v[1], "b");
    assert_string_equal(n.missing.v[2], "bridge");
    assert_string_equal(n.bridges.v[0], "br7");
    snprintf(
        problem, sizeof(problem),
        "10.conflist: network \"n\": failed to find plugin \"ip-giver\", \"b\" (%s/bin1/b is not a file), "
        "\"bridge\" in path [%s/bin1:%s/bin2]",
        p->dir, p->dir, p->dir);
    assert_string_equal(n.problems.v[0], problem);
    cni_networks_done(&n);
}

static void plugins_of_the_lists_own_folder_come_behind_the_inline_ones(void **state)
{
    struct place *p = *state;
    struct cni_networks n;

    put(p, "net.d/10.conflist", LIST("net", "a"));
    put(p, "net.d/net/20-second.conf", "{\"type\": \"a\", \"k\": 2}");
    put(p, "net.d/net/10-first.conf", "{\"type\": \"a\", \"k\": 1}");
    put(p, "net.d/net/15.json", "{\"type\": \"missing\"}");
    n = load(p);
    assert_int_equal(n.n, 1);
    assert_int_equal(cni_list_size(&n.lists[0]), 3);
    assert_int_equal(json_int(cni_list_plugin(&n.lists[0], 1), "k", 0), 1);
    assert_int_equal(json_int(cni_list_plugin(&n.lists[0], 2), "k", 0), 2);
    assert_string_equal(n.folders.v[0], in_place(p, "net.d/net"));
    cni_networks_done(&n);

    put(p, "net.d/net/30-bad.conf", "{");
    n = load(p);
    assert_int_equal(n.n, 0);
    assert_true(str_starts(n.problems.v[0], "10.conflist: net/30-bad.conf: "));
    cni_networks_done(&n);

    put(p, "net.d/10.conflist",
        "{\"name\": \"net\", \"loadOnlyInlinedPlugins\": true, \"plugins\": [{\"type\": \"a\"}]}");
    n = load(p);
    assert_int_equal(cni_list_size(&n.lists[0]), 1);
    cni_networks_done(&n);
}

static void the_number_of_files_is_bounded(void **state)
{
    struct place *p = *state;
    struct cni_networks n;

    for (int i = 0; i < CNI_FILES_MAX + 1; i++) {
        char name[32];

        snprintf(name, sizeof(name), "net.d/%04d.conf", i);
        put(p, name, "{\"type\": \"a\"}");
    }
    n = load(p);
    assert_int_equal(n.n, CNI_FILES_MAX);
    assert_string_equal(n.problems.v[0], "more than 256 files");
    cni_networks_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_that_could_not_be_listed_is_not_empty, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(a_missing_or_empty_folder_has_no_network_and_says_so, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(the_first_file_by_name_is_the_default, place_make, place_remove),
        cmocka_unit_test_setup_teardown(a_bad_file_is_a_problem_and_the_next_one_counts, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(when_all_are_bad_the_first_problem_is_the_reason, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(of_two_lists_with_one_name_the_first_counts, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(a_list_with_missing_plugins_is_not_usable_and_they_are_named,
                                        place_make, place_remove),
        cmocka_unit_test_setup_teardown(plugins_of_the_lists_own_folder_come_behind_the_inline_ones,
                                        place_make, place_remove),
        cmocka_unit_test_setup_teardown(the_number_of_files_is_bounded, place_make, place_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
