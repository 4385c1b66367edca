# SPDX-License-Identifier: Apache-2.0
agent_runtime_SRCS := archive.c attach.c bundle.c conmon.c container.c create.c delete.c exec.c exec_leftover.c exec_session.c \
                      exec_spec.c exits.c features.c forward.c handlers.c live_mount.c pidns.c signal.c start.c state.c target.c
# coracle-exec: one for each process in a container, hence small and alone.
exec_SRCS := exec_main.c exec_forward.c exec_session.c
