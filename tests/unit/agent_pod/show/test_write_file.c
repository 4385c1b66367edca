/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the manifest folder is written or removed by an agent that is killed after each system call in
 * turn, and on a disk that is full after each page and each inode in turn: the old objects or the new ones
 * are found then, never half of them, and never fewer neighbours.
 */
#include "tests/unit/base/helper.h"
#include "tests/unit/base/own_mounts.h"

#include "agent/pod/show/write_file.h"
#include "agent/source/put.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/statvfs.h>

#define POINTS_MAX 500
#define NAME "configmap-default-a.yaml"
#define CONFIG(name, value)                                                                                  \
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name ", namespace: default}\ndata: {x: \"" value    \
    "\"}\n"
#define FIRST "# kept\n" CONFIG("one", "1") "---\n"
#define LAST "---\n" CONFIG("three", "3") "# kept, too\n"

struct step {
    const char *what;
    const char *before, *after; /* of the file; NULL: there is none */
    const char *text;           /* of the object; NULL: it is removed */
};

static char big[3 * 4096 + 1];

static const struct step steps[] = {
    { "create", NULL, CONFIG("a", "new"), CONFIG("a", "new") },
    { "replace", CONFIG("a", "old"), CONFIG("a", "new"), CONFIG("a", "new") },
    { "delete", CONFIG("a", "old"), NULL, NULL },
    { "replace one of three", FIRST CONFIG("a", "old") LAST, FIRST CONFIG("a", "new") LAST,
      CONFIG("a", "new") },
    { "delete one of three", FIRST CONFIG("a", "old") LAST, FIRST CONFIG("three", "3") "# kept, too\n",
      NULL },
};

/* ---- a folder ---- */

static void put_text(const char *dir, const char *text)
{
    struct err e = { 0 };
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", dir, NAME);
    if (text == NULL)
        assert_true(unlink(path) == 0 || errno == ENOENT);
    else if (fs_replace_at(AT_FDCWD, path, text, strlen(text), 0640, false, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static bool has_text(const char *dir, const char *text)
{
    struct err e = { 0 };
    str_auto got = NULL;
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", dir, NAME);
    if (fs_read_at(AT_FDCWD, path, 1 << 20, &got, NULL, &e) != ERR_OK)
        return text == NULL && e.sys == ENOENT;
    return text != NULL && strcmp(got, text) == 0;
}

static void assert_nothing_else(const char *dir)
{
    DIR *list = opendir(dir);

    assert_non_null(list);
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list))
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 && strcmp(d->d_name, NAME) != 0)
            fail_msg("%s is left in the folder", d->d_name);
    closedir(list);
}

/* Writes as the agent does that has read `s->before`. */
static enum err_code run(const char *dir, const struct step *s, struct err *e)
{
    struct write_file f = { .dir = strdup(dir),
                            .name = strdup(NAME),
                            .key = { API_KIND_CONFIG_MAP, "default", "a" },
                            .text = s->text != NULL ? strdup(s->text) : NULL,
                            .create = s->before == NULL };
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };

    if (s->before != NULL) {
        assert_int_equal(api_decode_file(NAME, s->before, strlen(s->before), &objects, &problems, e), ERR_OK);
        assert_int_equal(problems.n, 0);
        for (size_t i = 0; i < objects.n; i++)
            if (src_key_is(&f.key, &objects.v[i]))
                f.was = api_object_ref(&objects.v[i]);
        assert_non_null(f.was.pod);
        f.alone = objects.n == 1;
    }
    ERR_IGNORE(write_file_run(&f, e));
    write_file_done(&f);
    api_objects_done(&objects);
    api_problems_done(&problems);
    return e->code;
}

/* ---- kills ---- */

/* True: it was over before. */
static bool killed_at(const char *dir, const struct step *s, unsigned point)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct err e = { 0 };
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(run(dir, s, &e) == ERR_OK ? 0 : 1);
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

static void killed_after_any_system_call_the_objects_are_old_or_new(void **state)
{
    const char *dir = *state;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const struct step *s = &steps[i];
        unsigned point, n_old = 0, n_new = 0;
        struct err e = { 0 };

        for (point = 1;; point++) {
            bool over, old, new;

            assert_true(point < POINTS_MAX);
            put_text(dir, s->before);
            over = killed_at(dir, s, point);
            old = has_text(dir, s->before);
            new = has_text(dir, s->after);
            if (!old && !new)
                fail_msg("%s, killed after call %u: neither old nor new", s->what, point);
            n_old += old;
            n_new += new;
            src_put_sweep(dir); /* the next start */
            assert_nothing_else(dir);
            if (over)
                break;
        }
        print_message("%s: %u calls, %u old, %u new\n", s->what, point, n_old, n_new);
        assert_true(n_old > 2 && n_new > 2);

        /* What is left is in nobody's way: the same write, without a start between. */
        put_text(dir, s->before);
        for (point = 1; has_text(dir, s->before) && point < POINTS_MAX; point++)
            killed_at(dir, s, point);
        put_text(dir, s->before);
        if (run(dir, s, &e) != ERR_OK)
            fail_msg("%s: %s", s->what, e.text);
        assert_true(has_text(dir, s->after));
        src_put_sweep(dir);
        assert_nothing_else(dir);
    }
}

