/*
 * idmap - a tree of files as the users of a user namespace have it: what root owns on the disk belongs to the
 * namespace's root, and so on (mount_setattr(2), MOUNT_ATTR_IDMAP).  It is a mount's property: the files stay
 * as they are.  For a child process that may block.
 */
#ifndef AGENT_RUNTIME_IDMAP_H
#define AGENT_RUNTIME_IDMAP_H
#include "agent/runtime/container.h"

/* The namespace that the config names; -1: error. */
int idmap_open(const struct rt_config *c, struct err *e);

/*
 * A mount of the tree at `path` with all mounts below it, seen so; attached nowhere, the caller closes it.
 * It shares what is mounted on it with the tree it comes from, unless `propagation` (MS_PRIVATE; 0) says
 * otherwise. -1: ERR_UNIMPLEMENTED where the kernel or a file system cannot (text: which path).
 */
int idmap_tree(const char *path, int userns_fd, uint64_t propagation, struct err *e);

/*
 * Binds every mount of the config, and its /dev/shm, seen so, to <folder>/<n>; *ret is the config with these
 * in place of its sources (*ret_mounts: its list, to be freed).  After an error some may be bound.
 */
enum err_code idmap_mounts(const struct rt_config *c, int userns_fd, const char *folder,
                           struct rt_config *ret, struct rt_mount **ret_mounts, struct err *e) MUST_CHECK;
#endif
