/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - three clocks, and the RFC 3339 texts used by Kubernetes.
 *
 *   boot   for waiting: back-off, grace periods, the next check. It cannot be set, and includes the time the
 *         machine sleeps. Its moments have their own type, so that the compiler distinguishes them from
 *         wall times; base/boot_timer.h has the timers.
 *   mono   for durations and deadlines of operations: excludes the time the machine sleeps, because
 *         operations do not run then either. Used by libuv's timers.
 *   wall   for display and files, in nanoseconds since 1970. It may be set at any time.
 *
 * A test that scripts time includes tests/unit/script_clock.h, which defines the functions of clock_now.c;
 * the linker then omits that object.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_RFC3339_SIZE 40

struct boot_time {
    int64_t ns; /* CLOCK_BOOTTIME; below 0: before this boot; 0: none */
};

/* ---- clock_now.c ---- */
struct boot_time clock_boot(void);
uint64_t clock_mono_ms(void);
int64_t clock_wall_ns(void);
bool clock_wall_is_synchronised(void); /* with a time server, according to the kernel */

/* ---- moments of the boot clock ---- */
#define CLOCK_BOOT_NONE ((struct boot_time){ 0 })
static inline struct boot_time clock_boot_after(struct boot_time t, int64_t ns)
{
    return (struct boot_time){ t.ns + ns };
}
static inline struct boot_time clock_boot_in_ns(int64_t ns)
{
    return clock_boot_after(clock_boot(), ns);
}
static inline struct boot_time clock_boot_in_ms(uint64_t ms)
{
    return clock_boot_in_ns((int64_t)ms * 1000000);
}
static inline uint64_t clock_boot_ms(void)
{
    return (uint64_t)clock_boot().ns / 1000000;
}
static inline bool clock_boot_is_set(struct boot_time t)
{
    return t.ns != 0;
}
static inline bool clock_boot_is_before(struct boot_time a, struct boot_time b)
{
    return a.ns < b.ns;
}
/* Below 0: it has passed. */
static inline int64_t clock_boot_left_ns(struct boot_time t)
{
    return t.ns - clock_boot().ns;
}
static inline int64_t clock_boot_since_ns(struct boot_time t)
{
    return -clock_boot_left_ns(t);
}
/* It has passed, or is not set. */
static inline bool clock_boot_is_due(struct boot_time t)
{
    return clock_boot_left_ns(t) <= 0;
}
/* For display: by the current wall clock; 0 for none. */
int64_t clock_boot_to_wall_ns(struct boot_time t);
/* A wall time of this boot, by the current wall clock: at least the boot, at most now. */
struct boot_time clock_boot_of_wall(int64_t wall_ns);

/* Second, minute, hour, day, month and year; weekday and day of the year stay 0. Pure arithmetic: libc's
 * gmtime_r() takes a lock, which may be held forever in a forked child. */
void clock_utc(int64_t seconds, struct tm *ret);
void clock_format_s(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE]);    /* 2026-01-02T03:04:05Z */
void clock_format_us(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE]);   /* ...05.123456Z */
void clock_format_nano(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE]); /* RFC3339Nano, zeros cut */
enum err_code clock_parse(const char *rfc3339, int64_t *ret_wall_ns, struct err *e) MUST_CHECK;
#endif
