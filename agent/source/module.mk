# SPDX-License-Identifier: Apache-2.0
agent_source_SRCS := store.c manifest.c claims.c folder.c file.c reads.c watch.c
