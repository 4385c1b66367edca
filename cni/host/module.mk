# SPDX-License-Identifier: Apache-2.0
cni_host_SRCS := hoststate.c iptables.c link_watch.c netns.c nft.c rules.c scaffold.c
