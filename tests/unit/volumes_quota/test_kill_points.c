/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent that is killed after each system call of a pod's start or end, in turn. The quotas are in shared
 * memory (fake_kernel.h), table and files are real. What is found then: every id in use is in the table, and
 * in no second tree; the next agent leaves nothing. tests/node has the same with real quotas.
 */
#include "tests/unit/volumes_quota/fake_kernel.h"

#include <signal.h>
#include <sys/ptrace.h>

#define POINTS_MAX 2000

static enum err_code live(struct fixture *f, bool end, struct err *e)
{
    scoped(projects_close) struct projects *p = NULL;
    const struct projects_options o = { f->state, f->projects, f->projid };
    struct projects_wish w[3];
    const struct quota_limits l = { .hard_bytes = 4096 };

    for (size_t i = 0; i < 3; i++)
        w[i] = (struct projects_wish){ &f->fs, "uid", f->tree[i], 0 };
    if (projects_open(&p, &o, e) != ERR_OK || (!end && projects_take_all(p, w, 3, e) != ERR_OK))
        return e->code;
    for (size_t i = 0; i < 3; i++) {
        const struct project *known = projects_find(p, f->tree[i]);

        if (end && known != NULL && rmdir(f->tree[i]) == 0)
            fake_assign(known->id, 0);
        if (end)
            continue;
        if (mkdir(f->tree[i], 0755) != 0 && errno != EEXIST)
            return err_sys(e, errno, "mkdir");
        fake_assign(w[i].id, 1);
        if (quota_set(&f->fs, w[i].id, &l, e) != ERR_OK)
            return e->code;
    }
    return end ? projects_release_all(p, w, 3, e) : ERR_OK;
}

static bool killed_at(struct fixture *f, bool end, unsigned point)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct err e = { 0 };
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(live(f, end, &e) == ERR_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("processes cannot be traced here");
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
    for (unsigned stops = 0;;) { /* a stop before and one after each call */
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return true;
        }
        if (WSTOPSIG(status) != (SIGTRAP | 0x80) || ++stops != 2 * point)
            continue;
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return false;
    }
}

static void assert_known(struct fixture *f)
{
    struct projects *p = must_open(f);

    for (size_t i = 0; i < FAKE_MAX; i++)
        if (fake->dquot[i].d_icount > 0 && projects_by_id(p, 0, fake->dquot[i].d_id) == NULL)
            fail_msg("project %u is in use, and the table does not know it", fake->dquot[i].d_id);
    projects_close(p);
}

static void assert_nothing_left(struct fixture *f)
{
    struct projects *p = must_open(f);
    struct err e = { 0 };
    size_t waiting = 99;

    if (projects_sweep(p, &f->fs, &waiting, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(waiting, 0);
    projects_close(p);
    assert_text(f->projects, "7:/srv\n");
    assert_text(f->projid, "seven:7\n");
    for (size_t i = 0; i < FAKE_MAX; i++)
        assert_int_equal(fake->dquot[i].d_icount + fake->dquot[i].d_blk_hardlimit, 0);
    memset(fake->dquot, 0, sizeof(fake->dquot));
}

/* Their usage goes with them, as the kernel's does. */
static void remove_trees(struct fixture *f)
{
    for (size_t i = 0; i < 3; i++)
        rmdir(f->tree[i]);
    for (size_t i = 0; i < FAKE_MAX; i++)
        fake->dquot[i].d_icount = fake->dquot[i].d_bcount = 0;
}

static unsigned kill_everywhere(struct fixture *f, bool end, bool again)
{
    for (unsigned point = 1;; point++) {
        struct err e = { 0 };
        bool over;

        assert_true(point < POINTS_MAX);
        if (end)
            assert_int_equal(live(f, false, &e), ERR_OK);
        over = killed_at(f, end, point);
        assert_known(f);
        if (again) {
            assert_int_equal(live(f, false, &e), ERR_OK);
            assert_known(f);
        }
        remove_trees(f);
        assert_nothing_left(f);
        if (over)
            return point;
    }
}

static void begin(struct fixture *f)
{
    put_text(f->projects, "7:/srv\n");
    put_text(f->projid, "seven:7\n");
}

static void a_start_that_is_killed_shares_and_leaks_nothing(void **state)
{
    begin(*state);
    assert_true(kill_everywhere(*state, false, false) > 50);
    assert_true(kill_everywhere(*state, false, true) > 50);
}

static void an_end_that_is_killed_shares_and_leaks_nothing(void **state)
{
    begin(*state);
    assert_true(kill_everywhere(*state, true, false) > 50);
    assert_true(kill_everywhere(*state, true, true) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_start_that_is_killed_shares_and_leaks_nothing),
        TEST(an_end_that_is_killed_shares_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
