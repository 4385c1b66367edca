/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/host/netns.h"

#include "base/files/fs.h"
#include "base/netlink.h"
#include "base/scope.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* Usually half a millisecond. */
#define CREATE_DEADLINE_MS 10000

static const struct {
    const char *name;
    int flag;
} kinds[] = {
    { "user", CLONE_NEWUSER }, { "net", CLONE_NEWNET }, { "ipc", CLONE_NEWIPC }, { "uts", CLONE_NEWUTS }
};

static bool netns_wanted(const struct netns_spec *spec, size_t kind)
{
    switch (kinds[kind].flag) {
    case CLONE_NEWUSER:
        return spec->first_id != 0;
    case CLONE_NEWNET:
        return spec->net;
    case CLONE_NEWIPC:
        return spec->ipc;
    default:
        return spec->uts;
    }
}

struct presence netns_look_pinned(const char *dir, const char *which, struct err *e)
{
    str_auto path = str_printf("%s/%s", dir, which);
    struct statfs fs;

    if (path == NULL) {
        err_nomem(e);
        return presence_unknown(e);
    }
    if (statfs(path, &fs) != 0) {
        err_sys(e, errno, "stat %s", path);
        return presence_from_err(e);
    }
    return fs.f_type == NSFS_MAGIC ? presence_present() : presence_absent();
}

/* ---- sysctls ---- */

/* Converts a name like sysctl(8) and Kubernetes: the first separator decides. If it is ".", dots separate and
 * a "/" represents a dot inside an element ("net.ipv4.conf.eth0/100.forwarding"); if it is "/", the name is a
 * path already. */
static enum err_code sysctl_path(const char *name, char **ret, struct err *e)
{
    const char *first = strpbrk(name, "./");
    char *path = strdup(name);

    if (path == NULL)
        return err_nomem(e);
    for (char *c = path; *c != '\0' && first != NULL && *first == '.'; c++)
        *c = *c == '.' ? '/' : *c == '/' ? '.' : *c;
    if (!fs_path_is_safe(path)) {
        free(path);
        return err_set(e, ERR_INVALID, "sysctl \"%.200s\": not a name", name);
    }
    *ret = path;
    return ERR_OK;
}

/* Kubernetes' list of namespaced sysctls: any other name would change the host. */
static bool is_ipc_sysctl(const char *path)
{
    return strcmp(path, "kernel/sem") == 0 || str_starts(path, "kernel/shm") ||
           str_starts(path, "kernel/msg") || str_starts(path, "fs/mqueue/");
}

/* net/<family>/{conf,neigh}/<interface>/...: exists only after the interface. */
static bool is_interface_path(const char *path)
{
    static const char *const folders[] = { "net/ipv4/conf/", "net/ipv6/conf/", "net/ipv4/neigh/",
                                           "net/ipv6/neigh/", "net/mpls/conf/" };
    static const char *const always[] = { "all/", "default/", "lo/" };

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        const char *interface;

        if (!str_starts(path, folders[i]))
            continue;
        interface = path + strlen(folders[i]);
        for (size_t k = 0; k < ARRAY_LEN(always); k++) {
            if (str_starts(interface, always[k]))
                return false;
        }
        return true;
    }
    return false;
}

/* Allows only sysctls of a namespace that is the pod's own. */
static enum err_code check_sysctl(const struct netns_spec *spec, const char *name, const char *path,
                                  struct err *e)
{
    bool net = str_starts(path, "net/"), ipc = is_ipc_sysctl(path);

    if (!net && !ipc)
        return err_set(e, ERR_INVALID, "sysctl \"%.200s\": not namespaced, it would change the host", name);
    if ((net && !spec->net) || (ipc && !spec->ipc))
        return err_set(e, ERR_INVALID, "sysctl \"%.200s\": the pod has no %s namespace of its own", name,
                       net ? "network" : "IPC");
    return ERR_OK;
}

static enum err_code write_sysctls(const struct netns_spec *spec, bool interface_ones, struct err *e)
{
    fd_auto proc = open("/proc/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (proc < 0)
        return err_sys(e, errno, "open /proc/sys");
    for (size_t i = 0; i < spec->n_sysctls; i++) {
        const struct netns_sysctl *s = &spec->sysctls[i];
        str_auto path = NULL;

        if (sysctl_path(s->name, &path, e) != ERR_OK || check_sysctl(spec, s->name, path, e) != ERR_OK)
            return e->code;
        if (is_interface_path(path) != interface_ones)
            continue;
        if (fs_write_control(proc, path, s->value, e) != ERR_OK)
            return err_wrap(e, "sysctl %.200s", s->name);
    }
    return ERR_OK;
}

bool netns_has_interface_sysctls(const struct netns_spec *spec)
{
    for (size_t i = 0; i < spec->n_sysctls; i++) {
        str_auto path = NULL;

        if (sysctl_path(spec->sysctls[i].name, &path, ERR_IGNORED) == ERR_OK && is_interface_path(path))
            return true;
    }
    return false;
}

/* ---- creating, in the thread or the child ---- */

static enum err_code netns_pin(const char *dir, const char *which, pid_t whose, struct err *e)
{
    str_auto path = str_printf("%s/%s", dir, which);
    str_auto ns = str_printf("/proc/%d/ns/%s", (int)whose, which);
    fd_auto fd = -1;

