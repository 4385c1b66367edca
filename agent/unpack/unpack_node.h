/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_node - what is written onto one file or folder that a tar entry made: data, owner, mode, attributes,
 * time.  All on descriptors; `path` is for messages.
 */
#ifndef AGENT_UNPACK_UNPACK_NODE_H
#define AGENT_UNPACK_UNPACK_NODE_H
#include "agent/unpack/unpack.h"

#include <sys/stat.h>

struct unpack_meta {
    uid_t uid;
    gid_t gid;
    mode_t mode; /* permission bits with setuid, setgid, sticky */
    struct timespec mtime;
};

/* ERR_INVALID: owner out of range. */
enum err_code unpack_meta_read(struct unpack_meta *ret, struct archive_entry *entry, const char *path,
                               struct err *e) MUST_CHECK;
bool unpack_attribute_is_kept(const char *name);
/* Owner, then mode (chown clears setuid), then the kept attributes (chown clears capabilities); not the time.
 */
enum err_code unpack_meta_apply(const struct unpack_meta *m, int fd, struct archive_entry *entry,
                                const char *path, struct err *e) MUST_CHECK;
/* Of fd (leaf NULL), or of the leaf in the folder fd without following it. */
enum err_code unpack_set_time(int fd, const char *leaf, struct timespec mtime, const char *path,
                              struct err *e) MUST_CHECK;
#define UNPACK_OPAQUE_ATTRIBUTE "trusted.overlay.opaque"
/* overlayfs: nothing of the lower layers shows in this folder. */
enum err_code unpack_set_opaque(int fd, const char *path, struct err *e) MUST_CHECK;
bool unpack_is_opaque(int fd);
bool unpack_is_whiteout(const struct stat *st); /* overlayfs': device 0/0 */
/* The entry's data, holes kept, exactly `size` bytes long in the end. */
enum err_code unpack_copy_data(struct archive *a, int fd, int64_t size, const char *path,
                               struct err *e) MUST_CHECK;
#endif
