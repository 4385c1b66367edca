/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp - a system call filter for our own programs, built instruction by instruction
 * (Documentation/userspace-api/seccomp_filter.rst).  Only seccomp_enter() reports that a filter is too long.
 *
 *     seccomp_begin(&f);
 *     seccomp_deny(&f, denied, ARRAY_LEN(denied));
 *     seccomp_end(&f, SECCOMP_RET_ALLOW);
 *     return seccomp_enter(&f, e);
 *
 * SECCOMP_KNOWN is 0 on architectures whose system calls this file does not list; programs then run without a
 * filter.
 */
#ifndef BASE_PROCESS_SECCOMP_H
#define BASE_PROCESS_SECCOMP_H
#include "base/error.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define SECCOMP_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SECCOMP_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define SECCOMP_ARCH AUDIT_ARCH_RISCV64
#endif
#ifdef SECCOMP_ARCH
#define SECCOMP_KNOWN 1
#else
#define SECCOMP_KNOWN 0
#endif

#define SECCOMP_NO(err) (SECCOMP_RET_ERRNO | (err)) /* the call fails with this errno */

struct seccomp_filter {
    struct sock_filter v[256];
    unsigned short n;
};

/* Calls of another architecture (32 bit) end the process, since their numbers differ; x32 calls fail.
 * Afterwards the number of the call is loaded. */
void seccomp_begin(struct seccomp_filter *f);

/* The calls fail with EPERM. The number of the call must be loaded. */
void seccomp_deny(struct seccomp_filter *f, const int *calls, size_t n);

void seccomp_load_arg(struct seccomp_filter *f, int arg);                  /* its low half (little-endian) */
void seccomp_when(struct seccomp_filter *f, uint32_t k, uint32_t verdict); /* if the loaded word equals k */
/* Skips `yes` or `no` instructions by the condition BPF_JEQ, BPF_JGE or BPF_JSET of the loaded word and k. */
void seccomp_jump(struct seccomp_filter *f, uint16_t condition, uint32_t k, uint8_t yes, uint8_t no);
void seccomp_end(struct seccomp_filter *f, uint32_t verdict);

/* Applies the filter for the rest of the process's life. Needs no_new_privs. A kernel without seccomp filters
 * is no error: the other measures of a confinement still apply. */
enum err_code seccomp_enter(const struct seccomp_filter *f, struct err *e) MUST_CHECK;
#endif
