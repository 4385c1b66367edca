# SPDX-License-Identifier: Apache-2.0
deviceplugin_message_SRCS := answer.c messages.c podresources.c
