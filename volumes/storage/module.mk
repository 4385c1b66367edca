# SPDX-License-Identifier: Apache-2.0
volumes_storage_SRCS := device.c fc.c iscsi.c local.c lock.c mount.c nfs.c options.c resize.c run.c unmount.c
