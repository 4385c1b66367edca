/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject - an LD_PRELOAD library that makes one call of a program fail, or ends the program at it.
 *
 * A call's site is its name and the return addresses above it, which distinguish the callers of a helper.
 * INJECT_CONTROL names the file with struct inject_control; without it, and in programs other than ours,
 * calls are passed on unchanged.  Code on the path of a call does not use libc, because the caller may be a
 * forked child.
 */
#include "tests/inject/inject.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum answer {
    PASS,
    FAIL,
    DIE_AFTER,
};

enum {
    LARGE = 32 * 1024, /* smaller allocations do not fail */
    MODULES = 3,
};

struct range {
    uint64_t base, start, end; /* end 0: unknown */
};

static struct inject_control *control;
static struct range modules[MODULES];
static const char *program;
/* Set if the stack is read directly: a single thread whose filter forbids process_vm_readv. */
static uint64_t stack_end;

/* Makes a system call without errno and without a hooked function. */
static long raw(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void die(void)
{
    raw(SYS_kill, raw(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
    __builtin_trap(); /* for processes whose filter forbids kill() */
}

static int remember_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    int *n = arg, which = (*n)++ == 0 ? 0 : strstr(info->dlpi_name, "libuv.so") != NULL ? 1 : -1;

    (void)size;
    for (int i = 0; which >= 0 && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            modules[which].base = info->dlpi_addr;
            modules[which].start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            modules[which].end = modules[which].start + info->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

__attribute__((constructor)) static void load(void)
{
    static const char *const ours[] = { "coracle", "coracle-exec", "coracle-probe", "coracle-unpack" };
    const char *path = getenv("INJECT_CONTROL");
    int n = 0;
    long fd, at;

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (strcmp(program_invocation_short_name, ours[i]) == 0)
            program = ours[i];
    if (path == NULL || program == NULL)
        return;
    if (strcmp(program, "coracle-exec") == 0) /* the program it becomes or starts is not ours */
        unsetenv("LD_PRELOAD");
    dl_iterate_phdr(remember_module, &n);
    if (strcmp(program, "coracle-unpack") == 0)
        stack_end = (uint64_t)environ & ~(uint64_t)7;
    fd = raw(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return;
    at = raw(SYS_mmap, 0, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    raw(SYS_close, fd, 0, 0, 0, 0, 0);
    if (at > 0)
        control = (struct inject_control *)at;
}

/* ---- sites ------------------------------------------------------------------------------------------------
 */

static uint64_t locate(uint64_t address)
{
    for (int i = 0; i < MODULES; i++)
        if (address >= modules[i].start && address < modules[i].end)
            return (uint64_t)i << 48 | (address - modules[i].base);
    return (uint64_t)2 << 48;
}

/* libuv has no frame pointers, so an address beyond it is accepted only if it follows a call instruction. */
static bool follows_a_call(uint64_t address)
{
    const uint8_t *p = (const uint8_t *)address;

    return p[-5] == 0xe8 || p[-2] == 0xff || p[-3] == 0xff || p[-6] == 0xff || p[-7] == 0xff;
}

static bool read_frame(uint64_t frame, uint64_t pair[2])
{
    struct iovec to = { pair, 2 * sizeof(*pair) }, from = { (void *)frame, 2 * sizeof(*pair) };

    if (frame % 8 != 0)
        return false;
    if (stack_end == 0)
        return raw(SYS_process_vm_readv, raw(SYS_getpid, 0, 0, 0, 0, 0, 0), (long)&to, 1, (long)&from, 1,
                   0) == sizeof(uint64_t[2]);
    if (frame < (uint64_t)__builtin_frame_address(0) || frame + sizeof(uint64_t[2]) > stack_end)
        return false;
    memcpy(pair, (const void *)frame, 2 * sizeof(*pair));
    return true;
}

static void find_site(struct inject_site *site, const char *call, uint64_t frame)
{
    uint64_t pair[2], id = 14695981039346656037u;

    site->n_frames = 0;
    for (int i = 0; i < 2 * INJECT_FRAMES && site->n_frames < INJECT_FRAMES; i++) {
        uint64_t place;

        if (!read_frame(frame, pair))
            break;
        place = locate(pair[1]);
        if (i > 0 && (place >> 48 != 0 || !follows_a_call(pair[1])))
            break;
        site->frames[site->n_frames++] = place;
        if (pair[0] <= frame || pair[0] - frame > 1 << 20)
            break;
        frame = pair[0];
    }
    for (const char *p = program; *p != '\0'; p++)
        id = (id ^ (uint8_t)*p) * 1099511628211u;
    for (const char *p = call; *p != '\0'; p++)
        id = (id ^ (uint8_t)*p) * 1099511628211u;
    for (uint32_t i = 0; i < site->n_frames; i++)
        for (int shift = 0; shift < 64; shift += 8)
            id = (id ^ (site->frames[i] >> shift & 0xff)) * 1099511628211u;
    site->id = id | 1;
}

static void record(const struct inject_site *site, const char *call)
{
    for (uint64_t n = 0, i = site->id >> 1; n < INJECT_SITES; n++, i++) {
        struct inject_site *to = &control->sites[i % INJECT_SITES];
        uint64_t none = 0;

        if (__atomic_compare_exchange_n(&to->id, &none, site->id, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            memcpy(to->frames, site->frames, sizeof(to->frames));
            to->n_frames = site->n_frames;
            strncpy(to->call, call, INJECT_NAME - 1);
            strncpy(to->program, program, INJECT_NAME - 1);
        }
        if (none == 0 || none == site->id) {
            __atomic_fetch_add(&to->count, 1, __ATOMIC_RELAXED);
            return;
        }
    }
}

static bool is_late(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec > control->until_ns;
}

static enum answer decide(const char *call, void *frame)
{
    struct inject_site site = { 0 };
    uint32_t mode = control == NULL ? INJECT_OFF : __atomic_load_n(&control->mode, __ATOMIC_ACQUIRE);

    if (mode == INJECT_OFF)
        return PASS;
    if (mode == INJECT_RECORD) {
        find_site(&site, call, (uint64_t)frame);
        record(&site, call);
        return PASS;
    }
    if (strcmp(control->call, call) != 0 || strcmp(control->program, program) != 0)
        return PASS;
    if (mode == INJECT_UNTIL) {
        if (is_late())
            return PASS;
        find_site(&site, call, (uint64_t)frame);
        if (site.n_frames > 0 && site.frames[0] >> 48 == 1 &&
            (strcmp(call, "read") == 0 || strcmp(call, "write") == 0 || strcmp(call, "pipe2") == 0))
            return PASS; /* libuv aborts if its own wake-ups fail */
        __atomic_fetch_add(&control->hits, 1, __ATOMIC_RELAXED);
        errno = control->error;
        return FAIL;
    }
    find_site(&site, call, (uint64_t)frame);
    if (site.id != control->site || __atomic_fetch_add(&control->seen, 1, __ATOMIC_ACQ_REL) != control->nth)
        return PASS;
    __atomic_fetch_add(&control->hits, 1, __ATOMIC_RELAXED);
    if (mode == INJECT_KILL_BEFORE)
        die();
    if (mode == INJECT_KILL_AFTER)
        return DIE_AFTER;
    errno = control->error;
    return FAIL;
}

/* ---- the calls --------------------------------------------------------------------------------------------
 */

/*
 * The real functions are looked up when the library is loaded, because a forked child must not call the
 * loader.
 */
#define REAL(type, name, params)                                                                             \
    static type(*real_##name) params;                                                                        \
    __attribute__((constructor)) static void find_##name(void)                                               \
    {                                                                                                        \
        real_##name = (type(*) params)dlsym(RTLD_NEXT, #name);                                               \
    }                                                                                                        \
    type name params

#define BODY(type, call, name, bad, ...)                                                                     \
    enum answer what = decide(call, __builtin_frame_address(0));                                             \
    if (what == FAIL)                                                                                        \
        return bad;                                                                                          \
    if (real_##name == NULL)                                                                                 \
        find_##name();                                                                                       \
    type result = real_##name(__VA_ARGS__);                                                                  \
    if (what == DIE_AFTER)                                                                                   \
        die();                                                                                               \
    return result

#define HOOK(type, name, bad, params, ...)                                                                   \
    type name params;                                                                                        \
    REAL(type, name, params)                                                                                 \
    {                                                                                                        \
        BODY(type, #name, name, bad, __VA_ARGS__);                                                           \
    }

struct sockaddr;
struct msghdr;
struct itimerspec;
struct mount_attr;
struct pollfd;
struct statx;

#pragma GCC diagnostic ignored                                                                               \
    "-Wmissing-prototypes" /* for functions whose headers define macros of the same name */
#pragma GCC diagnostic ignored "-Wnonnull"

HOOK(ssize_t, read, -1, (int a, void *b, size_t c), a, b, c)
HOOK(ssize_t, pread, -1, (int a, void *b, size_t c, off_t d), a, b, c, d)
HOOK(ssize_t, pread64, -1, (int a, void *b, size_t c, off_t d), a, b, c, d)
/* The kernel refuses a write to an eventfd only when its counter is full: no disk fills it, and no shortage
 * lasts. */
static int wakes_somebody(int fd, size_t n)
{
    char path[32], target[32] = "";

    if (n != sizeof(uint64_t) || control == NULL ||
        __atomic_load_n(&control->mode, __ATOMIC_ACQUIRE) != INJECT_UNTIL)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return syscall(SYS_readlink, path, target, sizeof(target) - 1) > 0 &&
           strcmp(target, "anon_inode:[eventfd]") == 0;
}

ssize_t write(int a, const void *b, size_t c);
REAL(ssize_t, write, (int a, const void *b, size_t c))
{
    if (wakes_somebody(a, c))
        return syscall(SYS_write, a, b, c);
    BODY(ssize_t, "write", write, -1, a, b, c);
}
HOOK(ssize_t, pwrite, -1, (int a, const void *b, size_t c, off_t d), a, b, c, d)
HOOK(ssize_t, writev, -1, (int a, const struct iovec *b, int c), a, b, c)
HOOK(int, stat, -1, (const char *a, struct stat *b), a, b)
HOOK(int, lstat, -1, (const char *a, struct stat *b), a, b)
HOOK(int, fstat, -1, (int a, struct stat *b), a, b)
HOOK(int, fstatat, -1, (int a, const char *b, struct stat *c, int d), a, b, c, d)
HOOK(int, statx, -1, (int a, const char *b, int c, unsigned int d, struct statx *e), a, b, c, d, e)
HOOK(int, statfs, -1, (const char *a, struct statfs *b), a, b)
HOOK(int, statvfs, -1, (const char *a, struct statvfs *b), a, b)
HOOK(int, fstatvfs, -1, (int a, struct statvfs *b), a, b)
HOOK(int, access, -1, (const char *a, int b), a, b)
HOOK(int, faccessat, -1, (int a, const char *b, int c, int d), a, b, c, d)
HOOK(ssize_t, readlink, -1, (const char *a, char *b, size_t c), a, b, c)
HOOK(ssize_t, readlinkat, -1, (int a, const char *b, char *c, size_t d), a, b, c, d)
HOOK(DIR *, opendir, NULL, (const char *a), a)
HOOK(DIR *, fdopendir, NULL, (int a), a)
HOOK(struct dirent *, readdir, NULL, (DIR * a), a)
HOOK(int, scandir, -1,
     (const char *a, struct dirent ***b, int (*c)(const struct dirent *),
      int (*d)(const struct dirent **, const struct dirent **)),
     a, b, c, d)
HOOK(int, scandirat, -1,
     (int o, const char *a, struct dirent ***b, int (*c)(const struct dirent *),
      int (*d)(const struct dirent **, const struct dirent **)),
     o, a, b, c, d)
HOOK(int, rename, -1, (const char *a, const char *b), a, b)
HOOK(int, renameat, -1, (int a, const char *b, int c, const char *d), a, b, c, d)
HOOK(int, unlink, -1, (const char *a), a)
HOOK(int, renameat2, -1, (int a, const char *b, int c, const char *d, unsigned e), a, b, c, d, e)
HOOK(int, unlinkat, -1, (int a, const char *b, int c), a, b, c)
HOOK(int, rmdir, -1, (const char *a), a)
HOOK(int, mkdir, -1, (const char *a, mode_t b), a, b)
HOOK(int, mkdirat, -1, (int a, const char *b, mode_t c), a, b, c)
HOOK(int, linkat, -1, (int a, const char *b, int c, const char *d, int e), a, b, c, d, e)
HOOK(int, symlink, -1, (const char *a, const char *b), a, b)
HOOK(int, symlinkat, -1, (const char *a, int b, const char *c), a, b, c)
HOOK(int, chmod, -1, (const char *a, mode_t b), a, b)
HOOK(int, fchmod, -1, (int a, mode_t b), a, b)
HOOK(int, fchmodat, -1, (int a, const char *b, mode_t c, int d), a, b, c, d)
HOOK(int, fchown, -1, (int a, uid_t b, gid_t c), a, b, c)
HOOK(int, fchownat, -1, (int a, const char *b, uid_t c, gid_t d, int e), a, b, c, d, e)
HOOK(int, futimens, -1, (int a, const struct timespec b[2]), a, b)
HOOK(int, ftruncate, -1, (int a, off_t b), a, b)
HOOK(int, fsync, -1, (int a), a)
HOOK(int, fdatasync, -1, (int a), a)
HOOK(int, flock, -1, (int a, int b), a, b)
HOOK(int, mount, -1, (const char *a, const char *b, const char *c, unsigned long d, const void *e), a, b, c,
     d, e)
HOOK(int, umount2, -1, (const char *a, int b), a, b)
HOOK(int, move_mount, -1, (int a, const char *b, int c, const char *d, unsigned int e), a, b, c, d, e)
HOOK(int, open_tree, -1, (int a, const char *b, unsigned int c), a, b, c)
HOOK(int, mount_setattr, -1, (int a, const char *b, unsigned int c, struct mount_attr *d, size_t e), a, b, c,
     d, e)
HOOK(int, pidfd_open, -1, (pid_t a, unsigned int b), a, b)
HOOK(int, close_range, -1, (unsigned int a, unsigned int b, int c), a, b, c)
HOOK(int, timerfd_create, -1, (int a, int b), a, b)
HOOK(int, timerfd_settime, -1, (int a, int b, const struct itimerspec *c, struct itimerspec *d), a, b, c, d)
HOOK(int, mknod, -1, (const char *a, mode_t b, dev_t c), a, b, c)
HOOK(int, setns, -1, (int a, int b), a, b)
HOOK(int, unshare, -1, (int a), a)
HOOK(int, socket, -1, (int a, int b, int c), a, b, c)
HOOK(int, socketpair, -1, (int a, int b, int c, int d[2]), a, b, c, d)
HOOK(int, connect, -1, (int a, const struct sockaddr *b, unsigned int c), a, b, c)
HOOK(int, bind, -1, (int a, const struct sockaddr *b, unsigned int c), a, b, c)
HOOK(int, listen, -1, (int a, int b), a, b)
HOOK(int, accept4, -1, (int a, struct sockaddr *b, unsigned int *c, int d), a, b, c, d)
HOOK(ssize_t, send, -1, (int a, const void *b, size_t c, int d), a, b, c, d)
HOOK(ssize_t, sendto, -1, (int a, const void *b, size_t c, int d, const struct sockaddr *e, unsigned int f),
     a, b, c, d, e, f)
HOOK(ssize_t, sendmsg, -1, (int a, const struct msghdr *b, int c), a, b, c)
HOOK(ssize_t, recv, -1, (int a, void *b, size_t c, int d), a, b, c, d)
HOOK(ssize_t, recvmsg, -1, (int a, struct msghdr *b, int c), a, b, c)
HOOK(int, memfd_create, -1, (const char *a, unsigned int b), a, b)
HOOK(pid_t, waitpid, -1, (pid_t a, int *b, int c), a, b, c)
HOOK(int, execv, -1, (const char *a, char *const b[]), a, b)
HOOK(int, kill, -1, (pid_t a, int b), a, b)
HOOK(int, inotify_init1, -1, (int a), a)
HOOK(int, inotify_add_watch, -1, (int a, const char *b, uint32_t c), a, b, c)
HOOK(int, eventfd, -1, (unsigned int a, int b), a, b)
HOOK(int, signalfd, -1, (int a, const sigset_t *b, int c), a, b, c)
HOOK(int, pipe2, -1, (int a[2], int b), a, b)
HOOK(int, dup, -1, (int a), a)
HOOK(int, dup2, -1, (int a, int b), a, b)
HOOK(int, dup3, -1, (int a, int b, int c), a, b, c)

/*
 * The agent gives its helpers a new environment; the variables that load this library are added for our
 * programs.
 */
static char *const *with_library(const char *path, char *const env[])
{
    static __thread char preload[4096], place[4096]; /* the child borrows the memory of a waiting thread */
    static __thread char *more[64];
    const char *base = strrchr(path, '/'), *from[] = { getenv("LD_PRELOAD"), getenv("INJECT_CONTROL") };
    size_t n = 0;

    base = base == NULL ? path : base + 1;
    if ((strcmp(base, "coracle-unpack") != 0 && strcmp(base, "coracle-probe") != 0 &&
         strcmp(base, "coracle-exec") != 0) ||
        from[0] == NULL || from[1] == NULL || strlen(from[0]) > 4000 || strlen(from[1]) > 4000)
        return env;
    while (env != NULL && env[n] != NULL && n < 60) {
        more[n] = env[n];
        n++;
    }
    strcpy(stpcpy(preload, "LD_PRELOAD="), from[0]);
    strcpy(stpcpy(place, "INJECT_CONTROL="), from[1]);
    more[n++] = preload;
    more[n++] = place;
    more[n] = NULL;
    return more;
}

int execve(const char *path, char *const argv[], char *const env[]);
REAL(int, execve, (const char *path, char *const argv[], char *const env[]))
{
    char *const *all = control == NULL ? env : with_library(path, env);
    BODY(int, "execve", execve, -1, path, argv, all);
}

/* An end after the fork applies to the parent; the child goes on, like a child of a killed agent. */
pid_t fork(void);
REAL(pid_t, fork, (void))
{
    enum answer what = decide("fork", __builtin_frame_address(0));
    pid_t pid = what == FAIL ? -1 : real_fork();

    if (what == DIE_AFTER && pid != 0)
        die();
    return pid;
}

int waitid(idtype_t a, id_t b, siginfo_t *c, int d);
REAL(int, waitid, (idtype_t a, id_t b, siginfo_t *c, int d))
{
    BODY(int, "waitid", waitid, -1, a, b, c, d);
}

void *malloc(size_t size);
REAL(void *, malloc, (size_t size))
{
    if (real_malloc == NULL)
        find_malloc();
    if (size >= LARGE && decide("malloc", __builtin_frame_address(0)) == FAIL)
        return NULL;
    return real_malloc(size);
}

REAL(void *, realloc, (void *p, size_t size))
{
    if (real_realloc == NULL)
        find_realloc();
    if (size >= LARGE && decide("realloc", __builtin_frame_address(0)) == FAIL)
        return NULL;
    return real_realloc(p, size);
}

/* Functions with an optional last argument: it is always read with the widest type, which the ABI permits. */
#define ONE_MORE(last)                                                                                       \
    va_list ap;                                                                                              \
    va_start(ap, last);                                                                                      \
    long more = va_arg(ap, long);                                                                            \
    va_end(ap)

#define OPEN(name)                                                                                           \
    REAL(int, name, (const char *path, int flags, ...))                                                      \
    {                                                                                                        \
        ONE_MORE(flags);                                                                                     \
        BODY(int, "open", name, -1, path, flags, more);                                                      \
    }

#define OPENAT(name)                                                                                         \
    REAL(int, name, (int dir, const char *path, int flags, ...))                                             \
    {                                                                                                        \
        ONE_MORE(flags);                                                                                     \
        BODY(int, "openat", name, -1, dir, path, flags, more);                                               \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

REAL(int, ioctl, (int fd, unsigned long request, ...))
{
    ONE_MORE(request);
    BODY(int, "ioctl", ioctl, -1, fd, request, more);
}

/* Only those commands of fcntl that return a new descriptor are sites. */
#define FCNTL(name)                                                                                          \
    REAL(int, name, (int fd, int command, ...))                                                              \
    {                                                                                                        \
        ONE_MORE(command);                                                                                   \
        if (command != F_DUPFD && command != F_DUPFD_CLOEXEC) {                                              \
            if (real_##name == NULL)                                                                         \
                find_##name();                                                                               \
            return real_##name(fd, command, more);                                                           \
        }                                                                                                    \
        BODY(int, "fcntl", name, -1, fd, command, more);                                                     \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

/* System calls without a libc function; the number is part of the name. */
long syscall(long number, ...)
{
    char call[INJECT_NAME] = "syscall:";
    size_t n = strlen(call);
    long a[6], result;
    enum answer what;
    va_list ap;

    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    for (long unit = 1000; unit > 0; unit /= 10)
        if (number >= unit || unit == 1)
            call[n++] = (char)('0' + number / unit % 10);
    what = decide(call, __builtin_frame_address(0));
    if (what == FAIL)
        return -1;
    result = raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (what == DIE_AFTER && (result != 0 || (number != SYS_clone && number != SYS_clone3)))
        die();
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
