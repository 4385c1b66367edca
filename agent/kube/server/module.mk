# SPDX-License-Identifier: Apache-2.0
agent_kube_server_SRCS := server.c server_free.c caller.c caller_answer.c accept.c access.c review_cache.c route.c route_target.c serve.c upstream.c ask.c ports.c relay.c slis.c tunnel.c channels.c spdy_wire.c remote.c forward.c forward_ws.c run.c tls.c tls_context.c spdy.c spdy_headers.c spdy_dictionary.c
