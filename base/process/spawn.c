/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/internal.h"
#include "base/sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The limits the process had at its start, which its children get back. */
static struct {
    bool captured;
    struct rlimit limits[RLIM_NLIMITS];
    int oom_score_adj;
} defaults;

/* Reads a small decimal file; async-signal-safe. */
static int read_int(const char *path)
{
    char text[16];
    int fd = open(path, O_RDONLY | O_CLOEXEC), v = 0, i;
    ssize_t n;

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof(text));
    close(fd);
    for (i = n > 0 && text[0] == '-' ? 1 : 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
        v = v * 10 + (text[i] - '0');
    return n > 0 && text[0] == '-' ? -v : v;
}

void proc_defaults_capture(void)
{
    struct sigaction sa;
    int i;

    if (defaults.captured)
        return;
    for (i = 0; i < RLIM_NLIMITS; i++)
        getrlimit((__rlimit_resource_t)i, &defaults.limits[i]);
    defaults.oom_score_adj = read_int("/proc/self/oom_score_adj");
    defaults.captured = true;

    /* A peer that closes early must cause an error, not end the process. */
    if (sigaction(SIGPIPE, NULL, &sa) == 0 && sa.sa_handler == SIG_DFL) {
        sa.sa_handler = SIG_IGN;
        sigaction(SIGPIPE, &sa, NULL);
    }
}

/* ---- in the child: async-signal-safe calls only, no memory but the stack ---- */

