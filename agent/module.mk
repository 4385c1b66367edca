# SPDX-License-Identifier: Apache-2.0
agent_SRCS := daemon.c work.c handlers.c priority.c made.c join.c local_api.c parts.c machine.c start_report.c settings.c preflight.c notify.c inhibit.c unit_weight.c
# coracle-shutdown maps sd-bus: a program of its own, started where shutdowns are to wait for pods.
shutdown_SRCS := inhibit_main.c
