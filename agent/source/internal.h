/* SPDX-License-Identifier: Apache-2.0 */
/* internal - what the files of agent/source/ share among themselves.  Loop thread only but for
 * manifest_read(). */
#ifndef AGENT_SOURCE_INTERNAL_H
#define AGENT_SOURCE_INTERNAL_H
#include "agent/source/folder.h"
#include "base/list.h"
#include "base/watches.h"
#include "base/work.h"

/* ---- store.c: objects of any kind ------------------------------------------------------------ */
#define SRC_KEY_SIZE 400 /* "PriorityClass/" + namespace (63) + "/" + name (253) */

bool config_data_equal(const struct api_config *a, const struct api_config *b);
void src_key(char ret[SRC_KEY_SIZE], enum api_kind kind, const char *namespace_, const char *name);

/* ---- manifest.c: one file, on the worker pool ------------------------------------------------ */
struct manifest {     /* what one read of a file gave */
    char *dir, *name; /* in */
    struct api_objects objects;
    struct api_problems problems;
    bool missing;     /* there is no such name in the folder */
    bool lacking;     /* no memory, no descriptor, a bad disk: not the file's fault, read again later */
    bool torn;        /* written to while it was read: read again */
    char *target_dir; /* of a symlink: the folder and the name of what it leads to; NULL otherwise */
    char *target_name;
    int64_t read_ns;
};

bool manifest_ignored(const char *name); /* editors' and packagers' left-overs, hidden files */
/* A work_fn on a struct manifest.  Fails only without memory; everything else is in the result. */
enum err_code manifest_read(void *arg, struct err *e);
void manifest_done(struct manifest *m);

/* ---- object_claims.c: which file holds which object -------------------------------------------------- */
struct object_claim; /* one object and the file that it comes from */

struct object_claims {
    struct object_claim *table;
    struct src_store *store;
    size_t n_released;
    uint64_t releases; /* ever: a file that waits may try again */
    uint64_t generation;
};

struct holder { /* the part of a file that object_claims.c works with */
    const char *name;
    struct api_objects in_force; /* put into the store from this file */
    struct api_objects waiting;  /* good, but another file holds one of them */
    bool blocked;                /* `waiting` waits */
    bool leaving;                /* the file is gone; what it holds may be taken over by another */
    struct api_problems problems;
};

/*
 * Tries to make *objects (moved out) the ones that `h` holds.  False: another file holds one of them, an
 * immutable one is to change (h->problems says which), or there is no memory; what was in force stays.
 * `take_over`: from files that are leaving. Objects that h held and holds no more are released as
 * object_claims_release() does.
 */
bool object_claims_adopt(struct object_claims *c, struct holder *h, struct api_objects *objects,
                         bool take_over, uint64_t seq);
/* h holds nothing any more.  The objects go from the store with object_claims_flush(), if nobody took them by
 * then.
 */
void object_claims_release(struct object_claims *c, struct holder *h, uint64_t seq);
/* Removes from the store what was released with a seq below `before`. */
void object_claims_flush(struct object_claims *c, uint64_t before);
/* Name of the file that holds it; NULL: none. */
const char *object_claims_owner(const struct object_claims *c, enum api_kind kind, const char *namespace_,
                                const char *name);
void object_claims_done(struct object_claims *c); /* the store stays as it is */

/* ---- the folder: folder.c, file.c, reads.c, watch.c --------------------------------------------- */
enum { LACKING_RETRY_MS = 2000 /* after a read that failed for want of memory or descriptors */ };

struct file {
    UT_hash_handle hh;
    struct src_folder *folder;
    struct holder holder;
    uint64_t seen;     /* order of arrival, for files that wait for an object */
    uint64_t gone_ms;  /* when its absence counts, 0: it is there */
    uint64_t retry_ms; /* when to read it again, 0: not */
    unsigned torn;     /* reads in a row that a writer spoiled */
    bool queued, reading, again;
    bool read; /* the worker is done, the result waits for its turn; `reading` until it is applied */
    struct err result;
    uint64_t seq;        /* of the read that is pending */
    uint64_t report_seq; /* to be told when the reads up to this one are done, 0: not: another file may let go
                            by then */
    uint64_t scan;       /* the last folder_rescan() that saw it */
    TAILQ_ENTRY(file) pending;
    struct work work;
    struct manifest manifest;
    int target_wd; /* watch on the folder that a symlink leads to; -1: none */
    char *target_name;
    int64_t read_ns; /* 0: not read yet */
    uint64_t told;   /* hash of the problems that were reported last; 0: none */
    char name[];
};

