# SPDX-License-Identifier: Apache-2.0
volumes_SRCS := atomic_writer.c generations.c group.c payload.c size.c node.c tmpfs.c empty_dir.c host_path.c sub_path.c teardown.c
