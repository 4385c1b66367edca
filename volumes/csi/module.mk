# SPDX-License-Identifier: Apache-2.0
volumes_csi_SRCS := drivers.c group.c messages.c mount.c place.c remove.c stats.c version.c vol_data.c volume.c
