# SPDX-License-Identifier: Apache-2.0
agent_cli_client_SRCS := client.c hints.c kinds.c one_pod.c pod_of.c targets.c watch.c
