/* SPDX-License-Identifier: Apache-2.0 */
/* When files count: the first set, edits and renames, what is told of files, the end. */
#include "live_folder.h"

/* ---- the first set --------------------------------------------------------------------------- */

static void all_files_are_in_the_store_before_the_first_set_is_told(void **state)
{
    struct fixture *f = *state;

    write_file(f, "b.yaml", POD("b", "x:1"));
    write_file(f, "a.yaml", POD("a", "x:1") CONFIG("a", "v"));
    write_file(f, ".hidden.yaml", POD("h", "x:1"));
    write_file(f, "a.yaml~", POD("old", "x:1"));
    start(f);
    to_see(f, "first set\n");
    assert_true(src_store_ready(f->store));
    assert_seen(f, "added ConfigMap default/a\nadded Pod default/a x:1\nfile a.yaml ok 2\n"
                   "added Pod default/b x:1\nfile b.yaml ok 1\nfirst set\n");
}

static void an_empty_and_a_missing_folder_give_an_empty_first_set(void **state)
{
    struct fixture *f = *state;
    char sub[150];

    start(f);
    to_see(f, "first set\n");
    src_folder_close(f->folder);
    quiet(f);
    buf_reset(&f->seen);

    snprintf(f->dir, sizeof(f->dir), "%s/x/y", f->root);
    start(f);
    to_see(f, "first set\n");
    assert_seen(f, "first set\n");

    snprintf(sub, sizeof(sub), "%s/x", f->root);
    mkdir(sub, 0755);
    quiet(f);
    mkdir(f->dir, 0755);
    write_file(f, "a.yaml", POD("a", "x:1"));
    to_see(f, "added Pod default/a x:1\n");
}

static void a_path_that_is_no_folder_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(src_folder_open(&f->folder, &f->loop, "relative", f->store, NULL, NULL, NULL, NULL, &e),
                     ERR_INVALID);
    assert_string_equal(e.text, "manifest folder \"relative\": is not an absolute path of usable length");
    assert_int_equal(src_folder_open(&f->folder, &f->loop, "/dev/null", f->store, NULL, NULL, NULL, NULL, &e),
                     ERR_INVALID);
    assert_string_equal(e.text, "manifest folder /dev/null: is not a folder");
    f->folder = NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void files_act_when_they_are_complete_and_only_when_something_changed(void **state)
{
    const char *pod = POD("a", "x:1");
    struct fixture *f = *state;
    char path[200];
    int fd;

    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);

    at(f, "a.yaml", path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(write(fd, pod, 20) == 20); /* half of it */
    quiet(f);
    assert_seen(f, "");
    assert_true(write(fd, pod + 20, strlen(pod) - 20) > 0);
    close(fd);
    to_see(f, "file a.yaml ok 1\n");
    assert_seen(f, "added Pod default/a x:1\nfile a.yaml ok 1\n");

    write_file(f, ".b.yaml.tmp", POD("b", "x:1"));
    move(f, ".b.yaml.tmp", "b.yaml");
    to_see(f, "file b.yaml ok 1\n");
    assert_seen(f, "added Pod default/b x:1\nfile b.yaml ok 1\n");

    assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0); /* touch */
    write_file(f, "a.yaml", POD("a", "x:1"));
    to_see(f, "file a.yaml ok 1\n");
    quiet(f);
    assert_null(strstr(f->seen.p, "default/a"));
    buf_reset(&f->seen);

    write_file(f, "a.yaml", POD("a", "x:2"));
    to_see(f, "file a.yaml");
    assert_seen(f, "updated Pod default/a x:2\nfile a.yaml ok 1\n");
    delete (f, "a.yaml");
    to_see(f, "removed Pod default/a\n");
    assert_seen(f, "removed Pod default/a\n");
}

