# SPDX-License-Identifier: Apache-2.0
cni_plugin_SRCS := conf.c each.c names.c networks.c plugin.c result.c versions.c watch.c
