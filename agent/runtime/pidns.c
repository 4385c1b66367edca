/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/pidns.h"

#include "agent/runtime/exec_report.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/parse.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_ID 65535         /* user and group, as in the pause images of Kubernetes */
#define PAUSE_MEMORY "size=4m" /* of the file system with the program's copy */
#define PAUSE_OOM "-998"       /* kubelet's for a sandbox; unchanged without CAP_SYS_RESOURCE */
#define CGROUP_NAME "pause"
#define DEADLINE_MS 20000
#define CHILDREN_MS 2000 /* for killed processes to end */

/* ---- the first process, up to its exec ---- */

struct pins { /* opened before entering the user namespace, from which their folder is inaccessible */
    int user, net, ipc, uts, program; /* -1: none */
};

static enum err_code open_pin(const char *path, int *ret, struct err *e)
{
    if (path == NULL)
        return ERR_OK;
    *ret = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return *ret >= 0 ? ERR_OK : err_sys(e, errno, "open %s", path);
}

static enum err_code rt_pidns_join(int fd, int kind, const char *what, struct err *e)
{
    return fd < 0 || setns(fd, kind) == 0 ? ERR_OK : err_sys(e, errno, "enter the pod's %s namespace", what);
}

static enum err_code copy_program(int from, struct err *e)
{
    /* Not readable: so the process is not dumpable, and /proc/1 reveals nothing to its neighbours. */
    fd_auto to = open("pause", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
    char buffer[65536];
    ssize_t n;

    if (to < 0)
        return err_sys(e, errno, "create the copy of coracle-pause");
    while ((n = read(from, buffer, sizeof(buffer))) > 0)
        if (write(to, buffer, (size_t)n) != n)
            return err_sys(e, errno, "copy coracle-pause");
    if (n < 0 || fchmod(to, 0111) != 0)
        return err_sys(e, errno, "copy coracle-pause");
    return ERR_OK;
}

/* A root with only the program: all that a container sees in /proc/1/root. */
static enum err_code enter_empty_root(const struct rt_pidns_spec *spec, int program, struct err *e)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return err_sys(e, errno, "make a mount namespace");
    if (mount("tmpfs", spec->dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755," PAUSE_MEMORY) != 0 ||
        chdir(spec->dir) != 0)
        return err_sys(e, errno, "mount a tmpfs on %s", spec->dir);
    if (copy_program(program, e) != ERR_OK)
        return e->code;
    if (syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
        return err_sys(e, errno, "leave the host's root");
    if (mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, PAUSE_MEMORY) != 0)
        return err_sys(e, errno, "make the root read-only");
    return ERR_OK;
}

static enum err_code rt_pidns_drop_rights(struct err *e)
{
    if (setgroups(0, NULL) != 0 || setresgid(PAUSE_ID, PAUSE_ID, PAUSE_ID) != 0 ||
        setresuid(PAUSE_ID, PAUSE_ID, PAUSE_ID) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_sys(e, errno, "give up root");
    return ERR_OK;
}

/* The first process of the namespace. Returns only on failure. */
static enum err_code become_pause(const struct pins *pins, struct err *e)
{
    char *const argv[] = { (char *)"/pause", NULL }, *const env[] = { NULL };

