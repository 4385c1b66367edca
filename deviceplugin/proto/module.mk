# SPDX-License-Identifier: Apache-2.0
# Made below build/ by protoc-c, from the .proto files here.
deviceplugin_proto_SRCS := deviceplugin.pb-c.c pluginregistration.pb-c.c podresources.pb-c.c
