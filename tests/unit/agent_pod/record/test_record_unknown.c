/* SPDX-License-Identifier: Apache-2.0 */
/* A record that could not be read is neither damaged nor gone: nothing is set aside, removed or begun anew.
 */
#include "agent/pod/node/record_load.h"
#include "agent/pod/record/record.h"
#include "tests/unit/agent_pod/world.h"

#include "base/files/damaged_file.h"
#include "tests/unit/base/failing.h"

#define UID "0a4f7c1e-0000-4000-8000-000000000001"

static const char spec[] = "{apiVersion: v1, kind: Pod, metadata: {name: p, uid: " UID "}, spec: {"
                           "containers: [{name: a, image: x}]}}";

static void put(const struct world *w, const char *name, const char *text)
{
    struct err e = { 0 };
    char path[160];

    snprintf(path, sizeof(path), "%s/pods", w->dir);
    assert_int_equal(fs_mkdirs(path, 0700, &e), ERR_OK);
    snprintf(path, sizeof(path), "%s/pods/%s", w->dir, name);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, false, &e), ERR_OK);
}

static void save(struct world *w)
{
    struct pod *p = world_add(w, spec);
    struct err e = { 0 };

    put(w, ".new", ""); /* the folder */
    p->state = POD_RUNNING;
    memset(p->sandbox_id, 'c', 64);
    assert_int_equal(record_save(p, &(bool){ false }, &e), ERR_OK);
}

static bool exists(const struct world *w, const char *name)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/pods/%s", w->dir, name);
    return access(path, F_OK) == 0;
}

static void count(const char *name, void *arg)
{
    (void)name;
    ++*(unsigned *)arg;
}

static unsigned aside(const struct world *w)
{
    char path[160];
    unsigned n = 0;
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s/pods", w->dir);
    fd_auto dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_false(presence_is_unknown(damaged_file_look(dir, count, &n, &e)));
    return n;
}

static const struct failure {
    const char *call, *part;
    int sys;
} failures[] = {
    { "openat", UID ".json", EIO },
    { "openat", UID ".json", ENFILE },
    { "openat", UID ".json", EACCES },
    { "fstatat", UID ".json", EIO },
    { "readdir", "", EIO },
};

static void one_failure_is_got_over(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };

    save(w);
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        world_forget(w);
        failing_arm(failures[i].call, failures[i].part, failures[i].sys, 1);
        assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
        assert_int_equal(failing_times, 0);
        assert_non_null(pods_find(&w->node, "default", "p"));
        assert_int_equal(aside(w), 0);
    }
}

static void one_that_stays_ends_the_start_and_changes_nothing(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };

    save(w);
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        world_forget(w);
        failing_arm(failures[i].call, failures[i].part, failures[i].sys, 1000);
        assert_int_not_equal(record_load_all(&w->node, &e), ERR_OK);
        failing_arm("", "", 0, 0);
        e = (struct err){ 0 };
        assert_int_equal(aside(w), 0);
        assert_true(exists(w, UID ".json"));
        world_forget(w);
        assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
        assert_non_null(pods_find(&w->node, "default", "p"));
    }
}

static void a_damaged_one_stays_until_what_was_before_it_could_be_read(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    char from[160], to[176];

    save(w);
    snprintf(from, sizeof(from), "%s/pods/" UID ".json", w->dir);
    snprintf(to, sizeof(to), "%s.synced", from);
    assert_int_equal(rename(from, to), 0);
    put(w, UID ".json", "{");
    world_forget(w);
    failing_arm("openat", ".json.synced", EIO, 1000);
    assert_int_not_equal(record_load_all(&w->node, &e), ERR_OK);
    failing_arm("", "", 0, 0);
    e = (struct err){ 0 };
    assert_true(exists(w, UID ".json") && exists(w, UID ".json.synced"));
    assert_int_equal(aside(w), 0);
    world_forget(w);
    assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
    assert_non_null(pods_find(&w->node, "default", "p"));
    assert_int_equal(aside(w), 1);
}

static void a_boot_that_was_not_known_is_no_other_boot(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };

    w->node.boot_id[0] = '\0';
    save(w);
    world_forget(w);
    snprintf(w->node.boot_id, sizeof(w->node.boot_id), "11111111-0000-4000-8000-000000000000");
    assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
    assert_false(pods_find(&w->node, "default", "p")->rebooted);
}

static void the_boot_id_is_read_again(void **state)
{
    char id[ID_BOOT_SIZE] = "", other[ID_BOOT_SIZE] = "";
    struct err e = { 0 };

    (void)state;
    assert_int_equal(id_boot(id, &e), ERR_OK);
    failing_arm("openat", "boot_id", EIO, 1);
    assert_int_equal(id_boot(other, &e), ERR_OK);
    assert_int_equal(failing_times, 0);
    assert_string_equal(other, id);
    failing_arm("openat", "boot_id", EIO, 1000);
    assert_int_not_equal(id_boot(other, &e), ERR_OK);
    failing_arm("", "", 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(one_failure_is_got_over),
        WORLD_TEST(one_that_stays_ends_the_start_and_changes_nothing),
        WORLD_TEST(a_damaged_one_stays_until_what_was_before_it_could_be_read),
        WORLD_TEST(a_boot_that_was_not_known_is_no_other_boot),
        WORLD_TEST(the_boot_id_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