    if (path == NULL || ns == NULL)
        return err_nomem(e);
    fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    if (fd < 0)
        return err_sys(e, errno, "create %s", path);
    if (mount(ns, path, NULL, MS_BIND, NULL) != 0)
        return err_sys(e, errno, "bind %s on %s", ns, path);
    return ERR_OK;
}

static enum err_code unpin(int dirfd, const char *dir, const char *name, struct err *e)
{
    str_auto path = str_printf("%s/%s", dir, name);

    if (path == NULL)
        return err_nomem(e);
    /* may be stacked if two processes were at work */
    while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        ;
    if (errno != EINVAL && errno != ENOENT)
        return err_sys(e, errno, "unmount %s", path);
    if (unlinkat(dirfd, name, 0) != 0 && errno != ENOENT)
        return err_sys(e, errno, "remove %s", path);
    return ERR_OK;
}

struct unpinning {
    int fd;
    const char *dir;
    struct err failed;
};

static bool unpin_one(const char *name, void *arg)
{
    struct unpinning *u = arg;

    return unpin(u->fd, u->dir, name, &u->failed) == ERR_OK;
}

static enum err_code unpin_all(const char *dir, struct err *e)
{
    fd_auto fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct unpinning u = { .fd = fd, .dir = dir };

    if (fd < 0)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "open %s", dir);
    if (presence_is_unknown(fs_list(fd, ".", unpin_one, &u, e)))
        return err_wrap(e, "unpin %s", dir);
    if (u.failed.code != ERR_OK)
        *e = u.failed;
    return e->code;
}

/* Runs inside the new namespaces. */
static enum err_code netns_set_up(const struct netns_spec *spec, struct err *e)
{
    if (spec->net && nl_link_up("lo", e) != ERR_OK)
        return e->code;
    if (spec->uts && spec->hostname != NULL && spec->hostname[0] != '\0' &&
        sethostname(spec->hostname, strlen(spec->hostname)) != 0)
        return err_sys(e, errno, "set host name \"%.100s\"", spec->hostname);
    return write_sysctls(spec, false, e);
}

