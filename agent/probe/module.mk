# SPDX-License-Identifier: Apache-2.0
agent_probe_SRCS := check.c text.c url.c request.c reply.c link.c outside.c http.c tcp.c grpc.c grpc_health.c
# coracle-probe maps TLS and waits for resolvers: a program of its own, started for a check that needs it.
probe_SRCS := helper.c reply.c text.c
