/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder - the manifest folder as a source: by events, not by polling (but see base/watches.h); a complete
 * file acts at once.
 *
 * A file counts when it is renamed into the folder, closed after writing, or found at start.  Ignored: names
 * that begin with "." or "#", and editors' left-overs (*~, *.swp, *.swx, *.tmp, *.bak, *.orig, *.rej,
 * *.dpkg-*, *.rpm*, 4913).  Directories, FIFOs, sockets, devices, unreadable and over-long files
 * (API_FILE_MAX) are refused with one problem each and never opened in a way that can block.  Symlinks are
 * followed (Kubernetes' own ..data layout works: a folder that is itself a mounted ConfigMap).
 *
 * Rules.  The objects of a file with any problem are not applied; what the file held before stays in force
 * (an invalid edit leaves the running pod alone).  Removing the file removes its objects.  Two files (or
 * documents) naming one object: the first one seen stays, the other is a problem naming the first; when the
 * first goes, the other takes its place. The folder may be missing at start (its parents are watched until it
 * appears).  When the folder itself is removed or moved away the objects stay in force with one warning (an
 * unmounted disk must not end every pod); when it is back, its content decides.
 *
 * Loop thread only.
 */
#ifndef AGENT_SOURCE_FOLDER_H
#define AGENT_SOURCE_FOLDER_H
#include "agent/source/store.h"

#include <uv.h>

/* A file that was deleted or moved away counts as removed this much later: editors, git and others remove a
 * file and write it anew. */
#define SRC_FOLDER_SETTLE_MS 250
#define SRC_FOLDER_FILES_MAX 4096 /* more are left out with one warning; a node runs some hundred pods */
#define SRC_FOLDER_READS_MAX                                                                                 \
    2 /* files read and decoded at a time on the worker pool: other work needs it, too */

struct src_folder;

struct src_file {           /* one manifest file as people see it */
    const char *dir, *name; /* the folder, and the file's name in it */
    bool ok;                /* no problems */
    bool stale;             /* earlier content of it is still in force */
    const struct api_problem *problems;
    size_t n_problems;
    const struct api_object *in_force; /* from it */
    size_t n_objects;
    int64_t read_ns; /* wall clock of the last read */
};

/* Called after a file was read, unless it has the very problems that were told before: for logging and the
 * socket. */
typedef void (*src_file_fn)(const struct src_file *f, void *arg);

/*
 * Starts; the files are read on the worker pool.  When all of the first set are in the store,
 * src_store_set_ready() and first_set(arg) are called, always from the loop; a folder that is missing is an
 * empty first set. ERR_INVALID: dir is not an absolute path or not a folder.
 */
enum err_code src_folder_open(struct src_folder **ret, uv_loop_t *loop, const char *dir,
                              struct src_store *store, src_file_fn on_file, void (*first_set)(void *arg),
                              void *arg, struct err *e) MUST_CHECK;
/*
 * After a restart: what an earlier run had in force from file `name`, told before the loop turns again after
 * src_folder_open().  It counts until the file is read without problems, or is found to be gone: so an
 * invalid edit leaves the pod alone over a restart, too, and a folder that is missing now ends no pod.
 */
enum err_code src_folder_seed(struct src_folder *f, const char *name, struct api_pod *pod,
                              struct err *e) MUST_CHECK;
/* Name of the file whose pod this is; NULL: none. Borrowed until the loop turns. */
const char *src_folder_file_of_pod(const struct src_folder *f, const char *namespace_, const char *name);
/* Stops watching (the loop must run until what is being read is done); nothing is called any more; objects
 * stay in the store. */
void src_folder_close(struct src_folder *f);
/* Files are waiting to be read, or being read: what they hold may be in the store in a moment. */
bool src_folder_busy(const struct src_folder *f);
void src_folder_each(const struct src_folder *f, src_file_fn fn, void *arg); /* by name */
#endif