    if (setsid() < 0)
        return err_sys(e, errno, "start a session");
    if (rt_pidns_join(pins->net, CLONE_NEWNET, "network", e) != ERR_OK ||
        rt_pidns_join(pins->ipc, CLONE_NEWIPC, "IPC", e) != ERR_OK ||
        rt_pidns_join(pins->uts, CLONE_NEWUTS, "UTS", e) != ERR_OK || rt_pidns_drop_rights(e) != ERR_OK)
        return e->code;
    for (int fd = 0; fd < 3; fd++)
        close(fd); /* the process must not hold the agent's log */
    execve("/pause", argv, env);
    return err_sys(e, errno, "run coracle-pause");
}

/* ---- starting and pinning, in the child ---- */

struct started {
    pid_t pid; /* of the first process, in the host's PID namespace */
    struct err e;
};

/* The intermediate process: enters the user namespace, if any, and creates the PID namespace in it. It lives
 * until that is pinned. */
static void run_intermediate(const struct rt_pidns_spec *spec, const struct proc_pipes *pipes)
{
    struct started report = { 0 };
    struct pins pins = { -1, -1, -1, -1, -1 };
    int wire[2];
    char go;

    ERR_IGNORE(fs_write_control(AT_FDCWD, "/proc/self/oom_score_adj", PAUSE_OOM, ERR_IGNORED));
    if (open_pin(spec->userns, &pins.user, &report.e) == ERR_OK &&
        open_pin(spec->netns, &pins.net, &report.e) == ERR_OK &&
        open_pin(spec->ipcns, &pins.ipc, &report.e) == ERR_OK &&
        open_pin(spec->utsns, &pins.uts, &report.e) == ERR_OK &&
        open_pin(spec->program, &pins.program, &report.e) == ERR_OK &&
        enter_empty_root(spec, pins.program, &report.e) == ERR_OK &&
        rt_pidns_join(pins.user, CLONE_NEWUSER, "user", &report.e) == ERR_OK) {
        if (unshare(CLONE_NEWPID) != 0)
            err_sys(&report.e, errno, "create a PID namespace");
        else if (pipe2(wire, O_CLOEXEC) != 0)
            err_sys(&report.e, errno, "create a pipe");
        else if ((report.pid = proc_call_fork()) < 0)
            err_sys(&report.e, errno, "fork");
        else if (report.pid == 0) {
            ERR_IGNORE(become_pause(&pins, &report.e));
            ERR_IGNORE(write(wire[1], &report.e, sizeof(report.e)));
            _exit(1);
        }
    }
    if (report.e.code == ERR_OK) {
        close(wire[1]);
        ERR_IGNORE(read(wire[0], &report.e, sizeof(report.e))); /* end of file: the program runs */
    }
    if ((write(pipes->to, &report, sizeof(report)) != (ssize_t)sizeof(report) ||
         read(pipes->from, &go, 1) != 1) &&
        report.pid > 0)
        kill(report.pid, SIGKILL); /* the process was not recorded */
}

static enum err_code rt_pidns_pin(const char *dir, pid_t whose, struct err *e)
{
    str_auto path = str_printf("%s/pid", dir);
    str_auto ns = str_printf("/proc/%d/ns/pid_for_children", (int)whose);
    fd_auto fd = -1;

    if (path == NULL || ns == NULL)
        return err_nomem(e);
    fd = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0400);
    if (fd < 0)
        return err_sys(e, errno, "create %s", path);
    if (mount(ns, path, NULL, MS_BIND, NULL) != 0)
        return err_sys(e, errno, "bind a PID namespace on %s", path);
    return ERR_OK;
}

static enum err_code record_pause(const char *dir, pid_t pid, uint64_t start_time, struct buf *out,
                                  struct err *e)
{
    str_auto path = str_printf("%s/pause", dir);

    buf_addf(out, "%d %llu", (int)pid, (unsigned long long)start_time);
    if (path == NULL || buf_check(out, e) != ERR_OK)
        return err_nomem(e);
    return fs_replace_at(AT_FDCWD, path, out->p, out->n, 0400, false, e);
}

/* The pause process may outlive this child only once it is recorded, so that rt_pidns_remove() finds it.
 * Until then, if this child or the intermediate process is killed, the other one ends the pause process. */
static enum err_code start_in_child(const void *arg, struct buf *out, struct err *e)
{
    const struct rt_pidns_spec *spec = arg;
    struct started report = { 0 };
    uint64_t start_time = 0;
    struct presence found;
    struct proc_pipes pipes;
    pid_t between;

    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return err_sys(e, errno, "become a subreaper");
    between = proc_call_fork_piped(&pipes, e);
    if (between < 0)
        return e->code;
    if (between == 0) {
        run_intermediate(spec, &pipes);
        _exit(0);
    }
    fd_auto from = pipes.from, to = pipes.to;
    if (read(from, &report, sizeof(report)) != (ssize_t)sizeof(report))
        err_set(e, ERR_INTERNAL, "the process that starts coracle-pause exited early");
    else if (report.e.code != ERR_OK)
        *e = report.e;
    else if (rt_pidns_pin(spec->dir, between, e) == ERR_OK) {
        found = proc_start_time(report.pid, &start_time, e);
        if (presence_is_absent(found))
            err_set(e, ERR_UNAVAILABLE, "coracle-pause exited immediately");
        else if (!presence_is_unknown(found)) /* the pid alone would not identify it */
            ERR_IGNORE(record_pause(spec->dir, report.pid, start_time, out, e));
    }
    if (e->code == ERR_OK && write(to, "", 1) != 1)
        err_sys(e, errno, "let coracle-pause continue");
    close(take_fd(&to));
    waitpid(between, NULL, 0);
    if (e->code != ERR_OK) /* the intermediate process may have been killed before it could end its child */
        exec_children_end(CHILDREN_MS);
    return e->code;
}

void rt_pidns_start(struct proc_call *c, const struct rt_pidns_spec *spec, int ops_cgroup_fd,
                    const char *ops_procs, uv_loop_t *loop, op_done_fn done, void *owner)
{
    const struct proc_call_spec call = {
        .name = "create shared PID namespace",
        .subject = spec->dir,
        .fn = start_in_child,
        .arg = spec,
        .out_max = 64,
        .deadline_ms = DEADLINE_MS,
        .cgroup_fd = ops_cgroup_fd,
        .cgroup_procs = ops_procs,
    };

    proc_call_start(c, &call, loop, done, owner);
}

/* ---- the current state ---- */

static enum err_code cgroup_of(const char *pod_cgroup, char **ret, struct err *e)
{
    *ret = str_printf("%s/" CGROUP_NAME, pod_cgroup);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

static bool parse_who(const char *text, int64_t *ret_pid, uint64_t *ret_start)
{
    char pid[16], start[24];
    struct err e = { 0 };

    return sscanf(text, "%15[0-9] %23[0-9]", pid, start) == 2 &&
           parse_i64(pid, 2, INT32_MAX, ret_pid, "pid", &e) == ERR_OK &&
           parse_u64(start, 1, UINT64_MAX, ret_start, "start time", &e) == ERR_OK;
}

enum err_code rt_pidns_place(const struct proc_call *c, struct cg_tree *cgroups, const char *pod_cgroup,
                             struct err *e)
{
    str_auto cgroup = NULL;
    int64_t pid;
    uint64_t start;

