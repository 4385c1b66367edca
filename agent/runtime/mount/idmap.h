/* SPDX-License-Identifier: Apache-2.0 */
/* idmap - shows a tree of files with the ids of a user namespace: files of root on disk belong to the
 * namespace's root, and so on (mount_setattr(2), MOUNT_ATTR_IDMAP). It is a property of the mount: the files
 * are unchanged. For a child process that may block. */
#ifndef AGENT_RUNTIME_MOUNT_IDMAP_H
#define AGENT_RUNTIME_MOUNT_IDMAP_H
#include "agent/runtime/spec/spec.h"
#include "base/arena.h"

/* Opens the user namespace pinned at `userns`; -1: error. */
int idmap_open(const char *userns, struct err *e);

/*
 * A mapped mount of the tree at `path` with all mounts below it; detached, the caller closes it. propagation:
 * MS_PRIVATE, or MS_SLAVE, so that later mounts below `path` also appear (unmapped). Never 0: unmounting
 * would also unmount mounts that are shared with the source. -1: ERR_UNIMPLEMENTED if the kernel or a file
 * system cannot do it; the text names the file system and its mount point.
 */
int idmap_tree(const char *path, int userns_fd, uint64_t propagation, struct err *e);

/* The same for the single mount at `path`, private. */
int idmap_mount(const char *path, int userns_fd, struct err *e);

/* Binds mapped versions of all mounts of the config, and its /dev/shm, to <folder>/<n>; *ret is the config
 * with these as sources, its list in the arena. each: mounts below a volume are listed separately, for
 * runtimes that otherwise omit them with a user namespace (crun 1.8). After an error some may be bound. */
enum err_code idmap_mounts(const struct rt_config *c, int userns_fd, const char *folder, bool each,
                           struct arena *arena, struct rt_config *ret, struct err *e) MUST_CHECK;
#endif
