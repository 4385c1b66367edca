/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/source. Loop thread only, except manifest_read(). */
#ifndef AGENT_SOURCE_INTERNAL_H
#define AGENT_SOURCE_INTERNAL_H
#include "agent/source/folder.h"
#include "base/files/watches.h"
#include "base/list.h"
#include "base/work.h"

/* ---- store.c: objects of any kind ---- */
#define SRC_KEY_SIZE 400 /* "PriorityClass/" + namespace (63) + "/" + name (253) */

bool config_data_equal(const struct api_config *a, const struct api_config *b);
void src_key(char ret[SRC_KEY_SIZE], enum api_kind kind, const char *namespace_, const char *name);

/* ---- manifest.c: one file, on the worker pool ---- */
struct manifest {          /* the result of one read of a file */
    char *dir, *name;      /* in */
    const char *node_name; /* in: see src_folder_open() */
    struct api_objects objects;
    struct api_problems problems;
    bool missing; /* no such name in the folder */
    bool lacking; /* no memory, no descriptor, or a disk error: not a problem of the file; it is read again
                     later */
    bool torn;    /* written to while being read: read again */
    /* For a symlink: folder and name of its target; otherwise NULL. */
    char *target_dir;
    char *target_name;
    int64_t read_ns;
};

/* A work_fn on a struct manifest. Fails only when out of memory; everything else is in the result. */
enum err_code manifest_read(void *arg, struct err *e);
void manifest_done(struct manifest *m);

/* ---- object_claims.c: the file that defines an object ---- */
struct object_claim; /* an object and its file */

struct object_claims {
    struct object_claim *table;
    struct src_store *store;
    size_t n_released;
    uint64_t releases; /* total number; a change makes waiting files retry */
    uint64_t generation;
};

struct holder { /* the part of a file used by object_claims.c */
    const char *name;
    struct api_objects in_force; /* put in the store from this file */
    struct api_objects waiting;  /* valid, but another file defines one of these objects */
    bool blocked;                /* `waiting` is not empty */
    bool leaving;                /* the file was removed; another file may adopt its objects */
    struct api_problems problems;
};

/*
 * Tries to make `h` the owner of *objects (moved out). False: another file defines one of them, an immutable
 * object would change (h->problems has the reason), or out of memory; the previous objects still apply.
 * `take_over`: also adopts objects of files that are leaving. Objects that h no longer defines are released
 * as by object_claims_release().
 */
bool object_claims_adopt(struct object_claims *c, struct holder *h, struct api_objects *objects,
                         bool take_over, uint64_t seq);
/* Releases all objects of h. object_claims_flush() removes them from the store unless they have a new owner
 * by then. */
void object_claims_release(struct object_claims *c, struct holder *h, uint64_t seq);
/* Removes from the store the objects that were released with a seq below `before`. */
void object_claims_flush(struct object_claims *c, uint64_t before);
/* Name of the defining file, or NULL. */
const char *object_claims_owner(const struct object_claims *c, enum api_kind kind, const char *namespace_,
                                const char *name);
void object_claims_done(struct object_claims *c); /* the store stays as it is */

/* ---- the folder: folder.c, file.c, reads.c, watch.c ---- */
enum { LACKING_RETRY_MS = 2000 /* after a read failed for lack of memory or descriptors */ };

struct file {
    UT_hash_handle hh;
    struct src_folder *folder;
    struct holder holder;
    uint64_t seen;     /* order of arrival, for files that wait for an object */
    uint64_t gone_ms;  /* when it is considered removed; 0: it exists */
    uint64_t retry_ms; /* when to read it again; 0: never */
    unsigned torn;     /* consecutive reads disturbed by a writer */
    bool queued, reading, again;
    uint64_t reads_begun, reads_applied;
    bool read; /* the worker is done, the result waits for its turn; `reading` until it is applied */
    struct err_kept result;
    uint64_t seq; /* of the pending read */
    /* Report when the reads up to this one are done, because another file may release the object by then; 0:
     * nothing to report. */
    uint64_t report_seq;
    uint64_t report_ms; /* and not before this time; a file that was removed by then is not reported */
    uint64_t scan;      /* the last folder_rescan() that saw it */
    TAILQ_ENTRY(file) pending;
    struct work work;
    struct manifest manifest;
    int target_wd; /* watch on the folder of a symlink's target; -1: none */
    char *target_name;
    int64_t read_ns; /* 0: not read yet */
    uint64_t told;   /* hash of the problems reported last; 0: none */
    char name[];
};

