/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/volumes_quota/fake_kernel.h"

#include "base/files/damaged_file.h"

#include <dirent.h>

static uint32_t must_take(struct projects *p, const struct fixture *f, const char *tree)
{
    struct err e = { 0 };
    uint32_t id = 0;

    if (projects_take(p, &f->fs, "uid", tree, &id, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return id;
}

static size_t must_sweep(struct projects *p, const struct fixture *f)
{
    struct err e = { 0 };
    size_t waiting = 99;

    if (projects_sweep(p, &f->fs, &waiting, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return waiting;
}

static void a_tree_gets_the_first_id_that_is_free_and_keeps_it(void **state)
{
    struct fixture *f = *state;
    struct projects *p;
    struct err e = { 0 };

    put_text(f->projects, "1048577:/srv\n");
    put_text(f->projid, "volume1048578:1048578\n");
    fake_assign(1048579, 1);
    fake_find(1048580, true)->d_ino_hardlimit = 5;
    p = must_open(f);
    assert_int_equal(must_take(p, f, f->tree[0]), 1048581);
    assert_int_equal(must_take(p, f, f->tree[1]), 1048582);
    assert_int_equal(must_take(p, f, f->tree[0]), 1048581);
    assert_string_equal(projects_find(p, f->tree[1])->owner, "uid");
    assert_int_equal(projects_by_id(p, f->fs.device, 1048582)->id, 1048582);
    assert_null(projects_by_id(p, f->fs.device + 1, 1048582));
    assert_null(projects_by_id(p, 0, 1048580));
    projects_close(p);
    p = must_open(f);
    assert_int_equal(must_take(p, f, f->tree[1]), 1048582);
    assert_int_equal(projects_release(p, &f->fs, f->tree[0], &e), ERR_OK);
    assert_null(projects_find(p, f->tree[0]));
    assert_int_equal(projects_release(p, &f->fs, f->tree[0], &e), ERR_OK); /* absent is success */
    assert_int_equal(projects_release(p, &f->fs, f->tree[1], &e), ERR_OK);
    projects_close(p);
    assert_text(f->projects, "1048577:/srv\n");
    assert_text(f->projid, "volume1048578:1048578\n");
    assert_text(f->state, "{\"version\":1,\"projects\":[]}");
}

static void other_software_finds_the_ids_in_its_files(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    char expected[300];

    must_take(p, f, f->tree[0]);
    snprintf(expected, sizeof(expected), "1048577:%s\n", f->tree[0]);
    assert_text(f->projects, expected);
    assert_text(f->projid, "coracle1048577:1048577\n");
    projects_close(p);
    put_text(f->projects, "");
    put_text(f->projid, "");
    p = must_open(f); /* what an agent finds that was killed between table and files */
    must_take(p, f, f->tree[0]);
    assert_text(f->projects, expected);
    projects_close(p);
}

static void all_trees_of_a_pod_get_an_id_or_none(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    struct projects_wish w[3] = { { &f->fs, "uid", f->tree[0], 0 },
                                  { &f->fs, "uid", f->tree[1], 0 },
                                  { &f->fs, "uid", "relative", 0 } };
    struct err e = { 0 };
    unsigned calls = fake->calls;

    assert_int_equal(projects_take_all(p, w, 3, &e), ERR_INVALID);
    assert_int_equal(fake->calls, calls);
    w[2].path = "/with\nline";
    assert_int_equal(projects_take_all(p, w, 3, &e), ERR_INVALID);
    w[2].path = f->tree[1]; /* named twice */
    assert_int_equal(projects_take_all(p, w, 3, &e), ERR_OK);
    assert_int_equal(w[0].id, 1048577);
    assert_int_equal(w[1].id, 1048578);
    assert_int_equal(w[2].id, 1048578);
    assert_int_equal(projects_release_all(p, w, 3, &e), ERR_OK);
    assert_text(f->projid, "");
    projects_close(p);
}

static void what_could_not_be_read_is_not_free(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    struct err e = { 0 };
    uint32_t id = 7;

    fake->fail_with[Q_XGETQUOTA & 0xff] = EIO;
    assert_int_not_equal(projects_take(p, &f->fs, "uid", f->tree[0], &id, &e), ERR_OK);
    assert_string_equal(e.text, "take projects: read usage of project 1048577: Input/output error");
    assert_int_equal(id, 7);
    assert_null(projects_find(p, f->tree[0]));
    fake->fail_with[Q_XGETQUOTA & 0xff] = 0;
    assert_int_equal(mkdir(f->projid, 0755), -1); /* it exists by now */
    assert_int_equal(unlink(f->projid), 0);
    assert_int_equal(mkdir(f->projid, 0755), 0);
    e = (struct err){ 0 };
    assert_int_equal(projects_take(p, &f->fs, "uid", f->tree[0], &id, &e), ERR_PRECONDITION);
    assert_int_equal(rmdir(f->projid), 0);
    must_take(p, f, f->tree[0]);
    projects_close(p);
}

static void a_container_that_uses_up_ids_does_not_stop_others(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    struct err e = { 0 };
    uint32_t id = 0;

    for (uint32_t i = 0; i < 300; i++)
        fake_assign(QUOTA_FIRST_ID + i, 1);
    assert_true(must_take(p, f, f->tree[0]) > QUOTA_FIRST_ID + 299);
    fake->taken_from = true;
    assert_int_equal(projects_take(p, &f->fs, "uid", f->tree[1], &id, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "take projects: none of the 4096 tried project ids is free");
    projects_close(p);
}

/* The state file's folder does not exist, then the files cannot be written. */
static void a_take_that_cannot_be_written_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct projects *p;
    struct err e = { 0 };
    uint32_t id = 0;
    char blocker[140];

    snprintf(f->state, sizeof(f->state), "%s/none/projects.json", f->dir);
    p = must_open(f);
    assert_int_equal(projects_take(p, &f->fs, "uid", f->tree[0], &id, &e), ERR_NOT_FOUND);
    assert_null(projects_find(p, f->tree[0]));
    assert_text(f->projid, "");
    projects_close(p);

    snprintf(f->state, sizeof(f->state), "%s/projects.json", f->dir);
    p = must_open(f);
    /* projid can be replaced, projects cannot: a folder with something in it has the temporary file's name */
    snprintf(blocker, sizeof(blocker), "%s/.projects.coracle/x", f->dir);
    assert_int_equal(fs_mkdirs(blocker, 0755, &e), ERR_OK);
    e = (struct err){ 0 };
    assert_int_not_equal(projects_take(p, &f->fs, "uid", f->tree[0], &id, &e), ERR_OK);
    assert_null(projects_find(p, f->tree[0]));
    assert_text(f->projid, "");
    assert_text(f->state, "{\"version\":1,\"projects\":[]}");
    e = (struct err){ 0 };
    *strrchr(blocker, '/') = '\0';
    assert_int_equal(fs_remove_tree(AT_FDCWD, blocker, &e), ERR_OK);
    assert_int_equal(must_take(p, f, f->tree[0]), 1048578);
    assert_text(f->projid, "coracle1048578:1048578\n");
    projects_close(p);
}

static void an_id_is_free_when_nothing_uses_it_any_more(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    uint32_t id = must_take(p, f, f->tree[0]);
    struct err e = { 0 };

    fake_assign(id, 3);
    fake_find(id, false)->d_blk_hardlimit = 100;
    assert_int_equal(projects_release(p, &f->fs, f->tree[0], &e),
                     ERR_OK); /* its files are removed, but open */
    assert_int_equal(fake_find(id, false)->d_blk_hardlimit, 0);
    assert_text(f->projects, "");
    assert_text(f->projid, "coracle1048577:1048577\n");
    assert_int_equal(must_sweep(p, f), 1);
    projects_close(p);
    p = must_open(f);
    assert_non_null(projects_by_id(p, 0, id));
    assert_int_not_equal(must_take(p, f, f->tree[0]), id); /* a new tree at the same place */
    fake_assign(id, 0);
    assert_int_equal(must_sweep(p, f), 0);
    assert_null(projects_by_id(p, 0, id));
    assert_text(f->projid, "coracle1048578:1048578\n");
    projects_close(p);
}

static void a_release_that_cannot_look_is_repeated_by_a_sweep(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    uint32_t id = must_take(p, f, f->tree[0]);
    struct err e = { 0 };
    size_t waiting = 0;

    fake->fail_with[Q_XGETQUOTA & 0xff] = EIO;
    assert_int_not_equal(projects_release(p, &f->fs, f->tree[0], &e), ERR_OK);
    assert_non_null(projects_by_id(p, 0, id));
    e = (struct err){ 0 };
    assert_int_not_equal(projects_sweep(p, &f->fs, &waiting, &e), ERR_OK);
    assert_int_equal(waiting, 1);
    fake->fail_with[Q_XGETQUOTA & 0xff] = 0;
    assert_int_equal(must_sweep(p, f), 0);
    assert_text(f->projid, "");
    projects_close(p);
}

static void a_sweep_frees_what_an_earlier_agent_took_for_no_tree(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);

    must_take(p, f, f->tree[0]);
    must_take(p, f, f->tree[1]);
    assert_int_equal(mkdir(f->tree[1], 0755), 0);
    assert_int_equal(must_sweep(p, f), 0); /* taken by this agent, which makes the folder later */
    assert_non_null(projects_find(p, f->tree[0]));
    projects_close(p);
    p = must_open(f);
    assert_int_equal(must_sweep(p, f), 0);
    assert_null(projects_find(p, f->tree[0]));
    assert_int_equal(projects_find(p, f->tree[1])->device, f->fs.device);
    assert_text(f->projid, "coracle1048578:1048578\n");
    projects_close(p);
}

static void a_tree_on_a_disk_that_is_not_mounted_may_exist(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);

    must_take(p, f, f->tree[0]);
    projects_close(p);
    p = must_open(f);
    f->fs.device++; /* what is mounted at its folder now is another file system */
    assert_int_equal(must_sweep(p, f), 0);
    assert_non_null(projects_find(p, f->tree[0]));
    f->fs.device--;
    strcpy(f->fs.identity, "xfs-4567");
    assert_int_equal(must_sweep(p, f), 0);
    assert_non_null(projects_find(p, f->tree[0]));
    assert_int_equal(must_take(p, f, f->tree[0]), 1048578); /* the same path, another file system */
    assert_non_null(projects_by_id(p, 0, 1048577));
    assert_null(projects_by_id(p, 0, 1048577)->path);
    strcpy(f->fs.identity, "xfs-0123");
    assert_int_equal(must_sweep(p, f), 0);
    assert_null(projects_by_id(p, 0, 1048577));
    assert_non_null(projects_by_id(p, 0, 1048578));
    projects_close(p);
}

/* Nothing has usage yet: only the files, and their locks, keep them apart. */
static void agents_with_tables_of_their_own_share_no_id(void **state)
{
    enum { AGENTS = 3, TAKES = 30 };
    struct fixture *f = *state;
    pid_t pids[AGENTS];
    struct etc_ids ids = { 0 };
    struct err e = { 0 };
    str_auto text = NULL;
    size_t n = 0;

    for (int agent = 0; agent < AGENTS; agent++) {
        pids[agent] = fork();
        assert_true(pids[agent] >= 0);
        if (pids[agent] != 0)
            continue;
        snprintf(f->state, sizeof(f->state), "%s/projects-%d.json", f->dir, agent);
        {
            struct projects *p = must_open(f);

            for (int i = 0; i < TAKES; i++) {
                char tree[100];

                snprintf(tree, sizeof(tree), "%s/%d-%d", f->dir, agent, i);
                must_take(p, f, tree);
            }
            projects_close(p);
        }
        _exit(0);
    }
    for (int agent = 0; agent < AGENTS; agent++) {
        int status = -1;

        assert_int_equal(waitpid(pids[agent], &status, 0), pids[agent]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(fs_read_at(AT_FDCWD, f->projects, 1 << 20, &text, &n, &e), ERR_OK);
    assert_int_equal(etc_ids_add(&ids, ETC_PROJECTS, (struct str){ text, n }, &e), ERR_OK);
    etc_ids_sort(&ids);
    assert_int_equal(ids.n, AGENTS * TAKES);
    for (size_t i = 1; i < ids.n; i++)
        assert_int_not_equal(ids.v[i - 1], ids.v[i]);
    free(ids.v);
}

static bool is_set_aside(const char *name, void *arg)
{
    *(bool *)arg = *(bool *)arg || damaged_file_is(name);
    return true;
}

static void a_damaged_table_is_set_aside_and_the_files_tell_what_it_said(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    struct err e = { 0 };
    bool aside = false;
    uint32_t id;

    assert_int_equal(mkdir(f->tree[0], 0755), 0);
    id = must_take(p, f, f->tree[0]);
    must_take(p, f, f->tree[1]);
    projects_close(p);
    put_text(f->state, "{\"version\":1,\"projects\":[{\"id\":104");
    p = must_open(f);
    assert_true(!presence_is_unknown(fs_list(AT_FDCWD, f->dir, is_set_aside, &aside, &e)));
    assert_true(aside);
    assert_int_equal(projects_find(p, f->tree[0])->id, id);
    assert_string_equal(projects_find(p, f->tree[0])->owner, "");
    assert_int_equal(must_sweep(p, f), 0);
    assert_null(projects_find(p, f->tree[1])); /* that tree does not exist */
    assert_int_equal(must_take(p, f, f->tree[0]), id);
    assert_string_equal(projects_find(p, f->tree[0])->owner, "uid");
    projects_close(p);
}

static void tables_that_cannot_be_are_damaged(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{\"version\":2,\"projects\":[]}",
        "{\"version\":1}",
        "{\"version\":1,\"projects\":[{}]}",
        "{\"version\":1,\"projects\":[{\"id\":0,\"path\":\"/a\"}]}",
        "{\"version\":1,\"projects\":[{\"id\":4294967296,\"path\":\"/a\"}]}",
        "{\"version\":1,\"projects\":[{\"id\":5,\"path\":\"a\"}]}",
        "{\"version\":1,\"projects\":[{\"id\":5,\"path\":\"/a\\n6:/b\"}]}",
        "{\"version\":1,\"projects\":[{\"id\":5,\"path\":\"/a\"},{\"id\":5,\"path\":\"/b\"}]}",
        "{\"version\":1,\"projects\":[{\"id\":5,\"path\":\"/a\"},{\"id\":6,\"path\":\"/a\"}]}",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct projects *p;

        put_text(f->state, texts[i]);
        p = must_open(f);
        assert_text(f->state, "{\"version\":1,\"projects\":[]}");
        projects_close(p);
    }
}

static void a_table_that_cannot_be_read_stays(void **state)
{
    struct fixture *f = *state;
    const struct projects_options o = { f->state, f->projects, f->projid };
    struct projects *p = NULL;
    struct err e = { 0 };
    char beside[110];

    snprintf(beside, sizeof(beside), "%s.x", f->state);
    assert_int_equal(symlink(f->state, beside), 0);
    assert_int_equal(rename(beside, f->state), 0); /* ELOOP */
    assert_int_not_equal(projects_open(&p, &o, &e), ERR_OK);
    assert_null(p);
    assert_int_equal(readlink(f->state, beside, sizeof(beside)), (ssize_t)strlen(f->state));
}

static void reserved_ids_are_on_the_disk_before_they_have_a_tree(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    struct projects_wish w = { &f->fs, "uid", f->tree[0], 0 };
    struct err e = { 0 };
    uint32_t ids[3];

    assert_int_equal(projects_reserve(p, &f->fs, ids, 3, &e), ERR_OK);
    assert_int_equal(ids[0], 1048577);
    assert_int_equal(ids[2], 1048579);
    assert_text(f->projects, "");
    assert_text(f->projid, "coracle1048577:1048577\ncoracle1048578:1048578\ncoracle1048579:1048579\n");
    assert_int_equal(must_sweep(p, f), 0); /* they are not free */
    assert_int_equal(must_take(p, f, f->tree[1]), 1048580);
    fake_assign(ids[1], 1); /* its tree is made */
    w.id = ids[1];
    assert_int_equal(projects_name_all(p, &w, 1, &e), ERR_OK);
    assert_int_equal(projects_find(p, f->tree[0])->id, ids[1]);
    assert_string_equal(projects_by_id(p, f->fs.device, ids[1])->owner, "uid");
    assert_int_equal(projects_name_all(p, &w, 1, &e), ERR_OK); /* once more changes nothing */
    projects_unreserve(p);
    assert_int_equal(must_sweep(p, f), 0);
    assert_null(projects_by_id(p, 0, ids[0]));
    assert_non_null(projects_by_id(p, 0, ids[1]));
    projects_close(p);
}

/* Killed after the tree was made and before it was named. */
static void a_reserved_id_in_use_is_never_given_again(void **state)
{
    struct fixture *f = *state;
    struct projects *p = must_open(f);
    struct err e = { 0 };
    size_t waiting = 0;
    uint32_t ids[2];

    assert_int_equal(projects_reserve(p, &f->fs, ids, 2, &e), ERR_OK);
    fake_assign(ids[0], 1);
    projects_close(p);
    p = must_open(f);
    assert_int_equal(must_take(p, f, f->tree[1]), 1048579);
    assert_int_equal(projects_sweep(p, &f->fs, &waiting, &e), ERR_OK);
    assert_int_equal(waiting, 1);
    assert_null(projects_by_id(p, 0, ids[1])); /* the other one is free */
    fake_assign(ids[0], 0);
    assert_int_equal(must_sweep(p, f), 0);
    assert_null(projects_by_id(p, 0, ids[0]));
    projects_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tree_gets_the_first_id_that_is_free_and_keeps_it),
        TEST(other_software_finds_the_ids_in_its_files),
        TEST(all_trees_of_a_pod_get_an_id_or_none),
        TEST(what_could_not_be_read_is_not_free),
        TEST(a_container_that_uses_up_ids_does_not_stop_others),
        TEST(a_take_that_cannot_be_written_leaves_nothing),
        TEST(an_id_is_free_when_nothing_uses_it_any_more),
        TEST(a_release_that_cannot_look_is_repeated_by_a_sweep),
        TEST(a_sweep_frees_what_an_earlier_agent_took_for_no_tree),
        TEST(a_tree_on_a_disk_that_is_not_mounted_may_exist),
        TEST(agents_with_tables_of_their_own_share_no_id),
        TEST(reserved_ids_are_on_the_disk_before_they_have_a_tree),
        TEST(a_reserved_id_in_use_is_never_given_again),
        TEST(a_damaged_table_is_set_aside_and_the_files_tell_what_it_said),
        TEST(tables_that_cannot_be_are_damaged),
        TEST(a_table_that_cannot_be_read_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
