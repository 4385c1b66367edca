# SPDX-License-Identifier: Apache-2.0
agent_pod_usage_SRCS := claim_usage.c local_limits.c local_plan.c local_quota.c local_storage.c net_stats.c oom.c scrape.c storage_usage.c usage.c usage_metrics.c \
                        usage_node.c usage_room.c usage_summary.c volume_metrics.c
