# SPDX-License-Identifier: Apache-2.0
agent_kube_client_SRCS := client.c call.c access.c sockets.c silence.c ping.c lines.c status.c known.c pace.c tally.c reflector.c reflector_answer.c