enum watch_state {
    WATCH_FOLDER,  /* the folder is there and watched */
    WATCH_PARENTS, /* it is not: its nearest existing parent is watched */
    WATCH_BARE, /* it was unmounted: what the mount had covered is not the folder, unless somebody writes to
                   it */
};

struct src_folder {
    uv_loop_t *loop;
    char *dir;
    struct src_store *store;
    src_file_fn on_file;
    void (*first_set)(void *arg);
    void *arg;

    struct file *files; /* by name */
    size_t n_files;
    struct object_claims claims;
    TAILQ_HEAD(, file) pending; /* queued or being read, by seq */
    uint64_t last_seq, first_seq;
    uint64_t arrivals, scans, retried;
    uint64_t
        rescan_ms; /* when to look at the whole folder again, since some name could not be taken in; 0: not */
    uint64_t unseen_wait_ms; /* back-off while the folder cannot be looked at; 0: it can */
    size_t n_reading;
    bool listed; /* the last scan saw all names: what it did not see was missing */
    bool first_done, full;

    enum watch_state state;
    struct watch_set *watches;
    int folder_wd, parent_wd;
    bool uncovered; /* its disk was unmounted, and what it had covered could not be looked at yet */
    dev_t dev;      /* of the folder that is (or was) watched; in WATCH_BARE of the bare one */
    ino_t ino;
    uint64_t mount_id; /* that the folder is on; 0: not known */
    int mounts_fd;
    uv_poll_t mounts_poll;
    uv_timer_t timer; /* for gone_ms, retry_ms and the first set */
    int open_handles;
    bool closing;
};

/* folder.c: when things count */
void folder_touched(struct src_folder *f, const char *name); /* complete (again): read it */
void folder_retouched(struct src_folder *f,
                      const char *name); /* permissions, times, links: may mend a file with problems */
void folder_missing(struct src_folder *f,
                    const char *name); /* moved away or deleted: counts after SRC_FOLDER_SETTLE_MS */
void folder_rescan(struct src_folder *f);
/* Something of the folder could not be taken in, for lack of memory or descriptors. */
void folder_rescan_later(struct src_folder *f);
/* A look at the folder or at a file of it failed: nothing is taken for gone, and all is looked at again. */
void folder_unseen(struct src_folder *f, const struct err *e);
void folder_lost(struct src_folder *f); /* the folder itself is gone: nothing that is missing counts */
/* What is due by now: files that stay away, second reads; then all that follows from it. */
void folder_settle(struct src_folder *f);
void folder_handle_closed(uv_handle_t *handle);
void folder_end(struct src_folder *f); /* in closing: frees it when nothing is under way any more */

/* file.c */
struct file *file_find(struct src_folder *f, const char *name); /* NULL: not one of the folder's */
/* NULL: there are too many, or no memory; it was said, and without memory the folder is looked at again. */
struct file *file_find_or_add(struct src_folder *f, const char *name);
void file_remove(struct file *file); /* and what it held */
void file_free(struct file *file);   /* in closing: what it held stays in the store */
bool problems_any(const struct api_problems *p);
void file_report(struct file *file); /* to on_file, unless it was told before */

/* reads.c */
void reads_queue(struct file *file);    /* once more, when a read of it is under way */
void reads_start(struct src_folder *f); /* those that are queued, as many as may be under way */

/* watch.c */
enum err_code watch_open(struct src_folder *f, struct err *e) MUST_CHECK;
void watch_close(
    struct src_folder *f); /* its handles are counted in open_handles; folder_handle_closed() follows */
bool watch_check(struct src_folder *f); /* is the path still the folder that is watched?  False: unknown */
/* The folder that a symlink leads to; NULL: none.  True: it is another one than so far, what happened in it
 * before is not known. */
bool watch_target(struct src_folder *f, struct file *file, const char *dir);
#endif
