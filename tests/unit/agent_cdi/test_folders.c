/* SPDX-License-Identifier: Apache-2.0 */
/* Two real folders: what their files resolve to, which files count, and that changes are noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/cdi/cdi.h"
#include "agent/cdi/internal.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/op.h"
#include "tests/unit/base/failing.h"

#include <stdlib.h>

enum { DEADLINE_MS = 10000 };

struct fixture {
    uv_loop_t loop;
    char root[64], etc[96], run[96];
    const char *dirs[3];
    struct cdi *cdi;
    unsigned changes;
};

static void on_changed(void *arg)
{
    ((struct fixture *)arg)->changes++;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    strcpy(f->root, "/tmp/test-cdi.XXXXXX");
    if (mkdtemp(f->root) == NULL)
        return -1;
    snprintf(f->etc, sizeof(f->etc), "%s/etc/cdi", f->root);
    snprintf(f->run, sizeof(f->run), "%s/run/cdi", f->root);
    f->dirs[0] = f->etc;
    f->dirs[1] = f->run;
    uv_loop_init(&f->loop);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    uint64_t until = clock_mono_ms() + DEADLINE_MS;
    struct err e = { 0 };
    int left;

    failing_arm("", "", 0, 0);
    cdi_close(f->cdi);
    do
        left = uv_run(&f->loop, UV_RUN_NOWAIT);
    while (left != 0 && clock_mono_ms() < until);
    if (left != 0 || uv_loop_close(&f->loop) != 0 || op_count() != 0) {
        print_error("handles or operations are left\n");
        return -1;
    }
    if (fs_remove_tree(AT_FDCWD, f->root, &e) != ERR_OK)
        print_error("%s\n", e.text);
    free(f);
    return 0;
}

static void make_folders(struct fixture *f)
{
    struct err e = { 0 };

    assert_int_equal(fs_mkdirs(f->etc, 0755, &e), ERR_OK);
    assert_int_equal(fs_mkdirs(f->run, 0755, &e), ERR_OK);
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[200];
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0644, false, &e), ERR_OK);
}

#define SPEC(kind, env, device, device_env)                                                                  \
    "{\"cdiVersion\":\"0.6.0\",\"kind\":\"" kind "\",\"containerEdits\":{\"env\":[\"" env                    \
    "\"]},\"devices\":[{\"name\":\"" device "\",\"containerEdits\":{\"env\":[\"" device_env "\"]}}]}"

/* Until the folders have been read so often since the start. */
static void to_change(struct fixture *f, unsigned changes)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;

    while (f->changes < changes || cdi_is_busy(f->cdi)) {
        if (clock_mono_ms() > until)
            fail_msg("%u changes, not %u", f->changes, changes);
        uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static void start(struct fixture *f)
{
    struct err e = { 0 };

    assert_int_equal(cdi_open(&f->cdi, &f->loop, f->dirs, on_changed, f, &e), ERR_OK);
    to_change(f, 1);
}

/* The environment that a name (or several, with commas) gets, or the error. */
static void resolves(struct fixture *f, const char *list, const char *expected)
{
    struct strs names = { 0 };
    struct cdi_resolved r = { 0 };
    struct err e = { 0 };
    buf_auto got = BUF_INIT(4096);

    assert_int_equal(cdi_annotation_names(CDI_ANNOTATION "x", list, &names, &e), ERR_OK);
    if (cdi_resolve(f->cdi, (const char *const *)names.v, names.n, &r, &e) != ERR_OK)
        buf_adds(&got, e.text);
    for (size_t i = 0; i < r.edits.n_env; i++)
        buf_addf(&got, "%s%s", i > 0 ? " " : "", r.edits.env[i]);
    assert_string_equal(got.p, expected);
    cdi_resolved_done(&r);
    strs_done(&names);
}

static void note(const struct api_problem *p, void *arg)
{
    api_problem_add_text(p, "", arg);
    buf_addc(arg, '\n');
}

/* With the fixture's folder as ROOT. */
static void has_problems(struct fixture *f, const char *expected)
{
    buf_auto got = BUF_INIT(1 << 16), plain = BUF_INIT(1 << 16);
    const char *p, *hit;

    cdi_problems(f->cdi, note, &got);
    for (p = got.p; (hit = strstr(p, f->root)) != NULL; p = hit + strlen(f->root))
        buf_addf(&plain, "%.*sROOT", (int)(hit - p), p);
    buf_adds(&plain, p);
    assert_string_equal(plain.p, expected);
}

#define UNRESOLVABLE "CDI device injection failed: unresolvable CDI devices "

/* ---- what names resolve to ---- */

static void a_files_edits_come_once_before_those_of_its_first_device(void **state)
{
    struct fixture *f = *state;

    make_folders(f);
    put(f->etc, "a.json",
        "{\"cdiVersion\":\"0.6.0\",\"kind\":\"x.com/"
        "a\",\"containerEdits\":{\"env\":[\"A=all\"]},\"devices\":["
        "{\"name\":\"1\",\"containerEdits\":{\"env\":[\"A=1\"]}},{\"name\":\"2\",\"containerEdits\":{\"env\":"
        "["
        "\"A=2\"]}}]}");
    put(f->run, "b.yaml",
        "cdiVersion: 0.6.0\nkind: x.com/b\ncontainerEdits: {env: [B=all]}\n"
        "devices: [{name: one, containerEdits: {env: [B=1]}}]\n");
    start(f);
    has_problems(f, "");
    resolves(f, "x.com/a=1,x.com/b=one,x.com/a=2,x.com/a=1", "A=all A=1 B=all B=1 A=2");
    resolves(f, "x.com/a=2", "A=all A=2");
    resolves(f, "x.com/a=3,x.com/a=1,x.com/c=1", UNRESOLVABLE "x.com/a=3, x.com/c=1");
}

static void the_later_folder_wins_and_a_conflict_in_one_wins_nothing(void **state)
{
    struct fixture *f = *state;

    make_folders(f);
    put(f->etc, "a.json", SPEC("x.com/a", "E=etc", "1", "A=etc"));
    put(f->run, "b.json", SPEC("x.com/a", "E=run", "1", "A=run"));
    put(f->run, "c.json", SPEC("x.com/b", "E=c", "1", "A=c"));
    put(f->run, "d.json", SPEC("x.com/b", "E=d", "1", "A=d"));
    put(f->etc, "e.json", SPEC("x.com/b", "E=e", "1", "A=e"));
    start(f);
    resolves(f, "x.com/a=1", "E=run A=run");
    resolves(f, "x.com/b=1", UNRESOLVABLE "x.com/b=1");
    has_problems(f, "ROOT/run/cdi/c.json: conflicting device \"x.com/b=1\" (specs \"ROOT/run/cdi/c.json\", "
                    "\"ROOT/run/cdi/d.json\")\n");
}

static void what_was_resolved_outlives_the_files(void **state)
{
    struct fixture *f = *state;
    const char *const names[] = { "x.com/a=1" };
    struct cdi_resolved r;
    struct err e = { 0 };

    make_folders(f);
    put(f->etc, "a.json", SPEC("x.com/a", "E=1", "1", "A=1"));
    start(f);
    assert_int_equal(cdi_resolve(f->cdi, names, 1, &r, &e), ERR_OK);
    put(f->etc, "a.json", SPEC("x.com/a", "E=2", "1", "A=2"));
    to_change(f, 2);
    assert_string_equal(r.edits.env[1], "A=1");
    cdi_resolved_done(&r);
    resolves(f, "x.com/a=1", "E=2 A=2");
}

/* ---- which files count ---- */

static void only_files_that_root_alone_can_write_are_read(void **state)
{
    struct fixture *f = *state;
    char path[200], target[200];

    make_folders(f);
    put(f->etc, "a.json.tmp", "rubbish");
    put(f->etc, "bad.json", "{\"cdiVersion\":\"0.6.0\",\n \"kind\":\"x\",\n \"devices\":[]}");
    put(f->etc, "open.json", SPEC("x.com/a", "E=1", "open", "A=1"));
    snprintf(path, sizeof(path), "%s/open.json", f->etc);
    chmod(path, 0666);
    put(f->root, "linked", SPEC("x.com/a", "E=1", "linked", "A=1"));
    snprintf(target, sizeof(target), "%s/linked", f->root);
    snprintf(path, sizeof(path), "%s/link.json", f->etc);
    assert_int_equal(symlink(target, path), 0);
    snprintf(path, sizeof(path), "%s/nowhere.json", f->etc);
    assert_int_equal(symlink("/no/such", path), 0);
    snprintf(path, sizeof(path), "%s/pipe.json", f->etc);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof(path), "%s/dir.json", f->etc);
    assert_int_equal(mkdir(path, 0755), 0);
    if (geteuid() == 0) {
        put(f->etc, "user.json", SPEC("x.com/a", "E=1", "user", "A=1"));
        snprintf(path, sizeof(path), "%s/user.json", f->etc);
        assert_int_equal(chown(path, 1000, 0), 0);
    }
    start(f);
    resolves(f, "x.com/a=linked", "E=1 A=1");
    resolves(f, "x.com/a=open,x.com/a=user", UNRESOLVABLE "x.com/a=open, x.com/a=user");
    str_auto expected = str_printf("ROOT/etc/cdi/bad.json:2:2: kind: \"x\" must be vendor/class\n"
                                   "ROOT/etc/cdi/nowhere.json: is a symbolic link that leads nowhere\n"
                                   "ROOT/etc/cdi/open.json: can be written by everyone; chmod o-w\n"
                                   "ROOT/etc/cdi/pipe.json: is not a file\n%s",
                                   geteuid() == 0 ? "ROOT/etc/cdi/user.json: is not owned by root\n" : "");
    has_problems(f, expected);
}

