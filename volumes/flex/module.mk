# SPDX-License-Identifier: Apache-2.0
volumes_flex_SRCS := answer.c call.c device.c drivers.c expand.c mount.c options.c unmount.c