/* The last step: pinned namespaces are always set up. */
static enum err_code pin_all(const struct netns_spec *spec, pid_t whose, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (netns_wanted(spec, i) && netns_pin(spec->dir, kinds[i].name, whose, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* Maps the namespace's users and groups to those of the host. */
static enum err_code write_map(const struct netns_spec *spec, pid_t pid, const char *file, struct err *e)
{
    char path[64], text[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    snprintf(text, sizeof(text), "0 %u %u", spec->first_id, spec->n_ids);
    return fs_write_control(AT_FDCWD, path, text, e);
}

/* Reads the report of one step of the process inside: success, or its error. */
static enum err_code read_report(int from, struct err *e)
{
    struct err theirs = { 0 };
    ssize_t n = read(from, &theirs, sizeof(theirs));

    if (n != (ssize_t)sizeof(theirs))
        return err_set(e, ERR_INTERNAL, "the process in the new user namespace exited early");
    if (theirs.code != ERR_OK)
        *e = theirs;
    return theirs.code;
}

/* Waits until the pipe is closed: the process must live until its namespaces are pinned. */
static void live_inside(const struct netns_spec *spec, int flags, const struct proc_pipes *pipes)
{
    struct err e = { 0 };
    char go;

    if (unshare(flags) != 0)
        err_sys(&e, errno,
                errno == ENOSPC || errno == EPERM ? "create a user namespace (see user.max_user_namespaces)"
                                                  : "create namespaces");
    if (write(pipes->to, &e, sizeof(e)) != (ssize_t)sizeof(e) || e.code != ERR_OK ||
        read(pipes->from, &go, 1) != 1)
        return;
    /* An IPC namespace's sysctls are writable by the host's root, but since Linux 6.10 by its own root. */
    if (netns_set_up(spec, &e) != ERR_OK && e.sys == EACCES) {
        e = (struct err){ 0 };
        if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
            err_sys(&e, errno, "become root of the user namespace");
        else
            ERR_IGNORE(netns_set_up(spec, &e));
    }
    if (write(pipes->to, &e, sizeof(e)) == (ssize_t)sizeof(e))
        ERR_IGNORE(read(pipes->from, &go, 1));
}

/* With a user namespace that owns the others: a process that enters it loses the capabilities needed for
 * pinning, so a second process enters it and this one pins. */
static enum err_code make_owned(const struct netns_spec *spec, int flags, struct err *e)
{
    struct proc_pipes pipes;
    pid_t pid = proc_call_fork_piped(&pipes, e);

    if (pid < 0)
        return e->code;
    if (pid == 0) {
        live_inside(spec, flags, &pipes);
        _exit(0);
    }
    fd_auto from = pipes.from, to = pipes.to;
    if (read_report(from, e) == ERR_OK && write_map(spec, pid, "uid_map", e) == ERR_OK &&
        write_map(spec, pid, "gid_map", e) == ERR_OK) {
        if (write(to, "", 1) != 1)
            err_sys(e, errno, "continue in the new user namespace");
        else if (read_report(from, e) == ERR_OK)
            ERR_IGNORE(pin_all(spec, pid, e));
    }
    close(take_fd(&to));
    waitpid(pid, NULL, 0);
    return e->code;
}

static enum err_code netns_make(const struct netns_spec *spec, int flags, struct err *e)
{
    /* Check everything before creating, including the sysctls written later. */
    for (size_t i = 0; i < spec->n_sysctls; i++) {
        str_auto path = NULL;

        if (sysctl_path(spec->sysctls[i].name, &path, e) != ERR_OK ||
            check_sysctl(spec, spec->sysctls[i].name, path, e) != ERR_OK)
            return e->code;
    }
    if (spec->first_id != 0)
        return make_owned(spec, flags, e);
    /* Not CLONE_NEWNS: the pins must show in the host's mount namespace. */
    if (unshare(flags) != 0)
        return err_sys(e, errno, "create namespaces");
    if (netns_set_up(spec, e) != ERR_OK)
        return e->code;
    return pin_all(spec, gettid(), e);
}

static enum err_code netns_create(const void *arg, struct buf *out, struct err *e)
{
    const struct netns_spec *spec = arg;
    bool all_pinned = true;
    int flags = 0;

    (void)out;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!netns_wanted(spec, i))
            continue;
        flags |= kinds[i].flag;
        struct presence pinned = netns_look_pinned(spec->dir, kinds[i].name, e);
        if (presence_is_unknown(pinned))
            return e->code;
        all_pinned = all_pinned && !presence_is_absent(pinned);
    }
    if (all_pinned)
        return ERR_OK;
    if (mkdir(spec->dir, 0700) != 0 && errno != EEXIST)
        return err_sys(e, errno, "create %s", spec->dir);
    /* An incomplete set of a killed start is useless: no container runs there yet. */
    if (unpin_all(spec->dir, e) != ERR_OK)
        return e->code;
    if (netns_make(spec, flags, e) != ERR_OK) {
        unpin_all(spec->dir, ERR_IGNORED);
        return e->code;
    }
    return ERR_OK;
}

void netns_create_start(struct proc_call *c, const struct netns_spec *spec, int ops_cgroup_fd,
                        const char *ops_procs, uv_loop_t *loop, op_done_fn done, void *owner)
{
    struct proc_call_spec call = {
        .name = "create pod namespaces",
        .subject = spec->dir,
        .fn = netns_create,
        .arg = spec,
        .deadline_ms = CREATE_DEADLINE_MS,
        .cgroup_fd = ops_cgroup_fd,
        .cgroup_procs = ops_procs,
        .in_thread = spec->first_id == 0, /* otherwise it forks */
    };

    proc_call_start(c, &call, loop, done, owner);
}

static enum err_code write_interface_sysctls(const void *arg, struct buf *out, struct err *e)
{
    const struct netns_spec *spec = arg;
    str_auto path = str_printf("%s/net", spec->dir);
    fd_auto ns = -1;

    (void)out;
    if (path == NULL)
        return err_nomem(e);
    ns = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (ns < 0)
        return err_sys(e, errno, "open %s", path);
    if (setns(ns, CLONE_NEWNET) != 0) /* also fails for anything that is not a network namespace */
        return err_sys(e, errno, "enter %s", path);
    return write_sysctls(spec, true, e);
}

void netns_interface_sysctls_start(struct proc_call *c, const struct netns_spec *spec, uv_loop_t *loop,
                                   op_done_fn done, void *owner)
{
    struct proc_call_spec call = {
        .name = "write interface sysctls",
        .subject = spec->dir,
        .fn = write_interface_sysctls,
        .arg = spec,
        .deadline_ms = CREATE_DEADLINE_MS,
        .cgroup_fd = -1,
        .in_thread = true,
    };

    proc_call_start(c, &call, loop, done, owner);
}

enum err_code netns_remove(const char *dir, struct err *e)
{
    if (unpin_all(dir, e) != ERR_OK)
        return e->code;
    if (rmdir(dir) != 0 && errno != ENOENT)
        return err_sys(e, errno, "remove %s", dir);
    return ERR_OK;
}
