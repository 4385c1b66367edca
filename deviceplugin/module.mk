# SPDX-License-Identifier: Apache-2.0
deviceplugin_SRCS := resource_name.c
