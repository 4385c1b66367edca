# SPDX-License-Identifier: Apache-2.0
base_files_SRCS := damaged_file.c disk_usage.c file_lock.c fs.c id.c look.c mounts.c patience.c siphash_key.c tree.c watches.c
