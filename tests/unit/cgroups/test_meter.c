/* SPDX-License-Identifier: Apache-2.0 */
/* Meters on a folder that imitates cgroupfs, v2: what is read, what stays open, what is let go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

struct fake {
    char dir[64];
    struct cg_tree tree;
    struct cg_meters *set;
};

static void put(const struct fake *f, const char *cgroup, const char *file, const char *text)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s/%s", f->dir, cgroup, file);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static void make_cgroup(const struct fake *f, const char *cgroup)
{
    static const char *const files[][2] = {
        { "cpu.stat", "usage_usec 2000000\nuser_usec 1500000\nsystem_usec 500000\nnr_throttled 3\n" },
        { "memory.current", "1000000\n" },
        { "memory.stat", "anon 600000\nfile 400000\ninactive_file 300000\npgfault 12\n" },
        { "pids.current", "5\n" },
        { "memory.max", "2000000\n" },
        { "memory.peak", "1500000\n" },
        { "memory.swap.current", "4096\n" },
        { "memory.swap.max", "max\n" },
        { "memory.events", "oom 1\noom_kill 2\n" },
        { "pids.max", "100\n" },
        { "cgroup.procs", "10\n11\n12\n" },
        { "hugetlb.2MB.current", "4194304\n" },
        { "hugetlb.1GB.current", "0\n" },
        { "io.stat", "8:0 rbytes=10 wbytes=20 rios=1 wios=2\n" },
        { "memory.pressure", "some avg10=1.00 avg60=0.50 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 "
                             "avg300=0.00 total=5\n" },
    };
    struct err e = { 0 };
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", f->dir, cgroup);
    assert_int_equal(fs_mkdirs(path, 0755, &e), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        put(f, cgroup, files[i][0], files[i][1]);
}

static void remove_cgroup(const struct fake *f, const char *cgroup)
{
    struct err e = { 0 };
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", f->dir, cgroup);
    assert_int_equal(fs_remove_tree(AT_FDCWD, path, &e), ERR_OK);
}

static void rename_cgroup(const struct fake *f, const char *from, const char *to)
{
    char path[512], other[512];

    snprintf(path, sizeof(path), "%s/%s", f->dir, from);
    snprintf(other, sizeof(other), "%s/%s", f->dir, to);
    assert_int_equal(rename(path, other), 0);
}

static void open_set(struct fake *f, size_t keep_open)
{
    static const char sizes[][16] = { "2MB", "1GB" };
    struct cg_meters_options o = {
        .tree = &f->tree, .keep_open = keep_open, .page_sizes = sizes, .n_page_sizes = ARRAY_LEN(sizes)
    };
    struct err e = { 0 };

    cg_meters_close(f->set);
    assert_int_equal(cg_meters_open(&f->set, &o, &e), ERR_OK);
}

static int set_up(void **state)
{
    struct fake *f = calloc(1, sizeof(*f));

    strcpy(f->dir, "/tmp/coracle-meter-test-XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    f->tree.layout = CG_V2;
    f->tree.n_hiers = 1;
    f->tree.hiers[0].backend = &cg_backend_v2;
    f->tree.hiers[0].controllers = CG_CTL_CPU | CG_CTL_MEMORY | CG_CTL_PIDS | CG_CTL_HUGETLB | CG_CTL_IO;
    f->tree.hiers[0].fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = f;
    return f->tree.hiers[0].fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    cg_meters_close(f->set);
    close(f->tree.hiers[0].fd);
    if (fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK)
        return -1;
    free(f);
    return 0;
}

static struct cg_meter *meter(struct fake *f, const char *path)
{
    struct cg_meter *m = NULL;
    struct err e = { 0 };

    assert_int_equal(cg_meter_new(&m, f->set, path, &e), ERR_OK);
    return m;
}

static size_t open_files(void)
{
    DIR *list = opendir("/proc/self/fd");
    size_t n = 0;

    while (readdir(list) != NULL)
        n++;
    closedir(list);
    return n;
}

static void everything_is_read(void **state)
{
    struct fake *f = *state;
    struct cg_sample s;
    struct err e = { 0 };

    make_cgroup(f, "kubepods/pod1");
    open_set(f, 100);
    struct cg_meter *m = meter(f, "/kubepods/pod1");
    assert_int_equal(cg_meter_read(m, CG_PARTS_ALL, &s, &e), ERR_OK);
    assert_int_equal(s.cpu.usage_ns, 2000000000);
    assert_int_equal(s.cpu.throttled_periods, 3);
    assert_int_equal(s.memory.usage, 1000000);
    assert_int_equal(s.memory.working_set, 700000);
    assert_int_equal(s.memory.rss, 600000);
    assert_int_equal(s.memory.limit, 2000000);
    assert_int_equal(s.memory.peak, 1500000);
    assert_int_equal(s.memory.swap, 4096);
    assert_true(s.memory.swap_limit == CG_NO_LIMIT);
    assert_int_equal(s.pids, 5);
    assert_int_equal(s.pids_limit, 100);
    assert_int_equal(s.processes, 3);
    assert_int_equal(s.oom_kills, 2);
    assert_int_equal(s.hugetlb[0], 4194304);
    assert_int_equal(s.io.write_bytes, 20);
    assert_int_equal(s.psi[CG_RES_MEMORY].some.total_us, 77);
    assert_false(s.psi[CG_RES_CPU].known);
    assert_int_equal(s.parts & CG_PARTS_ALL, CG_PARTS_ALL);
    cg_meter_free(m);
}

static void the_root_has_no_memory_current_and_the_working_set_is_never_negative(void **state)
{
    struct fake *f = *state;
    struct cg_sample s;
    struct err e = { 0 };

    make_cgroup(f, ".");
    char path[128];
    snprintf(path, sizeof(path), "%s/memory.current", f->dir);
    unlink(path);
    put(f, ".", "memory.stat", "anon 600000\nfile 400000\ninactive_file 1300000\n");
    open_set(f, 100);
    struct cg_meter *m = meter(f, "/");
    assert_int_equal(cg_meter_read(m, CG_PARTS_BASIC, &s, &e), ERR_OK);
    assert_int_equal(s.memory.usage, 1000000);
    assert_int_equal(s.memory.working_set, 0);
    cg_meter_free(m);
}

static void four_files_stay_open_and_are_read_again_without_opening_or_allocating(void **state)
{
    struct fake *f = *state;
    struct cg_sample s;
    struct err e = { 0 };

    make_cgroup(f, "a");
    open_set(f, 100);
    struct cg_meter *m = meter(f, "/a");
    size_t files = open_files();
    assert_int_equal(cg_meter_read(m, CG_PARTS_BASIC, &s, &e), ERR_OK);
    assert_int_equal(open_files(), files + 4);
    assert_int_equal(cg_meters_kept(f->set), 4);
#ifndef __SANITIZE_ADDRESS__
    struct mallinfo2 before = mallinfo2();
#endif
    put(f, "a", "memory.current", "9000000\n");
    rename_cgroup(f, "a", "b"); /* nothing can be opened by its name any more */
    for (int i = 0; i < 10; i++)
        assert_int_equal(cg_meter_read(m, CG_PARTS_BASIC, &s, &e), ERR_OK);
    rename_cgroup(f, "b", "a");