static void an_invalid_edit_leaves_what_was_there_in_force(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("a", "x:1") CONFIG("a", "v"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    write_file(f, "a.yaml", POD("a", "''") CONFIG("a", "w"));
    to_see(f, "file a.yaml stale 2 [a.yaml:4:31: spec.containers[0].image: ");
    write_file(f, "a.yaml", "{");
    to_see(f, "file a.yaml stale 2 [a.yaml:1:1: not JSON");
    write_file(f, "new.yaml", "nonsense");
    to_see(f, "file new.yaml bad 0 [new.yaml:1:1: expected an object");
    quiet(f);
    assert_null(strstr(f->seen.p, "updated"));
    assert_null(strstr(f->seen.p, "removed"));
    buf_reset(&f->seen);
    write_file(f, "a.yaml", POD("a", "x:2") CONFIG("a", "w"));
    to_see(f, "file a.yaml ok 2\n");
    assert_seen(f, "updated ConfigMap default/a\nupdated Pod default/a x:2\nfile a.yaml ok 2\n");
}

static void an_emptied_file_takes_nothing_away_but_a_removed_document_does(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("a", "x:1") CONFIG("a", "v"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    write_file(f, "a.yaml", "");
    to_see(f, "file a.yaml stale 2 [a.yaml: has no objects any more; to remove its objects, "
              "remove the file]\n");
    write_file(f, "empty.yaml", "# nothing yet\n");
    to_see(f, "file empty.yaml ok 0\n");
    buf_reset(&f->seen);
    write_file(f, "a.yaml", POD("a", "x:1"));
    to_see(f, "removed ConfigMap default/a\n");
    assert_seen(f, "file a.yaml ok 1\nremoved ConfigMap default/a\n");
}

static void a_rename_and_an_editors_way_to_save_disturb_nobody(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    move(f, "a.yaml", "b.yaml");
    to_see(f, "file b.yaml ok 1\n");
    quiet(f);
    assert_seen(f, "file b.yaml ok 1\n");

    write_file(f, "4913", "");
    delete (f, "4913");
    move(f, "b.yaml", "b.yaml~");
    turn(f, 10);
    write_file(f, "b.yaml", POD("a", "x:2"));
    delete (f, "b.yaml~");
    to_see(f, "file b.yaml ok 1\n");
    quiet(f);
    assert_seen(f, "updated Pod default/a x:2\nfile b.yaml ok 1\n");

    delete (f, "b.yaml"); /* as git does, within 2 ms */
    write_file(f, "b.yaml", POD("a", "x:3"));
    to_see(f, "file b.yaml ok 1\n");
    quiet(f);
    assert_seen(f, "updated Pod default/a x:3\nfile b.yaml ok 1\n");
}

static uint64_t ms_until_removed(struct fixture *f)
{
    uint64_t since = clock_mono_ms();

    to_see(f, "removed Pod default/a\n");
    return clock_mono_ms() - since;
}

static void an_unlinked_file_is_gone_at_once_and_a_renamed_one_may_come_back(void **state)
{
    struct fixture *f = *state;
    uint64_t least = UINT64_MAX;

    start(f);
    for (int i = 0; i < 5; i++) { /* the least of some: the machine may be busy */
        uint64_t ms;

        write_file(f, "a.yaml", POD("a", "x:1"));
        to_see(f, "file a.yaml ok 1\n");
        delete (f, "a.yaml");
        ms = ms_until_removed(f);
        least = ms < least ? ms : least;
        buf_reset(&f->seen);
    }
    assert_in_range(least, 0, SRC_FOLDER_SETTLE_MS / 2);

    write_file(f, "a.yaml", POD("a", "x:1"));
    to_see(f, "file a.yaml ok 1\n");
    move(f, "a.yaml", "a.yaml~");
    assert_in_range(ms_until_removed(f), SRC_FOLDER_SETTLE_MS - 1, DEADLINE_MS);
}

static void git_may_take_its_time(void **state)
{
    struct fixture *f = *state;
    char path[200];

    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    snprintf(path, sizeof(path), "%s/.git", f->root); /* of the folder above */
    assert_int_equal(mkdir(path, 0755), 0);
    write_file(f, "../.git/index.lock", "");
    delete (f, "a.yaml");
    for (uint64_t until = clock_mono_ms() + 4 * SRC_FOLDER_UNLINK_MS; clock_mono_ms() < until;)
        turn(f, 5);
    assert_seen(f, "");
    write_file(f, "a.yaml", POD("a", "x:2"));
    delete (f, "../.git/index.lock");
    to_see(f, "file a.yaml ok 1\n");
    assert_seen(f, "updated Pod default/a x:2\nfile a.yaml ok 1\n");
}

static void an_unlinked_file_that_is_written_slowly_is_not_gone(void **state)
{
    struct fixture *f = *state;
    char path[200];
    int fd;

    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    at(f, "a.yaml", path);
    delete (f, "a.yaml");
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    quiet(f);
    assert_seen(f, "");
    assert_true(write(fd, POD("a", "x:2"), strlen(POD("a", "x:2"))) > 0);
    close(fd);
    to_see(f, "file a.yaml ok 1\n");
    assert_seen(f, "updated Pod default/a x:2\nfile a.yaml ok 1\n");
}

static void many_files_at_once_are_quick(void **state)
{
    struct fixture *f = *state;
    char name[40], text[400], line[60];
    uint64_t began;

    start(f);
    to_see(f, "first set\n");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "p%d.yaml", i);
        snprintf(text, sizeof(text),
                 "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {containers: [{name: c, image: "
                 "'x:1'}]}\n",
                 i);
        write_file(f, name, text);
    }
    began = clock_mono_ms();
    for (int i = 0; i < 100; i++) {
        snprintf(line, sizeof(line), "added Pod default/p%d x:1\n", i);
        to_see(f, line);
    }
    assert_true(clock_mono_ms() - began < 2000); /* some ten ms; much slower under sanitizers */
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "p%d.yaml", i);
        delete (f, name);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(line, sizeof(line), "removed Pod default/p%d\n", i);
        to_see(f, line);
    }
}

/* ---- what people see, and the end -------------------------------------------------------------- */

static void files_can_be_listed_by_name(void **state)
{
    struct fixture *f = *state;

    write_file(f, "b.yaml", "nonsense");
    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    src_folder_each(f->folder, on_file, f);
    assert_non_null(strstr(f->seen.p, "file a.yaml ok 1\nfile b.yaml bad 0 [b.yaml:1:1: "));
}

static void closing_while_files_are_read_is_safe(void **state)
{
    struct fixture *f = *state;
    char name[20];

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "f%d.yaml", i);
        write_file(f, name, POD("a", "x:1"));
    }
    start(f);
    src_folder_close(f->folder);
    f->folder = NULL;
    quiet(f);
    assert_seen(f, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(all_files_are_in_the_store_before_the_first_set_is_told),
        T(an_empty_and_a_missing_folder_give_an_empty_first_set),
        T(a_path_that_is_no_folder_is_an_error),
        T(files_act_when_they_are_complete_and_only_when_something_changed),
        T(an_invalid_edit_leaves_what_was_there_in_force),
        T(an_emptied_file_takes_nothing_away_but_a_removed_document_does),
        T(a_rename_and_an_editors_way_to_save_disturb_nobody),
        T(an_unlinked_file_is_gone_at_once_and_a_renamed_one_may_come_back),
        T(an_unlinked_file_that_is_written_slowly_is_not_gone),
        T(git_may_take_its_time),
        T(many_files_at_once_are_quick),
        T(files_can_be_listed_by_name),
        T(closing_while_files_are_read_is_safe),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
