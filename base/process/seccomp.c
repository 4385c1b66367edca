/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/seccomp.h"

#include "base/scope.h"

#include <errno.h>
#include <sys/prctl.h>

#define X32_CALLS 0x40000000 /* and above: __X32_SYSCALL_BIT */

static void put(struct seccomp_filter *f, struct sock_filter i)
{
    if (f->n < ARRAY_LEN(f->v))
        f->v[f->n++] = i;
}

static void load(struct seccomp_filter *f, size_t offset)
{
    put(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

void seccomp_begin(struct seccomp_filter *f)
{
    f->n = 0;
#if SECCOMP_KNOWN
    load(f, offsetof(struct seccomp_data, arch));
    seccomp_jump(f, BPF_JEQ, SECCOMP_ARCH, 1, 0);
    seccomp_end(f, SECCOMP_RET_KILL_PROCESS);
#endif
    load(f, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    seccomp_jump(f, BPF_JGE, X32_CALLS, 0, 1);
    seccomp_end(f, SECCOMP_NO(EPERM));
#endif
}

void seccomp_deny(struct seccomp_filter *f, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        seccomp_when(f, (uint32_t)calls[i], SECCOMP_NO(EPERM));
}

void seccomp_load_arg(struct seccomp_filter *f, int arg)
{
    load(f, offsetof(struct seccomp_data, args) + (size_t)arg * sizeof(uint64_t));
}

void seccomp_when(struct seccomp_filter *f, uint32_t k, uint32_t verdict)
{
    seccomp_jump(f, BPF_JEQ, k, 0, 1);
    seccomp_end(f, verdict);
}

void seccomp_jump(struct seccomp_filter *f, uint16_t condition, uint32_t k, uint8_t yes, uint8_t no)
{
    put(f, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | BPF_K | condition), k, yes, no));
}

void seccomp_end(struct seccomp_filter *f, uint32_t verdict)
{
    put(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

enum err_code seccomp_enter(const struct seccomp_filter *f, struct err *e)
{
    struct sock_fprog program = { .len = f->n, .filter = (struct sock_filter *)f->v };

    if (f->n == ARRAY_LEN(f->v))
        return err_set(e, ERR_INTERNAL, "the seccomp filter is too long");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0 && errno != EINVAL)
        return err_sys(e, errno, "enter the seccomp filter");
    return ERR_OK;
}
