/* SPDX-License-Identifier: Apache-2.0 */
/* image_internal - what the image_*.c files share; image.h is the manual. */
#ifndef AGENT_IMAGE_IMAGE_INTERNAL_H
#define AGENT_IMAGE_IMAGE_INTERNAL_H
#include "agent/image/image.h"
#include "agent/image/registry_auth.h"
#include "agent/image/registry_names.h"

#include "base/list.h"
#include "base/work.h"

#define IMG_MAX_IMAGES 10000 /* as many as a store may hold; a node has tens */
#define IMG_MAX_NAMES 20000
#define IMG_MAX_LAYERS 128        /* as coracle-unpack's */
#define IMG_MAX_VOLUMES 100       /* likewise */
#define IMG_RECORD_MAX (8u << 20) /* a configuration may have 4 MiB, JSON escapes some of it */
#define IMG_DEFAULT_BYTES (16ull << 30)
#define IMG_DEFAULT_PARALLEL 4               /* containerd's 3 for one registry, and one for the others */
#define IMG_DEFAULT_STALL_MS (5 * 60 * 1000) /* as containerd's image_pull_progress_timeout */
#define IMG_RESERVE_BYTES (64u << 20)        /* must stay free on the store's file system */
#define IMG_USAGE_PERIOD_MS 1000             /* how often a download's size is looked at */

/* A record of an image is about to be written: one at a time, so that none undoes what another one says. */
struct img_writer {
    void (*begin)(struct img_writer *w);
    TAILQ_ENTRY(img_writer) more;
};
TAILQ_HEAD(img_writers, img_writer);

struct img_entry { /* one image of the store */
    struct img_image *image;
    unsigned held;     /* tasks that need it as it is */
    UT_hash_handle hh; /* by image->id */
};

struct img_name { /* one name */
    char *name;
    char file[65]; /* refs/<file>.json */
    char *digest;  /* what the registry said when it was pulled; NULL: imported */
    struct img_entry *entry;
    UT_hash_handle hh; /* by name */
};

TAILQ_HEAD(img_jobs, img_job);
TAILQ_HEAD(img_task_runs, img_task_run);
TAILQ_HEAD(img_unreads, img_unread);

struct img_looks { /* those that failed (image_look.c) */
    struct img_unreads unread;
    bool lost;        /* no memory to note one: nothing is removed before the next start */
    struct err why;   /* the last one */
    int64_t since_ns; /* wall clock; 0: none failed since all was seen */
    struct boot_time retry_at;
    uint64_t wait_ms;
    uv_timer_t timer;
};

struct img_store {
    uv_loop_t *loop;
    char *dir, *unpack_path, *skopeo_path, *tmpfs_dir, *ops_cgroup_procs, *registries_conf, *auth_file;
    int ops_cgroup_fd;
    uint64_t max_bytes, stall_ms;
    unsigned max_parallel, max_per_registry;

    char *run_dir, *pods_dir; /* of what is mounted */
    struct img_looks looks;
    bool confine;
    uid_t pull_uid; /* skopeo's user; 0: root, as the daemon */
    gid_t pull_gid;
    bool said_damaged, loading, have_rubbish;
    unsigned damaged; /* image records that were set aside and not replaced since: layers may be theirs */
    struct reg_names short_names;
    struct err names_unknown; /* why short_names may lack some */
    int refs_fd, images_fd, layers_fd, parts_fd, tmp_fd;
    struct img_entry *images;
    struct img_name *names;
    void (*on_added)(const char *name, void *arg);
    void *on_added_arg;

    enum img_verify verify;
    char **verify_not; /* ends with NULL; NULL: none */
    unsigned char proof_key[SIPHASH_KEY_SIZE];

    struct img_writers writers; /* the first one writes, others wait */
    struct img_jobs jobs;       /* waiting and running, oldest first */
    struct img_task_runs tasks;
    unsigned running, copying;
    uint64_t jobs_begun, copies_begun;
    bool have_blobs, blobs_bad, closing;
    uint64_t blobs_until_ms; /* kept for another try; 0: not */
    char *blobs_for;         /* the key of what failed last */
    uv_timer_t usage;        /* while something is being copied, or blobs are kept */
    unsigned n_timers;       /* that are not closed yet */
};

