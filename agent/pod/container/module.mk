# SPDX-License-Identifier: Apache-2.0
agent_pod_container_SRCS := container_room.c containers.c create_limit.c ctr_cdi.c ctr_config.c ctr_devices.c ctr_explain.c \
                            ctr_log.c ctr_message.c ctr_order.c ctr_record.c env_age.c handler_resolve.c hooks.c instance.c \
                            log_keep.c log_turn.c probe_check.c probe_explain.c probe_metrics.c probes.c readiness.c reaps.c restart.c
