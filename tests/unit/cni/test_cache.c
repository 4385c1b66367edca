/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include <glob.h>

#include "cni/cache.h"
#include "cni/host/netns.h"
#include "tests/unit/base/failing.h"

#define ID "0123456789abcdef"

static struct cni_list a_list(const char *name)
{
    json_auto_t *conf =
        json_pack("{s:s, s:s, s:[{s:s}]}", "name", name, "cniVersion", "1.0.0", "plugins", "type", "a");
    struct cni_list l = { 0 };
    struct err e = { 0 };

    assert_int_equal(cni_list_from_json(&l, conf, &e), ERR_OK);
    return l;
}

static void write_entry(int fd, const char *network, const char *id, json_t *result)
{
    struct err e = { 0 };
    struct cni_entry entry = { .list = a_list(network),
                               .container_id = id,
                               .ifname = "eth0",
                               .netns = "/ns/net",
                               .args = "K=V",
                               .result = result,
                               .complete = result != NULL };

    assert_int_equal(cni_cache_write(fd, &entry, &e), ERR_OK);
    cni_list_done(&entry.list);
}

static int open_cache(struct place *p)
{
    struct err e = { 0 };
    int fd = cni_cache_open(in_place(p, "cache"), &e);

    assert_true(fd >= 0);
    return fd;
}

