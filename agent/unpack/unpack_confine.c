/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"
#include "base/process/seccomp.h"
#include "base/sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The windows of libarchive and zstd (128 MiB at most) and the list of folder times stay far below this. */
#define MEMORY_MAX (1ull << 30)
/* A whole pull may take half an hour. */
#define CPU_SECONDS_MAX 1800

const struct unpack_device unpack_devices[] = {
    { 1, 3 }, { 1, 5 }, { 1, 7 }, { 1, 8 }, { 1, 9 }, { 5, 0 }, /* null zero full random urandom tty */
};
const size_t unpack_n_devices = sizeof(unpack_devices) / sizeof(unpack_devices[0]);

static void unpack_confine_limit(int what, uint64_t most)
{
    struct rlimit now;

    if (getrlimit(what, &now) != 0)
        return;
    if (now.rlim_max == RLIM_INFINITY || now.rlim_max > most)
        now.rlim_max = most;
    now.rlim_cur = now.rlim_max;
    setrlimit(what, &now); /* lowering always works */
}

/* ---- capabilities ---------------------------------------------------------------------------- */

static enum err_code drop_capabilities(struct err *e)
{
    static const int kept[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER,   CAP_FSETID,
                                CAP_MKNOD, CAP_SETFCAP,      CAP_SYS_ADMIN };
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 };
    uint32_t wanted[2] = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        wanted[kept[i] / 32] |= 1u << (kept[i] % 32);
    for (int cap = 0; cap <= 63; cap++)
        if ((wanted[cap / 32] & (1u << (cap % 32))) == 0)
            prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* fails with EINVAL beyond the kernel's last capability */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

    if (syscall(SYS_capget, &header, data) != 0)
        return err_sys(e, errno, "read capabilities");
    for (int i = 0; i < 2; i++) {
        data[i].permitted &= wanted[i];
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    if (syscall(SYS_capset, &header, data) != 0)
        return err_sys(e, errno, "drop capabilities");
    return ERR_OK;
}

/* ---- Landlock -------------------------------------------------------------------------------- */

#define READ_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_RIGHTS                                                                                         \
    (READ_RIGHTS | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |           \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |              \
     LANDLOCK_ACCESS_FS_REFER)
#define HANDLED_RIGHTS                                                                                       \
    (WRITE_RIGHTS | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

static enum err_code allow(int ruleset, int fd, uint64_t rights, struct err *e)
{
    struct landlock_path_beneath_attr rule = { .allowed_access = rights, .parent_fd = fd };
    struct stat st;

    if (fd < 0)
        return ERR_OK;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rule.allowed_access &= LANDLOCK_ACCESS_FS_READ_FILE;
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
        return err_sys(e, errno, "landlock: add a rule");
    return ERR_OK;
}

static enum err_code restrict_paths(const struct unpack_confine *c, struct err *e)
{
    struct landlock_ruleset_attr attr = { .handled_access_fs = HANDLED_RIGHTS };
    fd_auto ruleset = -1;
    /* A sanitizer's leak checker forks and traces. */
    fd_auto proc = SANITIZED ? open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    /* Version 1 (5.13) forbids every rename to another folder, and a layer gets its name by such a rename. */
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 2)
        return ERR_OK;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        return err_sys(e, errno, "landlock: create a ruleset");
    if (allow(ruleset, c->source, READ_RIGHTS, e) != ERR_OK ||
        allow(ruleset, c->blobs, READ_RIGHTS, e) != ERR_OK ||
        allow(ruleset, c->work, WRITE_RIGHTS, e) != ERR_OK ||
        allow(ruleset, c->layers, WRITE_RIGHTS, e) != ERR_OK ||
        allow(ruleset, c->parts, WRITE_RIGHTS, e) != ERR_OK || allow(ruleset, proc, READ_RIGHTS, e) != ERR_OK)
        return e->code;
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
        return err_sys(e, errno, "landlock: enter");
    return ERR_OK;
}

/* ---- seccomp --------------------------------------------------------------------------------- */

#if SECCOMP_KNOWN
/*
 * System calls that no archive reader needs and that a hostile archive could abuse with CAP_SYS_ADMIN.  This
 * is a deny list, not an allow list, because new versions of the C library and libarchive may use other
 * calls.
 */
/* clang-format off */
static const int forbidden[] = {
    /* other programs and processes */
    SYS_execve, SYS_execveat, SYS_clone, SYS_clone3, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_kill, SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_kcmp,
    /* the network */
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind,
    /* file systems and namespaces */
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig,
    SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_unshare, SYS_setns, SYS_open_by_handle_at, SYS_quotactl,
    SYS_swapon, SYS_swapoff, SYS_fanotify_init, SYS_acct,
    /* the kernel */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_syslog, SYS_sethostname, SYS_setdomainname, SYS_settimeofday,
    SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_vhangup,
#ifdef SYS_fork /* missing on newer architectures */
    SYS_fork, SYS_vfork, SYS_mknod,
#endif
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
};
/* clang-format on */

/* A small device number as mknod(2) receives it (new_encode_dev). */
static uint32_t device_word(struct unpack_device d)
{
    return d.major << 8 | d.minor;
}

static enum err_code filter_calls(struct err *e)
{
    struct seccomp_filter f;

    seccomp_begin(&f);
    seccomp_deny(&f, forbidden, ARRAY_LEN(forbidden));

    /* Allow mknodat for pipes, whiteouts (0/0) and the known devices only, never for a disk. */
    seccomp_jump(&f, BPF_JEQ, SYS_mknodat, 1, 0);
    seccomp_end(&f, SECCOMP_RET_ALLOW);
    seccomp_load_arg(&f, 3);
    seccomp_when(&f, 0, SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < unpack_n_devices; i++)
        seccomp_when(&f, device_word(unpack_devices[i]), SECCOMP_RET_ALLOW);
    seccomp_end(&f, SECCOMP_NO(EPERM));
    return seccomp_enter(&f, e);
}
#else
static enum err_code filter_calls(struct err *e)
{
    (void)e;
    return ERR_OK;
}
#endif

enum err_code unpack_confine(const struct unpack_confine *c, struct err *e)
{
    unpack_confine_limit(RLIMIT_CORE, 1); /* with 0, a program in core_pattern would still get the dump */
    unpack_confine_limit(RLIMIT_NOFILE, 64 + UNPACK_MAX_LAYERS); /* every lower layer is open */
    unpack_confine_limit(RLIMIT_CPU, CPU_SECONDS_MAX);
    unpack_confine_limit(RLIMIT_FSIZE, c->max_bytes);
    if (!SANITIZED)
        unpack_confine_limit(RLIMIT_AS, MEMORY_MAX);

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_sys(e, errno, "set no_new_privs");
    if (restrict_paths(c, e) != ERR_OK || drop_capabilities(e) != ERR_OK)
        return e->code;
    return SANITIZED ? ERR_OK : filter_calls(e);
}
