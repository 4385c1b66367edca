# SPDX-License-Identifier: Apache-2.0
agent_pod_leftovers_SRCS := foreign.c leftovers_room.c mount_watch.c record_files.c sweep.c sweep_job.c sweep_logs.c
