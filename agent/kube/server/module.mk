# SPDX-License-Identifier: Apache-2.0
agent_kube_server_SRCS := server.c
