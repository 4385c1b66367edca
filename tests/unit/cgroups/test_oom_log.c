/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's log about kills: records as kernels write them, and as a container would like them to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroups/oom_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define HEAD "6,1234,5678901,-;"
#define PATH "/kubepods/burstable/pod1/c1"
#define CONSTRAINT                                                                                           \
    HEAD "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,oom_memcg=" PATH     \
         ",task_memcg=" PATH ",task=tail,pid=412,uid=0\n"
#define KILLED                                                                                               \
    "3,1235,5678902,-;Memory cgroup out of memory: Killed process 412 (tail) total-vm:17000kB, "             \
    "anon-rss:16000kB, file-rss:8kB, shmem-rss:4kB, UID:0 pgtables:72kB oom_score_adj:984\n"

static bool feed(struct cg_oom_text *t, const char *record, struct cg_oom_kill *ret)
{
    return cg_oom_text_feed(t, record, strlen(record), ret);
}

static void a_kill_at_a_limit_has_number_name_and_cgroup(void **state)
{
    struct cg_oom_text t = { 0 };
    struct cg_oom_kill k = { 0 };

    (void)state;
    assert_false(feed(&t, HEAD "tail invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n", &k));
    assert_false(feed(&t, CONSTRAINT, &k));
    assert_true(feed(&t, KILLED, &k));
    assert_int_equal(k.pid, 412);
    assert_string_equal(k.name, "tail");
    assert_string_equal(k.cgroup, PATH);
    assert_string_equal(k.limited, PATH);
    assert_false(k.system);
    assert_int_equal(k.anon_kib, 16000);
    assert_int_equal(k.file_kib, 8);
    assert_int_equal(k.shmem_kib, 4);
}

static void processes_that_go_with_their_group_have_its_cgroup(void **state)
{
    struct cg_oom_text t = { 0 };
    struct cg_oom_kill k = { 0 };

    (void)state;
    feed(&t, CONSTRAINT, &k);
    feed(&t, KILLED, &k);
    assert_false(feed(&t, HEAD "Tasks in " PATH " are going to be killed due to memory.oom.group set\n", &k));
    assert_true(feed(
        &t, "3,1,1,-;Memory cgroup out of memory: Killed process 400 (sh) total-vm:1kB, anon-rss:1kB\n", &k));
    assert_int_equal(k.pid, 400);
    assert_string_equal(k.name, "sh");
    assert_string_equal(k.cgroup, PATH);
    assert_int_equal(k.file_kib, 0);
}

static void the_whole_machine_out_of_memory_is_told_apart(void **state)
{
    struct cg_oom_text t = { 0 };
    struct cg_oom_kill k = { 0 };

    (void)state;
    feed(&t,
         HEAD "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
              "task_memcg=/system.slice/x.service,task=java,pid=7,uid=0\n",
         &k);
    assert_true(feed(&t, "3,1,1,-;Out of memory: Killed process 7 (java) total-vm:9kB, anon-rss:8kB\n", &k));
    assert_true(k.system);
    assert_string_equal(k.cgroup, "/system.slice/x.service");
    assert_string_equal(k.limited, "");
    assert_true(feed(
        &t, "3,1,1,-;Out of memory (oom_kill_allocating_task): Killed process 8 (java) total-vm:9kB\n", &k));
    assert_int_equal(k.pid, 8);
}

static void a_name_that_looks_like_the_log_stays_a_name(void **state)
{
    struct cg_oom_text t = { 0 };
    struct cg_oom_kill k = { 0 };

    (void)state;
    assert_true(feed(&t,
                     "3,1,1,-;Memory cgroup out of memory: Killed process 9 (x) total-vm:1kB) total-vm:2kB, "
                     "anon-rss:3kB\n",
                     &k));
    assert_int_equal(k.pid, 9);
    assert_string_equal(k.name, "x) total-vm:1kB");
    assert_int_equal(k.anon_kib, 3);
    assert_true(feed(
        &t, "3,1,1,-;Memory cgroup out of memory: Killed process 9 (, anon-rss:9kB) total-vm:2kB\n", &k));
    assert_int_equal(k.anon_kib, 0);
    /* A cgroup that the container named so: what is ours of the path stays in front. */
    assert_false(feed(
        &t,
        HEAD "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=" PATH
             ",task_memcg=" PATH "/a,task_memcg=/kubepods/podother/c2,task=x,pid=1,uid=0\n",
        &k));
    assert_true(feed(&t, KILLED, &k));
    assert_string_equal(k.cgroup, PATH "/a");
}

