/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap_probe - whether pods can have users of their own on this node: the kernel's part, which differs with
 * its version and with the file systems that the node's folders are on (idmapped mounts: ext4 and xfs since
 * Linux 5.12, btrfs 5.15, overlayfs with such layers 5.19, tmpfs 6.3).
 */
#ifndef AGENT_RUNTIME_IDMAP_PROBE_H
#define AGENT_RUNTIME_IDMAP_PROBE_H
#include "base/error.h"

#define IDMAP_FOLDERS_MAX 4
struct idmap_probe {
    const char
        *run_dir; /* where bundles and the node's tmpfs are; must be open to pass through for everybody */
    const char *folders[IDMAP_FOLDERS_MAX]; /* where layers, volumes and files of pods are; NULL: no more */
};

/*
 * Tries it with throw-away mounts in a mount namespace of its own; the text says why it cannot be.  Within a
 * forked call, which is not good for anything else afterwards.
 */
enum err_code idmap_probe(const struct idmap_probe *p, struct err *e) MUST_CHECK;
#endif
