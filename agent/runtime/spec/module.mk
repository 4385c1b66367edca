# SPDX-License-Identifier: Apache-2.0
agent_runtime_spec_SRCS := spec.c spec_caps.c spec_devices.c spec_edits.c spec_limits.c spec_mounts.c spec_process.c spec_seccomp.c \
                           spec_seccomp_projects.c spec_seccomp_split.c spec_user.c spec_volumes.c