    if (c->out.p == NULL || !parse_who(c->out.p, &pid, &start))
        return err_set(e, ERR_INTERNAL, "coracle-pause did not report its process id");
    if (cgroup_of(pod_cgroup, &cgroup, e) != ERR_OK)
        return e->code;
    return cg_place(cgroups, cgroup, (pid_t)pid, e);
}

/* Absent: the process ended or was killed. A killed process exists until all processes of its namespace have
 * ended, but accepts no new ones, and its memory, and so its program, is already released. */
static struct presence look_program(pid_t pid, struct err *e)
{
    char link[64], program[16];

    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    /* Without permission to read the link, only the process can be checked. */
    if (readlink(link, program, sizeof(program)) >= 0 || errno == EACCES || errno == EPERM)
        return presence_present();
    err_sys(e, errno == ESRCH ? ENOENT : errno, "read %s", link);
    return presence_from_err(e);
}

static struct presence look_namespace(const char *path, struct err *e)
{
    struct statfs fs;

    if (statfs(path, &fs) != 0) {
        err_sys(e, errno, "stat %s", path);
        return presence_from_err(e);
    }
    return fs.f_type == NSFS_MAGIC ? presence_present() : presence_absent();
}

struct presence rt_pidns_find(const char *dir, int *ret_pidfd, struct err *e)
{
    str_auto path = str_printf("%s/pause", dir);
    str_auto namespace_ = str_printf("%s/pid", dir);
    str_auto text = NULL;
    struct presence found;
    fd_auto pidfd = -1;
    int64_t pid;
    uint64_t start;

    if (path == NULL || namespace_ == NULL) {
        err_nomem(e);
        return presence_unknown(e);
    }
    found = look_namespace(namespace_, e);
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    found = fs_read_if_there(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, e);
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    if (!parse_who(text, &pid, &start)) { /* completely read but invalid: no later read will help */
        log_warn("mark of a shared PID namespace is damaged; making a new one", F_STR("file", path));
        return presence_absent();
    }
    found = proc_open((pid_t)pid, start, &pidfd, e);
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    found = look_program((pid_t)pid, e);
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    *ret_pidfd = take_fd(&pidfd);
    return found;
}

enum err_code rt_pidns_remove(const char *dir, struct cg_tree *cgroups, const char *pod_cgroup, struct err *e)
{
    str_auto path = str_printf("%s/pid", dir);
    str_auto mark = str_printf("%s/pause", dir);
    str_auto cgroup = NULL;
    fd_auto pidfd = -1;

    if (path == NULL || mark == NULL)
        return err_nomem(e);
    /* A process not named by a damaged mark is still in its cgroup. */
    if (presence_is_unknown(rt_pidns_find(dir, &pidfd, e)))
        return e->code;
    if (pidfd >= 0)
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    /* A process that was placed but not recorded yet is found by its cgroup. */
    if (cgroup_of(pod_cgroup, &cgroup, e) != ERR_OK || cg_kill(cgroups, cgroup, e) != ERR_OK)
        return e->code;
    while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        ;
    if (errno != EINVAL && errno != ENOENT)
        return err_sys(e, errno, "unmount %s", path);
    if ((unlink(path) != 0 && errno != ENOENT) || (unlink(mark) != 0 && errno != ENOENT))
        return err_sys(e, errno, "remove %s", path);
    return ERR_OK;
}
