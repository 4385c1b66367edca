# SPDX-License-Identifier: Apache-2.0
agent_eviction_SRCS := signal.c amount.c settings.c rank.c message.c manager.c choice.c pace.c record.c record_json.c record_read.c
