/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota_tool - volumes/quota on real disks, for inside/quota.py. A line of JSON for each result; the exit
 * code is the enum err_code, with the text on standard error.
 *
 *     quota_tool [--old] COMMAND FS ...      FS: a folder of the file system; --old: by quotactl(2)
 *
 * The table is FS/state.json, the files are /etc/projects and /etc/projid.
 */
#include "agent/pod/usage/local_storage.h"
#include "base/clock.h"
#include "base/files/disk_usage.h"
#include "base/files/fs.h"
#include "volumes/quota/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TREES 3 /* of a pod that is killed at its start or end */
#define POINTS_MAX 5000

static bool old_call;
static char state_file[300];

static int answer(const struct err *e)
{
    if (e->code != ERR_OK)
        fprintf(stderr, "%s: %s\n", err_code_name(e->code), e->text);
    return (int)e->code;
}

static enum err_code open_fs(struct quota_fs **ret, const char *path, struct err *e)
{
    if (quota_fs_open(ret, path, e) != ERR_OK)
        return e->code;
    if (old_call && quota_find_device(*ret, e) != ERR_OK)
        return e->code;
    if (old_call)
        (*ret)->call = quota_call_device;
    return old_call ? quota_fs_check(*ret, e) : ERR_OK;
}

static enum err_code open_table(struct projects **ret, struct err *e)
{
    const struct projects_options o = { .state_file = state_file,
                                        .projects_file = "/etc/projects",
                                        .projid_file = "/etc/projid" };

    return projects_open(ret, &o, e);
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

static void print_usage(uint32_t id, const struct quota_usage *u, void *arg)
{
    (void)arg;
    printf("{\"id\": %u, \"bytes\": %llu, \"inodes\": %llu, \"hard\": %llu, \"soft\": %llu, \"hard_inodes\": "
           "%llu}\n",
           id, (unsigned long long)u->bytes, (unsigned long long)u->inodes, (unsigned long long)u->hard_bytes,
           (unsigned long long)u->soft_bytes, (unsigned long long)u->hard_inodes);
}

/* ---- one call --------------------------------------------------------------------------------------------
 */

static enum err_code cmd_fs(struct quota_fs *f, char **argv, struct err *e)
{
    (void)argv;
    (void)e;
    printf("{\"type\": \"%s\", \"identity\": \"%s\", \"enforces\": %s, \"warns\": %s, \"way\": \"%s\"}\n",
           quota_fs_type(f), quota_fs_identity(f), quota_fs_enforces(f) ? "true" : "false",
           quota_fs_warns(f) ? "true" : "false", f->call == quota_call_fd ? "quotactl_fd" : "quotactl");
    return ERR_OK;
}

static enum err_code cmd_get(struct quota_fs *f, char **argv, struct err *e) /* ID */
{
    struct quota_usage u;

    if (quota_get(f, (uint32_t)number(argv[0]), &u, e) == ERR_OK)
        print_usage((uint32_t)number(argv[0]), &u, NULL);
    return e->code;
}

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static enum err_code cmd_time(struct quota_fs *f, char **argv, struct err *e) /* ID: ns of a read */
{
    uint64_t ns[201];
    struct quota_usage u;

    for (size_t i = 0; i < ARRAY_LEN(ns); i++) {
        struct timespec a, b;

        clock_gettime(CLOCK_MONOTONIC, &a);
        if (quota_get(f, (uint32_t)number(argv[0]), &u, e) != ERR_OK)
            return e->code;
        clock_gettime(CLOCK_MONOTONIC, &b);
        ns[i] = (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t)b.tv_nsec - (uint64_t)a.tv_nsec;
    }
    printf("{\"first\": %llu, ", (unsigned long long)ns[0]);
    qsort(ns, ARRAY_LEN(ns), sizeof(ns[0]), compare_times);
    printf("\"median\": %llu, \"p99\": %llu}\n", (unsigned long long)ns[100], (unsigned long long)ns[198]);
    return ERR_OK;
}

#define FILES_A_FOLDER 1000

/* One call for a file, with a short path: an emulated machine takes minutes for a million as it is. */
static enum err_code fill_folder(int top, uint64_t first, uint64_t n, struct err *e)
{
    char name[24];
    fd_auto folder = -1;

