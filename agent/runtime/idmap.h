/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap - a tree of files as the users of a user namespace have it: what root owns on the disk belongs to the
 * namespace's root, and so on (mount_setattr(2), MOUNT_ATTR_IDMAP).  It is a mount's property: the files stay
 * as they are.  For a child process that may block.
 */
#ifndef AGENT_RUNTIME_IDMAP_H
#define AGENT_RUNTIME_IDMAP_H
#include "agent/runtime/container.h"
#include "base/arena.h"

/* The user namespace that is pinned at `userns`; -1: error. */
int idmap_open(const char *userns, struct err *e);

/*
 * A mount of the tree at `path` with all mounts below it, seen so; attached nowhere, the caller closes it.
 * propagation: MS_PRIVATE, or MS_SLAVE, where what is mounted below `path` later shows in it, too (unmapped).
 * Never 0: taking it away would take away what it shares with its source.  -1: ERR_UNIMPLEMENTED where the
 * kernel or a file system cannot; the text names the file system and where it is mounted.
 */
int idmap_tree(const char *path, int userns_fd, uint64_t propagation, struct err *e);

/* The same of the one mount at `path`, private. */
int idmap_mount(const char *path, int userns_fd, struct err *e);

/*
 * Binds every mount of the config, and its /dev/shm, seen so, to <folder>/<n>; *ret is the config with these
 * in place of its sources, its list in the arena.  each: a mount below a volume's is listed by itself, for a
 * runtime that leaves those out where there is a user namespace (crun 1.8).  After an error some may be
 * bound.
 */
enum err_code idmap_mounts(const struct rt_config *c, int userns_fd, const char *folder, bool each,
                           struct arena *arena, struct rt_config *ret, struct err *e) MUST_CHECK;
#endif