static void a_folder_that_others_can_write_is_not_read(void **state)
{
    struct fixture *f = *state;

    make_folders(f);
    put(f->etc, "a.json", SPEC("x.com/a", "E=1", "1", "A=1"));
    chmod(f->etc, 01777);
    start(f);
    has_problems(f, "ROOT/etc/cdi: can be written by everyone; chmod o-w\n");
    chmod(f->etc, 0755);
    to_change(f, 2);
    has_problems(f, "");
    resolves(f, "x.com/a=1", "E=1 A=1");
}

static void a_file_that_is_too_large_is_named(void **state)
{
    struct fixture *f = *state;
    char path[200];

    make_folders(f);
    put(f->etc, "a.json", "");
    snprintf(path, sizeof(path), "%s/a.json", f->etc);
    assert_int_equal(truncate(path, CDI_FILE_MAX + 1), 0);
    start(f);
    has_problems(f, "ROOT/etc/cdi/a.json: is too large, allowed are 4 MiB\n");
}

/* ---- changes ---- */

static void missing_folders_are_awaited(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    start(f);
    resolves(f, "x.com/a=1", UNRESOLVABLE "x.com/a=1");
    assert_int_equal(fs_mkdirs(f->run, 0755, &e), ERR_OK);
    put(f->run, "a.json", SPEC("x.com/a", "E=1", "1", "A=1"));
    to_change(f, 2);
    resolves(f, "x.com/a=1", "E=1 A=1");
    assert_int_equal(fs_remove_tree(AT_FDCWD, f->run, &e), ERR_OK);
    to_change(f, 3);
    resolves(f, "x.com/a=1", UNRESOLVABLE "x.com/a=1");
    assert_int_equal(fs_mkdirs(f->run, 0755, &e), ERR_OK);
    put(f->run, "a.json", SPEC("x.com/a", "E=2", "1", "A=2"));
    to_change(f, 4);
    resolves(f, "x.com/a=1", "E=2 A=2");
}

