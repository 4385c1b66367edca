# SPDX-License-Identifier: Apache-2.0
# Made below build/ by protoc-c, from the .proto file here.
volumes_csi_proto_SRCS := csi.pb-c.c
