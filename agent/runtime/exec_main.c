/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coracle-exec - starts a process in a running container through the OCI runtime and waits for it; see
 * exec_report.h.
 *
 * The runtime is used with --detach: in the foreground, runc stays between the process and its descriptors
 * (about 15 MiB, and it waits for processes that hold the pipes), and does not accept a console socket. The
 * process is then orphaned and adopted by the nearest subreaper: this program, which gets its exit status.
 * Each process has its own coracle-exec, statically linked, with 64 KiB of private memory.
 *
 * `coracle-exec --streams ...` only prepares the standard streams of another program.
 */
#include "agent/runtime/exec_report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

enum {
    /* The agent kills this program 2 s after asking it to end (base/process/process.c). */
    RUNTIME_GRACE_MS = 500, /* then, for a runtime that still starts the process, which takes 20 ms */
    KILL_GRACE_MS = 1200,   /* for killed processes to end */
    PAUSE_US = 2000,
    SPARE_FD = 100,
};

struct exec {
    const char *folder, *oom_score; /* oom_score NULL: unchanged */
    bool terminal;
    struct winsize size;
    char **runtime;
    int signals, log, console; /* -1: none */
    sigset_t mask_before;
    pid_t runtime_pid, leader; /* 0: not started, or ended */
    pid_t session;             /* the leader's */
    bool ending;
    uint64_t runtime_until_ms;
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- reporting ---- */

static void exec_main_report(int kind, int value, const char *text, int fd)
{
    static struct exec_report r;
    char control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec piece = { .iov_base = &r };
    struct msghdr m = { .msg_iov = &piece, .msg_iovlen = 1 };
    struct cmsghdr *c;

    r.kind = kind;
    r.value = value;
    snprintf(r.text, sizeof(r.text), "%s", text);
    piece.iov_len = offsetof(struct exec_report, text) + strlen(r.text) + 1;
    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof(control);
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    while (sendmsg(EXEC_FD_CONTROL, &m, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

static void report_log(struct exec *x, int kind, int value)
{
    static char text[EXEC_REPORT_TEXT];
    ssize_t n = pread(x->log, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    exec_main_report(kind, value, text, -1);
}

/* ---- the end ---- */

static void clean_up(const struct exec *x)
{
    unlink(EXEC_FILE_PID);
    unlink(EXEC_FILE_LEADER);
    unlink(EXEC_FILE_CONSOLE);
    rmdir(x->folder);
}

static void exec_main_finish(const struct exec *x, int code)
{
    clean_up(x);
    _exit(code);
}

static void exec_main_broken(const struct exec *x, const char *what)
{
    exec_main_report(EXEC_BROKEN, errno, what, -1);
    exec_main_finish(x, 1);
}

static void kill_session(struct exec *x)
{
    uint64_t until = now_ms() + KILL_GRACE_MS, start_time;

    for (;;) {
        if (x->session == 0 && /* the session was unknown before */
            presence_is_unknown(exec_read_process(x->leader, &x->session, &start_time)))
            x->session = 0;
        if (presence_is_absent(exec_session_kill(x->leader, x->session)) || now_ms() >= until)
            return;
        usleep(PAUSE_US);
    }
}

/* A runtime killed in between may have started the process without reporting it: its children were adopted by
 * this program, the nearest subreaper. */
static void kill_orphans(void)
{
    exec_children_end(KILL_GRACE_MS);
}

/* ---- the process ---- */

static pid_t read_pid(void)
{
    char text[32];
    int fd = open(EXEC_FILE_PID, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return (pid_t)atoi(text);
}

/* For an agent that finds the process after this program has ended. */
static void record_leader(const struct exec *x, uint64_t start_time)
{
    int fd;

    fd = open(EXEC_FILE_LEADER, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return; /* `pid` is sufficient */
    dprintf(fd, "%d %" PRIu64 "\n", (int)x->leader, start_time);
    close(fd);
}

static void runtime_ended(struct exec *x, int status)
{
    uint64_t start_time = 0;

    x->runtime_pid = 0;
    x->leader = read_pid();
    if (x->leader > 1 && presence_is_unknown(exec_read_process(x->leader, &x->session, &start_time)))
        start_time = 0; /* unknown: it is read again when needed */
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && x->leader > 1) {
        record_leader(x, start_time);
        exec_main_report(EXEC_STARTED, (int)x->leader, "", -1);
        return;
    }
    if (x->leader > 1)
        kill_session(x);
    kill_orphans();
    report_log(x, EXEC_FAILED, status);
    exec_main_finish(x, 0);
}

/* The leader is reaped only here, after the runtime: until then its pid is not reused. */
static void exec_main_reap(struct exec *x)
{
    int status;
    pid_t pid;

    if (x->runtime_pid > 0) {
        if (waitpid(x->runtime_pid, &status, WNOHANG) != x->runtime_pid)
            return;
        runtime_ended(x, status);
    }
    if (x->ending)
        kill_session(x);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != x->leader)
            continue; /* an orphan that shared the host's PID namespace */
        report_log(x, EXEC_ENDED, status);
        exec_main_finish(x, 0);
    }
    /* The process is not our child, so its end would never be detected. */
    if (pid < 0 && errno == ECHILD) {
        kill_session(x);
        errno = ECHILD;
        exec_main_broken(x, "wait for the process");
    }
}

/* ---- terminal ---- */

static void listen_console(struct exec *x)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = EXEC_FILE_CONSOLE };

    x->console = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (x->console < 0 || bind(x->console, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(x->console, 1) != 0)
        exec_main_broken(x, "make the console socket");
}

static void take_console(struct exec *x)
{
    char byte[128], control[CMSG_SPACE(sizeof(int))];
    struct iovec piece = { .iov_base = byte, .iov_len = sizeof(byte) };
    struct msghdr m = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    int peer = accept4(x->console, NULL, NULL, SOCK_CLOEXEC), master = -1;
    const struct cmsghdr *c;

    if (peer < 0)
        return;
    if (recvmsg(peer, &m, MSG_CMSG_CLOEXEC) > 0)
        for (c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, (struct cmsghdr *)c))
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
                c->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(&master, CMSG_DATA(c), sizeof(master));
    close(peer);
    if (master < 0)
        return;
    if (x->size.ws_row != 0 && x->size.ws_col != 0)
        ioctl(master, TIOCSWINSZ, &x->size);
    exec_main_report(EXEC_TERMINAL, 0, "", master);
    close(master);
    close(x->console);
    x->console = -1;
    unlink(EXEC_FILE_CONSOLE);
}

/* ---- the runtime ---- */

/* Set before the runtime starts, so that it applies to the process from its first instruction. EACCES: too
 * low without CAP_SYS_RESOURCE; the process is then started with its present value. */
static void set_oom_score(const char *score)
{
    int fd = score == NULL ? -1 : open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    ssize_t ignored;

    if (fd < 0)
        return;
    ignored = write(fd, score, strlen(score));
    (void)ignored;
    close(fd);
}

static void run_runtime(struct exec *x)
{
    int null, i;

    /* Above the numbers used by the runtime. */
    i = open("/dev/null", O_RDWR | O_CLOEXEC);
    null = fcntl(i, F_DUPFD_CLOEXEC, SPARE_FD);
    close(i);
    x->log = memfd_create("log", MFD_CLOEXEC | MFD_NOEXEC_SEAL); /* required by vm.memfd_noexec=2 */
    if (x->log < 0 && errno == EINVAL)                           /* before Linux 6.3 */
        x->log = memfd_create("log", MFD_CLOEXEC);
    if (x->log < 0 || null < 0)
        exec_main_broken(x, "make the runtime's log");
    if (x->terminal)
        listen_console(x);
    x->runtime_pid = fork();
    if (x->runtime_pid < 0)
        exec_main_broken(x, "fork");
    if (x->runtime_pid > 0) {
        close(null);
        return;
    }
    sigprocmask(SIG_SETMASK, &x->mask_before, NULL);
    set_oom_score(x->oom_score);
    i = fcntl(x->log, F_DUPFD_CLOEXEC, SPARE_FD);
    dup2(STDIN_FILENO, EXEC_FD_SPEC);
    dup2(i, EXEC_FD_LOG);
    for (i = 0; i < 3; i++)
        if (dup2(x->terminal ? null : EXEC_FD_STDIN + i, i) < 0)
            _exit(254);
    for (i = EXEC_FD_CONTROL; i <= EXEC_FD_STDERR; i++)
        close(i);
    execv(x->runtime[0], x->runtime);
    dprintf(EXEC_FD_LOG, "{\"level\":\"error\",\"msg\":\"start %s: %s\"}\n", x->runtime[0], strerror(errno));
    _exit(254);
}

/* ---- main ---- */

static void end_now(struct exec *x)
{
    if (x->ending)
        return;
    x->ending = true;
    x->runtime_until_ms = now_ms() + RUNTIME_GRACE_MS;
    if (x->leader > 0)
        kill_session(x);
}

static int wait_ms(const struct exec *x)
{
    uint64_t now = now_ms();

    if (!x->ending || x->runtime_pid == 0)
        return -1;
    return x->runtime_until_ms > now ? (int)(x->runtime_until_ms - now) : 0;
}

static void exec_main_turn(struct exec *x)
{
    struct pollfd p[] = {
        { .fd = x->signals, .events = POLLIN },
        { .fd = x->ending ? -1 : EXEC_FD_CONTROL, .events = POLLIN },
        { .fd = x->console, .events = POLLIN },
    };
    struct signalfd_siginfo info;

    if (poll(p, 3, wait_ms(x)) == 0 && x->ending && x->runtime_pid > 0)
        kill(x->runtime_pid, SIGKILL);
    if (x->console >= 0)
        take_console(x); /* before the runtime's end is handled: the runtime has connected by then */
    if (p[1].revents != 0)
        end_now(x);
    if (p[0].revents != 0)
        while (read(x->signals, &info, sizeof(info)) == sizeof(info))
            if (info.ssi_signo == SIGTERM)
                end_now(x);
    exec_main_reap(x);
}

/* Becomes the runtime of a container in a user namespace. conmon's pipes belong to the host's root, so
 * /dev/stdout could not be opened inside (crun chowns them, runc cannot). And without a pipe conmon passes
 * the host's /dev/null, which crun 1.8 would chown, too. */
static int run_with_streams(const char *how, char **argv)
{
    char *flags;
    unsigned long first = strtoul(how, &flags, 10);
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0 || (strchr(flags, 'i') != NULL && dup2(fds[0], STDIN_FILENO) < 0) ||
        (strchr(flags, 'o') != NULL && dup2(fds[1], STDOUT_FILENO) < 0)) {
        fprintf(stderr, "coracle-exec: make a pipe: %s\n", strerror(errno));
        return 1;
    }
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat st;

        if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && fchown(fd, (uid_t)first, (gid_t)first) != 0)
            fprintf(stderr, "coracle-exec: owner of a pipe: %s\n", strerror(errno));
    }
    execv(argv[0], argv);
    fprintf(stderr, "coracle-exec: %s: %s\n", argv[0], strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    struct exec x = { .signals = -1, .log = -1, .console = -1 };
    sigset_t mask;
    int i;

    if (argc > 3 && strcmp(argv[1], EXEC_STREAMS) == 0)
        return run_with_streams(argv[2], argv + 3);
    if (argc == 4 && strcmp(argv[1], EXEC_FORWARD) == 0)
        return exec_forward(argv[2], argv[3]);
    if (argc < 5) {
        fprintf(stderr, "usage: coracle-exec FOLDER ROWSxCOLUMNS|- OOM_SCORE_ADJ|- RUNTIME ARG...\n");
        return 2;
    }
    x.folder = argv[1];
    x.terminal = sscanf(argv[2], "%hux%hu", &x.size.ws_row, &x.size.ws_col) == 2;
    x.oom_score = strcmp(argv[3], "-") == 0 ? NULL : argv[3];
    x.runtime = argv + 4;

    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &mask, &x.mask_before) != 0 ||
        (x.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK)) < 0 ||
        prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        exec_main_broken(&x, "prepare");
    run_runtime(&x);
    /* The runtime and the process have their own; ours would keep the pipes open. */
    close(STDIN_FILENO);
    for (i = EXEC_FD_STDIN; !x.terminal && i <= EXEC_FD_STDERR; i++)
        close(i);
    for (;;)
        exec_main_turn(&x);
}