static void a_folder_may_be_replaced(void **state)
{
    struct fixture *f = *state;
    char other[120], away[120];

    make_folders(f);
    put(f->run, "a.json", SPEC("x.com/a", "E=1", "1", "A=1"));
    start(f);
    snprintf(other, sizeof(other), "%s/run/other", f->root);
    snprintf(away, sizeof(away), "%s/run/away", f->root);
    assert_int_equal(mkdir(other, 0755), 0);
    put(other, "a.json", SPEC("x.com/a", "E=2", "1", "A=2"));
    assert_int_equal(rename(f->run, away) + rename(other, f->run), 0);
    to_change(f, 2);
    resolves(f, "x.com/a=1", "E=2 A=2");
    put(f->run, "a.json", SPEC("x.com/a", "E=3", "1", "A=3"));
    to_change(f, 3);
    resolves(f, "x.com/a=1", "E=3 A=3");
}

static void a_file_counts_when_it_is_complete(void **state)
{
    const char *text = SPEC("x.com/a", "E=1", "1", "A=1");
    struct fixture *f = *state;
    char path[200];

    make_folders(f);
    start(f);
    snprintf(path, sizeof(path), "%s/a.json", f->etc);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(write(fd, text, 20) == 20);
    put(f->run, "b.json", SPEC("x.com/b", "E=1", "1", "A=1")); /* meanwhile another one */
    to_change(f, 2);
    resolves(f, "x.com/b=1", "E=1 A=1");
    assert_true(write(fd, text + 20, strlen(text) - 20) > 0);
    close(fd);
    to_change(f, 3);
    resolves(f, "x.com/a=1", "E=1 A=1");
    has_problems(f, "");
}

