# SPDX-License-Identifier: Apache-2.0
agent_pod_record_SRCS := quarantine.c record.c record_room.c record_sync.c
