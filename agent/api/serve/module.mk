# SPDX-License-Identifier: Apache-2.0
agent_api_serve_SRCS := accept.c discovery.c document.c kinds.c put.c