static void only_the_kernel_is_believed(void **state)
{
    static const char *const records[] = {
        "12,1,1,-;Memory cgroup out of memory: Killed process 1 (init) total-vm:1kB\n", /* LOG_USER */
        "3,1,1,-;x: Memory cgroup out of memory: Killed process 1 (init) total-vm:1kB\n",
        "3,1,1,-;Memory cgroup out of memory: Killed process 0 (init) total-vm:1kB\n",
        "3,1,1,-;Memory cgroup out of memory: Killed process 99999999999 (init) total-vm:1kB\n",
        "3,1,1,-;Memory cgroup out of memory: Killed process -1 (init) total-vm:1kB\n",
        "3,1,1,-;Memory cgroup out of memory: Killed process 1 init total-vm:1kB\n",
        "3,1,1,-;Memory cgroup out of memory: Killed process 1 (init\n",
        "3,1,1,-;Memory cgroup out of memory: Killed process 1 () total-vm",
        "3,1,1,-;Out of memory (",
        "3,1,1,-",
        ";Memory cgroup out of memory: Killed process 1 (init) total-vm:1kB\n",
        "",
    };
    struct cg_oom_text t = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(records); i++) {
        struct cg_oom_kill k = { .pid = 77 };
        if (feed(&t, records[i], &k) || k.pid != 77)
            fail_msg("believed: %s", records[i]);
    }
}

static void what_is_too_long_is_cut_and_what_is_not_ascii_replaced(void **state)
{
    struct cg_oom_text t = { 0 };
    struct cg_oom_kill k = { 0 };
    char record[2048], path[1024];

    (void)state;
    memset(path, 'p', sizeof(path));
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    snprintf(record, sizeof(record),
             HEAD "oom-kill:constraint=X,oom_memcg=/a,task_memcg=%s,task=x,pid=1,uid=0\n", path);
    feed(&t, record, &k);
    assert_true(
        feed(&t, "3,1,1,-;Memory cgroup out of memory: Killed process 5 (a\x1b[31mb) total-vm:1kB\n", &k));
    assert_int_equal(strlen(k.cgroup), CG_OOM_PATH_SIZE - 1);
    assert_string_equal(k.name, "a?[31mb");
}

static void a_log_that_is_not_there_is_an_error(void **state)
{
    struct cg_oom_log *l = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cg_oom_log_open(&l, "/does/not/exist", &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "open /does/not/exist: No such file or directory");
    assert_null(l);
}

static void the_log_is_read_from_now_on(void **state)
{
    static const char old[] = "3,1,1,-;Out of memory: Killed process 1 (old) total-vm:1kB\n";
    static const char new[] = "3,1,1,-;Out of memory: Killed process 2 (new) total-vm:1kB\n";
    char path[] = "/tmp/test-oom-log-XXXXXX";
    int fd = mkstemp(path);
    struct cg_oom_kill k = { 0 };
    struct cg_oom_log *l = NULL;
    struct err e = { 0 };
    bool more = true;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, old, sizeof(old) - 1), sizeof(old) - 1);
    assert_int_equal(cg_oom_log_open(&l, path, &e), ERR_OK);
    assert_false(cg_oom_log_next(l, 8, &k, &more));
    assert_false(more);
    assert_int_equal(write(fd, new, sizeof(new) - 1), sizeof(new) - 1);
    assert_true(cg_oom_log_next(l, 8, &k, &more));
    assert_string_equal(k.name, "new");
    cg_oom_log_close(l);
    unlink(path);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_at_a_limit_has_number_name_and_cgroup),
        cmocka_unit_test(processes_that_go_with_their_group_have_its_cgroup),
        cmocka_unit_test(the_whole_machine_out_of_memory_is_told_apart),
        cmocka_unit_test(a_name_that_looks_like_the_log_stays_a_name),
        cmocka_unit_test(only_the_kernel_is_believed),
        cmocka_unit_test(what_is_too_long_is_cut_and_what_is_not_ascii_replaced),
        cmocka_unit_test(a_log_that_is_not_there_is_an_error),
        cmocka_unit_test(the_log_is_read_from_now_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