#define IMG_CONFIG ".config" /* parts/<hex>.config */

/* ---- image_record.c -------------------------------------------------------------------------- */
/* "sha256:" + 64 lower-case hex digits. */
bool img_digest_is_valid(const char *digest);
/* Of an image's or a name's record.  None is 1; ERR_INVALID: a newer one than this program knows. */
#define IMG_RECORD_VERSION 1
enum err_code img_record_version(const json_t *record, struct err *e) MUST_CHECK;
/* From a record of ours or of coracle-unpack; everything is checked. ERR_INVALID, ERR_EXHAUSTED (memory). */
enum err_code img_record_decode(const json_t *record, const char *store_dir, struct img_image **ret,
                                struct err *e) MUST_CHECK;
/* The record as written to images/<hex>.json; NULL: no memory. */
json_t *img_record_encode(const struct img_image *i);
/* "r.io:5000/team/web:1@sha256:..." -> the length of "r.io:5000/team/web". */
size_t img_repository(const char *name);
/* Name of a layer's folder: the last element of layer_dirs[n]. */
const char *img_layer_name(const struct img_image *i, size_t n);

/* ---- image_query.c --------------------------------------------------------------------------- */
/* ERR_NOT_FOUND with the text that people see. */
enum err_code img_find_reference(struct img_store *s, const char *reference, struct img_entry **ret,
                                 struct err *e) MUST_CHECK;
/* Names of an entry, sorted. */
json_t *img_names_of(struct img_store *s, const struct img_entry *entry);

/* ---- image_task.c: something done with images that are there --------------------------------- */
struct img_task_run {
    struct img_task *task;
    struct img_store *store;
    op_done_fn done; /* the caller's */
    struct img_entry **held;
    size_t n_held;
    bool of_all;
    uint64_t jobs_before; /* that had begun when it did */
    json_t *answer;
    struct proc proc;
    struct work work;
    struct img_writer writer;
    bool pin;
    char file[80], *text; /* the record being written */
    char *name, *auth;    /* image_access.c: what is asked */
    struct reg_tries tries;
    TAILQ_ENTRY(img_task_run) more;
};
/* Begins the operation and holds the images it is about; NULL: it has failed and done will say so. */
struct img_task_run *img_task_begin(struct img_task *t, struct img_store *s, const char *name,
                                    const char *reference, uint64_t deadline_ms, op_done_fn done,
                                    void *owner);
void img_task_end(struct img_task_run *run, const struct err *result);

/* ---- image_store.c --------------------------------------------------------------------------- */
struct img_entry *img_find(struct img_store *s, const char *id);
/* Adds the image, or finds the one that is there (whose digest it may complete); NULL and *e: full. */
struct img_entry *img_keep(struct img_store *s, struct img_image *image, struct err *e) MUST_CHECK;
/* Points a name to an entry. */
enum err_code img_keep_name(struct img_store *s, const char *name, const char *file, const char *digest,
                            struct img_entry *entry, struct err *e) MUST_CHECK;
void img_drop_name(struct img_store *s, struct img_name *n);
void img_drop(struct img_store *s, struct img_entry *entry);
/* Frees a closed store once nothing is under way. */
void img_store_settle(struct img_store *s);
/* Reads a record of images/ or refs/ into the tables.  A damaged one is set aside, one that cannot be read is
 * looked at again. */
void img_load_record(struct img_store *s, int dir, const char *file);

/* ---- image_look.c: what could not be looked at ------------------------------------------------- */
/* Nothing is removed before a look succeeds; the next one comes after a back-off of 50 ms, doubled to 60 s.
 */
