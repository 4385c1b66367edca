/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of the folder may be, and what is refused. */
#include "live_folder.h"

#include <sys/socket.h>
#include <sys/un.h>

static void what_is_no_file_is_refused_and_never_opened(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char path[200];
    int fd;

    at(f, "folder.yaml", path);
    mkdir(path, 0755);
    at(f, "fifo.yaml", path);
    mkfifo(path, 0644); /* nobody writes: an open would hang */
    link_to(f, "/dev/zero", "device.yaml");
    link_to(f, "fifo.yaml", "fifo-link.yaml");
    link_to(f, "nowhere", "dangling.yaml");
    link_to(f, "/nonexistent", "rootless.yaml");
    start(f);
    to_see(f, "first set\n");
    assert_non_null(strstr(f->seen.p, "file folder.yaml bad 0 [folder.yaml: is a folder, not a file]\n"));
    assert_non_null(strstr(f->seen.p, "file fifo.yaml bad 0 [fifo.yaml: is a FIFO, not a file]\n"));
    assert_non_null(strstr(f->seen.p, "[fifo-link.yaml: is a FIFO, not a file]\n"));
    assert_non_null(strstr(f->seen.p, "[device.yaml: is a device, not a file]\n"));
    assert_non_null(strstr(f->seen.p, "[dangling.yaml: is a symbolic link that leads nowhere: "));
    assert_non_null(strstr(f->seen.p, "[rootless.yaml: is a symbolic link that leads nowhere: /nonexistent "
                                      "does not exist]\n"));

    at(f, "socket.yaml", path);
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    to_see(f, "[socket.yaml: is a socket, not a file]\n");
    at(f, "later.yaml", path);
    mkfifo(path, 0644);
    to_see(f, "[later.yaml: is a FIFO, not a file]\n");
}

static void a_file_that_is_too_long_is_refused_with_its_size(void **state)
{
    struct fixture *f = *state;
    char path[200];
    int fd;

    start(f);
    at(f, "big.yaml", path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, API_FILE_MAX + 1), 0);
    close(fd);
    to_see(f, "file big.yaml bad 0 [big.yaml: has 10485761 bytes, allowed are 10485760]\n");
}

/* Root reads everything: such a test is somebody else's, from the making of its folder on. */
static int setup_as_nobody(void **state)
{
    return geteuid() == 0 && seteuid(65534) != 0 ? -1 : setup(state);
}

static int teardown_as_nobody(void **state)
{
    int failed = teardown(state);

    return getuid() == 0 && seteuid(0) != 0 ? -1 : failed;
}

static void a_file_that_becomes_readable_counts(void **state)
{
    struct fixture *f = *state;
    char path[200];

    write_file(f, "a.yaml", POD("a", "x:1"));
    at(f, "a.yaml", path);
    chmod(path, 0);
    start(f);
    to_see(f, "file a.yaml bad 0 [a.yaml: cannot be read: Permission denied]\n");
    chmod(path, 0644);
    to_see(f, "added Pod default/a x:1\n");
}

static void left_overs_of_tools_are_ignored(void **state)
{
    static const char *const ignored[] = { ".a.yaml", "#a.yaml#",        "a.yaml~",         "a.swp",
                                           "a.swx",   "a.tmp",           "a.bak",           "a.orig",
                                           "a.rej",   "a.yaml.dpkg-old", "a.yaml.dpkg-new", "a.rpmsave",
                                           "4913",    "..data" };
    static const char *const counted[] = { "a.yaml", "a", "a.txt", "a.json", "b#", "14913", "atmp" };

    (void)state;
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        assert_true(api_file_is_ignored(ignored[i]));
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
        assert_false(api_file_is_ignored(counted[i]));
}

/* Processor time of this thread: other programs' share of the machine is not in it. */
static uint64_t thread_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void a_huge_file_does_not_hold_up_the_loop(void **state)
{
    struct buf big = BUF_INIT(API_FILE_MAX);
    uint64_t last, longest = 0, until = clock_mono_ms() + DEADLINE_MS;
    struct fixture *f = *state;

    start(f);
    to_see(f, "first set\n");
    while (big.n < API_FILE_MAX - 200) /* nonsense, but half a million values of it */
        buf_addf(&big, "- {a: [1, 2, 3, yes, no, 0x10, 1e3], b: 'text %zu', c: {d: ~}}\n", big.n);
    write_file(f, "big.yaml", big.p);
    write_file(f, "small.yaml", POD("a", "x:1"));
    last = thread_ms();
    while ((strstr(f->seen.p, "file big.yaml") == NULL || strstr(f->seen.p, "added Pod") == NULL) &&
           clock_mono_ms() < until) {
        uint64_t now;

        turn(f, 5);
        now = thread_ms();
        longest = now - last > longest ? now - last : longest;
        last = now;
    }
    to_see(f, "file big.yaml bad 0 [big.yaml:");
    to_see(f, "added Pod default/a x:1\n");
    print_message("longest turn of the loop: %u ms of the processor\n", (unsigned)longest);
    assert_true(longest < 500);
    buf_done(&big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_overs_of_tools_are_ignored),
        T(what_is_no_file_is_refused_and_never_opened),
        T(a_file_that_is_too_long_is_refused_with_its_size),
        cmocka_unit_test_setup_teardown(a_file_that_becomes_readable_counts, setup_as_nobody,
                                        teardown_as_nobody),
        T(a_huge_file_does_not_hold_up_the_loop),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