    snprintf(name, sizeof(name), "%llu", (unsigned long long)first);
    if (mkdirat(top, name, 0755) != 0 || (folder = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return err_sys(e, errno, "create folder %s", name);
    for (uint64_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%llu", (unsigned long long)(first + i));
        if (mknodat(folder, name, S_IFREG | 0644, 0) != 0)
            return err_sys(e, errno, "create %s", name);
    }
    return ERR_OK;
}

static enum err_code cmd_fill(struct quota_fs *f, char **argv, struct err *e) /* DIR N: empty files */
{
    fd_auto top = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const uint64_t all = number(argv[1]);

    (void)f;
    if (top < 0)
        return err_sys(e, errno, "open %s", argv[0]);
    for (uint64_t i = 0; i < all; i += FILES_A_FOLDER)
        if (fill_folder(top, i, all - i < FILES_A_FOLDER ? all - i : FILES_A_FOLDER, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static uint64_t cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static enum err_code cmd_scan(struct quota_fs *f, char **argv, struct err *e) /* DIR: in the agent's slices */
{
    scoped(disk_usage_free) struct disk_usage *u = NULL;
    const uint64_t began_ms = clock_mono_ms(), began_us = cpu_us();
    uint64_t slices = 0, longest_us = 0;
    bool over = false;

    (void)f;
    if (disk_usage_begin(&u, argv[0], e) != ERR_OK)
        return e->code;
    for (; !over; slices++) {
        const uint64_t before_us = cpu_us();

        over = disk_usage_go_on(u, LOCAL_SLICE_NS);
        if (cpu_us() - before_us > longest_us)
            longest_us = cpu_us() - before_us;
    }
    printf("{\"bytes\": %" PRIu64 ", \"inodes\": %" PRIu64 ", \"ms\": %" PRIu64 ", \"cpu_ms\": %" PRIu64
           ", \"slices\": %" PRIu64 ", \"longest_us\": %" PRIu64 ", \"slice_us\": %d}\n",
           disk_usage_sum(u).bytes, disk_usage_sum(u).inodes, clock_mono_ms() - began_ms,
           (cpu_us() - began_us) / 1000, slices, longest_us, LOCAL_SLICE_NS / 1000);
    return ERR_OK;
}

static enum err_code cmd_set(struct quota_fs *f, char **argv, struct err *e) /* ID HARD SOFT INODES */
{
    const struct quota_limits l = { .hard_bytes = number(argv[1]),
                                    .soft_bytes = number(argv[2]),
                                    .hard_inodes = number(argv[3]) };

    return quota_set(f, (uint32_t)number(argv[0]), &l, e);
}

static enum err_code cmd_assign(struct quota_fs *f, char **argv, struct err *e) /* DIR ID */
{
    fd_auto fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)f;
    return fd < 0 ? err_sys(e, errno, "open %s", argv[0]) : quota_assign(fd, (uint32_t)number(argv[1]), e);
}

static enum err_code cmd_each(struct quota_fs *f, char **argv, struct err *e)
{
    (void)argv;
    return quota_each(f, print_usage, NULL, e);
}

static void print_project(const struct project *x, void *arg)
{
    (void)arg;
    printf("{\"id\": %u, \"owner\": \"%s\", \"path\": \"%s\", \"fs\": \"%s\"}\n", x->id, x->owner,
           x->path == NULL ? "" : x->path, x->fs);
}

static enum err_code cmd_table(struct quota_fs *f, char **argv, struct err *e)
{
    scoped(projects_close) struct projects *p = NULL;

    (void)f;
    (void)argv;
    if (open_table(&p, e) == ERR_OK)
        projects_each(p, print_project, NULL);
    return e->code;
}

/* ---- start and end of a pod's trees -------------------------------------------------------------------- */

static enum err_code make_trees(struct quota_fs *f, struct projects *p, const char *owner, char **trees,
                                size_t n, struct err *e)
{
    struct projects_wish w[64] = { 0 };
    const struct quota_limits l = { .hard_bytes = 1 << 20 };

    for (size_t i = 0; i < n; i++)
        w[i] = (struct projects_wish){ .fs = f, .owner = owner, .path = trees[i] };
    if (projects_take_all(p, w, n, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < n; i++) {
        fd_auto fd = -1;

        if (mkdir(trees[i], 0755) != 0 && errno != EEXIST)
            return err_sys(e, errno, "mkdir %s", trees[i]);
        fd = open(trees[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return err_sys(e, errno, "open %s", trees[i]);
        if (quota_assign(fd, w[i].id, e) != ERR_OK || quota_set(f, w[i].id, &l, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code remove_trees(struct quota_fs *f, struct projects *p, char **trees, size_t n,
                                  struct err *e)
{
    struct projects_wish w[64] = { 0 };

    for (size_t i = 0; i < n; i++) {
        w[i] = (struct projects_wish){ .fs = f, .owner = "", .path = trees[i] };
        if (fs_remove_tree(AT_FDCWD, trees[i], e) != ERR_OK)
            return e->code;
    }
    return projects_release_all(p, w, n, e);
}

static size_t count(char **v)
{
    size_t n = 0;

    while (v[n] != NULL && n < 64)
        n++;
    return n;
}

static enum err_code cmd_start(struct quota_fs *f, char **argv, struct err *e) /* OWNER TREE... */
{
    scoped(projects_close) struct projects *p = NULL;

    if (open_table(&p, e) != ERR_OK)
        return e->code;
    return make_trees(f, p, argv[0], argv + 1, count(argv + 1), e);
}

static enum err_code cmd_cost(struct quota_fs *f, char **argv,
                              struct err *e) /* N: pods of six trees, one by one */
{
    scoped(projects_close) struct projects *p = NULL;
    uint64_t pods = number(argv[0]), last = 0, all = clock_mono_ms();

    if (open_table(&p, e) != ERR_OK)
        return e->code;
    for (uint64_t i = 0; i < pods; i++) {
        struct projects_wish w[6] = { 0 };
        char path[6][100];
        struct timespec a, b;

        for (size_t k = 0; k < ARRAY_LEN(w); k++) {
            snprintf(path[k], sizeof(path[k]), "/mnt/none/pods/12345678-1234-1234-1234-123456789012/%llu/%zu",
                     (unsigned long long)i, k);
            w[k] = (struct projects_wish){ .fs = f,
                                           .owner = "12345678-1234-1234-1234-123456789012",
                                           .path = path[k] };
        }
        clock_gettime(CLOCK_MONOTONIC, &a);
        if (projects_take_all(p, w, ARRAY_LEN(w), e) != ERR_OK)
            return e->code;
        clock_gettime(CLOCK_MONOTONIC, &b);
        last = (uint64_t)(b.tv_sec - a.tv_sec) * 1000000u + (uint64_t)(b.tv_nsec / 1000) -
               (uint64_t)(a.tv_nsec / 1000);
    }
    all = clock_mono_ms() - all;
    printf("{\"pods\": %llu, \"ms\": %llu, \"last_us\": %llu}\n", (unsigned long long)pods,
           (unsigned long long)all, (unsigned long long)last);
    unlink(state_file);
    unlink("/etc/projects");
    unlink("/etc/projid");
    return ERR_OK;
}

static enum err_code cmd_end(struct quota_fs *f, char **argv, struct err *e) /* TREE... */
{
    scoped(projects_close) struct projects *p = NULL;

    if (open_table(&p, e) != ERR_OK)
        return e->code;
    return remove_trees(f, p, argv, count(argv), e);
}

static enum err_code cmd_sweep(struct quota_fs *f, char **argv, struct err *e)
{
    scoped(projects_close) struct projects *p = NULL;
    size_t waiting = 0;

    (void)argv;
    if (open_table(&p, e) == ERR_OK && projects_sweep(p, f, &waiting, e) == ERR_OK)
        printf("{\"waiting\": %zu}\n", waiting);
    return e->code;
}

/* ---- killed at each system call ------------------------------------------------------------------------ */

struct life {
    struct quota_fs *f;
    const char *folder;
    char *trees[TREES + 1];
    bool end; /* it is the end that is killed */
};

static enum err_code live(const struct life *x, bool end, struct err *e)
{
    scoped(projects_close) struct projects *p = NULL;
    char **trees = (char **)x->trees;

    if (open_table(&p, e) != ERR_OK)
        return e->code;
    return end ? remove_trees(x->f, p, trees, TREES, e) : make_trees(x->f, p, "killed", trees, TREES, e);
}

/* Lets a child live until it comes back from its `point`th system call. 1: it ended before, 0: killed, -1. */
static int kill_at(const struct life *x, unsigned point)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct err e = { 0 };

        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(live(x, x->end, &e) == ERR_OK ? 0 : answer(&e));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid ||
        ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0)
        return -1;
    for (unsigned stops = 0;;) { /* a stop before and one after each call */
        if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid)
            return -1;
        if (WIFEXITED(status))
            return WEXITSTATUS(status) == 0 ? 1 : -1;
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80) || ++stops != 2 * point)
            continue;
        kill(pid, SIGKILL);
        return waitpid(pid, &status, 0) == pid ? 0 : -1;
    }
}

struct seen {
    const struct projects *p;
    unsigned ours, strange;
};

static void on_used(uint32_t id, const struct quota_usage *u, void *arg)
{
    struct seen *s = arg;

    (void)u;
    if (id < QUOTA_FIRST_ID)
        return;
    s->ours++;
    s->strange += projects_by_id(s->p, 0, id) == NULL;
}

/* What a killed agent left: each tree with an id has its own one, and the table knows all that are in use. */
static enum err_code check_left(const struct life *x, struct err *e)
{
    scoped(projects_close) struct projects *p = NULL;
    struct seen seen = { 0 };
    uint32_t ids[TREES] = { 0 };

    if (open_table(&p, e) != ERR_OK)
        return e->code;
    seen.p = p;
    if (quota_each(x->f, on_used, &seen, e) != ERR_OK)
        return e->code;
    if (seen.strange > 0)
        return err_set(e, ERR_INTERNAL, "%u projects are in use that the table does not know", seen.strange);
    for (size_t i = 0; i < TREES; i++) {
        struct presence there = quota_project_of(x->trees[i], &ids[i], e);
        const struct project *known = projects_find(p, x->trees[i]);

        if (presence_is_unknown(there))
            return e->code;
        if (presence_is_absent(there) || ids[i] == 0)
            continue;
        if (known != NULL && known->id != ids[i])
            return err_set(e, ERR_INTERNAL, "%s has %u, the table says %u", x->trees[i], ids[i], known->id);
        if (known == NULL)
            return err_set(e, ERR_INTERNAL, "%s has %u, the table says nothing", x->trees[i], ids[i]);
        for (size_t k = 0; k < i; k++)
            if (ids[k] == ids[i])
                return err_set(e, ERR_INTERNAL, "%s and %s share %u", x->trees[k], x->trees[i], ids[i]);
    }
    return ERR_OK;
}

static unsigned entries_of(const struct projects *p)
{
    return HASH_COUNT(p->ids);
}

/* The next agent: the pod is gone, its trees are removed, and nothing is left. */
static enum err_code clean(const struct life *x, struct err *e)
{
    scoped(projects_close) struct projects *p = NULL;
    struct seen seen = { 0 };
    size_t waiting = 0;

    for (size_t i = 0; i < TREES; i++)
        if (fs_remove_tree(AT_FDCWD, x->trees[i], e) != ERR_OK)
            return e->code;
    if (open_table(&p, e) != ERR_OK)
        return e->code;
    for (unsigned tries = 0; tries < 500; tries++) { /* XFS gives removed inodes back in the background */
        if (projects_sweep(p, x->f, &waiting, e) != ERR_OK)
            return e->code;
        if (waiting == 0)
            break;
        usleep(10000);
    }
    seen.p = p;
    if (quota_each(x->f, on_used, &seen, e) != ERR_OK)
        return e->code;
    if (seen.ours > 0 || waiting > 0 || entries_of(p) > 0)
        return err_set(e, ERR_INTERNAL, "left: %u in use, %zu waiting, %u in the table", seen.ours, waiting,
                       entries_of(p));
    return ERR_OK;
}

static enum err_code kill_and_check(const struct life *x, unsigned point, bool *ret_over, struct err *e)
{
    int killed;

    if (x->end && live(x, false, e) != ERR_OK)
        return err_wrap(e, "start");
    killed = kill_at(x, point);
    if (killed < 0)
        return err_set(e, ERR_INTERNAL, "it cannot be traced, or failed");
    *ret_over = killed == 1;
    if (check_left(x, e) != ERR_OK)
        return err_wrap(e, "after the kill");
    if (live(x, false, e) != ERR_OK || check_left(x, e) != ERR_OK) /* the next agent starts the same pod */
        return err_wrap(e, "the next start");
    if (clean(x, e) != ERR_OK)
        return err_wrap(e, "the next end");
    return ERR_OK;
}

static enum err_code cmd_kill(struct quota_fs *f, char **argv, struct err *e) /* FOLDER start|end|left */
{
    struct life x = { .f = f, .folder = argv[0], .end = strcmp(argv[1], "start") != 0 };
    bool over = false, left = strcmp(argv[1], "left") == 0;
    unsigned point;

    if (left) /* what a start left is cleaned up without being started again */
        x.end = false;
    for (size_t i = 0; i < TREES; i++)
        x.trees[i] = str_printf("%s/tree%zu", argv[0], i);
    for (point = 1; !over && point < POINTS_MAX; point++) {
        if (left) {
            int killed = kill_at(&x, point);

            over = killed == 1;
            if (killed < 0 || check_left(&x, e) != ERR_OK || clean(&x, e) != ERR_OK)
                return err_wrap(e, "system call %u", point);
        } else if (kill_and_check(&x, point, &over, e) != ERR_OK) {
            return err_wrap(e, "system call %u", point);
        }
    }
    for (size_t i = 0; i < TREES; i++)
        free(x.trees[i]);
    printf("{\"points\": %u}\n", point - 1);
    return ERR_OK;
}

/* ---- warnings --------------------------------------------------------------------------------------------
 */

static void on_warning(const struct quota_warning *w, void *arg)
{
    (void)arg;
    printf("{\"lost\": %s, \"device\": %llu, \"project\": %u, \"type\": %u, \"at\": %llu}\n",
           w->lost ? "true" : "false", (unsigned long long)w->device, w->project, w->type,
           (unsigned long long)clock_mono_ms());
    fflush(stdout);
}

static void on_end(uv_timer_t *t)
{
    uv_stop(t->loop);
}

static enum err_code cmd_watch(struct quota_fs *f, char **argv, struct err *e) /* SECONDS */
{
    uv_loop_t loop;
    uv_timer_t timer;
    struct quota_warn *w = NULL;

    (void)f;
    uv_loop_init(&loop);
    if (quota_warn_open(&w, &loop, on_warning, NULL, e) != ERR_OK)
        return e->code;
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, on_end, number(argv[0]) * 1000, 0);
    printf("{\"ready\": true}\n");
    fflush(stdout);
    uv_run(&loop, UV_RUN_DEFAULT);
    quota_warn_close(w, NULL, NULL);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return ERR_OK;
}

/* ---- what a seccomp profile can do ------------------------------------------------------------------------
 */

#ifndef SYS_file_setattr
#define SYS_file_setattr 469 /* Linux 6.17 */
#endif
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)

/* Runs a program that cannot change projects. Only what the kernel sees of a request counts: its lower half.
 */
static enum err_code cmd_confined(struct quota_fs *f, char **argv, struct err *e) /* PROGRAM ARGUMENT... */
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_file_setattr, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)FS_IOC_FSSETXATTR, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)FS_IOC_SETFLAGS, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, REFUSED),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

