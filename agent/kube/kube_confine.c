/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confinement of coracle-kube: the limits of an attacker in the process. The daemon starts it as a
 * separate user and without capabilities; these restrictions hold as well if another program starts it.
 */
#include "agent/kube/internal.h"
#include "base/process/seccomp.h"
#include "base/sanitized.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <malloc.h>
#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE /* Linux 6.2 */
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define NOBODY 65534
/* Of writable memory, stacks of threads included: a list of KUBE_LIST_MAX, parsed, and as much again. */
#define MEMORY_MAX ((rlim_t)384 << 20)
/* A connection for each hundred streams, clients of the node's port, their connections to the status socket.
 */
#define FILES_MAX 4096

static void confine_limits(void)
{
    const struct rlimit core = { 1, 1 },
                        no_core = { 0, 0 }; /* with 0, core_pattern's program gets it still */
    struct rlimit files, memory = { MEMORY_MAX, MEMORY_MAX };

    if (setrlimit(RLIMIT_CORE, &core) != 0)
        setrlimit(RLIMIT_CORE, &no_core);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        if (files.rlim_max > FILES_MAX)
            files.rlim_max = FILES_MAX;
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!SANITIZED) {
        setrlimit(RLIMIT_DATA, &memory);
        /* Keys and Secrets are in this memory: no other process of the user may read it. */
        prctl(PR_SET_DUMPABLE, 0);
    }
    /* Threads that resolve names need no separate heaps, and the memory of large lists is returned to the
     * kernel. */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
}

static enum err_code confine_rights(struct err *e)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    const struct __user_cap_data_struct none[2] = { 0 };

    for (int cap = 0; cap <= 63; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* without CAP_SETPCAP there is nothing to drop */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) != 0))
        return err_sys(e, errno, "switch to an unprivileged user");
    if (syscall(SYS_capset, &header, none) != 0)
        return err_sys(e, errno, "drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_sys(e, errno, "set no_new_privs");
    return ERR_OK;
}

/* ---- Landlock -------------------------------------------------------------------------------- */

#define READ_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define RIGHTS_1                                                                                             \
    (READ_RIGHTS | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |                              \
     LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |         \
     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |              \
     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* Files that name resolution and TLS read at any time: the resolver's files, which other programs replace,
 * the modules of nsswitch.conf, the system's CAs. The rules name folders, because a rule applies to an
 * inode. */
static const char *const readable[] = { "/etc",
                                        "/usr/lib",
                                        "/lib",
                                        "/usr/share/ca-certificates",
                                        "/run/systemd/resolve",
                                        "/run/resolvconf",
                                        "/run/NetworkManager",
                                        SANITIZED ? "/proc" : NULL };

/* Without Landlock in the kernel *ret stays 0: the rest of the confinement holds. */
static enum err_code confine_paths(int *ret, struct err *e)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_ruleset_attr attr = { .handled_access_fs = RIGHTS_1 };
    fd_auto ruleset = -1;

    if (version < 1)
        return ERR_OK;
    if (version >= 2)
        attr.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= 3)
        attr.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        return err_sys(e, errno, "landlock: create a ruleset");
    for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
        struct landlock_path_beneath_attr rule = { .allowed_access = READ_RIGHTS };
        fd_auto fd = readable[i] != NULL ? open(readable[i], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

        rule.parent_fd = fd;
        if (fd >= 0 && syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
            return err_sys(e, errno, "landlock: add a rule for %s", readable[i]);
    }
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
        return err_sys(e, errno, "landlock: enter");
    *ret = (int)version;
    return ERR_OK;
}

/* ---- seccomp --------------------------------------------------------------------------------- */

#if SECCOMP_KNOWN
/* System calls that neither the network nor name resolution needs. A list of denied ones, as other versions
 * of the C library and of OpenSSL may use other calls. */
/* clang-format off */
static const int denied[] = {
    /* other programs and processes */
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open, SYS_pidfd_getfd,
    SYS_pidfd_send_signal, SYS_kcmp, SYS_kill, SYS_tkill, SYS_process_madvise, SYS_setpriority, SYS_setns, SYS_unshare,
    /* users */
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid, SYS_setfsgid,
    SYS_capset,
    /* files */
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
    SYS_fspick, SYS_mount_setattr, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_quotactl, SYS_swapon, SYS_swapoff,
    SYS_fanotify_init, SYS_acct, SYS_mknodat, SYS_linkat, SYS_symlinkat, SYS_renameat2, SYS_fchmodat, SYS_fchownat,
    SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
    /* the kernel */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_init_module, SYS_finit_module, SYS_delete_module,
    SYS_kexec_load, SYS_reboot, SYS_syslog, SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex,
    SYS_clock_adjtime, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_vhangup, SYS_personality, SYS_memfd_create, SYS_shmget,
    SYS_msgget, SYS_semget, SYS_mq_open,
#ifdef SYS_fork /* missing on newer architectures */
    SYS_fork, SYS_vfork, SYS_mknod, SYS_link, SYS_symlink, SYS_rename, SYS_chmod, SYS_chown,
#endif
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
};
/* clang-format on */

/* The link and the resolver's helpers; the network; getaddrinfo() reads the addresses of this machine. */
static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

/* Threads, and no processes: clone3(2) hides its flags in memory, and the C library does without it. */
static void filter_clone(struct seccomp_filter *f)
{
    seccomp_when(f, SYS_clone3, SECCOMP_NO(ENOSYS));
    seccomp_jump(f, BPF_JEQ, SYS_clone, 0, 4);
    seccomp_load_arg(f, 0);
    seccomp_jump(f, BPF_JSET, CLONE_THREAD, 1, 0);
    seccomp_end(f, SECCOMP_NO(EPERM));
    seccomp_end(f, SECCOMP_RET_ALLOW);
}

static void filter_socket(struct seccomp_filter *f)
{
    seccomp_jump(f, BPF_JEQ, SYS_socket, 0, 2 + 2 * ARRAY_LEN(families));
    seccomp_load_arg(f, 0);
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        seccomp_when(f, (uint32_t)families[i], SECCOMP_RET_ALLOW);
    seccomp_end(f, SECCOMP_NO(EAFNOSUPPORT));
}

static enum err_code confine_calls(struct err *e)
{
    struct seccomp_filter f;

    seccomp_begin(&f);
    seccomp_deny(&f, denied, ARRAY_LEN(denied));
    filter_clone(&f);
    filter_socket(&f);
    seccomp_end(&f, SECCOMP_RET_ALLOW);
    return seccomp_enter(&f, e);
}
#else
static enum err_code confine_calls(struct err *e)
{
    (void)e;
    return ERR_OK;
}
#endif

enum err_code kube_confine(int *ret_landlock, struct err *e)
{
    *ret_landlock = 0;
    confine_limits();
    if (confine_rights(e) != ERR_OK || confine_paths(ret_landlock, e) != ERR_OK)
        return e->code;
    return SANITIZED ? ERR_OK : confine_calls(e);
}
