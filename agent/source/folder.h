/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder - the manifest folder as a source: driven by events, not polling (but see base/files/watches.h); a
 * complete file takes effect at once.
 *
 * A file is read when it is renamed into the folder, closed after writing, or found at start. Ignored: names
 * that begin with "." or "#", and editors' leftovers (*~, *.swp, *.swx, *.tmp, *.bak, *.orig, *.rej,
 * *.dpkg-*, *.rpm*, 4913). Directories, FIFOs, sockets, devices, unreadable files and files beyond
 * API_FILE_MAX are rejected with one problem each, and never opened in a way that can block. Symlinks are
 * followed (Kubernetes' ..data layout works: the folder may be a mounted ConfigMap).
 *
 * Rules: If a file has any problem, none of its objects is applied, and its previous content still applies
 * (an invalid edit does not affect the running pod). Removing the file removes its objects. If two files (or
 * documents) define one object, the first one seen is used, and the other has a problem naming the first;
 * when the first is removed, the other is used. The folder may be missing at start (its parents are watched
 * until it appears). If the folder itself is removed or moved away, the objects still apply, with one warning
 * (an unmounted disk must not end every pod); when the folder is back, its content applies.
 *
 * Loop thread only.
 */
#ifndef AGENT_SOURCE_FOLDER_H
#define AGENT_SOURCE_FOLDER_H
#include "agent/source/store.h"
#include "base/list.h"

#include <uv.h>

/*
 * A file that disappears is treated as removed after this delay, because some programs remove a file to write
 * it again. The events of inotify distinguish two cases:
 *
 * - IN_MOVED_FROM, then IN_CREATE: the old file becomes a backup (emacs at its first save, vim where
 *   backupcopy allows it). These programs need a few milliseconds; a script in several steps needs more.
 * - IN_DELETE, then IN_CREATE: git checkout and stash, install, tar, cp --remove-destination. The file is
 *   missing for 0.1 to 2 ms. A removal is also the way to end a pod, and kubelet ends it at once; this delay
 *   is too short to matter. If the file is being written again by then, its new content applies. If a program
 *   takes longer, the pod ends and a new one starts. Because git may take longer (a busy machine, a filter
 *   that is another program), the longer delay applies while it holds the lock of its index.
 *
 * Other programs never remove the file. sed -i, perl -i, rsync, emacs with file-precious-flag and most
 * deployment tools rename a finished file over it; nano, ed, emacs after its first save, rsync --inplace and
 * vim with backupcopy=yes write into it.
 */
#define SRC_FOLDER_SETTLE_MS 250 /* renamed away, or missing without an event */
#define SRC_FOLDER_UNLINK_MS 10
#define SRC_FOLDER_FILES_MAX                                                                                 \
    4096 /* further files are ignored with one warning; a node runs a few hundred pods */
/* Files read and decoded concurrently on the worker pool, which has other work, too. */
#define SRC_FOLDER_READS_MAX 2

struct src_folder;

struct src_file {           /* a manifest file's public state */
    const char *dir, *name; /* the folder, and the file's name in it */
    bool ok;                /* no problems */
    bool stale;             /* its previous content still applies */
    const struct api_problem *problems;
    size_t n_problems;
    const struct api_object *in_force; /* objects from this file that apply */
    size_t n_objects;
    int64_t read_ns; /* wall clock of the last read */
};

/* Called after a file was read, unless its problems are the same as before: for logging and the socket. For a
 * file that only has objects of another file, such as the temporary file of sed -i before its rename, it is
 * called after SRC_FOLDER_SETTLE_MS if the file still exists. */
typedef void (*src_file_fn)(const struct src_file *f, void *arg);

/* Opens the folder; the files are read on the worker pool. When all of the first set are in the store,
 * src_store_set_ready() and first_set(arg) are called, always from the loop; for a missing folder the first
 * set is empty. `node_name` (borrowed): of a node that has joined a cluster, see api_decode_static(); NULL:
 * it has not. ERR_INVALID: dir is not an absolute path or not a folder. */
enum err_code src_folder_open(struct src_folder **ret, uv_loop_t *loop, const char *dir,
                              struct src_store *store, src_file_fn on_file, void (*first_set)(void *arg),
                              void *arg, const char *node_name, struct err *e) MUST_CHECK;
/* After a restart: adds a pod that an earlier run had applied from file `name`; called after
 * src_folder_open() and before the next turn of the loop. The pod applies until the file is read without
 * problems or is proven to be removed. So an invalid edit does not affect the pod across a restart, and a
 * folder that is missing at the start ends no pod. */
enum err_code src_folder_seed(struct src_folder *f, const char *name, struct api_pod *pod,
                              struct err *e) MUST_CHECK;
/* Name of the file that defines this pod, or NULL. Borrowed until the loop turns. */
const char *src_folder_file_of_pod(const struct src_folder *f, const char *namespace_, const char *name);
const char *src_folder_dir(const struct src_folder *f);
bool src_folder_full(const struct src_folder *f); /* whether it has SRC_FOLDER_FILES_MAX files */
/* Name of the file whose object applies, and the number of its objects; NULL: none. Borrowed until the loop
 * turns. `ret`: that file's object. */
const char *src_folder_home(const struct src_folder *f, enum api_kind kind, const char *namespace_,
                            const char *name, const struct api_object **ret, size_t *ret_n);
/* The state of a file; false: it is not in the table. */
bool src_folder_file(const struct src_folder *f, const char *name, struct src_file *ret);

/*
 * Waits until a file that was written or removed has been applied. The struct must stay valid until `fn` is
 * called: once, from the loop, also when the folder closes; possibly from within src_folder_await().
 */
enum src_awaited {
    SRC_AWAITED_READ, /* the present content of the file (or newer content) was read: see its problems */
    SRC_AWAITED_GONE, /* the file was removed, together with its objects, unless another file has them */
    SRC_AWAITED_LATE, /* the timeout passed, or the folder is closed */
};
/* `f` is NULL if the file is not in the table. */
typedef void (*src_await_fn)(enum src_awaited how, const struct src_file *f, void *arg);
struct src_await {
    TAILQ_ENTRY(src_await) all;
    src_await_fn fn;
    void *arg;
    bool gone;
    uint64_t read, seq, due_ms;
    char name[256];
};
/* `gone`: the file was removed; otherwise it was written. */
void src_folder_await(struct src_folder *f, struct src_await *a, const char *name, bool gone,
                      uint64_t timeout_ms, src_await_fn fn, void *arg);
void src_await_cancel(struct src_folder *f, struct src_await *a); /* fn is not called */

/* Stops watching (the loop must run until pending reads are done) and all callbacks; objects stay in the
 * store. */
void src_folder_close(struct src_folder *f);
/* Whether files are queued or being read, so that the store may change soon. */
bool src_folder_busy(const struct src_folder *f);
void src_folder_each(const struct src_folder *f, src_file_fn fn, void *arg); /* sorted by name */
#endif