void img_look_again(struct img_store *s, const struct err *why);
void img_look_over(struct img_store *s); /* everything was seen */
/* A record that is there, or may be, and was not read: <hex>.json of images_fd or refs_fd. */
void img_unread_add(struct img_store *s, int dir, const char *file, const struct err *why);
bool img_unread_has(const struct img_store *s, int dir, const char *hex);
void img_unread_forget(struct img_store *s, int dir, const char *hex); /* it was replaced */
/* Reads which registries short names stand for. */
void img_look_at_names(struct img_store *s);
bool img_unread_any(const struct img_store *s);
void img_unread_free(struct img_store *s);
/* img_each_entry() and the unread records, several times within a third of a second: for the start. */
typedef void (*img_entry_fn)(struct img_store *s, const char *name);
enum err_code img_list_surely(struct img_store *s, int dir, const char *name, img_entry_fn fn,
                              struct err *e) MUST_CHECK;
void img_read_surely(struct img_store *s);

/* ---- image_mounted.c --------------------------------------------------------------------------- */
/* ERR_PRECONDITION: an image is mounted that the store does not know; any other error: that is not known. */
enum err_code img_check_mounted(struct img_store *s, struct err *e) MUST_CHECK;

/* ---- image_rubbish.c ------------------------------------------------------------------------- */
/* Removes layers that no image has: at once, or when the last bring is over. */
void img_collect(struct img_store *s);
/* tmp/<name> goes, in the background. */
void img_trash(struct img_store *s, const char *name);
/* What an earlier run left; a name of its own at once, for the old one may be used again before it is gone.
 */
void img_trash_leftover(struct img_store *s, const char *name);
/* Calls fn for each entry of a folder but "." and "..", or for none where not all of them can be listed.  fn
 * may rename. */
enum err_code img_each_entry(struct img_store *s, int dir, void (*fn)(struct img_store *s, const char *name),
                             struct err *e) MUST_CHECK;
/* "<64 hex><ending>" -> the hex part; false for anything else. */
bool img_named_by_hex(const char *file, const char *ending, char hex[65]);

/* ---- image_bring.c --------------------------------------------------------------------------- */
/* Its job is over: done, or the next name that the reference may stand for. */
void img_bring_answer(struct img_bring_run *run, const struct err *result);

/* ---- image_job.c: one source being brought, for one or several that wait for it -------------- */
struct img_named { /* what a job found: a name and the file for it */
    char *name;
    char file[65];
    bool written; /* its record is on the disk */
};

struct img_found {
    struct img_image *image;
    struct img_named *names;
    size_t n_names;
    json_t *pulled_for; /* what the record says of it from now on; NULL: as before */
};

enum img_job_state {
    JOB_WAIT,   /* for its turn */
    JOB_AUTH,   /* with which credentials? (pool) */
    JOB_ASK,    /* skopeo inspect: which digest has the name now? */
    JOB_TWIN,   /* another job is bringing the same digest */
    JOB_NAME,   /* the image is here under another name: coracle-unpack --hash-name */
    JOB_COPY,   /* skopeo copy */
    JOB_UNPACK, /* coracle-unpack */
    JOB_COMMIT, /* records are written on the pool */
};

TAILQ_HEAD(img_waiters, img_bring_run);

struct img_bring_run { /* one img_bring */
    struct img_bring *bring;
    op_done_fn done;     /* the caller's */
    struct img_job *job; /* NULL: detached or over */
    char *reference;     /* what a registry is asked for; NULL: it is none */
    char *name, *auth;   /* as asked for; NULL: none */
    bool for_pod;
    size_t candidate; /* of the names that the reference may stand for */
    struct img_store *store;
    struct img_image *image;
    json_t *names;
    TAILQ_ENTRY(img_bring_run) more;
};

