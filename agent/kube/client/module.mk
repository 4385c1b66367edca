# SPDX-License-Identifier: Apache-2.0
agent_kube_client_SRCS := client.c reflector.c
