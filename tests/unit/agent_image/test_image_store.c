/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_image/image_helper.h"

#include <glob.h>

static bool never(const char *id, void *arg)
{
    (void)id;
    (void)arg;
    return false;
}

static bool always(const char *id, void *arg)
{
    (void)arg;
    assert_string_equal(id, ID("a"));
    return true;
}

static void is_here(struct world *w, const char *reference, const char *id)
{
    struct img_image *i = img_lookup(w->store, reference);

    if (i == NULL)
        fail_msg("%s is not here", reference);
    assert_string_equal(i->id, id);
    img_unref(i);
}

static void is_absent(struct world *w, const char *reference)
{
    assert_null(img_lookup(w->store, reference));
}

static void a_new_store_is_closed_to_other_users_and_empty(void **state)
{
    struct world *w = *state;
    struct stat st;
    json_t *list;

    open_store(w);
    assert_int_equal(stat(w->store_dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    list = img_list(w->store);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    is_absent(w, "busybox");
}

static void an_image_is_found_by_name_digest_and_id(void **state)
{
    struct world *w = *state;

    open_store(w);
    write_file(w, "unpack.answer", 0644, "digest=$(hex d); image a b\n");
    bring(w, "/some/archive.tar", "busybox:1");
    is_here(w, "busybox:1", ID("a"));
    is_here(w, "docker.io/library/busybox:1", ID("a"));
    is_here(w, "busybox@" ID("d"), ID("a"));
    is_here(w, "busybox:other@" ID("d"), ID("a"));
    is_here(w, ID("a"), ID("a"));
    is_here(w, HEX("a"), ID("a"));
    is_here(w, "aaaaaaaaaaaa", ID("a"));
    is_here(w, "sha256:aaaaaaaaaaaaa", ID("a"));
    is_absent(w, "busybox");
    is_absent(w, "aaaaaaaaaaa");
    is_absent(w, "AAAAAAAAAAAA");
    is_absent(w, "busybox@" ID("e"));
    is_absent(w, "other@" ID("d"));
    is_absent(w, "");
    is_absent(w, "../../etc");
}

static void a_part_of_two_ids_finds_neither(void **state)
{
    struct world *w = *state;

    open_store(w);
    bring(w, "/a", "one");
    write_file(w, "unpack.answer", 0644,
               "hex() { case $1 in a) printf %%s%%04d $(printf %%060d 0 | tr 0 a) 0 ;; *) printf %%064d 0 | "
               "tr 0 $1 ;; esac; }; image a b\n");
    bring(w, "/b", "two");
    is_here(w, "two", "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0000");
    is_absent(w, "aaaaaaaaaaaa");
    is_here(w, HEX("a"), ID("a"));
}

static void the_store_is_the_same_after_a_restart(void **state)
{
    struct world *w = *state;
    struct img_image *i;
    json_t *before, *after;

    open_store(w);
    bring(w, "/a", "zebra");
    bring(w, "/b", "busybox:1");
    write_file(w, "unpack.answer", 0644, "image c d\n");
    bring(w, "/c", "other");
    before = img_list(w->store);
    assert_int_equal(json_array_size(before), 2);
    close_store(w);

    open_store(w);
    after = img_list(w->store);
    assert_int_equal(json_array_size(after), 2);
    assert_true(json_equal(json_array_get(before, 0), json_array_get(after, 0)) ||
                json_equal(json_array_get(before, 0), json_array_get(after, 1)));
    i = img_lookup(w->store, "zebra");
    assert_non_null(i);
    assert_int_equal(i->layer_dirs.n, 1);
    assert_true(str_starts(i->layer_dirs.v[0], w->store_dir) &&
                str_ends(i->layer_dirs.v[0], "/layers/" HEX("b")));
    img_unref(i);
    json_decref(before);
    json_decref(after);
}

static void the_list_names_what_kubectl_would_ask(void **state)
{
    struct world *w = *state;
    json_t *list, *wanted;

    open_store(w);
    bring(w, "/a", "zebra");
    bring(w, "/a", "ant:2");
    list = img_list(w->store);
    wanted = json_pack("[{s:s, s:[s,s], s:s, s:i, s:i, s:i, s:b, s:{}, s:[{s:s, s:i}]}]", "id", ID("a"),
                       "names", "docker.io/library/ant:2", "docker.io/library/zebra:latest", "digest",
                       ID("a"), "sizeBytes", 5, "ownBytes", 5, "sharedBytes", 0, "pinned", 0, "config",
                       "layers", "id", ID("b"), "sizeBytes", 5);
    assert_true(json_equal(list, wanted));
    json_decref(list);
    json_decref(wanted);
}

static void the_last_name_takes_the_image_and_its_own_layers_along(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };

    open_store(w);
    bring(w, "/a", "one");
    bring(w, "/b", "two");
    write_file(w, "unpack.answer", 0644, "image c d\n");
    bring(w, "/c", "three");
    assert_int_equal(count_entries(w, "layers"), 2);

    assert_int_equal(img_remove(w->store, "one", always, NULL, &e), ERR_OK); /* another name is left */
    is_absent(w, "one");
    is_here(w, "two", ID("a"));
    assert_int_equal(img_remove(w->store, "two", never, NULL, &e), ERR_OK);
    is_absent(w, ID("a"));
    settle(w);
    assert_int_equal(count_entries(w, "layers"), 1);
    assert_true(have(w, "images/layers/" HEX("d")));
    assert_int_equal(count_entries(w, "images"), 1);
    assert_int_equal(count_entries(w, "refs"), 1);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void an_id_takes_all_names_along(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };

    open_store(w);
    bring(w, "/a", "one");
    bring(w, "/b", "two");
    assert_int_equal(img_remove(w->store, "aaaaaaaaaaaaaaaa", NULL, NULL, &e), ERR_OK);
    is_absent(w, "one");
    is_absent(w, "two");
    settle(w);
    assert_int_equal(count_entries(w, "refs") + count_entries(w, "images") + count_entries(w, "layers"), 0);
}

static void an_image_in_use_stays(void **state)
{
    struct world *w = *state;
    struct img_image *held;
    struct err e = { 0 };

    open_store(w);
    bring(w, "/a", "one");
    assert_int_equal(img_remove(w->store, "one", always, NULL, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "image \"one\" is in use by a container");
    held = img_lookup(w->store, "one");
    assert_int_equal(img_remove(w->store, "one", never, NULL, &e), ERR_PRECONDITION);
    img_unref(held);
    is_here(w, "one", ID("a"));
    assert_int_equal(img_remove(w->store, "nothing", never, NULL, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "no such image: \"nothing\"");
}

static void a_layer_that_two_images_share_stays_for_the_other(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };

    open_store(w);
    bring(w, "/a", "one");
    write_file(w, "unpack.answer", 0644, "image c b\n");
    bring(w, "/b", "two");
    assert_int_equal(img_remove(w->store, "one", never, NULL, &e), ERR_OK);
    settle(w);
    assert_true(have(w, "images/layers/" HEX("b")));
    is_here(w, "two", ID("c"));
}

/* Whether something of this name was set aside. */
static bool have_aside(const struct world *w, const char *name)
{
    str_auto pattern = str_printf("%s/%s.damaged-*", w->dir, name);
    glob_t found;
    bool any = glob(pattern, 0, NULL, &found) == 0;

    if (any)
        globfree(&found);
    return any;
}

static void records_of_another_version_are_set_aside(void **state)
{
    struct world *w = *state;

    open_store(w);
    bring(w, "/a", "one");
    close_store(w);
    write_file(w, "images/images/" HEX("a") ".json", 0600, "{\"version\":2,\"id\":\"" ID("a") "\"}");
    open_store(w);
    is_absent(w, "one");
    assert_true(have_aside(w, "images/images/" HEX("a") ".json"));
    assert_true(have(w, "images/layers/" HEX("b")));
}

static void damaged_records_are_set_aside(void **state)
{
    struct world *w = *state;

    open_store(w);
    bring(w, "/a", "one");
    write_file(w, "unpack.answer", 0644, "image c d\n");
    bring(w, "/b", "two");
    close_store(w);
    write_file(w, "images/images/" HEX("a") ".json", 0600, "{\"id\":");
    write_file(w, "images/images/" HEX("e") ".json", 0600, "{}");
    write_file(w, "images/images/.cut-off.12345678", 0600, "{");
    write_file(w, "images/refs/" HEX("f") ".json", 0600, "{\"name\":\"a b\",\"id\":\"" ID("c") "\"}");
    write_file(w, "images/refs/.cut-off.12345678", 0600, "{");

    open_store(w);
    is_absent(w, "one");
    is_here(w, "two", ID("c"));
    assert_true(have_aside(w, "images/images/" HEX("a") ".json"));
    assert_true(have_aside(w, "images/images/" HEX("e") ".json"));
    assert_true(have_aside(w, "images/refs/" HEX("f") ".json"));
    assert_false(have(w, "images/images/.cut-off.12345678"));
    assert_false(have(w, "images/refs/.cut-off.12345678"));
    settle(w);
    assert_true(have(w, "images/layers/" HEX("b"))); /* pods may run on it: what named it is not known */
    close_store(w);
    open_store(w); /* and not looked at again */
    bring(w, "/c", "one");
}

static void layers_of_a_damaged_record_stay_until_its_image_is_brought_again(void **state)
{
    struct world *w = *state;

    open_store(w);
    bring(w, "/a", "one");
    close_store(w);
    write_file(w, "images/images/" HEX("a") ".json", 0600, "{\"id\":");
    open_store(w);
    settle(w);
    close_store(w);
    open_store(w); /* the second start knows it only by the file that was set aside */
    settle(w);
    assert_true(have(w, "images/layers/" HEX("b")));
    bring(w, "/a", "one");
    is_here(w, "one", ID("a"));
    assert_false(have_aside(w, "images/images/" HEX("a") ".json"));
    write_file(w, "unpack.answer", 0644, "image c d\n");
    bring(w, "/b", "one"); /* takes the name away; what nobody names goes again */
    settle(w);
    close_store(w);
    open_store(w);
    settle(w);
    assert_true(have(w, "images/layers/" HEX("d")));
}

static void an_image_whose_layer_is_gone_is_no_image(void **state)
{
    struct world *w = *state;
    char path[400];

    open_store(w);
    bring(w, "/a", "one");
    close_store(w);
    snprintf(path, sizeof(path), "%s/layers/" HEX("b"), w->store_dir);
    assert_int_equal(rmdir(path), 0);
    open_store(w);
    is_absent(w, "one");
    assert_true(have_aside(w, "images/images/" HEX("a") ".json"));
}

static void what_a_crash_left_is_removed_at_open(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    char path[400];

    open_store(w);
    close_store(w);
    snprintf(path, sizeof(path), "%s/tmp/0123/layout", w->store_dir);
    assert_int_equal(fs_mkdirs(path, 0700, &e), ERR_OK);
    snprintf(path, sizeof(path), "%s/layers/%s/etc", w->store_dir, HEX("9"));
    assert_int_equal(fs_mkdirs(path, 0700, &e), ERR_OK);
    open_store(w);
    assert_false(have(w, "images/layers/" HEX("9")));
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void a_store_that_cannot_be_made_says_where(void **state)
{
    struct world *w = *state;
    const struct img_store_options o = {
        .loop = &w->loop, .dir = "/proc/nothing/images", .unpack_path = "/x", .ops_cgroup_fd = -1
    };
    struct err e = { 0 };

    assert_int_equal(img_store_open(&w->store, &o, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text,
                        "image store /proc/nothing/images: mkdir /proc/nothing: No such file or directory");
    assert_null(w->store);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_store_is_closed_to_other_users_and_empty),
        TEST(an_image_is_found_by_name_digest_and_id),
        TEST(a_part_of_two_ids_finds_neither),
        TEST(the_store_is_the_same_after_a_restart),
        TEST(the_list_names_what_kubectl_would_ask),
        TEST(the_last_name_takes_the_image_and_its_own_layers_along),
        TEST(an_id_takes_all_names_along),
        TEST(an_image_in_use_stays),
        TEST(a_layer_that_two_images_share_stays_for_the_other),
        TEST(records_of_another_version_are_set_aside),
        TEST(damaged_records_are_set_aside),
        TEST(layers_of_a_damaged_record_stay_until_its_image_is_brought_again),
        TEST(an_image_whose_layer_is_gone_is_no_image),
        TEST(what_a_crash_left_is_removed_at_open),
        TEST(a_store_that_cannot_be_made_says_where),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
