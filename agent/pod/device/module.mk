# SPDX-License-Identifier: Apache-2.0
agent_pod_device_SRCS := admissions.c admit.c align.c allocate.c changes.c checkpoint_file.c device_record.c device_room.c device_show.c \
                         gifts.c hold.c pre_start.c sources.c wants.c
