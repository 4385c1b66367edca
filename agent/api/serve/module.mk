# SPDX-License-Identifier: Apache-2.0
agent_api_serve_SRCS := accept.c cells.c columns_core.c columns_node.c columns_shown.c columns_work.c discovery.c document.c kinds.c metrics.c \
                        openapi.c openapi_document.c openapi_proto.c openapi_schema.c pod_summary.c put.c review.c stored.c table.c target.c words.c words_names.c