struct img_job {
    struct img_store *store;
    enum img_job_state state;
    char *source, *name, *auth; /* as asked for; name normalised or NULL; auth: secrets or NULL */
    char *host;                 /* the registry's, with its port; NULL: none */
    char *key;                  /* what must not be brought twice at once: the name, else the source */
    bool is_registry, cancelled, over_limit;
    bool for_pod;           /* the image's record keeps who was let in */
    char tmp[33];           /* folder below tmp/; "" before it is made */
    struct reg_tries tries; /* credentials, from the first to the last that is worth one */
    size_t attempt;         /* of those, now */
    char *auth_path;        /* on tmpfs; NULL: none */
    char *auth_home;        /* beside it: where helpers may write what they got; NULL: none */
    uid_t uid;              /* skopeo's, for this one: the store's, or 0 */
    gid_t gid;
    char *digest; /* the registry's answer */
    char **blobs; /* and of which layers: hex digests, as their files are called */
    size_t n_blobs;
    struct img_found *found;
    size_t n_found;
    struct img_waiters waiters;
    struct proc proc;
    struct work work;
    uint64_t seen_bytes, progress_ms;      /* of the copy: when there were how many */
    uint64_t shared_before, copies_before; /* when it began: bytes of shared blobs, copies that were over */
    uint64_t fetched;                      /* since then, about */
    struct unpack_progress *meter;         /* coracle-unpack's; NULL: none */
    int meter_fd;
    struct err limit; /* why it was stopped, when over_limit */
    enum img_failure failure;
    uint64_t begun_ms; /* clock_mono_ms(), when its turn came */
    struct img_writer writer;
    bool is_writer; /* waits for its turn, too */
    struct img_write *writes;
    size_t n_writes;
    TAILQ_ENTRY(img_job) more;
};

/* Joins a job that does the same, or makes one. */
enum err_code img_job_join(struct img_store *s, struct img_bring_run *run, const char *source,
                           const char *name, struct err *e) MUST_CHECK;
/* The run does not want it any more. */
void img_job_leave(struct img_bring_run *run);
/* Its turn has come. */
void img_job_begin(struct img_job *j);
/* Its digest is known, and nobody else is bringing that any more. */
void img_job_decide(struct img_job *j);
/* A running job has found this image. */
bool img_job_holds(const struct img_store *s, const char *id);

/* ---- image_progress.c ------------------------------------------------------------------------- */
/* A page for coracle-unpack to count into; without one (no memory) nothing is told and nothing else is lost.
 */
void img_meter_open(struct img_job *j);
void img_meter_close(struct img_job *j);

/* ---- image_auth.c: with which credentials a registry is asked --------------------------------- */
/* Reads the node's auth file on the pool and makes j->tries. */
void img_auth_start(struct img_job *j, op_done_fn done);
/* Writes the credentials of this attempt for skopeo: a file of its own on tmpfs, never on a disk. */
enum err_code img_auth_write(struct img_job *j, struct err *e) MUST_CHECK;
/* The registry refused: true when there are other credentials, which count from now on. */
bool img_auth_next(struct img_job *j, const struct err *refused);
void img_auth_remove(struct img_job *j); /* the file, and what helpers wrote */
/* What a killed agent left of them. */
void img_auth_clean(const struct img_store *s);
/* Of a normalised name: without tag and digest. */
void img_auth_repository(const char *reference, char ret[IMG_NAME_MAX]);
/* The source's own name, which --name may have covered. */
const char *img_job_reference(const struct img_job *j, char full[IMG_NAME_MAX]);

/* ---- image_skopeo.c -------------------------------------------------------------------------- */
/* A normalised name -> what skopeo takes; `digest` (may be NULL) replaces tag and digest.  NULL: no memory.
 */
char *img_skopeo_source(const char *reference, const char *digest);
enum err_code img_skopeo_ask(struct img_job *j, op_done_fn done, struct err *e) MUST_CHECK;
enum err_code img_skopeo_copy(struct img_job *j, op_done_fn done, struct err *e) MUST_CHECK;
/* Makes the reason out of what skopeo wrote: its last fatal message, a code that fits, and j->failure. */
void img_skopeo_error(struct img_job *j, struct err *e);

