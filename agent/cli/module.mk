# SPDX-License-Identifier: Apache-2.0
agent_cli_SRCS := apply.c cli.c commands.c complete.c completion.c config.c help.c homes.c kubeconfig.c kubectl.c restart.c unknown.c validate.c version.c wait.c \
                  wait_goal.c
