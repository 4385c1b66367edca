# SPDX-License-Identifier: Apache-2.0
agent_config_SRCS := keys_server.c keys_pods.c keys_own.c keys_flags.c rows.c feature_gates.c value.c flag_value.c value_special.c value_devices.c eviction.c where.c decode.c \
                     flags.c check.c apply.c resources.c placement.c config.c help.c print.c reload.c
