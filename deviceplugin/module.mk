# SPDX-License-Identifier: Apache-2.0
deviceplugin_SRCS := choose.c device_id.c holdings.c inventory.c machine.c resource_name.c reuse.c topology.c