#ifndef __SANITIZE_ADDRESS__
    assert_int_equal(mallinfo2().uordblks, before.uordblks);
#endif
    assert_int_equal(s.parts & CG_PARTS_BASIC, CG_PARTS_BASIC);
    assert_int_equal(s.memory.usage, 9000000);
    assert_int_equal(s.memory.limit, 2000000);
    assert_int_equal(cg_meter_read(m, CG_PARTS_ALL, &s, &e), ERR_OK);
    assert_int_equal(open_files(), files + 4); /* the others were open for a moment */
    cg_meter_free(m);
    assert_int_equal(open_files(), files);
    assert_int_equal(cg_meters_kept(f->set), 0);
}

static void without_room_for_descriptors_it_reads_all_the_same(void **state)
{
    struct fake *f = *state;
    struct cg_sample s;
    struct err e = { 0 };

    make_cgroup(f, "a");
    make_cgroup(f, "b");
    open_set(f, 5);
    struct cg_meter *a = meter(f, "/a"), *b = meter(f, "/b");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cg_meter_read(a, CG_PARTS_BASIC, &s, &e), ERR_OK);
        assert_int_equal(cg_meter_read(b, CG_PARTS_BASIC, &s, &e), ERR_OK);
        assert_int_equal(s.memory.limit, 2000000);
    }
    assert_int_equal(cg_meters_kept(f->set), 5);
    cg_meter_free(a);
    assert_int_equal(cg_meter_read(b, CG_PARTS_BASIC, &s, &e), ERR_OK);
    assert_int_equal(cg_meters_kept(f->set), 4);
    cg_meter_free(b);
}

static void a_cgroup_that_is_not_there_is_said_and_may_come_later(void **state)
{
    struct fake *f = *state;
    struct cg_sample s = { .pids = 77 };
    struct err e = { 0 };

    open_set(f, 100);
    struct cg_meter *m = meter(f, "/a");
    assert_int_equal(cg_meter_read(m, CG_PARTS_BASIC, &s, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "usage of cgroup /a: no such cgroup");
    assert_int_equal(s.pids, 77);
    make_cgroup(f, "a");
    assert_int_equal(cg_meter_read(m, CG_PARTS_BASIC, &s, &e), ERR_OK);
    cg_meter_free(m);
    assert_int_equal(cg_meter_new(&m, f->set, "a", &e), ERR_INVALID);
    assert_int_equal(cg_meter_new(&m, f->set, "/a/../b", &e), ERR_INVALID);
    remove_cgroup(f, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define FAKE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        FAKE_TEST(everything_is_read),
        FAKE_TEST(the_root_has_no_memory_current_and_the_working_set_is_never_negative),
        FAKE_TEST(four_files_stay_open_and_are_read_again_without_opening_or_allocating),
        FAKE_TEST(without_room_for_descriptors_it_reads_all_the_same),
        FAKE_TEST(a_cgroup_that_is_not_there_is_said_and_may_come_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
