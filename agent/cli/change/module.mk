# SPDX-License-Identifier: Apache-2.0
agent_cli_change_SRCS := change.c delete.c delete_file.c delete_wait.c edit.c edit_file.c label.c rollout.c rollout_history.c rollout_status.c scale.c set.c what.c
