/* SPDX-License-Identifier: Apache-2.0 */
/* What links lead to, a folder that goes and comes, and what no event told. */
#include "live_folder.h"

/* ---- links ----------------------------------------------------------------------------------- */

static void a_mounted_config_map_acts_when_its_generation_changes(void **state)
{
    struct fixture *f = *state;
    char path[200];

    at(f, "..gen1", path);
    mkdir(path, 0755);
    write_file(f, "..gen1/a.yaml", POD("a", "x:1"));
    write_file(f, "..gen1/b.yaml", POD("b", "x:1"));
    link_to(f, "..gen1", "..data");
    link_to(f, "..data/a.yaml", "a.yaml");
    link_to(f, "..data/b.yaml", "b.yaml");
    start(f);
    to_see(f, "first set\n");
    quiet(f);
    buf_reset(&f->seen);

    at(f, "..gen2", path);
    mkdir(path, 0755);
    write_file(f, "..gen2/a.yaml", POD("a", "x:2"));
    link_to(f, "..gen2", "..data_tmp");
    move(f, "..data_tmp", "..data");
    delete (f, "b.yaml");
    delete (f, "..gen1/a.yaml");
    delete (f, "..gen1/b.yaml");
    at(f, "..gen1", path);
    rmdir(path);
    to_see(f, "updated Pod default/a x:2\n");
    to_see(f, "removed Pod default/b\n");
    quiet(f);
    assert_null(strstr(f->seen.p, "removed Pod default/a"));
}

static void what_a_link_leads_to_is_watched_too(void **state)
{
    struct fixture *f = *state;
    char elsewhere[100], target[120], other[120];
    FILE *out;

    snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", f->root);
    mkdir(elsewhere, 0755);
    snprintf(target, sizeof(target), "%s/real.yaml", elsewhere);
    snprintf(other, sizeof(other), "%s/other.yaml", elsewhere);
    out = fopen(target, "we");
    fputs(POD("a", "x:1"), out);
    fclose(out);
    start(f);
    to_see(f, "first set\n");
    link_to(f, target, "a.yaml");
    to_see(f, "added Pod default/a x:1\n");
    quiet(f);
    out = fopen(target, "we");
    fputs(POD("a", "x:2"), out);
    fclose(out);
    to_see(f, "updated Pod default/a x:2\n");
    out = fopen(other, "we");
    fputs(POD("a", "x:3"), out);
    fclose(out);
    assert_int_equal(rename(other, target), 0);
    to_see(f, "updated Pod default/a x:3\n");
}

/* ---- the folder itself ----------------------------------------------------------------------- */

static void a_folder_that_goes_takes_nothing_with_it_and_decides_when_it_is_back(void **state)
{
    struct fixture *f = *state;
    char away[120];

    write_file(f, "a.yaml", POD("a", "x:1"));
    write_file(f, "b.yaml", POD("b", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);

    snprintf(away, sizeof(away), "%s/away", f->root);
    assert_int_equal(rename(f->dir, away), 0);
    quiet(f);
    assert_seen(f, "");
    mkdir(f->dir, 0755);
    write_file(f, "a.yaml", POD("a", "x:2"));
    to_see(f, "updated Pod default/a x:2\n");
    to_see(f, "removed Pod default/b\n");
    quiet(f);
    buf_reset(&f->seen);

    delete (f, "a.yaml"); /* rm -r: the files first, then the folder */
    rmdir(f->dir);
    quiet(f);
    assert_seen(f, "");
    mkdir(f->dir, 0755);
    to_see(f, "removed Pod default/a\n");
}

static void a_parent_that_is_replaced_brings_its_own_folder(void **state)
{
    struct fixture *f = *state;
    char parent[96], away[150], next[150], path[200];
    FILE *out;

    snprintf(parent, sizeof(parent), "%s/parent", f->root);
    mkdir(parent, 0755);
    snprintf(f->dir, sizeof(f->dir), "%s/parent/m", f->root);
    mkdir(f->dir, 0755);
    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "first set\n");
    snprintf(away, sizeof(away), "%s/away", f->root);
    snprintf(next, sizeof(next), "%s/next", f->root);
    mkdir(next, 0755);
    snprintf(path, sizeof(path), "%s/m", next);
    mkdir(path, 0755);
    strcat(path, "/a.yaml");
    out = fopen(path, "we");
    fputs(POD("a", "x:2"), out);
    fclose(out);
    assert_int_equal(rename(parent, away), 0);
    assert_int_equal(rename(next, parent), 0);
    to_see(f, "updated Pod default/a x:2\n");
}

