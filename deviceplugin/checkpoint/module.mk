# SPDX-License-Identifier: Apache-2.0
deviceplugin_checkpoint_SRCS := checkpoint.c checkpoint_parse.c checkpoint_sum.c checkpoint_text.c
