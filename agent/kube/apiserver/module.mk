# SPDX-License-Identifier: Apache-2.0
agent_kube_apiserver_SRCS := api.c answer.c feed.c health.c list.c list_text.c namespaces.c options.c pki.c select.c selector_words.c stock.c streams.c watch.c node.c proto.c proto_messages.c json_look.c write.c write_daemon.c write_options.c write_collection.c write_delete.c write_sub.c
