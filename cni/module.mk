# SPDX-License-Identifier: Apache-2.0
cni_SRCS := ask.c link_watch.c attachment.c cache.c cni.c conf.c each.c gc.c hoststate.c links.c names.c netns.c networks.c nft.c \
            plugin.c result.c rules.c run.c run_add.c run_check.c run_del.c scaffold.c status.c strays.c strs.c undo.c versions.c veth.c watch.c masq.c