static void an_entry_comes_back_whole_and_private(void **state)
{
    struct place *p = *state;
    fd_auto fd = open_cache(p);
    json_auto_t *result = parse("{\"ips\": []}"), *caps = parse("{\"portMappings\": [1]}");
    struct cni_entry in = { .list = a_list("net"),
                            .container_id = ID,
                            .ifname = "eth0",
                            .netns = "/ns/net",
                            .args = "K=V",
                            .capability_args = caps,
                            .result = result,
                            .complete = true };
    struct cni_entry out;
    struct err e = { 0 };
    struct stat st;

    assert_int_equal(cni_cache_write(fd, &in, &e), ERR_OK);
    cni_list_done(&in.list);
    assert_int_equal(fstatat(p->fd, "cache/net-" ID "-eth0.json", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);

    assert_int_equal(cni_cache_find(fd, ID, "eth0", &out, &e), ERR_OK);
    assert_string_equal(out.list.name, "net");
    assert_int_equal(cni_list_size(&out.list), 1);
    assert_string_equal(out.container_id, ID);
    assert_string_equal(out.ifname, "eth0");
    assert_string_equal(out.netns, "/ns/net");
    assert_string_equal(out.args, "K=V");
    assert_json_equal(out.capability_args, "{\"portMappings\": [1]}");
    assert_json_equal(out.result, "{\"ips\": []}");
    assert_true(out.complete);
    assert_int_equal(cni_cache_remove(fd, &out, &e), ERR_OK);
    cni_entry_done(&out);
    assert_int_equal(count(p, "cache"), 0);
}

static void an_unknown_attachment_is_not_found(void **state)
{
    struct place *p = *state;
    fd_auto fd = open_cache(p);
    struct cni_entry out;
    struct err e = { 0 };

    write_entry(fd, "net", ID, NULL);
    assert_int_equal(cni_cache_find(fd, "ffff", "eth0", &out, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "container ffff: no cached attachment for eth0");
    assert_int_equal(cni_cache_find(fd, ID, "eth1", &out, &e), ERR_NOT_FOUND);
}

static void names_with_dashes_are_not_mixed_up(void **state)
{
    struct place *p = *state;
    fd_auto fd = open_cache(p);
    struct cni_entry out;
    struct err e = { 0 };

    write_entry(fd, "my-net", "a-b", NULL);
    assert_int_equal(cni_cache_find(fd, "b", "eth0", &out, &e), ERR_NOT_FOUND);
    assert_int_equal(cni_cache_find(fd, "a-b", "eth0", &out, &e), ERR_OK);
    assert_string_equal(out.list.name, "my-net");
    cni_entry_done(&out);
    e = (struct err){ 0 };
    assert_int_equal(cni_cache_find_in(fd, "my-net-a", "b", "eth0", &out, &e), ERR_NOT_FOUND);
    assert_int_equal(cni_cache_find_in(fd, "net", "a-b", "eth0", &out, &e), ERR_NOT_FOUND);
    e = (struct err){ 0 };
    assert_int_equal(cni_cache_find_in(fd, "my-net", "a-b", "eth0", &out, &e), ERR_OK);
    assert_string_equal(out.container_id, "a-b");
    cni_entry_done(&out);
}

static bool exists_aside(const struct place *p, const char *name)
{
    str_auto pattern = str_printf("%s/%s.damaged-*", p->dir, name);
    glob_t found;
    bool any = glob(pattern, 0, NULL, &found) == 0;

    for (size_t i = 0; any && i < found.gl_pathc; i++)
        unlink(found.gl_pathv[i]);
    if (any)
        globfree(&found);
    return any;
}

static void damaged_entries_are_set_aside(void **state)
{
    static const char *const damaged[] = {
        "{\"kind\": \"cniAttachment\", \"complete\"",
        "{\"kind\": \"other\"}",
        "{\"kind\": \"cniAttachment\", \"containerId\": \"" ID
        "\", \"ifName\": \"eth0\", \"netns\": \"\", \"cniArgs\": \"\"}",
        "{\"kind\": \"cniAttachment\", \"containerId\": \"" ID
        "\", \"ifName\": \"eth0\", \"netns\": \"\", \"cniArgs\": \"\","
        " \"config\": {\"name\": \"net\", \"cniVersion\": \"1.0.0\", \"plugins\": [{\"type\": "
        "\"../../bin/sh\"}]}}",
        "{\"kind\": \"cniAttachment\", \"containerId\": \"" ID
        "\", \"ifName\": \"eth0\", \"netns\": \"\", \"cniArgs\": \"\","
        " \"version\": 2, \"config\": {\"name\": \"net\", \"cniVersion\": \"1.0.0\", \"plugins\": "
        "[{\"type\": "
        "\"a\"}]}}",
        "{\"kind\": \"cniAttachment\", \"containerId\": \"" ID
        "\", \"ifName\": \"eth0\", \"netns\": \"\", \"cniArgs\": \"\","
        " \"config\": {\"name\": \"elsewhere\", \"cniVersion\": \"1.0.0\", \"plugins\": [{\"type\": "
        "\"a\"}]}}",
    };
    struct place *p = *state;
    fd_auto fd = open_cache(p);

    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        struct cni_entry out;
        struct err e = { 0 };

        put(p, "cache/net-" ID "-eth0.json", damaged[i]);
        assert_int_equal(cni_cache_find(fd, ID, "eth0", &out, &e), ERR_NOT_FOUND);
        assert_false(exists(p, "cache/net-" ID "-eth0.json"));
        assert_true(exists_aside(p, "cache/net-" ID "-eth0.json"));
    }
}

static void what_is_no_file_or_far_too_long_is_set_aside(void **state)
{
    struct place *p = *state;
    fd_auto fd = open_cache(p);
    struct cni_entry out;
    struct err e = { 0 };

    for (int i = 0; i < 3; i++) {
        assert_false(cni_cache_lacks_some(fd));
        if (i == 0) {
            assert_int_equal(fs_mkdirs_beneath(p->fd, "cache/net-" ID "-eth0.json", 0755, &e), ERR_OK);
        } else if (i == 1) {
            put(p, "cache/net-" ID "-eth0.json", "{}");
            assert_int_equal(truncate(in_place(p, "cache/net-" ID "-eth0.json"), CNI_CACHE_ENTRY_MAX + 1), 0);
        } else {
            assert_int_equal(symlinkat("nowhere", p->fd, "cache/net-" ID "-eth0.json"), 0);
        }
        assert_int_equal(cni_cache_find(fd, ID, "eth0", &out, &e), ERR_NOT_FOUND);
        e = (struct err){ 0 };
        assert_true(cni_cache_lacks_some(fd));
        assert_int_equal(count(p, "cache"), 1);
        assert_int_equal(fs_remove_tree(p->fd, "cache", &e), ERR_OK);
        close(fd);
        fd = open_cache(p);
    }
}

static void an_empty_entry_is_removed(void **state)
{
    struct place *p = *state;
    fd_auto fd = open_cache(p);
    struct cni_entry out;
    struct err e = { 0 };

    put(p, "cache/net-" ID "-eth0.json", "");
    assert_int_equal(cni_cache_find(fd, ID, "eth0", &out, &e), ERR_NOT_FOUND);
    assert_int_equal(count(p, "cache"), 0);
}

static bool count_entry(const struct cni_entry *entry, void *arg)
{
    assert_non_null(entry->list.conf);
    ++*(int *)arg;
    return true;
}

static void all_entries_are_visited_and_other_files_left_alone(void **state)
{
    struct place *p = *state;
    fd_auto fd = open_cache(p);
    struct err e = { 0 };
    int n = 0;

    write_entry(fd, "net", "aaaa", NULL);
    write_entry(fd, "net", "bbbb", NULL);
    put(p, "cache/net-cccc-eth0.json", "rubbish");
    put(p, "cache/undo.json", "{}");
    put(p, "cache/README", "x");
    assert_int_equal(cni_cache_each(fd, count_entry, &n, &e), ERR_OK);
    assert_int_equal(n, 2);
    assert_int_equal(count(p, "cache"), 5); /* and the damaged one, aside */
    assert_true(exists_aside(p, "cache/net-cccc-eth0.json"));
}

static void what_a_killed_writer_left_is_cleared_at_the_start(void **state)
{
    struct place *p = *state;
    fd_auto fd = -1;

    put(p, "cache/.net-aaaa-eth0.json.0123abcd", "half");
    put(p, "cache/.other", "x");
    fd = open_cache(p);
    assert_false(exists(p, "cache/.net-aaaa-eth0.json.0123abcd"));
    assert_true(exists(p, "cache/.other"));
}

static void what_could_not_be_read_stays_and_is_no_absence(void **state)
{
    static const struct {
        const char *call, *part;
        int sys;
    } failures[] = { { "openat", "-eth0.json", EIO },
                     { "openat", "-eth0.json", EMFILE },
                     { "readdir", "", EIO } };
    struct place *p = *state;
    fd_auto fd = open_cache(p);
    struct cni_entry out;
    struct err e = { 0 };

    write_entry(fd, "net", ID, NULL);
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        failing_arm(failures[i].call, failures[i].part, failures[i].sys, 1);
        assert_int_not_equal(cni_cache_find(fd, ID, "eth0", &out, &e), ERR_OK);
        assert_int_equal(e.sys, failures[i].sys);
        assert_int_not_equal(e.code, ERR_NOT_FOUND);
        e = (struct err){ 0 };
        assert_int_equal(cni_cache_find(fd, ID, "eth0", &out, &e), ERR_OK);
        cni_entry_done(&out);
    }
    assert_false(cni_cache_lacks_some(fd));
    failing_arm("readdir", "", EIO, 1);
    assert_true(cni_cache_lacks_some(fd)); /* for all that is known */
}

