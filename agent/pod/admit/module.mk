# SPDX-License-Identifier: Apache-2.0
agent_pod_admit_SRCS := admission.c admit_room.c hugepages_watch.c preempt.c readmit.c resize.c \
                        resize_cgroups.c