static void an_unmounted_disk_ends_no_pod(void **state)
{
    struct fixture *f = *state;

    if (mount("test-folder", f->dir, "tmpfs", 0, NULL) < 0) {
        print_message("skipped: needs root\n");
        skip();
    }
    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "added Pod default/a x:1\n");
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
    quiet(f);
    assert_seen(f, "");
    assert_int_equal(mount("test-folder", f->dir, "tmpfs", 0, NULL), 0);
    to_see(f, "removed Pod default/a\n"); /* it is another, empty disk: its content decides */
    write_file(f, "a.yaml", POD("a", "x:2"));
    to_see(f, "added Pod default/a x:2\n");
    buf_reset(&f->seen);

    assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
    quiet(f);
    assert_seen(f, "");
    write_file(f, "b.yaml", POD("b", "x:1")); /* somebody works without the disk now */
    to_see(f, "added Pod default/b x:1\n");
    to_see(f, "removed Pod default/a\n");
}

static void lost_events_are_made_up_for_by_reading_all(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("a", "x:1"));
    write_file(f, "b.yaml", POD("b", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    /* As after an overflow: what happened was not seen. */
    watch_set_remove(f->folder->watches, f->folder->folder_wd);
    write_file(f, "a.yaml", POD("a", "x:2"));
    delete (f, "b.yaml");
    quiet(f);
    assert_seen(f, "");
    folder_rescan(f->folder);
    to_see(f, "updated Pod default/a x:2\n");
    to_see(f, "removed Pod default/b\n");
}

static void without_inotify_the_folder_is_polled(void **state)
{
    struct fixture *f = *state;
    char why[200], away[120];

    watches_force_poll(&f->loop, true);
    start(f);
    to_see(f, "first set\n");
    assert_true(watches_polled(&f->loop, why, sizeof(why)) >= 2); /* the folder and its parent */
    assert_non_null(strstr(why, "fs.inotify.max_user_instances"));
    write_file(f, "a.yaml", POD("a", "x:1"));
    to_see(f, "added Pod default/a x:1\n");
    write_file(f, "a.yaml", POD("a", "x:2"));
    to_see(f, "updated Pod default/a x:2\n");
    delete (f, "a.yaml");
    to_see(f, "removed Pod default/a\n");

    snprintf(away, sizeof(away), "%s/away", f->root);
    assert_int_equal(rename(f->dir, away), 0);
    mkdir(f->dir, 0755);
    write_file(f, "b.yaml", POD("b", "x:1"));
    to_see(f, "added Pod default/b x:1\n");

    watches_force_poll(&f->loop, false); /* an instance is to be had again */
    while (watches_polled(&f->loop, why, sizeof(why)) > 0)
        turn(f, 100);
    write_file(f, "c.yaml", POD("c", "x:1"));
    to_see(f, "added Pod default/c x:1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_mounted_config_map_acts_when_its_generation_changes),
        T(what_a_link_leads_to_is_watched_too),
        T(a_folder_that_goes_takes_nothing_with_it_and_decides_when_it_is_back),
        T(a_parent_that_is_replaced_brings_its_own_folder),
        T(an_unmounted_disk_ends_no_pod),
        T(lost_events_are_made_up_for_by_reading_all),
        T(without_inotify_the_folder_is_polled),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
