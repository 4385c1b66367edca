# SPDX-License-Identifier: Apache-2.0
# coracle-unpack reads hostile archives: a program of its own, never part of the daemon.
unpack_SRCS := copy_main.c copy_pack.c copy_unpack.c unpack_apply.c unpack_config.c unpack_confine.c unpack_digest.c unpack_docker.c \
               unpack_export.c unpack_images.c unpack_layout.c unpack_lower.c unpack_main.c \
               unpack_node.c unpack_options.c unpack_path.c unpack_source.c unpack_store.c unpack_stream.c \
               unpack_sum.c unpack_verify.c
