# SPDX-License-Identifier: Apache-2.0
agent_source_SRCS := store.c manifest.c object_claims.c folder.c file.c reads.c watch.c await.c rewrite.c put.c
