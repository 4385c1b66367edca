# SPDX-License-Identifier: Apache-2.0
deviceplugin_SRCS := choose.c counts.c device_id.c holdings.c inventory.c podresources.c resource_name.c reuse.c