    (void)f;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return err_sys(e, errno, "install a filter");
    execvp(argv[0], argv);
    return err_sys(e, errno, "run %s", argv[0]);
}

static const struct {
    const char *name;
    int least; /* arguments */
    enum err_code (*fn)(struct quota_fs *f, char **argv, struct err *e);
} commands[] = {
    { "confined", 1, cmd_confined }, { "cost", 1, cmd_cost },   { "fill", 2, cmd_fill },
    { "scan", 1, cmd_scan },         { "fs", 0, cmd_fs },       { "get", 1, cmd_get },
    { "time", 1, cmd_time },         { "set", 4, cmd_set },     { "assign", 2, cmd_assign },
    { "each", 0, cmd_each },         { "table", 0, cmd_table }, { "start", 2, cmd_start },
    { "end", 1, cmd_end },           { "sweep", 0, cmd_sweep }, { "kill", 2, cmd_kill },
    { "watch", 1, cmd_watch },
};

int main(int argc, char **argv)
{
    struct err e = { 0 };
    scoped(quota_fs_close) struct quota_fs *f = NULL;

    if (argc > 1 && strcmp(argv[1], "--old") == 0) {
        old_call = true;
        argv++;
        argc--;
    }
    for (size_t i = 0; argc >= 3 && i < ARRAY_LEN(commands); i++) {
        if (strcmp(argv[1], commands[i].name) != 0 || argc - 3 < commands[i].least)
            continue;
        snprintf(state_file, sizeof(state_file), "%s/state.json", argv[2]);
        if (open_fs(&f, argv[2], &e) == ERR_OK)
            ERR_IGNORE(commands[i].fn(f, argv + 3, &e));
        return answer(&e);
    }
    fprintf(stderr, "usage: quota_tool [--old] COMMAND FS ...\n");
    return 64;
}
