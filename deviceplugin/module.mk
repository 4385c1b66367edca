# SPDX-License-Identifier: Apache-2.0
deviceplugin_SRCS := counts.c device_id.c holdings.c inventory.c podresources.c resource_name.c
