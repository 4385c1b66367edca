# SPDX-License-Identifier: Apache-2.0
agent_placement_SRCS := cpus.c machine.c discover.c take.c distribute.c hints.c merge.c options.c state_text.c entries.c cpu_state.c cpu_state_text.c cpu_hints.c cpu_manager.c memory_state.c memory_state_text.c memory_manager.c memory_hints.c memory_allocate.c reserve.c isolate.c