static void a_pin_that_could_not_be_looked_at_is_not_gone(void **state)
{
    struct place *p = *state;
    struct err e = { 0 };

    put(p, "net", "");
    assert_int_equal(presence_of(netns_look_pinned(p->dir, "uts", &e)), PRESENCE_ABSENT);
    assert_int_equal(presence_of(netns_look_pinned(p->dir, "net", &e)), PRESENCE_ABSENT); /* a plain file */
    failing_arm("statfs", "/uts", ENOMEM, 1);
    assert_int_equal(presence_of(netns_look_pinned(p->dir, "uts", &e)), PRESENCE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_entry_comes_back_whole_and_private, place_make, place_remove),
        cmocka_unit_test_setup_teardown(an_unknown_attachment_is_not_found, place_make, place_remove),
        cmocka_unit_test_setup_teardown(names_with_dashes_are_not_mixed_up, place_make, place_remove),
        cmocka_unit_test_setup_teardown(damaged_entries_are_set_aside, place_make, place_remove),
        cmocka_unit_test_setup_teardown(what_could_not_be_read_stays_and_is_no_absence, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(a_pin_that_could_not_be_looked_at_is_not_gone, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(what_is_no_file_or_far_too_long_is_set_aside, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(an_empty_entry_is_removed, place_make, place_remove),
        cmocka_unit_test_setup_teardown(all_entries_are_visited_and_other_files_left_alone, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(what_a_killed_writer_left_is_cleared_at_the_start, place_make,
                                        place_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
