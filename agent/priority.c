/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/priority.h"

#include "base/log.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct sched_attr of sched_setattr(2), which libc does not have before glibc 2.41. */
struct priority_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};
#define PRIORITY_RESET_ON_FORK 1 /* SCHED_FLAG_RESET_ON_FORK */

void priority_raise(void)
{
    const struct priority_attr attr = {
        .size = sizeof(attr), .policy = SCHED_OTHER, .flags = PRIORITY_RESET_ON_FORK, .nice = PRIORITY_NICE
    };

    errno = 0;
    if (sched_getscheduler(0) != SCHED_OTHER || getpriority(PRIO_PROCESS, 0) != 0 || errno != 0)
        return;
    if (syscall(SYS_sched_setattr, 0, &attr, 0) != 0)
        log_debug("cannot raise the priority of the loop", F_STR("err", strerrordesc_np(errno)));
}