static void a_refresh_is_told_though_nothing_changed(void **state)
{
    struct fixture *f = *state;

    make_folders(f);
    start(f);
    cdi_refresh(f->cdi);
    assert_true(cdi_is_busy(f->cdi));
    to_change(f, 2);
    put(f->etc, "notes.txt", "x"); /* no spec file: nothing is read */
    uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_false(cdi_is_busy(f->cdi));
}

static void a_folder_that_cannot_be_looked_at_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    const char *const names[] = { "x.com/a=1" };
    struct cdi_resolved r;

    make_folders(f);
    put(f->etc, "a.json", SPEC("x.com/a", "E=1", "1", "A=1"));
    failing_arm("openat", "a.json", EMFILE, 1);
    assert_int_equal(cdi_open(&f->cdi, &f->loop, f->dirs, on_changed, f, &e), ERR_OK);
    assert_int_equal(cdi_resolve(f->cdi, names, 1, &r, &e), ERR_UNAVAILABLE);
    to_change(f, 1);
    resolves(f, "x.com/a=1", "E=1 A=1");
    failing_arm("openat", "a.json", EMFILE, 1);
    put(f->etc, "b.json", SPEC("x.com/b", "E=1", "1", "A=1"));
    while (failing_times > 0 || cdi_is_busy(f->cdi))
        uv_run(&f->loop, UV_RUN_ONCE);
    resolves(f, "x.com/a=1", "E=1 A=1");
    has_problems(f, "open ROOT/etc/cdi/a.json: Too many open files\n");
    to_change(f, 2); /* it is tried again by itself */
    resolves(f, "x.com/b=1", "E=1 A=1");
    has_problems(f, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_files_edits_come_once_before_those_of_its_first_device),
        TEST(the_later_folder_wins_and_a_conflict_in_one_wins_nothing),
        TEST(what_was_resolved_outlives_the_files),
        TEST(only_files_that_root_alone_can_write_are_read),
        TEST(a_folder_that_others_can_write_is_not_read),
        TEST(a_file_that_is_too_large_is_named),
        TEST(missing_folders_are_awaited),
        TEST(a_folder_may_be_replaced),
        TEST(a_file_counts_when_it_is_complete),
        TEST(a_refresh_is_told_though_nothing_changed),
        TEST(a_folder_that_cannot_be_looked_at_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