enum watch_state {
    WATCH_FOLDER,  /* the folder exists and is watched */
    WATCH_PARENTS, /* it does not; its nearest existing parent is watched */
    /* The folder's disk was unmounted: the folder underneath is not the manifest folder, unless a program
     * writes to it. */
    WATCH_BARE,
};

struct src_folder {
    uv_loop_t *loop;
    char *dir;
    struct src_store *store;
    src_file_fn on_file;
    void (*first_set)(void *arg);
    void *arg;
    const char *node_name;

    struct file *files; /* by name */
    size_t n_files;
    struct object_claims claims;
    TAILQ_HEAD(, file) pending; /* queued or being read, by seq */
    uint64_t last_seq, first_seq;
    uint64_t arrivals, scans, retried;
    /* When to read the whole folder again, because a name could not be added; 0: never. */
    uint64_t rescan_ms;
    uint64_t unseen_wait_ms; /* back-off while the folder cannot be read; 0: it can */
    TAILQ_HEAD(, src_await) awaits;
    size_t n_reading;
    bool listed; /* the last scan was complete: names it did not see are missing */
    bool first_done, full;

    enum watch_state state;
    struct watch_set *watches;
    int folder_wd, parent_wd;
    bool uncovered; /* its disk was unmounted, and the folder underneath could not be examined yet */
    dev_t dev;      /* of the watched folder; in WATCH_BARE of the one underneath */
    ino_t ino;
    uint64_t mount_id; /* the folder's mount; 0: unknown */
    int mounts_fd;
    uv_poll_t mounts_poll;
    uv_timer_t timer; /* for gone_ms, retry_ms and the first set */
    int open_handles;
    bool closing;
};

/* folder.c: timing */
void folder_touched(struct src_folder *f, const char *name); /* complete (again): read it */
void folder_retouched(struct src_folder *f,
                      const char *name); /* permissions, times, links: may fix a file with problems */
/* The file was moved away or deleted: this takes effect after `wait_ms`, unless the file exists again by
 * then. */
void folder_missing(struct src_folder *f, const char *name, uint64_t wait_ms);
void folder_rescan(struct src_folder *f);
/* An entry of the folder could not be added, for lack of memory or descriptors. */
void folder_rescan_later(struct src_folder *f);
/* The folder or a file in it could not be examined: no file is considered removed, and all are checked again.
 */
void folder_unseen(struct src_folder *f, const struct err *e);
/* The folder itself disappeared: missing files are not treated as deletions. */
void folder_lost(struct src_folder *f);
/* Handles all events that are due: files that stay missing, second reads, and the consequences. */
void folder_settle(struct src_folder *f);
void folder_settle_soon(struct src_folder *f); /* in the next turn of the loop */
void folder_handle_closed(uv_handle_t *handle);
void folder_end(struct src_folder *f); /* when closing: frees it once nothing is in progress */

/* file.c */
struct file *file_find(struct src_folder *f, const char *name); /* NULL: not in the table */
/* NULL: too many files, or out of memory; this was logged, and when out of memory the folder will be read
 * again. */
struct file *file_find_or_add(struct src_folder *f, const char *name);
void file_remove(struct file *file); /* and its objects */
void file_free(struct file *file);   /* when closing: its objects stay in the store */
bool problems_any(const struct api_problems *p);
void file_report(struct file *file); /* calls on_file, unless already reported */

struct src_file src_file_describe(const struct file *file);

/* await.c */
/* Ends the waits that are over; `done`: reads before this one are applied. Returns the time of the next check
 * (monotonic clock); UINT64_MAX: only after an event. */
uint64_t awaits_settle(struct src_folder *f, uint64_t done);
void awaits_close(struct src_folder *f);

/* reads.c */
void reads_queue(struct file *file);    /* reads the file again if a read is in progress */
void reads_start(struct src_folder *f); /* starts queued reads up to the limit */

/* watch.c */
enum err_code watch_open(struct src_folder *f, struct err *e) MUST_CHECK;
void watch_close(
    struct src_folder *f); /* its handles are counted in open_handles; folder_handle_closed() follows */
/* whether the path still leads to the watched folder; false if unknown */
bool watch_check(struct src_folder *f);
/* Watches the folder of a symlink's target; NULL: none. True if the watched folder changed, so that earlier
 * events in it were missed. */
bool watch_target(struct src_folder *f, struct file *file, const char *dir);
#endif
