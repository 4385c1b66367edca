/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

struct proc_spec img_unpack_spec(const struct img_store *s, const char *subject, const char *const *argv,
                                 size_t answer_max, uint64_t deadline_ms)
{
    return (struct proc_spec){ .name = "coracle-unpack",
                               .subject = subject,
                               .argv = argv,
                               .stdout_max = answer_max,
                               .cgroup_fd = s->ops_cgroup_fd,
                               .cgroup_procs = s->ops_cgroup_procs,
                               .deadline_ms = deadline_ms };
}
