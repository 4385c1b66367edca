# SPDX-License-Identifier: Apache-2.0
agent_pod_image_SRCS := image_gc.c image_gc_node.c image_right.c image_room.c images_used.c pod_images.c \
                        pull_secrets.c
