# SPDX-License-Identifier: Apache-2.0
agent_kube_config_SRCS := load.c fields.c choose.c check.c show.c url.c proxy_env.c file.c pem.c exec.c exec_answer.c message.c write.c
