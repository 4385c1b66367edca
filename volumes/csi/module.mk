# SPDX-License-Identifier: Apache-2.0
volumes_csi_SRCS := block_place.c device_place.c drivers.c expand.c messages.c mount.c paths.c place.c release.c remove.c stage.c stats.c turns.c \
                    unstage.c version.c vol_data.c volume.c
