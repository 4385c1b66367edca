# SPDX-License-Identifier: Apache-2.0
agent_cdi_SRCS := cdi.c content.c decode.c decode_edits.c load.c names.c
