# SPDX-License-Identifier: Apache-2.0
cgroups_SRCS := cgroup.c discover.c hybrid.c tree.c cgroup_v1.c cgroup_v2.c kill.c stuck.c leaf.c units.c limit.c resize.c missing.c usage.c
cgroups_SRCS += sample.c meter.c partition.c
cgroups_SRCS += oom_log.c oom_watch.c memory_alarm.c psi_watch.c pids_watch.c
