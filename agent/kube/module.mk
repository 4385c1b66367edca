# SPDX-License-Identifier: Apache-2.0
# coracle-kube is kube_main.c and this library.
agent_kube_SRCS := kube.c kube_log.c kube_confine.c
