/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etc_files - /etc/projects and /etc/projid, locked together as kubelet does: flock(2), projects first.
 *
 * Missing files are made, 0644. Anything but a regular file is refused, symlinks included. A holder of the
 * locks is waited for up to two seconds. Changes go into a new file that replaces the old one, projid first,
 * so the lock on projects covers both replacements. Blocking.
 */
#ifndef VOLUMES_QUOTA_ETC_FILES_H
#define VOLUMES_QUOTA_ETC_FILES_H
#include "base/scope.h"
#include "volumes/quota/etc_edit.h"

#include <sys/types.h>

#define ETC_FILE_MAX (16 << 20) /* bytes: some hundred thousand lines */

struct etc_file {
    const char *path; /* borrowed */
    int fd;           /* locked */
    mode_t mode;
    char *text;
    size_t n;
};
struct etc_files {
    struct etc_file file[2]; /* by enum etc_kind */
};

/* Locks and reads both. ERR_UNAVAILABLE: locked by others all the time; ERR_PRECONDITION: not a file. */
enum err_code etc_files_lock(struct etc_files **ret, const char *projects_file, const char *projid_file,
                             struct err *e) MUST_CHECK;
struct str etc_files_text(const struct etc_files *f, enum etc_kind kind);
/* Edits both (etc_edit()); a file that stays the same is not written. By enum etc_kind. */
enum err_code etc_files_edit(struct etc_files *f, const struct etc_lines drop[2],
                             const struct etc_lines keep[2], struct err *e) MUST_CHECK;
void etc_files_unlock(struct etc_files *f); /* NULL is fine */
SCOPE_DEFINE(struct etc_files, etc_files_unlock)
#endif
