/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject - the memory that the driver shares with the processes whose calls it makes fail.
 *
 * The driver writes the request, with `mode` last; the library writes sites and hits. tests/inject/sites.py
 * knows the same layout (CONTROL and SITE).
 */
#ifndef TESTS_INJECT_INJECT_H
#define TESTS_INJECT_INJECT_H
#include <stdint.h>

enum {
    INJECT_FRAMES = 4,
    INJECT_SITES = 16384, /* a power of two; all phases together have some 4,000 */
    INJECT_NAME = 24,
};

enum inject_mode {
    INJECT_OFF = 0,
    INJECT_RECORD,
    INJECT_ONCE,  /* the call number `nth` of the site fails */
    INJECT_UNTIL, /* each call of this kind fails in its program until the monotonic clock has passed until_ns
                   */
    INJECT_KILL_BEFORE, /* the process gets SIGKILL instead of the call */
    INJECT_KILL_AFTER,
};

/* A place of the code: the call, and the return addresses above it. */
struct inject_site {
    uint64_t id; /* 0: free */
    uint32_t count;
    uint32_t n_frames;
    uint64_t
        frames[INJECT_FRAMES]; /* module << 48 | offset; module 0: the program itself, 1: libuv, 2: another */
    char call[INJECT_NAME];
    char program[INJECT_NAME];
};

struct inject_control {
    uint32_t mode;
    int32_t error; /* the errno of the failing call */
    uint64_t site;
    uint64_t until_ns;
    uint32_t nth;
    uint32_t seen; /* calls of the site since the fault was armed */
    uint32_t hits;
    uint32_t padding;
    char call[INJECT_NAME]; /* of the site, so that other calls need not examine their frames */
    char program[INJECT_NAME];
    struct inject_site sites[INJECT_SITES];
};
#endif
