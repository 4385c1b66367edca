/* SPDX-License-Identifier: Apache-2.0 */
/* group - gives the files of a volume to the pod's fsGroup, as kubelet does (pkg/volume/volume_linux.go). */
#ifndef VOLUMES_CSI_GROUP_H
#define VOLUMES_CSI_GROUP_H
#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * Group `gid` for everything below `path`; files become 0660, folders 02770 in addition to the bits that they
 * have; symlinks get the group only. Other file systems mounted below are left alone. Files that vanish
 * meanwhile are fine. `only_if_wrong` (OnRootMismatch): nothing is done if the top has group and bits
 * already. May hang: call it inside a proc_call. The error names the path.
 */
enum err_code csi_group_apply(const char *path, gid_t gid, bool only_if_wrong, struct err *e) MUST_CHECK;
#endif
