# SPDX-License-Identifier: Apache-2.0
agent_image_provider_SRCS := answer.c ask.c cache.c config.c image_glob.c
