# SPDX-License-Identifier: Apache-2.0
agent_declared_SRCS := decl_parse.c decl_member.c decl_read.c look.c look_glob.c look_sysfs.c look_read.c list.c list_answer.c
agent_declared_SRCS += uevent.c declared.c files.c nodes.c provider.c
