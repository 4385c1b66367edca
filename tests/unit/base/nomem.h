/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nomem - lets the nth allocation of the code under test fail.  The program's own malloc family stands in
 * for glibc's and passes on to it.  A sanitizer's malloc must not be replaced: there the tests that want this
 * do not exist (NOMEM_RUN).  Include it in one file of the program only.
 *
 *     NOMEM_EACH(ok, { ...; result = code_under_test(); ... ; ok = result == ERR_OK; })
 */
#ifndef TESTS_UNIT_BASE_NOMEM_H
#define TESTS_UNIT_BASE_NOMEM_H
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NOMEM_USABLE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define NOMEM_USABLE 0
#endif
#endif
#ifndef NOMEM_USABLE
#define NOMEM_USABLE 1
#endif

static long nomem_countdown; /* 0: off; 1: the next allocation fails */
static long nomem_live;      /* blocks allocated while it was on, minus those freed */
static int nomem_watching;

#if NOMEM_USABLE
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void __libc_free(void *p);

static int nomem_now(void)
{
    if (nomem_countdown > 0 && --nomem_countdown == 0) {
        errno = ENOMEM;
        return 1;
    }
    return 0;
}

void *malloc(size_t n)
{
    void *p = nomem_now() ? NULL : __libc_malloc(n);

    nomem_live += nomem_watching && p != NULL;
    return p;
}

void *calloc(size_t n, size_t size)
{
    void *p = nomem_now() ? NULL : __libc_calloc(n, size);

    nomem_live += nomem_watching && p != NULL;
    return p;
}

void *realloc(void *old, size_t n)
{
    void *p = nomem_now() ? NULL : __libc_realloc(old, n);

    nomem_live += nomem_watching && p != NULL && old == NULL;
    return p;
}

void free(void *p)
{
    nomem_live -= nomem_watching && p != NULL;
    __libc_free(p);
}
#endif

/*
 * Runs the statements with the 1st, 2nd, ... allocation failing until `ok` is true with none failed.  They
 * must free what they made: whatever stays allocated after a round is a leak.
 */
#define NOMEM_EACH(ok, ...)                                                                                  \
    do {                                                                                                     \
        long nth_;                                                                                           \
                                                                                                             \
        for (nth_ = 1; nth_ < 10000; nth_++) {                                                               \
            int unused_;                                                                                     \
                                                                                                             \
            nomem_live = 0;                                                                                  \
            nomem_watching = 1;                                                                              \
            nomem_countdown = nth_;                                                                          \
            __VA_ARGS__                                                                                      \
            unused_ = nomem_countdown > 0;                                                                   \
            nomem_countdown = 0;                                                                             \
            nomem_watching = 0;                                                                              \
            assert_int_equal(nomem_live, 0);                                                                 \
            if (unused_) {                                                                                   \
                assert_true(ok);                                                                             \
                break;                                                                                       \
            }                                                                                                \
        }                                                                                                    \
        assert_true(nth_ > 1 && nth_ < 10000);                                                               \
    } while (0)

/* Runs the tests that use it, an array; returns how many failed. */
#define NOMEM_RUN(tests)                                                                                     \
    _cmocka_run_group_tests(#tests, tests, NOMEM_USABLE ? sizeof(tests) / sizeof((tests)[0]) : 0, NULL, NULL)
#endif
