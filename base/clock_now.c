/* SPDX-License-Identifier: Apache-2.0 */
/* clock_now - reads the kernel's clocks; a separate object, so that a test can replace it. */
#include "base/clock.h"

#include <sys/timex.h>
#include <time.h>

enum { CLOCK_NOW_NS = 1000000000 };

static int64_t clock_now_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * CLOCK_NOW_NS + ts.tv_nsec;
}

struct boot_time clock_boot(void)
{
    return (struct boot_time){ clock_now_ns(CLOCK_BOOTTIME) };
}

uint64_t clock_mono_ms(void)
{
    return (uint64_t)clock_now_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t clock_wall_ns(void)
{
    return clock_now_ns(CLOCK_REALTIME);
}

bool clock_wall_is_synchronised(void)
{
    struct timex t = { 0 };
    int state = adjtimex(&t);

    return state >= 0 && state != TIME_ERROR;
}
