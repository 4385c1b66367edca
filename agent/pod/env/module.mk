# SPDX-License-Identifier: Apache-2.0
agent_pod_env_SRCS := downward.c env.c env_file.c service_env.c
