/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A publish that is killed after each of its system calls in turn, first to last: a tracer counts them from
 * outside, so nothing in the writer knows of it.  What is found then, and what the next publish (the
 * restarted agent's) makes of it, must be the old version or the new one, whole.  The same with a file system
 * that is full after each inode and each page in turn.
 */
#include "tests/unit/volumes/support.h"

#include "base/clock.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define POINTS_MAX 2000

static const struct vol_file version_1[] = { FILE_OF("a", "one", 0644), FILE_OF("b/c/d", "one", 0400),
                                             FILE_OF("gone", "one", 0644), FILE_OF("b/old", "one", 0644) };
static const struct vol_file version_2[] = { FILE_OF("a", "two", 0644), FILE_OF("b/c/d", "two", 0400),
                                             FILE_OF("new", "two", 0600), FILE_OF("b/young", "two", 0644) };

struct step { /* from one payload to the next */
    const struct vol_file *before, *after;
    size_t n_before, n_after;
    int64_t group_before, group_after;
};

static const struct step steps[] = {
    { NULL, version_1, SIZE_MAX, 4, -1, -1 }, /* SIZE_MAX: nothing was published yet */
    { version_1, version_2, 4, 4, -1, -1 },   { version_1, version_1, 4, 4, -1, 4711 },
    { version_1, NULL, 4, 0, -1, -1 },        { NULL, version_2, 0, 4, -1, 4711 },
};

static enum err_code publish(struct fixture *f, const struct vol_file *files, size_t n, int64_t group,
                             bool keep, struct err *e)
{
    bool changed = false, kept = false;
    const struct vol_payload p = { .uid = "pod",
                                   .name = "vol",
                                   .files = files,
                                   .n_files = n,
                                   .fs_group = group,
                                   .root_mode = 0777,
                                   .ret_kept = keep ? &kept : NULL };

    return vol_payload_publish(f->node, &p, &changed, e);
}

static void must_publish(struct fixture *f, const struct vol_file *files, size_t n, int64_t group)
{
    struct err e = { 0 };

    if (publish(f, files, n, group, false, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static size_t count_files(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fdopendir(copy);
    size_t n = 0;

    assert_non_null(list);
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        fd_auto below = openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        n += below >= 0 ? count_files(below) : 1;
    }
    closedir(list);
    return n;
}

/* Is what stands in the folder `dir` of the volume exactly these files, bytes, modes and groups? */
static bool holds(int volume, const char *dir, const struct vol_file *files, size_t n, int64_t group)
{
    fd_auto fd = openat(volume, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || count_files(fd) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct err e = { 0 };
        str_auto text = NULL;
        struct stat st;
        mode_t mode = files[i].mode | (group >= 0 ? 0440 : 0);
        if (fs_read_at(fd, files[i].path, 4096, &text, NULL, &e) != ERR_OK ||
            strcmp(text, files[i].data) != 0 || fstatat(fd, files[i].path, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            (st.st_mode & 07777) != mode || (group >= 0 && st.st_gid != group))
            return false;
    }
    return true;
}

static int open_volume(const struct fixture *f)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/pod/vol", f->tmpfs);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* 1: the version before, 2: the one after; 0: neither, which must not be. */
static int version_at(const struct fixture *f, const struct step *s)
{
    fd_auto volume = open_volume(f);
    struct stat st;

    if (s->n_before == SIZE_MAX && (volume < 0 || fstatat(volume, "..data", &st, AT_SYMLINK_NOFOLLOW) != 0))
        return 1;
    if (volume < 0)
        return 0;
    if (holds(volume, "..data", s->after, s->n_after, s->group_after))
        return 2;
    return s->n_before != SIZE_MAX && holds(volume, "..data", s->before, s->n_before, s->group_before);
}

/* Everything at the top of the volume: ..data, one generation, and a link for each file or folder. */
static void assert_nothing_else(const struct fixture *f, const struct vol_file *files, size_t n)
{
    fd_auto volume = open_volume(f);
    size_t links = 0, generations = 0, data = 0;
    int copy = openat(volume, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fdopendir(copy);

    assert_non_null(list);
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        bool found = false;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (strcmp(d->d_name, "..data") == 0) {
            data++;
            continue;
        }
        if (vol_generation_is(d->d_name)) {
            generations++;
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            size_t k = strcspn(files[i].path, "/");
            found = found || (strlen(d->d_name) == k && strncmp(d->d_name, files[i].path, k) == 0);
        }
        if (!found)
            fail_msg("%s is left in the volume", d->d_name);
        links++;
    }
    closedir(list);
    assert_int_equal(data, 1);
    assert_int_equal(generations, 1);
    assert_int_equal(links, n == 0 ? 0 : 3);
}

/* Runs one publish in a child that is killed when it comes back from its `point`th system call; true: it was
 * over before. */
static bool killed_at(struct fixture *f, const struct step *s, bool keep, unsigned point)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct err e = { 0 };
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(publish(f, s->after, s->n_after, s->group_after, keep, &e) == ERR_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped: processes cannot be traced here\n");
        skip();
    }
    assert_true(WIFSTOPPED(status));
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
    for (unsigned stops = 0;;) { /* a stop before and one after each call */
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return true;
        }
        assert_true(WIFSTOPPED(status));
        if (WSTOPSIG(status) != (SIGTRAP | 0x80) || ++stops != 2 * point)
            continue;
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        return false;
    }
}

static void begin(struct fixture *f, const struct step *s)
{
    struct err e = { 0 };
    char pod[100];

    snprintf(pod, sizeof(pod), "%s/pod", f->tmpfs);
    if (fs_remove_tree(AT_FDCWD, pod, &e) != ERR_OK)
        fail_msg("%s", e.text);
    if (s->n_before != SIZE_MAX)
        must_publish(f, s->before, s->n_before, s->group_before);
}

/* The agent that starts next finds its sources as they were, or as they are now. */
static void assert_next_start_repairs(struct fixture *f, const struct step *s, bool to_old)
{
    if (to_old && s->n_before != SIZE_MAX) {
        must_publish(f, s->before, s->n_before, s->group_before);
        assert_nothing_else(f, s->before, s->n_before);
        fd_auto volume = open_volume(f);
        assert_true(holds(volume, "..data", s->before, s->n_before, s->group_before));
        return;
    }
    must_publish(f, s->after, s->n_after, s->group_after);
    assert_nothing_else(f, s->after, s->n_after);
    assert_int_equal(version_at(f, s), 2);
}

static void kill_everywhere(struct fixture *f, const struct step *s, bool keep)
{
    unsigned old_seen = 0, new_seen = 0;

    for (unsigned point = 1;; point++) {
        begin(f, s);
        bool over = killed_at(f, s, keep, point);
        int version = version_at(f, s);
        if (version == 0)
            fail_msg("neither the old nor the new version after system call %u", point);
        old_seen += version == 1;
        new_seen += version == 2;
        assert_next_start_repairs(f, s, point % 2 == 0);
        if (over)
            break;
        assert_true(point < POINTS_MAX);
    }
    assert_true(old_seen >= 10);
    assert_true(new_seen >= 2);
}

static void killed_after_any_system_call_a_volume_is_old_or_new(void **state)
{
    struct fixture *f = need(state);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        kill_everywhere(f, &steps[i], false);
}

static void likewise_when_superseded_versions_stay_for_readers(void **state)
{
    struct fixture *f = need(state);

    kill_everywhere(f, &steps[1], true);
}

/* ---- a full file system ----------------------------------------------------------------------------------
 */

static void limit(const struct fixture *f, const char *what, unsigned long long n)
{
    char options[64];

    snprintf(options, sizeof(options), "%s=%llu", what, n);
    if (mount(NULL, f->tmpfs, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) != 0)
        fail_msg("remount with %s: %s", options, strerror(errno));
}

/* Lets the publish run into the limit at each thing it makes; until there is enough for it. */
static unsigned fill_everywhere(struct fixture *f, const struct step *s, const char *what)
{
    unsigned refused = 0;

    for (unsigned spare = 1;; spare++) {
        struct err e = { 0 };
        struct statvfs now;
        begin(f, s);
        assert_int_equal(statvfs(f->tmpfs, &now), 0);
        if (strcmp(what, "nr_inodes") == 0)
            limit(f, what, now.f_files - now.f_ffree + spare - 1);
        else
            limit(f, what, (now.f_blocks - now.f_bfree + spare) * now.f_frsize - now.f_frsize + 1);
        enum err_code code = publish(f, s->after, s->n_after, s->group_after, false, &e);
        if (strcmp(what, "nr_inodes") == 0)
            limit(f, what, 10000);
        else
            limit(f, what, 8 << 20);
        if (code == ERR_OK) {
            assert_int_equal(version_at(f, s), 2);
            return refused;
        }
        assert_int_equal(code, ERR_EXHAUSTED);
        assert_non_null(strstr(e.text, "No space left on device"));
        assert_int_equal(version_at(f, s), 1); /* never the new one without its links */
        if (s->n_before != SIZE_MAX)
            assert_nothing_else(f, s->before, s->n_before);
        refused++;
        assert_true(spare < 100);
    }
}

static void a_file_system_that_is_full_at_any_point_keeps_the_old_version(void **state)
{
    struct fixture *f = need(state);

    /* Folder, 2 in it, 4 files, ..data, 1 link. */
    assert_true(fill_everywhere(f, &steps[1], "nr_inodes") >= 9);
    assert_true(fill_everywhere(f, &steps[1], "size") >= 3); /* 0 would be no limit, hence a page more */
}

static void a_first_publish_that_does_not_fit_shows_nothing(void **state)
{
    struct fixture *f = need(state);

    /* And the pod's and the volume's folder, and 2 links more. */
    assert_true(fill_everywhere(f, &steps[0], "nr_inodes") >= 13);
    assert_true(fill_everywhere(f, &steps[0], "size") >= 3);
}

static void superseded_versions_give_way_when_the_file_system_is_full(void **state)
{
    struct fixture *f = need(state);
    struct err e = { 0 };
    struct statvfs now;

    must_publish(f, version_1, 4, -1);
    assert_int_equal(publish(f, version_2, 4, -1, true, &e), ERR_OK);
    assert_int_equal(statvfs(f->tmpfs, &now), 0);
    limit(f, "nr_inodes", now.f_files - now.f_ffree + 3);
    if (publish(f, version_1, 4, -1, true, &e) != ERR_OK)
        fail_msg("%s", e.text);
    fd_auto volume = open_volume(f);
    assert_true(holds(volume, "..data", version_1, 4, -1));
}

/* ---- readers of the superseded version
 * ------------------------------------------------------------------------ */

static void who_follows_data_just_before_a_switch_still_finds_every_file(void **state)
{
    struct fixture *f = need(state);
    char generation[64];
    struct err e = { 0 };

    must_publish(f, version_1, 4, -1);
    fd_auto volume = open_volume(f);
    ssize_t n = readlinkat(volume, "..data", generation, sizeof(generation) - 1);
    assert_true(n > 0);
    generation[n] = '\0';
    assert_int_equal(publish(f, version_2, 4, -1, true, &e), ERR_OK);
    assert_true(holds(volume, generation, version_1, 4, -1)); /* between two steps of one path walk */
    assert_true(holds(volume, "..data", version_2, 4, -1));
}

static void superseded_versions_go_when_their_time_is_over(void **state)
{
    struct fixture *f = need(state);
    struct err e = { 0 };
    bool kept = true;
    uint64_t end = clock_mono_ms() + 20 * VOL_KEEP_MS;

    assert_int_equal(presence_of(vol_payload_published(f->node, "pod", "vol", &e)), PRESENCE_ABSENT);
    must_publish(f, version_1, 4, -1);
    assert_int_equal(presence_of(vol_payload_published(f->node, "pod", "vol", &e)), PRESENCE_PRESENT);
    assert_int_equal(publish(f, version_2, 4, -1, true, &e), ERR_OK);
    vol_payload_tidy(f->node, "pod", "vol", &kept);
    assert_true(kept);
    while (kept && clock_mono_ms() < end) {
        usleep(20000);
        vol_payload_tidy(f->node, "pod", "vol", &kept);
    }
    assert_false(kept);
    assert_nothing_else(f, version_2, 4);
    vol_payload_tidy(f->node, "pod", "no-such-volume", &kept);
    assert_false(kept);
}

static void superseded_versions_are_bounded(void **state)
{
    struct fixture *f = need(state);
    static char big[3 << 20];
    struct vol_file file = { .path = "a", .data = big, .size = sizeof(big), .mode = 0600 };
    struct statvfs now;

    limit(f, "size", 64 << 20);
    for (unsigned i = 0; i < 20; i++) {
        struct err e = { 0 };
        big[0] = (char)('a' + i);
        if (publish(f, &file, 1, -1, true, &e) != ERR_OK)
            fail_msg("%s", e.text);
    }
    assert_int_equal(statvfs(f->tmpfs, &now), 0);
    assert_true((now.f_blocks - now.f_bfree) * now.f_frsize <= VOL_KEEP_BYTES + 2 * sizeof(big));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_after_any_system_call_a_volume_is_old_or_new),
        TEST(likewise_when_superseded_versions_stay_for_readers),
        TEST(a_file_system_that_is_full_at_any_point_keeps_the_old_version),
        TEST(a_first_publish_that_does_not_fit_shows_nothing),
        TEST(superseded_versions_give_way_when_the_file_system_is_full),
        TEST(who_follows_data_just_before_a_switch_still_finds_every_file),
        TEST(superseded_versions_go_when_their_time_is_over),
        TEST(superseded_versions_are_bounded),
    };

    return cmocka_run_group_tests(tests, private_mounts, NULL);
}
