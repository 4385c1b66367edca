/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_clock - the clocks of a test program that scripts time: they stand still but for what the test does.
 * Included by one file of a test program; takes the place of base/clock_now.c (base/clock.h).
 */
#ifndef TESTS_UNIT_SCRIPT_CLOCK_H
#define TESTS_UNIT_SCRIPT_CLOCK_H
#include "base/clock.h"

#define SCRIPT_SECOND INT64_C(1000000000)
#define SCRIPT_WALL_NS (INT64_C(1800000000) * SCRIPT_SECOND) /* 2027-01-15T08:00:00Z */
#define SCRIPT_BOOT_NS (1000 * SCRIPT_SECOND)

static struct {
    int64_t boot_ns, mono_ns, wall_ns;
    bool unsynchronised;
} script_clock = { SCRIPT_BOOT_NS, SCRIPT_BOOT_NS, SCRIPT_WALL_NS, false };

struct boot_time clock_boot(void)
{
    return (struct boot_time){ script_clock.boot_ns };
}

uint64_t clock_mono_ms(void)
{
    return (uint64_t)script_clock.mono_ns / 1000000;
}

int64_t clock_wall_ns(void)
{
    return script_clock.wall_ns;
}

bool clock_wall_is_synchronised(void)
{
    return !script_clock.unsynchronised;
}

/* The machine sleeps. */
static inline void script_clock_sleep(int64_t ns)
{
    script_clock.boot_ns += ns;
    script_clock.wall_ns += ns;
}

static inline void script_clock_pass(int64_t ns)
{
    script_clock_sleep(ns);
    script_clock.mono_ns += ns;
}

/* Somebody sets the wall clock, forward or back. */
static inline void script_clock_set(int64_t by_ns)
{
    script_clock.wall_ns += by_ns;
}

static inline void script_clock_reset(void)
{
    script_clock.boot_ns = script_clock.mono_ns = SCRIPT_BOOT_NS;
    script_clock.wall_ns = SCRIPT_WALL_NS;
    script_clock.unsynchronised = false;
}
#endif