/* ---- disks ---- */

static void small_disk(const char *dir, const char *options, unsigned long flags)
{
    if (mount("small", dir, "tmpfs", flags, options) != 0)
        SKIP("no mount namespace of our own");
}

static void limit(const char *dir, const char *what, uint64_t value)
{
    char options[64];

    snprintf(options, sizeof(options), "%s=%llu", what, (unsigned long long)value);
    assert_int_equal(mount(NULL, dir, NULL, MS_REMOUNT, options), 0);
}

static void fill(const char *dir, const struct step *s, const char *what)
{
    unsigned refused = 0;

    for (unsigned spare = 0;; spare++) {
        const bool inodes = strcmp(what, "nr_inodes") == 0;
        struct err e = { 0 };
        struct statvfs now;
        enum err_code code;

        put_text(dir, s->before);
        assert_int_equal(statvfs(dir, &now), 0);
        limit(dir, what,
              inodes ? now.f_files - now.f_ffree + spare
                     : (now.f_blocks - now.f_bfree + spare) * now.f_frsize + 1); /* 0: no limit */
        code = run(dir, s, &e);
        limit(dir, what, inodes ? 1000 : 1 << 20);
        assert_nothing_else(dir);
        assert_true(has_text(dir, code == ERR_OK ? s->after : s->before));
        if (code == ERR_OK)
            break;
        assert_int_equal(code, ERR_EXHAUSTED);
        assert_non_null(strstr(e.text, "No space left on device"));
        assert_non_null(strstr(e.text, dir));
        refused++;
        assert_true(spare < 20);
    }
    print_message("%s, %s: refused %u times\n", s->what, what, refused);
    assert_true(s->after == NULL || refused > 0);
}

static void a_full_disk_refuses_the_write_whole(void **state)
{
    const char *dir = *state;
    struct step more = steps[1];

    small_disk(dir, "size=1m,nr_inodes=1000", 0);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        fill(dir, &steps[i], "nr_inodes");
    snprintf(big, sizeof(big), "%s%*s", CONFIG("a", "new") "#", 9000, "x");
    more.text = more.after = big;
    fill(dir, &more, "size");
    more.before = NULL;
    put_text(dir, NULL);
    fill(dir, &more, "size");
    assert_int_equal(umount(dir), 0);
}

static void other_failures_of_the_disk_name_the_folder(void **state)
{
    const char *dir = *state;
    char gone[200];

    small_disk(dir, "size=1m", 0);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct err e = { 0 };

        put_text(dir, steps[i].before);
        assert_int_equal(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
        assert_int_equal(run(dir, &steps[i], &e), ERR_INTERNAL);
        assert_non_null(strstr(e.text, "Read-only file system"));
        assert_non_null(strstr(e.text, dir));
        assert_true(has_text(dir, steps[i].before));
        assert_int_equal(mount(NULL, dir, NULL, MS_REMOUNT, NULL), 0);
        assert_nothing_else(dir);

        snprintf(gone, sizeof(gone), "%s/gone", dir);
        e = (struct err){ 0 };
        assert_int_equal(run(gone, &steps[i], &e), ERR_INTERNAL);
        assert_non_null(strstr(e.text, gone));
    }
    assert_int_equal(umount(dir), 0);
}

/* ---- other writers ---- */

static void a_file_that_was_edited_meanwhile_stays(void **state)
{
    const char *dir = *state;

    for (size_t i = 1; i < ARRAY_LEN(steps); i++) {
        struct err e = { 0 };
        str_auto edited = str_printf("%s---\n%s", steps[i].before, CONFIG("more", "1"));

        /* A new neighbour stays, where the object itself is as it was. */
        put_text(dir, edited);
        if (run(dir, &steps[i], &e) != ERR_OK)
            fail_msg("%s", e.text);
        assert_false(has_text(dir, steps[i].after));
        assert_false(has_text(dir, NULL));

        put_text(dir, CONFIG("a", "by hand"));
        assert_int_equal(run(dir, &steps[i], &e), ERR_ABORTED);
        assert_true(has_text(dir, CONFIG("a", "by hand")));
        put_text(dir, NULL);
        e = (struct err){ 0 };
        assert_int_equal(run(dir, &steps[i], &e), ERR_ABORTED);
        put_text(dir, "kind: [");
        e = (struct err){ 0 };
        assert_int_equal(run(dir, &steps[i], &e), ERR_PERMISSION);
        assert_non_null(strstr(e.text, "has errors"));
        assert_true(has_text(dir, "kind: ["));
        put_text(dir, NULL);
        assert_nothing_else(dir);
    }
}

