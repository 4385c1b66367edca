/* SPDX-License-Identifier: Apache-2.0 */
/* idmap_probe - whether pods can have user namespaces on this node, as far as the kernel is concerned: that
 * depends on its version and on the file systems of the node's folders (idmapped mounts: ext4 and xfs since
 * Linux 5.12, btrfs 5.15, overlayfs with such layers 5.19, tmpfs 6.3). */
#ifndef AGENT_RUNTIME_MOUNT_IDMAP_PROBE_H
#define AGENT_RUNTIME_MOUNT_IDMAP_PROBE_H
#include "base/error.h"

#define IDMAP_FOLDERS_MAX 4
struct idmap_probe {
    const char *run_dir; /* with the bundles and the node's tmpfs; all users must be able to enter it */
    const char *folders[IDMAP_FOLDERS_MAX]; /* of layers, volumes and pods' files; NULL: end */
};

/* Tests it with temporary mounts in a separate mount namespace; the error has the reason of a failure. Call
 * it in a forked call, which must end afterwards. */
enum err_code idmap_probe(const struct idmap_probe *p, struct err *e) MUST_CHECK;
#endif
