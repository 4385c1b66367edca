# SPDX-License-Identifier: Apache-2.0
volumes_quota_SRCS := quota_fs.c quota_call.c quota.c quota_assign.c replace.c etc_edit.c etc_files.c projects.c projects_table.c projects_take.c projects_release.c projects_file.c quota_message.c quota_warn.c
