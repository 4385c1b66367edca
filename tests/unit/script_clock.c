/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/script_clock.h"

struct script_clock script_clock = { SCRIPT_BOOT_NS, SCRIPT_BOOT_NS, SCRIPT_WALL_NS, false };

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

void script_clock_sleep(int64_t ns)
{
    script_clock.boot_ns += ns;
    script_clock.wall_ns += ns;
}

void script_clock_pass(int64_t ns)
{
    script_clock_sleep(ns);
    script_clock.mono_ns += ns;
}

void script_clock_set(int64_t by_ns)
{
    script_clock.wall_ns += by_ns;
}

void script_clock_reset(void)
{
    script_clock.boot_ns = script_clock.mono_ns = SCRIPT_BOOT_NS;
    script_clock.wall_ns = SCRIPT_WALL_NS;
    script_clock.unsynchronised = false;
}
