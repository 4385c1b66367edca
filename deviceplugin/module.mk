# SPDX-License-Identifier: Apache-2.0
deviceplugin_SRCS := answer.c checkpoint.c checkpoint_parse.c checkpoint_sum.c checkpoint_text.c choose.c counts.c \
                     device_id.c holdings.c inventory.c messages.c podresources.c resource_name.c reuse.c wire.c
