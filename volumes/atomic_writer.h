/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic_writer - publish a set of small files into a volume directory so that a reading container sees
 * either the whole old set or the whole new set, never a mix.  ConfigMap, Secret, downwardAPI and projected
 * volumes share it.  Layout it keeps (kubelet's):
 *
 *     <target>/..2026_03_01_10_00_00.4711/   the files of one generation
 *     <target>/..data                        symlink to the current generation
 *     <target>/<file>                        symlink to ..data/<file>
 *
 * Publishing fills a new generation and renames a fresh symlink over "..data"; that rename is the only moment
 * readers can notice.  All that a full disk can refuse is made before it.  Left-overs of a killed run (extra
 * generations, ..data_tmp, ..link_tmp.*) are removed by the next publish.  Blocking, short.
 */
#ifndef VOLUMES_ATOMIC_WRITER_H
#define VOLUMES_ATOMIC_WRITER_H
#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vol_file {
    const char *path; /* relative, "a/b"; no "..", no leading "/", must not start with ".."; borrowed */
    const void *data; /* borrowed until publish returns */
    size_t size;
    mode_t mode; /* exact, no umask */
    bool has_owner;
    uid_t owner; /* of the file, when it has one; else root */
};

struct vol_writer; /* one target directory */

/* Opens `target`, which exists already.  The caller owns *ret: vol_writer_free(). */
enum err_code vol_writer_open(struct vol_writer **ret, const char *target, struct err *e) MUST_CHECK;

/*
 * Makes `files` the visible content and removes paths no longer listed.  fs_group: -1 none, else kubelet's
 * rule for read-only volumes (group set, files |= 0440, folders |= 02550).  *ret_changed says whether
 * anything was written, also when an old path could not be removed; an equal set touches nothing (modes are
 * compared, too).  Later entries of the same path win.
 * ERR_INVALID: a path is unsafe, nothing was written.
 * ERR_EXHAUSTED: disk full, the old generation is still visible.
 */
enum err_code vol_writer_publish(struct vol_writer *w, const struct vol_file *files, size_t n_files,
                                 int64_t fs_group, bool *ret_changed, struct err *e) MUST_CHECK;
/*
 * How long a superseded generation stays, so that who followed "..data" just before the switch finds its
 * files; 0, the default: not at all, as in kubelet.  Bounded by VOL_KEEP_BYTES, and they give way on a full
 * disk.
 */
void vol_writer_keep(struct vol_writer *w, uint64_t keep_ms);
/* After publish or tidy: some stand still; call vol_writer_tidy() when that time is over. */
bool vol_writer_kept(const struct vol_writer *w);
void vol_writer_tidy(struct vol_writer *w);
void vol_writer_free(struct vol_writer *w);
SCOPE_DEFINE(struct vol_writer, vol_writer_free)
#endif
