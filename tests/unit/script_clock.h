/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_clock - the clocks of a test program that scripts time: they stand still but for what the test does.
 * script_clock.c takes the place of base/clock_now.c (base/clock.h) in test programs that include this header
 * (tests/module.mk).
 */
#ifndef TESTS_UNIT_SCRIPT_CLOCK_H
#define TESTS_UNIT_SCRIPT_CLOCK_H
#include "base/clock.h"

#include <stdbool.h>

#define SCRIPT_SECOND INT64_C(1000000000)
#define SCRIPT_WALL_NS (INT64_C(1800000000) * SCRIPT_SECOND) /* 2027-01-15T08:00:00Z */
#define SCRIPT_BOOT_NS (1000 * SCRIPT_SECOND)

extern struct script_clock {
    int64_t boot_ns, mono_ns, wall_ns;
    bool unsynchronised;
} script_clock;

void script_clock_pass(int64_t ns);
void script_clock_sleep(int64_t ns);  /* the machine sleeps */
void script_clock_set(int64_t by_ns); /* somebody sets the wall clock, forward or back */
void script_clock_reset(void);
#endif
