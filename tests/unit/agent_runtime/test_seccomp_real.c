/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that keep the projects of files, as each runtime loads them: what a container's ioctl returns. */
#include "real.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

enum { ASKED_MAX = 256 };

/* A filter is per architecture: what a 64-bit program calls by the 32-bit numbers is another one. */
enum {
    IOCTL_32 = 54,      /* of i386 */
    FILE_SETATTR = 469, /* Linux 6.17; on every architecture but alpha */
};

struct asked {
    uint64_t requests[ASKED_MAX];
    int wanted[ASKED_MAX];
    size_t n;
};

static void expect(struct asked *a, uint64_t request, int error)
{
    assert_true(a->n < ASKED_MAX);
    a->requests[a->n] = request;
    a->wanted[a->n++] = error;
}

static bool is_refused(uint64_t request)
{
    return (uint32_t)request == (uint32_t)FS_IOC_FSSETXATTR ||
           (uint32_t)request == (uint32_t)FS_IOC_SETFLAGS || (uint32_t)request == (uint32_t)FS_IOC32_SETFLAGS;
}

/* Those that are refused, and what differs from them in a bit. */
static void expect_all(struct asked *a, int refused, int allowed)
{
    static const uint64_t values[] = { (uint32_t)FS_IOC_FSSETXATTR, (uint32_t)FS_IOC_SETFLAGS,
                                       (uint32_t)FS_IOC32_SETFLAGS };

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        expect(a, values[i], refused);
        expect(a, values[i] | UINT64_C(1) << 32, refused);
        expect(a, values[i] | UINT64_C(1) << 62, refused);
        for (int bit = 0; bit < 32; bit++) {
            uint64_t v = values[i] ^ UINT64_C(1) << bit;
            expect(a, v, is_refused(v) ? refused : allowed);
        }
    }
    expect(a, 0, allowed);
    expect(a, FS_IOC_FSGETXATTR, allowed);
}

static long ioctl_32(uint32_t request)
{
#ifdef __x86_64__
    long ret;

    __asm__ volatile("int $0x80"
                     : "=a"(ret)
                     : "a"(IOCTL_32), "b"(-1), "c"(request), "d"(0)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)ret < 0 ? -(int)ret : 0;
#else
    errno = 0;
    syscall(SYS_ioctl, -1, (long)request, 0L);
    return errno;
#endif
}

/* In the container: with the descriptor -1 a request that passes the filter ends with EBADF. The 32-bit call
 * only where the kernel has it. */
static int ask(int argc, char **argv)
{
    bool has_32 = strcmp(argv[2], "32") == 0;

    errno = 0;
    syscall(FILE_SETATTR, -1, "", NULL, 0L, 0L);
    printf("%d\n", errno);

    for (int i = 3; i < argc; i++) {
        uint64_t request = strtoull(argv[i], NULL, 0);

        errno = 0;
        syscall(SYS_ioctl, -1, (long)request, 0L);
        printf("%d %ld\n", errno, has_32 ? ioctl_32((uint32_t)request) : (long)errno);
    }
    return 0;
}

