# SPDX-License-Identifier: Apache-2.0
agent_pod_sandbox_SRCS := files.c leases.c net_attach.c net_heal.c net_watch.c node_users.c pidns.c \
                          resolv.c runtime_class.c sandbox.c sandbox_recover.c sandbox_room.c sandbox_view.c userns.c
