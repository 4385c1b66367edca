# SPDX-License-Identifier: Apache-2.0
volumes_storage_SRCS := block.c device.c disk.c fc.c iscsi.c local.c lock.c mount.c nfs.c options.c paths.c release.c resize.c run.c unmount.c
