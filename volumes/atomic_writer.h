/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic_writer - publishes a set of small files in a volume directory so that a reading container sees
 * either the whole old set or the whole new set, never a mix. Shared by ConfigMap, Secret, downwardAPI and
 * projected volumes. The layout is kubelet's:
 *
 *     <target>/..2026_03_01_10_00_00.4711/   the files of one generation
 *     <target>/..data                        symlink to the current generation
 *     <target>/<file>                        symlink to ..data/<file>
 *
 * Publishing fills a new generation and renames a fresh symlink over "..data", which is the only moment
 * readers can notice. Everything that can fail on a full disk happens before. Left-overs of a killed run
 * (extra generations, ..data_tmp, ..link_tmp.*) are removed by the next publish. Blocking, short.
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
    uid_t owner; /* the owner, if the file has one; otherwise root */
};

struct vol_writer; /* one target directory */

/* Opens the existing folder `target`. The caller owns *ret: vol_writer_free(). */
enum err_code vol_writer_open(struct vol_writer **ret, const char *target, struct err *e) MUST_CHECK;

/*
 * Makes `files` the visible content and removes paths no longer listed. fs_group: -1 none, else kubelet's
 * rule for read-only volumes (group set, files |= 0440, folders |= 02550). *ret_changed says whether anything
 * was written, also when an old path could not be removed; an equal set touches nothing (modes are compared,
 * too). Later entries of the same path win. ERR_INVALID: a path is unsafe, nothing was written.
 * ERR_EXHAUSTED: disk full, the old generation is still visible.
 */
enum err_code vol_writer_publish(struct vol_writer *w, const struct vol_file *files, size_t n_files,
                                 int64_t fs_group, bool *ret_changed, struct err *e) MUST_CHECK;
/* How long a superseded generation is kept for readers that followed "..data" just before the switch; 0, the
 * default: not at all, as in kubelet. Limited by VOL_KEEP_BYTES; on a full disk they are removed at once. */
void vol_writer_keep(struct vol_writer *w, uint64_t keep_ms);
/* Whether publish or tidy kept some; call vol_writer_tidy() when their time is over. */
bool vol_writer_kept(const struct vol_writer *w);
void vol_writer_tidy(struct vol_writer *w);
void vol_writer_free(struct vol_writer *w);
SCOPE_DEFINE(struct vol_writer, vol_writer_free)
#endif
