/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/failing.h"
#include "tests/unit/base/helper.h"

#include "volumes/internal.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>

struct vol {
    char dir[64];
    int fd;
    struct vol_writer *w;
    bool mounted;
};

static int set_up(void **state)
{
    struct vol *v = calloc(1, sizeof(*v));
    struct err e = { 0 };

    /* A tmpfs, as on a node, where there is one. */
    strcpy(v->dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/coracle-writer-test-XXXXXX"
                                                 : "/tmp/coracle-writer-test-XXXXXX");
    if (mkdtemp(v->dir) == NULL || chmod(v->dir, 0755) != 0 || vol_writer_open(&v->w, v->dir, &e) != ERR_OK)
        return -1;
    v->fd = open(v->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = v;
    return v->fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    struct vol *v = *state;
    struct err e = { 0 };

    vol_writer_free(v->w);
    close(v->fd);
    if (v->mounted)
        umount2(v->dir, MNT_DETACH);
    int rc = fs_remove_tree(AT_FDCWD, v->dir, &e) == ERR_OK ? 0 : -1;
    free(v);
    return rc;
}

#define FILE_OF(p, text, m)                                                                                  \
    {                                                                                                        \
        .path = (p), .data = (text), .size = sizeof(text) - 1, .mode = (m)                                   \
    }

static const struct vol_file version_1[] = { FILE_OF("a", "one", 0644), FILE_OF("b/c/d", "one", 0400),
                                             FILE_OF("gone", "x", 0644), FILE_OF("b/old", "x", 0644) };
static const struct vol_file version_2[] = { FILE_OF("a", "two", 0644), FILE_OF("b/c/d", "two", 0400),
                                             FILE_OF("new", "y", 0600) };

static bool publish(struct vol *v, const struct vol_file *files, size_t n, int64_t fs_group)
{
    struct err e = { 0 };
    bool changed = false;

    if (vol_writer_publish(v->w, files, n, fs_group, &changed, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return changed;
}

static void assert_content(struct vol *v, const char *path, const char *text)
{
    struct err e = { 0 };
    str_auto is = NULL;

    if (fs_read_at(v->fd, path, 4096, &is, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_string_equal(is, text);
}

static mode_t mode_of(struct vol *v, const char *path)
{
    struct stat st;

    assert_int_equal(fstatat(v->fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode;
}

static bool missing(struct vol *v, const char *path)
{
    struct stat st;

    return fstatat(v->fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static const char *link_of(struct vol *v, const char *path)
{
    static char to[300];
    ssize_t n = readlinkat(v->fd, path, to, sizeof(to) - 1);

    to[n < 0 ? 0 : n] = '\0';
    return to;
}

/* Everything that stands in the volume's root: "..data ..GEN a b", sorted. */
static const char *listing(struct vol *v)
{
    static char text[1024];
    struct dirent **entries = NULL;
    int n = scandir(v->dir, &entries, NULL, alphasort);

    assert_true(n >= 0);
    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            strcat(text, strncmp(name, "..2", 3) == 0 ? "..GEN" : name);
            strcat(text, " ");
        }
        free(entries[i]);
    }
    free(entries);
    return text;
}

static void the_layout_is_kubelets_and_modes_are_exact(void **state)
{
    struct vol *v = *state;
    char gen[300];
    mode_t before = umask(077);

    assert_true(publish(v, version_1, 4, -1));
    umask(before);
    assert_string_equal(listing(v), "..GEN ..data a b gone ");
    assert_string_equal(link_of(v, "a"), "..data/a");
    assert_string_equal(link_of(v, "b"), "..data/b");
    snprintf(gen, sizeof(gen), "%s", link_of(v, "..data"));
    assert_int_equal(strlen("..2026_03_01_10_00_00."), strcspn(gen + 2, ".") + 3);
    assert_int_equal(strncmp(gen, "..20", 4), 0);
    assert_int_equal(mode_of(v, gen), S_IFDIR | 0755);
    assert_int_equal(mode_of(v, "..data/a"), S_IFREG | 0644);
    assert_int_equal(mode_of(v, "..data/b"), S_IFDIR | 0755);
    assert_int_equal(mode_of(v, "..data/b/c"), S_IFDIR | 0755);
    assert_int_equal(mode_of(v, "..data/b/c/d"), S_IFREG | 0400);
    assert_content(v, "a", "one");
    assert_content(v, "b/c/d", "one");
}

static void an_equal_set_touches_nothing(void **state)
{
    struct vol *v = *state;
    char gen[300];
    const struct vol_file other_order[] = { version_1[3], version_1[2], version_1[1], version_1[0] };

    assert_true(publish(v, version_1, 4, -1));
    snprintf(gen, sizeof(gen), "%s", link_of(v, "..data"));
    assert_false(publish(v, version_1, 4, -1));
    assert_false(publish(v, other_order, 4, -1));
    assert_string_equal(link_of(v, "..data"), gen);
}

static void content_mode_size_and_removals_are_all_changes(void **state)
{
    struct vol *v = *state;
    struct vol_file files[] = { FILE_OF("a", "1234", 0644), FILE_OF("d/b", "x", 0644) };

    assert_true(publish(v, files, 2, -1));
    files[0].data = "1235";
    assert_true(publish(v, files, 2, -1));
    files[0].size = 3;
    assert_true(publish(v, files, 2, -1));
    files[0].mode = 0600;
    assert_true(publish(v, files, 2, -1));
    assert_int_equal(mode_of(v, "..data/a"), S_IFREG | 0600);
    files[1].path = "d/c";
    assert_true(publish(v, files, 2, -1));
    assert_true(missing(v, "d/b"));
    assert_true(publish(v, files, 1, -1));
    assert_string_equal(listing(v), "..GEN ..data a ");
    assert_true(publish(v, NULL, 0, -1));
    assert_string_equal(listing(v), "..GEN ..data ");
    assert_false(publish(v, NULL, 0, -1));
}

static void an_optional_volume_without_object_is_empty_but_complete(void **state)
{
    struct vol *v = *state;

    assert_true(publish(v, NULL, 0, -1));
    assert_string_equal(listing(v), "..GEN ..data ");
}

static void dotdot_path_is_refused_and_nothing_is_written(void **state)
{
    struct vol *v = *state;
    const struct vol_file files[] = { FILE_OF("fine", "x", 0644), FILE_OF("../escape", "x", 0644) };
    struct err e = { 0 };
    bool changed = false;

    assert_int_equal(vol_writer_publish(v->w, files, 2, -1, &changed, &e), ERR_INVALID);
    assert_string_equal(e.text, "volume file \"../escape\": path leaves the volume");
    assert_false(changed);
    assert_string_equal(listing(v), "");
}

static void fs_group_adds_group_and_bits_everywhere(void **state)
{
    struct vol *v = *state;
    const gid_t gid = geteuid() == 0 ? 4711 : getegid();
    struct stat st;

    assert_true(publish(v, version_1, 4, gid));
    assert_int_equal(mode_of(v, "..data/a"), S_IFREG | 0644);     /* 0644 has what 0440 adds */
    assert_int_equal(mode_of(v, "..data/b/c/d"), S_IFREG | 0440); /* 0400 has not */
    assert_int_equal(mode_of(v, "..data/b/c"), S_IFDIR | 02755);
    assert_int_equal(mode_of(v, "."), S_IFDIR | 02755);
    static const char *const all[] = { ".", "a", "..data", "..data/.", "..data/b", "..data/b/c/d" };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        assert_int_equal(fstatat(v->fd, all[i], &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_gid, gid);
    }
    assert_false(publish(v, version_1, 4, gid));
    if (geteuid() == 0)
        assert_true(publish(v, version_1, 4, gid + 1));
}

static void a_file_may_have_an_owner_of_its_own(void **state)
{
    struct vol *v = *state;
    struct vol_file files[] = { FILE_OF("mine", "x", 0600), FILE_OF("roots", "y", 0600) };
    struct stat st;

    if (geteuid() != 0)
        SKIP("needs root");
    files[0].has_owner = true;
    files[0].owner = 1234;
    assert_true(publish(v, files, 2, 4711));
    assert_int_equal(fstatat(v->fd, "mine", &st, 0), 0);
    assert_int_equal(st.st_uid, 1234);
    assert_int_equal(st.st_gid, 4711);
    assert_int_equal(st.st_mode, S_IFREG | 0640);
    assert_int_equal(fstatat(v->fd, "roots", &st, 0), 0);
    assert_int_equal(st.st_uid, 0);
    assert_false(publish(v, files, 2, 4711));
    files[0].owner = 1235;
    assert_true(publish(v, files, 2, 4711));
    files[0].has_owner = false;
    assert_true(publish(v, files, 2, -1));
    assert_int_equal(fstatat(v->fd, "mine", &st, 0), 0);
    assert_int_equal(st.st_uid, 0);
}

static void a_group_that_cannot_be_is_refused(void **state)
{
    struct vol *v = *state;
    struct err e = { 0 };
    bool changed = false;

    assert_int_equal(vol_writer_publish(v->w, version_1, 4, UINT32_MAX, &changed, &e), ERR_INVALID);
    assert_string_equal(e.text, "fsGroup 4294967295 is not a group id");
}

static void left_overs_go_and_foreign_entries_stay(void **state)
{
    struct vol *v = *state;

    assert_true(publish(v, version_1, 4, -1));
    assert_int_equal(mkdirat(v->fd, "..2020_01_01_00_00_00.1", 0755), 0);
    assert_int_equal(mkdirat(v->fd, "..2020_01_01_00_00_00.1/deep", 0755), 0);
    assert_int_equal(symlinkat("nowhere", v->fd, "..data_tmp"), 0);
    assert_int_equal(symlinkat("nowhere", v->fd, "..link_tmp"), 0);
    assert_int_equal(symlinkat("..data/stale", v->fd, "stale"), 0);
    assert_int_equal(symlinkat("/elsewhere", v->fd, "foreign"), 0);
    assert_int_equal(mkdirat(v->fd, "..mine", 0755), 0);
    assert_int_equal(mkdirat(v->fd, "nested-mount", 0755), 0);
    assert_false(publish(v, version_1, 4, -1));
    assert_string_equal(listing(v), "..GEN ..data ..mine a b foreign gone nested-mount ");
    assert_true(publish(v, version_2, 3, -1));
    assert_string_equal(listing(v), "..GEN ..data ..mine a b foreign nested-mount new ");
}

static void lost_and_wrong_links_are_repaired(void **state)
{
    struct vol *v = *state;

    assert_true(publish(v, version_1, 4, -1));
    assert_int_equal(unlinkat(v->fd, "a", 0), 0);
    assert_int_equal(unlinkat(v->fd, "b", 0), 0);
    assert_int_equal(symlinkat("/etc", v->fd, "b"), 0);
    assert_true(publish(v, version_1, 4, -1));
    assert_string_equal(link_of(v, "a"), "..data/a");
    assert_string_equal(link_of(v, "b"), "..data/b");
    assert_false(publish(v, version_1, 4, -1));
}

static void a_lost_or_tampered_generation_is_written_again(void **state)
{
    struct vol *v = *state;
    struct err e = { 0 };

    assert_true(publish(v, version_1, 4, -1));
    assert_int_equal(fs_remove_tree(v->fd, link_of(v, "..data"), &e), ERR_OK);
    assert_true(publish(v, version_1, 4, -1));
    assert_content(v, "a", "one");
    assert_int_equal(unlinkat(v->fd, "..data/a", 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", v->fd, "..data/a"), 0);
    assert_true(publish(v, version_1, 4, -1));
    assert_content(v, "a", "one");
    assert_int_equal(unlinkat(v->fd, "..data", 0), 0);
    assert_int_equal(symlinkat("/etc", v->fd, "..data"), 0);
    assert_true(publish(v, version_1, 4, -1));
    assert_content(v, "a", "one");
    assert_string_equal(listing(v), "..GEN ..data a b gone ");
}

static void a_name_that_is_taken_is_an_error(void **state)
{
    struct vol *v = *state;
    struct err e = { 0 };
    bool changed = false;

    close(openat(v->fd, "a", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(vol_writer_publish(v->w, version_1, 4, -1, &changed, &e), ERR_EXISTS);
    assert_non_null(
        strstr(e.text, "volume file \"a\": the name is taken by something that is no link of ours"));
}

static void a_missing_target_is_an_error(void **state)
{
    struct vol_writer *w = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(vol_writer_open(&w, "/tmp/coracle-no-such-folder", &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "open volume /tmp/coracle-no-such-folder: No such file or directory");
    assert_null(w);
}

static void a_full_disk_keeps_the_old_set(void **state)
{
    struct vol *v = *state;
    struct err e = { 0 };
    bool changed = false;
    static char big[256 * 1024];
    const struct vol_file files[] = { { .path = "a", .data = big, .size = sizeof(big), .mode = 0644 } };

    if (geteuid() != 0 || mount("tmpfs", v->dir, "tmpfs", 0, "size=64k,mode=0755") != 0)
        SKIP("tmpfs cannot be mounted");
    v->mounted = true;
    vol_writer_free(v->w);
    v->w = NULL;
    close(v->fd);
    v->fd = open(v->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(vol_writer_open(&v->w, v->dir, &e), ERR_OK);
    assert_true(publish(v, version_1, 4, -1));
    assert_int_equal(vol_writer_publish(v->w, files, 1, -1, &changed, &e), ERR_EXHAUSTED);
    assert_non_null(strstr(e.text, "write a: No space left on device"));
    assert_content(v, "a", "one");
    assert_content(v, "b/c/d", "one");
    assert_string_equal(listing(v), "..GEN ..data a b gone ");
}

/* ---- readers ------------------------------------------------------------------------------------ */

static size_t read_small(int dir, const char *path, char *ret, size_t size)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret, size) : -1;

    if (fd >= 0)
        close(fd);
    return n < 0 ? 0 : (size_t)n;
}

/* Exit status: 0 fine, 1 mixture seen, 2 something unexpected. */
static void read_for_ever(int volume, int go_on)
{
    char a[64], b[64], byte;

    while (recv(go_on, &byte, 1, MSG_DONTWAIT) < 0) {
        int gen = openat(volume, "..data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (gen < 0 && errno == ENOENT)
            continue; /* as below, between the two halves of following the link */
        if (gen < 0)
            _exit(2);
        size_t na = read_small(gen, "a", a, sizeof(a)), nb = read_small(gen, "x/b", b, sizeof(b));
        close(gen);
        /* 0: the generation was replaced and removed while we looked; a reader then starts anew. */
        if (na != 0 && nb != 0 && (na != nb || memcmp(a, b, na) != 0))
            _exit(1);
    }
    _exit(0);
}

static void readers_never_see_a_mixture(void **state)
{
    struct vol *v = *state;
    char text[64] = "start";
    struct vol_file files[] = { { .path = "a", .data = text, .size = 5, .mode = 0644 },
                                { .path = "x/b", .data = text, .size = 5, .mode = 0644 } };
    pid_t readers[3];
    int stop[2], status;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stop), 0);
    publish(v, files, 2, -1);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        readers[i] = fork();
        assert_true(readers[i] >= 0);
        if (readers[i] == 0)
            read_for_ever(v->fd, stop[1]);
    }
    for (unsigned i = 0; i < 2000; i++) {
        files[0].size = files[1].size =
            (size_t)snprintf(text, sizeof(text), "version %u %.*s", i, (int)(i % 20), "xxxxxxxxxxxxxxxxxxxx");
        assert_true(publish(v, files, 2, -1));
    }
    assert_int_equal(send(stop[0], "xxx", 3, 0), 3); /* a byte for each */
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        assert_int_equal(waitpid(readers[i], &status, 0), readers[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    close(stop[0]);
    close(stop[1]);
    assert_string_equal(listing(v), "..GEN ..data a x ");
}

static void a_folder_that_was_not_listed_whole_keeps_no_old_name(void **state)
{
    struct vol *v = *state;
    struct err e = { 0 };
    bool changed = false;

    publish(v, version_1, ARRAY_LEN(version_1), -1);
    failing_arm("readdir", "", EIO, 1); /* the first look */
    publish(v, version_2, ARRAY_LEN(version_2), -1);
    assert_true(vol_writer_kept(v->w)); /* which are superseded was not seen */
    assert_string_equal(listing(v), "..GEN ..data a b new ");

    vol_writer_keep(v->w, 60000);
    failing_arm("readdir", "", EIO, 2); /* and the one for old names */
    assert_int_not_equal(vol_writer_publish(v->w, version_1, ARRAY_LEN(version_1), -1, &changed, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
    assert_true(changed);
    assert_string_equal(listing(v), "..GEN ..GEN ..data a b gone new ");
    publish(v, version_1, ARRAY_LEN(version_1), -1);
    assert_string_equal(listing(v), "..GEN ..GEN ..data a b gone ");
}

static void a_version_that_cannot_be_looked_at_is_not_gone(void **state)
{
    struct vol *v = *state;
    char current[64] = "", before[64] = "";
    struct stat st;

    vol_writer_keep(v->w, 60000);
    publish(v, version_1, ARRAY_LEN(version_1), -1);
    assert_true(readlinkat(v->fd, "..data", before, sizeof(before) - 1) > 0);
    publish(v, version_2, ARRAY_LEN(version_2), -1);
    assert_true(readlinkat(v->fd, "..data", current, sizeof(current) - 1) > 0);
    failing_arm("fstatat", current, EIO, 1);
    vol_writer_tidy(v->w);
    assert_int_equal(failing_times, 0);
    assert_true(vol_writer_kept(v->w));
    assert_int_equal(fstatat(v->fd, before, &st, 0), 0); /* its readers still have it */
    failing_arm("openat", ".", EMFILE, 1);
    vol_writer_tidy(v->w);
    assert_true(vol_writer_kept(v->w));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_layout_is_kubelets_and_modes_are_exact),
        TEST(an_equal_set_touches_nothing),
        TEST(content_mode_size_and_removals_are_all_changes),
        TEST(an_optional_volume_without_object_is_empty_but_complete),
        TEST(dotdot_path_is_refused_and_nothing_is_written),
        TEST(fs_group_adds_group_and_bits_everywhere),
        TEST(a_file_may_have_an_owner_of_its_own),
        TEST(a_group_that_cannot_be_is_refused),
        TEST(left_overs_go_and_foreign_entries_stay),
        TEST(lost_and_wrong_links_are_repaired),
        TEST(a_lost_or_tampered_generation_is_written_again),
        TEST(a_name_that_is_taken_is_an_error),
        TEST(a_missing_target_is_an_error),
        TEST(a_full_disk_keeps_the_old_set),
        TEST(a_folder_that_was_not_listed_whole_keeps_no_old_name),
        TEST(a_version_that_cannot_be_looked_at_is_not_gone),
        TEST(readers_never_see_a_mixture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
