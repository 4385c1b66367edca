# SPDX-License-Identifier: Apache-2.0
agent_cli_image_SRCS := image.c image_bring.c image_care.c image_login.c image_names.c image_spool.c
