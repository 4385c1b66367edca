/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_node - writes data, owner, mode, attributes and time of a tar entry to the file or folder created
 * for it. All functions work on descriptors; `path` is used in messages only.
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
/*
 * Sets the owner, then the mode (chown clears setuid), then the kept attributes (chown clears capabilities).
 * Does not set the time.
 */
enum err_code unpack_meta_apply(const struct unpack_meta *m, int fd, struct archive_entry *entry,
                                const char *path, struct err *e) MUST_CHECK;
/* Sets the time of fd (leaf is NULL), or of `leaf` in the folder fd; a link is not followed. */
enum err_code unpack_set_time(int fd, const char *leaf, struct timespec mtime, const char *path,
                              struct err *e) MUST_CHECK;
#define UNPACK_OPAQUE_ATTRIBUTE "trusted.overlay.opaque"
/* Marks the folder so that overlayfs shows nothing of the lower layers in it. */
enum err_code unpack_set_opaque(int fd, const char *path, struct err *e) MUST_CHECK;
bool unpack_is_opaque(int fd);
bool unpack_is_whiteout(const struct stat *st); /* overlayfs' form: device 0/0 */
/* Writes the entry's data and keeps its holes; the file ends up exactly `size` bytes long. */
enum err_code unpack_copy_data(struct archive *a, int fd, int64_t size, const char *path,
                               struct err *e) MUST_CHECK;
#endif
