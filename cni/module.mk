# SPDX-License-Identifier: Apache-2.0
cni_SRCS := ask.c attachment.c cache.c cni.c gc.c links.c masq.c run.c run_add.c run_check.c run_del.c status.c strays.c times.c undo.c veth.c width.c
