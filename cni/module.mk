cni_SRCS := attachment.c cache.c cni.c conf.c hoststate.c names.c netns.c networks.c nft.c plugin.c result.c run.c \
            scaffold.c strs.c undo.c watch.c masq.c