void child_reset_signals(void)
{
    /* The kernel's own structure, all zero: SIG_DFL. glibc's sigaction() reserves signals 32 and 33, but a
     * parent may have ignored them, and a container would inherit that. */
    static const unsigned long default_action[8];
    sigset_t none;
    int i;

    for (i = 1; i < NSIG; i++)
        syscall(SYS_rt_sigaction, i, default_action, NULL, NSIG / 8); /* fails for KILL and STOP */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int write_zero(int fd)
{
    int sys = fd < 0 || write(fd, "0", 1) < 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    return sys;
}

int child_join_cgroup(int cgroup_fd, const char *cgroup_procs)
{
    int sys = 0;

    if (cgroup_fd >= 0)
        sys = write_zero(openat(cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC));
    if (sys == 0 && cgroup_procs != NULL)
        sys = write_zero(open(cgroup_procs, O_WRONLY | O_CLOEXEC));
    return sys;
}

/* Children do not inherit a negative score of the daemon, or one set after its start. */
static void reset_oom_score(int inherited)
{
    if (inherited < 0 || inherited != defaults.oom_score_adj)
        write_zero(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); /* may lack the right */
}

static void restore_limits(void)
{
    struct rlimit now;
    int i;

    for (i = 0; i < RLIM_NLIMITS; i++)
        if (getrlimit((__rlimit_resource_t)i, &now) == 0 &&
            (now.rlim_cur != defaults.limits[i].rlim_cur || now.rlim_max != defaults.limits[i].rlim_max))
            setrlimit((__rlimit_resource_t)i, &defaults.limits[i]);
}

/* Moves each source to its number. A source may occupy a number that another one needs, so all are first
 * moved to higher numbers. Everything else closes at exec. */
static int arrange_fds(const struct spawn_plan *plan, int *report_fd)
{
    int moved[3 + SPAWN_FDS_MAX], above = 3;
    size_t i, n = 3 + plan->n_fds;

    for (i = 0; i < plan->n_fds; i++)
        if (plan->fds[i].child_fd >= above)
            above = plan->fds[i].child_fd + 1;

    moved[0] = fcntl(*report_fd, F_DUPFD_CLOEXEC, above);
    if (moved[0] < 0)
        return errno;
    *report_fd = moved[0];
    for (i = 0; i < n; i++) {
        moved[i] = fcntl(i < 3 ? plan->std[i] : plan->fds[i - 3].parent_fd, F_DUPFD_CLOEXEC, above);
        if (moved[i] < 0)
            return errno;
    }
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
        return errno;
    for (i = 0; i < n; i++) /* dup2() leaves out O_CLOEXEC */
        if (dup2(moved[i], i < 3 ? (int)i : plan->fds[i - 3].child_fd) < 0)
            return errno;
    return 0;
}

/* Raw system calls: glibc's wrappers would signal and change all threads of the process. */
#ifdef SYS_setresuid32
#define SET_GROUPS SYS_setgroups32
#define SET_GID SYS_setresgid32
#define SET_UID SYS_setresuid32
#else
#define SET_GROUPS SYS_setgroups
#define SET_GID SYS_setresgid
#define SET_UID SYS_setresuid
#endif

static int become(uid_t uid, gid_t gid)
{
    if (syscall(SET_GROUPS, 0, NULL) != 0 || syscall(SET_GID, gid, gid, gid) != 0 ||
        syscall(SET_UID, uid, uid, uid) != 0)
        return errno;
    /* Until exec it shares our memory: another process of that user must not read it, regardless of
     * fs.suid_dumpable. */
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno;
}

/* For a child that needs only files of its user. */
static int spawn_drop_rights(uid_t uid, gid_t gid)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { 0 };
    /* With 0 the kernel would still run the program of core_pattern; 0 is used only where 1 exceeds the hard
     * limit. */
    const struct rlimit no_core = { 1, 1 }, no_file = { 0, 0 };
    int sys;

    for (int cap = 0; cap <= 63; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0,
              0); /* EINVAL past the kernel's last capability, EPERM without permission */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (uid != 0 && (sys = become(uid, gid)) != 0)
        return sys;
    if ((setrlimit(RLIMIT_CORE, &no_core) != 0 && setrlimit(RLIMIT_CORE, &no_file) != 0) ||
        syscall(SYS_capset, &header, none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return errno;
    return 0;
}

__attribute__((noreturn, noinline)) static void child_run(const struct spawn_plan *plan, int oom_score)
{
    struct spawn_report report = { 0 };
    int report_fd = plan->report_fd, ruleset = -1;
    ssize_t ignored;

    child_reset_signals();
    umask(022);
    report.step = SPAWN_GROUP;
    if ((plan->new_session ? setsid() : setpgid(0, 0)) < 0) {
        report.sys = errno;
        goto fail;
    }
    report.step = SPAWN_CGROUP;
    report.sys = child_join_cgroup(-1, plan->cgroup_procs);
    for (size_t i = 0; report.sys == 0 && plan->join_procs != NULL && plan->join_procs[i] != NULL; i++)
        report.sys = child_join_cgroup(-1, plan->join_procs[i]);
    if (report.sys != 0)
        goto fail;
    report.step = SPAWN_CWD;
    if (chdir(plan->cwd) != 0) {
        report.sys = errno;
        goto fail;
    }
    reset_oom_score(oom_score);
    report.step = SPAWN_FDS;
    report.sys = arrange_fds(plan, &report_fd);
    if (report.sys != 0)
        goto fail;
    restore_limits(); /* last: a low limit would forbid the numbers used above */

    report.step = SPAWN_RIGHTS;
    if (plan->write_paths != NULL && plan->write_paths[0] != NULL)
        report.sys = child_landlock_ruleset(plan->read_paths, plan->write_paths, &ruleset);
    if (report.sys == 0 && plan->no_rights)
        report.sys = spawn_drop_rights(plan->uid, plan->gid);
    if (report.sys == 0)
        report.sys = child_landlock_enter(ruleset);
    if (report.sys != 0)
        goto fail;
    report.step = SPAWN_EXEC;
    execve(plan->argv[0], (char *const *)plan->argv, (char *const *)plan->env);
    report.sys = errno;
fail:
    ignored = write(report_fd, &report, sizeof(report));
    (void)ignored;
    _exit(127);
}

/* ---- in the parent ---- */

/*
 * The raw system call, because glibc has no wrapper. Where the instruction can be inlined (a function around
 * it would return in the child first and overwrite the parent's way back), the child borrows our memory and
 * this stack until it execs or ends, like vfork()'s, and this thread waits: for a daemon with many pods,
 * copying costs more than everything else here. Elsewhere, and with a sanitizer, which must see every return,
 * the child gets a copy.
 */
#if SANITIZED || !(defined(__x86_64__) || defined(__aarch64__))
#define BORROW 0
#define CLONE3(args, size) syscall(SYS_clone3, args, size)
#else
#define BORROW (CLONE_VM | CLONE_VFORK)
#define CLONE3(args, size) clone3_here(args, size)

static inline __attribute__((always_inline)) long clone3_here(struct clone_args *args, size_t size)
{
    long ret;

#if defined(__x86_64__)
    __asm__ volatile("syscall" : "=a"(ret) : "0"(SYS_clone3), "D"(args), "S"(size) : "rcx", "r11", "memory");
#else
    register long number __asm__("x8") = SYS_clone3;
    register long first __asm__("x0") = (long)args;
    register long second __asm__("x1") = (long)size;

    __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
    ret = first;
#endif
    if (ret < 0) {
        errno = (int)-ret;
        return -1;
    }
    return ret;
}
#endif

/* The child does not return. */
static __attribute__((noinline)) pid_t clone_child(const struct spawn_plan *plan, int oom_score,
                                                   int *ret_pidfd)
{
    struct clone_args args = {
        /* A child that changes its user gets a copy: clearing `dumpable` would affect our memory, too. */
        .flags = CLONE_PIDFD | (plan->uid != 0 ? 0 : BORROW) | (plan->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = plan->cgroup_fd >= 0 ? (uint64_t)plan->cgroup_fd : 0,
    };
    pid_t pid = (pid_t)CLONE3(&args, sizeof(args));

    if (pid == 0)
        child_run(plan, oom_score);
    return pid;
}

static enum err_code clone_failed(int sys, bool cgroup, struct err *e)
{
    const char *hint = "";

    if (!cgroup)
        return err_sys(e, sys, "clone3");
    switch (sys) {
    case EBUSY:
        hint = ": it has controllers enabled for its children";
        break;
    case EOPNOTSUPP:
        hint = ": it is in the domain invalid state";
        break;
    case ENODEV: /* documented */
    case ENOENT: /* seen, Linux 6.18 */
        hint = ": it was removed";
        break;
    case EBADF:
        hint = ": not a cgroup v2 folder";
        break;
    }
    err_sys(e, sys, "start in its cgroup%s", hint);
    if (e->code == ERR_NOT_FOUND) /* reserved for a program that does not exist */
        e->code = ERR_PRECONDITION;
    return e->code;
}

enum err_code spawn_child(const struct spawn_plan *plan, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
    sigset_t all, before;
    /* Read in the parent: a process that opened files in its own /proc is more expensive to end. */
    int sys, oom_score = read_int("/proc/self/oom_score_adj");
    pid_t pid;

    *ret_pidfd = -1;
    /* No handler of ours may run in the child before it has default dispositions. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);

    pid = clone_child(plan, oom_score, ret_pidfd);
    sys = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (pid < 0)
        return clone_failed(sys, plan->cgroup_fd >= 0, e);
    *ret_pid = pid;
    return ERR_OK;
}