/* The smallest time between the read and the rename is closed by a second look at the file. */
static void a_file_that_is_edited_before_the_rename_stays(void **state)
{
    const char *dir = *state;
    fd_auto folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e = { 0 };
    struct stat was;

    put_text(dir, "old");
    assert_int_equal(fstatat(folder, NAME, &was, 0), 0);
    put_text(dir, "new");
    assert_int_equal(src_put_over(folder, dir, NAME, &was, "ours", 4, 0644, &e), ERR_ABORTED);
    assert_true(has_text(dir, "new"));
    e = (struct err){ 0 };
    assert_int_equal(src_put_remove(folder, dir, NAME, &was, &e), ERR_ABORTED);
    assert_true(has_text(dir, "new"));
    assert_nothing_else(dir);
}

static void links_and_other_things_are_not_written_through(void **state)
{
    const char *dir = *state;
    char path[200], target[200];
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s/%s", dir, NAME);
    snprintf(target, sizeof(target), "%s.target", dir);
    assert_int_equal(
        fs_replace_at(AT_FDCWD, target, steps[1].before, strlen(steps[1].before), 0600, false, &e), ERR_OK);
    assert_int_equal(symlink(target, path), 0);
    for (size_t i = 1; i < 3; i++) {
        str_auto text = NULL;

        assert_int_equal(run(dir, &steps[i], &e), ERR_PERMISSION);
        assert_non_null(strstr(e.text, "not a regular file"));
        assert_int_equal(fs_read_at(AT_FDCWD, target, 4096, &text, NULL, &e), ERR_OK);
        assert_string_equal(text, steps[1].before);
        e = (struct err){ 0 };
    }
    /* A new object does not go through it either. */
    assert_int_equal(run(dir, &steps[0], &e), ERR_ABORTED);
    assert_true(has_text(dir, steps[1].before));
    assert_int_equal(unlink(target), 0);
    e = (struct err){ 0 };
    assert_int_equal(run(dir, &steps[0], &e), ERR_INTERNAL);
    e = (struct err){ 0 };
    assert_int_equal(unlink(path), 0);

    /* And the name under which it is made may be anything. */
    snprintf(path, sizeof(path), "%s/%s", dir, SRC_PUT_NAME);
    assert_int_equal(symlink("/dev/full", path), 0);
    put_text(dir, steps[1].before);
    if (run(dir, &steps[1], &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_true(has_text(dir, steps[1].after));
}

/* Or the second one would come into force when the first is removed. */
static void an_object_has_one_file(void **state)
{
    const char *dir = *state;
    struct err e = { 0 };
    size_t n = 0;

    put_text(dir, steps[3].before); /* "a" is one of three in it, and was not read yet */
    assert_int_equal(run(dir, &steps[0], &e), ERR_ABORTED);
    assert_non_null(strstr(e.text, "already contains the object"));
    e = (struct err){ 0 };
    put_text(dir, "kind: [");
    assert_int_equal(run(dir, &steps[0], &e), ERR_PERMISSION);
    assert_non_null(strstr(e.text, "has errors"));
    e = (struct err){ 0 };
    assert_nothing_else(dir);
    put_text(dir, CONFIG("other", "1"));
    if (run(dir, &steps[0], &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_true(has_text(dir, CONFIG("other", "1")));
    DIR *list = opendir(dir);
    assert_non_null(list);
    while (readdir(list) != NULL)
        n++;
    closedir(list);
    assert_int_equal(n, 4); /* ".", "..", and two files */
}

static void owner_and_mode_remain(void **state)
{
    const char *dir = *state;
    struct err e = { 0 };
    char path[200];
    struct stat st;

    if (geteuid() != 0)
        SKIP("no other user's file without root");
    snprintf(path, sizeof(path), "%s/%s", dir, NAME);
    put_text(dir, steps[1].before);
    assert_int_equal(chown(path, 4711, 4712), 0);
    assert_int_equal(chmod(path, 0604), 0);
    if (run(dir, &steps[1], &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 4711);
    assert_int_equal(st.st_gid, 4712);
    assert_int_equal(st.st_mode & 07777, 0604);
}

static int private_mounts(void **state)
{
    (void)state;
    own_mounts();
    return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_after_any_system_call_the_objects_are_old_or_new),
        TEST(a_full_disk_refuses_the_write_whole),
        TEST(other_failures_of_the_disk_name_the_folder),
        TEST(a_file_that_was_edited_meanwhile_stays),
        TEST(a_file_that_is_edited_before_the_rename_stays),
        TEST(links_and_other_things_are_not_written_through),
        TEST(an_object_has_one_file),
        TEST(owner_and_mode_remain),
    };

    return cmocka_run_group_tests(tests, private_mounts, NULL);
}