static bool kernel_has_32(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(ioctl_32(0) == EBADF ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check(enum api_seccomp_type type, const char *localhost, bool no_new_privs, const struct asked *a)
{
    const struct rt_mount mounts[] = { { .source = "/", .destination = "/host" } };
    static char words[ASKED_MAX][24];
    char self[512];
    const char *argv[ASKED_MAX + 8] = { "busybox", "chroot", "/host",
                                        self,      "ask",    kernel_has_32() ? "32" : "64" };
    size_t n = 6;
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct box b = { 0 };

    assert_true(len > 0);
    self[len] = '\0';
    for (size_t i = 0; i < a->n; i++) {
        snprintf(words[i], sizeof(words[i]), "%llu", (unsigned long long)a->requests[i]);
        argv[n++] = words[i];
    }
    box_init(&b, argv, n);
    b.config.mounts = mounts;
    b.config.n_mounts = 1;
    b.config.keep_projects = true;
    b.security.seccomp.type = type;
    b.security.seccomp.localhost_profile = (char *)localhost;
    b.security.has_allow_privilege_escalation = no_new_privs;
    run_to_end(&b);
    str_auto text = output(&b);
    char *cursor = text;
    long setattr = strtol(cursor, &cursor, 10);

    /* Without a list of allowed calls it depends on the runtime's libseccomp. */
    if (type == API_SECCOMP_RUNTIME_DEFAULT && setattr != ENOSYS)
        fail_msg("file_setattr: %ld", setattr);
    for (size_t i = 0; i < a->n; i++) {
        long got = strtol(cursor, &cursor, 10), got_32 = strtol(cursor, &cursor, 10);

        if (got != a->wanted[i] || got_32 != a->wanted[i])
            fail_msg("ioctl 0x%llx: %ld, 32-bit %ld, in place of %d: %s", (unsigned long long)a->requests[i],
                     got, got_32, a->wanted[i], text);
    }
    delete (&b);
}

static void container_without_a_profile_cannot_change_projects(void **state)
{
    struct asked a = { .n = 0 };

    (void)state;
    expect_all(&a, EPERM, EBADF);
    check(API_SECCOMP_UNSET, NULL, false, &a);
    check(API_SECCOMP_UNCONFINED, NULL, true, &a);
}

static void nor_can_one_with_the_default_profile(void **state)
{
    struct asked a = { .n = 0 };

    (void)state;
    if (access("/usr/share/containers/seccomp.json", R_OK) != 0)
        skip();
    expect_all(&a, EPERM, EBADF);
    check(API_SECCOMP_RUNTIME_DEFAULT, NULL, false, &a);
    check(API_SECCOMP_RUNTIME_DEFAULT, NULL, true, &a);
}

#define SYSCALLS(more)                                                                                       \
    ",\"archMap\":[{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[\"SCMP_ARCH_X86\"]}]"        \
    ",\"syscalls\":[" more "]}"
#define IOCTL(action, arg)                                                                                   \
    "{\"names\":[\"ioctl\"],\"action\":\"" action "\",\"args\":[{\"index\":1," arg "}]}"

static void profiles_with_conditions_keep_them(void **state)
{
    static const struct {
        const char *text;
        int allowed, sti; /* TIOCSTI, which some profiles refuse */
    } rows[] = {
        { "{\"defaultAction\":\"SCMP_ACT_ALLOW\"" SYSCALLS(
              IOCTL("SCMP_ACT_ERRNO", "\"op\":\"SCMP_CMP_EQ\",\"value\":21522")),
          EBADF, EPERM },
        { "{\"defaultAction\":\"SCMP_ACT_ALLOW\"" SYSCALLS(
              "{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_LOG\"}"),
          EBADF, EBADF },
        { "{\"defaultAction\":\"SCMP_ACT_LOG\"" SYSCALLS(
              IOCTL("SCMP_ACT_ALLOW", "\"op\":\"SCMP_CMP_NE\",\"value\":21522")),
          EBADF, EBADF },
        { "{\"defaultAction\":\"SCMP_ACT_ALLOW\"" SYSCALLS(
              IOCTL("SCMP_ACT_ERRNO", "\"op\":\"SCMP_CMP_EQ\",\"value\":1075599392") "," IOCTL(
                  "SCMP_ACT_ERRNO", "\"op\":\"SCMP_CMP_MASKED_EQ\",\"value\":4294967295,\"valueTwo\":"
                                    "1074292226")),
          EBADF, EBADF },
    };
    char path[160];

    (void)state;
    snprintf(path, sizeof(path), "%s/p.json", host.seccomp_dir);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct asked a = { .n = 0 };
        struct err e = { 0 };

        expect_all(&a, EPERM, rows[i].allowed);
        expect(&a, 21522, rows[i].sti);
        if (fs_replace_at(AT_FDCWD, path, rows[i].text, strlen(rows[i].text), 0644, false, &e) != ERR_OK)
            fail_msg("%s", e.text);
        check(API_SECCOMP_LOCALHOST, "p.json", false, &a);
    }
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "ask") == 0)
        return ask(argc, argv);

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(container_without_a_profile_cannot_change_projects),
        cmocka_unit_test(nor_can_one_with_the_default_profile),
        cmocka_unit_test(profiles_with_conditions_keep_them),
    };

    return run_with_each_runtime(tests, ARRAY_LEN(tests), set_up, tear_down);
}
