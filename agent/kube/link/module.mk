# SPDX-License-Identifier: Apache-2.0
agent_kube_link_SRCS := link.c
