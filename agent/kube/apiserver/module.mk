# SPDX-License-Identifier: Apache-2.0
agent_kube_apiserver_SRCS := api.c answer.c feed.c health.c list.c namespaces.c options.c pki.c select.c stock.c streams.c watch.c node.c