/* ---- image_user.c: as which user skopeo runs ---------------------------------------------------- */
/* Once, at the start; one warning where it stays root. */
void img_user_find(struct img_store *s);
/* For one pull, on the pool: j->uid, unless that user cannot read a file that the pull needs, which is
 * logged. ERR_UNAVAILABLE: that cannot be seen. */
enum err_code img_user_plan(struct img_job *j, struct err *e) MUST_CHECK;
/* tmp/<pull>/fetch, which it writes, in a folder that it can only pass through. */
enum err_code img_user_folders(struct img_job *j, struct err *e) MUST_CHECK;
/* tmp/blobs/sha256 becomes its own, with what an earlier agent fetched as root. */
enum err_code img_user_blobs(struct img_store *s, struct err *e) MUST_CHECK;
/* A file or folder of the pull's becomes its own. */
enum err_code img_user_give(const struct img_job *j, const char *path, struct err *e) MUST_CHECK;

/* ---- image_turn.c: who may work ---------------------------------------------------------------- */
/* Starts what may start. */
void img_jobs_start(struct img_store *s);
/* Another job fetches the same digest, or unpacks it. */
bool img_job_has_elder(const struct img_job *j);
void img_twins_wake(struct img_store *s);

/* ---- image_blobs.c: what pulls fetch ------------------------------------------------------------- */
/*
 * tmp/blobs holds whole blobs, for all pulls under way, and for the next try of one that broke off, also by
 * the end of the agent.  skopeo names them by the digest that it computed, coracle-unpack checks it again;
 * blobs that turned out bad go at once.  Blobs of one that is over go with it, but for those that another one
 * under way may count on.
 */
/* The registry's answer: the name's digest, then those of its layers.  ERR_UNKNOWN: it is none;
 * ERR_INVALID: too many layers. */
enum err_code img_blobs_take(struct img_job *j, char *answer, struct err *e) MUST_CHECK;
enum err_code img_blobs_begin(struct img_job *j, struct err *e) MUST_CHECK; /* a copy begins */
void img_blobs_end(struct img_job *j);                                      /* it is over */
void img_blobs_ended(struct img_job *j, const struct err *e);               /* the job has */
void img_blobs_settle(struct img_store *s); /* no more needed: they go, now or later */
void img_blobs_adopt(struct img_store *s);  /* those of the agent before this one */

/* ---- image_access.c: who may use what is here -------------------------------------------------- */
/* `is` (may be NULL) and whoever the job was let in as, for its repository; NULL: no memory. */
json_t *img_access_add(const struct img_job *j, const json_t *is);
bool img_access_is_valid(const json_t *pulled_for);

/* ---- image_writer.c --------------------------------------------------------------------------- */
/* begin() runs when no other one writes, perhaps at once; ..._end() is due once it has, or does not want it
 * any more. */
void img_writer_start(struct img_store *s, struct img_writer *w, void (*begin)(struct img_writer *w));
void img_writer_end(struct img_store *s, struct img_writer *w);

/* ---- image_commit.c -------------------------------------------------------------------------- */
/* What coracle-unpack printed -> j->found. */
enum err_code img_take_result(struct img_job *j, const char *text, size_t n, struct err *e) MUST_CHECK;
/* Its failure record -> *e; false: it is none. */
bool img_take_failure(const char *text, size_t n, struct err *e);
/* {"names":[{"name","ref"}]} -> the one found image's names. */
enum err_code img_take_names(struct img_job *j, const char *text, size_t n, struct err *e) MUST_CHECK;
/* Writes the records of j->found on the pool; j is the writer. */
enum err_code img_commit_start(struct img_job *j, op_done_fn done, struct err *e) MUST_CHECK;
/* They are on the disk: the tables follow. */
enum err_code img_commit_finish(struct img_job *j, struct err *e) MUST_CHECK;
/* Not all of them are, or the tables are full: an image that got a name stays, any other goes. */
void img_commit_undo(struct img_job *j);
void img_found_free(struct img_job *j);
void img_writes_free(struct img_job *j);
#endif
