# SPDX-License-Identifier: Apache-2.0
base_process_SRCS := call.c call_thread.c env.c landlock.c pid.c process.c process_result.c reaper.c seccomp.c spawn.c spawn_queue.c
