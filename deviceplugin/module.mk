# SPDX-License-Identifier: Apache-2.0
deviceplugin_SRCS := answer.c choose.c counts.c device_id.c holdings.c inventory.c messages.c podresources.c resource_name.c reuse.c wire.c
