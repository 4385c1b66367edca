# SPDX-License-Identifier: Apache-2.0
agent_pod_admit_SRCS := admission.c readmit.c hugepages_watch.c preempt.c resize.c resize_cgroups.c
