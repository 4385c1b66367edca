/* SPDX-License-Identifier: Apache-2.0 */
/* image_internal - declarations shared by the image_*.c files; see image.h for the overview. */
#ifndef AGENT_IMAGE_IMAGE_INTERNAL_H
#define AGENT_IMAGE_IMAGE_INTERNAL_H
#include "agent/image/image.h"
#include "agent/image/registry_auth.h"
#include "agent/image/registry_names.h"

#include "base/list.h"
#include "base/strs.h"
#include "base/work.h"

#define IMG_MAX_IMAGES 10000 /* per store; a node has tens */
#define IMG_MAX_NAMES 20000
#define IMG_MAX_LAYERS 128        /* as in coracle-unpack */
#define IMG_MAX_VOLUMES 100       /* as in coracle-unpack, too */
#define IMG_RECORD_MAX (8u << 20) /* a configuration may have 4 MiB, some of which JSON escapes */
#define IMG_DEFAULT_BYTES (16ull << 30)
#define IMG_DEFAULT_PARALLEL 4 /* containerd's 3 for one registry, plus one for other registries */
#define IMG_DEFAULT_STALL_MS (5 * 60 * 1000) /* like containerd's image_pull_progress_timeout */
#define IMG_RESERVE_BYTES (64u << 20)        /* must remain free on the store's file system */
#define IMG_USAGE_PERIOD_MS 1000             /* how often a download's size is checked */

/* A job that writes an image's record. Only one writes at a time, so that none overwrites another's changes.
 */
struct img_writer {
    void (*begin)(struct img_writer *w);
    TAILQ_ENTRY(img_writer) more;
};
TAILQ_HEAD(img_writers, img_writer);

struct img_entry { /* an image of the store */
    struct img_image *image;
    unsigned held;     /* number of tasks that need the image unchanged */
    UT_hash_handle hh; /* by image->id */
};

struct img_name { /* a name */
    char *name;
    char file[65]; /* refs/<file>.json */
    char *digest;  /* from the registry at the pull; NULL: imported */
    struct img_entry *entry;
    UT_hash_handle hh; /* by name */
};

TAILQ_HEAD(img_jobs, img_job);
TAILQ_HEAD(img_task_runs, img_task_run);
TAILQ_HEAD(img_unreads, img_unread);

struct img_looks { /* failed lookups (image_look.c) */
    struct img_unreads unread;
    bool lost;        /* out of memory: nothing is removed until the next start */
    struct err why;   /* the last error */
    int64_t since_ns; /* wall clock; 0: no failure since the last complete read */
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
    unsigned aside; /* of the running jobs, those without a slot: see img_auth_start() */

    char *run_dir, *pods_dir; /* where images are mounted */
    struct img_looks looks;
    struct provider_set *providers; /* may be NULL */
    bool confine;
    uid_t pull_uid; /* skopeo's user; 0: root, like the daemon */
    gid_t pull_gid;
    void (*cleared)(void *arg); /* trash is empty */
    void *cleared_arg;
    bool said_damaged, loading, have_rubbish;
    /* Image records that were set aside and not replaced since: they may have named layers. */
    unsigned damaged;
    struct reg_names short_names;
    struct err names_unknown; /* why short_names may be incomplete */
    int refs_fd, images_fd, layers_fd, parts_fd, tmp_fd;
    struct img_entry *images;
    struct img_name *names;
    void (*on_added)(const char *name, void *arg);
    void *on_added_arg;

    enum img_verify verify;
    struct strs verify_not;
    unsigned char proof_key[SIPHASH_KEY_SIZE];

    struct img_writers writers; /* the first one writes, the others wait */
    struct img_jobs jobs;       /* waiting and running, oldest first */
    struct img_task_runs tasks;
    TAILQ_HEAD(, trash) trash; /* files that are being removed, or whose removal will be retried */
    unsigned running, copying;
    uint64_t jobs_begun, copies_begun;
    bool have_blobs, blobs_bad, closing;
    uint64_t keep_free; /* image_space.c */
    void (*make_room)(uint64_t wanted, void *arg);
    void *make_room_arg;
    void (*on_writing)(void *arg);
    void *on_writing_arg;
    uint64_t blobs_until_ms; /* how long blobs are kept for a retry; 0: none */
    char *blobs_for;         /* the key of the last failed pull */
    uv_timer_t usage;        /* active while copying, or while blobs are kept */
    unsigned n_timers;       /* not closed yet */
};

#define IMG_CONFIG ".config" /* parts/<hex>.config */

/* ---- image_record.c ---- */
/* "sha256:" + 64 lower-case hex digits. */
bool img_digest_is_valid(const char *digest);
/* Checks the version of an image's or a name's record. Absent means 1; ERR_INVALID: newer than supported. */
#define IMG_RECORD_VERSION 1
enum err_code img_record_version(const json_t *record, struct err *e) MUST_CHECK;
/* Decodes a record of ours or of coracle-unpack and checks everything. ERR_INVALID, ERR_EXHAUSTED (memory).
 */
enum err_code img_record_decode(const json_t *record, const char *store_dir, struct img_image **ret,
                                struct err *e) MUST_CHECK;
/* The record as written to images/<hex>.json; NULL when out of memory. */
json_t *img_record_encode(const struct img_image *i);
/* "r.io:5000/team/web:1@sha256:..." -> the length of "r.io:5000/team/web". */
size_t img_repository(const char *name);
/* Name of a layer's folder: the last element of layer_dirs[n]. */
const char *img_layer_name(const struct img_image *i, size_t n);

/* ---- image_query.c ---- */
/* ERR_NOT_FOUND with the text shown to users. */
enum err_code img_find_reference(struct img_store *s, const char *reference, struct img_entry **ret,
                                 struct err *e) MUST_CHECK;
/* Names of an entry, sorted. */
json_t *img_names_of(struct img_store *s, const struct img_entry *entry);

/* ---- image_task.c: operations on present images ---- */
struct img_task_run {
    struct img_task *task;
    struct img_store *store;
    op_done_fn done; /* the caller's */
    struct img_entry **held;
    size_t n_held;
    bool of_all;
    uint64_t jobs_before; /* jobs that had begun before */
    json_t *answer;
    struct proc proc;
    struct work work;
    struct img_writer writer;
    bool pin;
    char file[80], *text; /* the record being written */
    char *name, *auth;    /* image_access.c: the request */
    struct reg_tries tries;
    TAILQ_ENTRY(img_task_run) more;
};
/* Begins the operation and holds its images; NULL: it failed and done will report it. */
struct img_task_run *img_task_begin(struct img_task *t, struct img_store *s, const char *name,
                                    const char *reference, uint64_t deadline_ms, op_done_fn done,
                                    void *owner);
void img_task_end(struct img_task_run *run, const struct err *result);

/* ---- image_unpack.c ---- */
/* A run of coracle-unpack for the image `subject`; it prints at most answer_max bytes. */
struct proc_spec img_unpack_spec(const struct img_store *s, const char *subject, const char *const *argv,
                                 size_t answer_max, uint64_t deadline_ms);

/* ---- image_store.c ---- */
struct img_entry *img_find(struct img_store *s, const char *id);
/* Adds the image, or finds the present one (perhaps completing its digest); NULL and *e: full. */
struct img_entry *img_keep(struct img_store *s, struct img_image *image, struct err *e) MUST_CHECK;
/* Points a name to an entry. */
enum err_code img_keep_name(struct img_store *s, const char *name, const char *file, const char *digest,
                            struct img_entry *entry, struct err *e) MUST_CHECK;
void img_drop_name(struct img_store *s, struct img_name *n);
void img_drop(struct img_store *s, struct img_entry *entry);
/* Frees a closed store once no operation is in progress. */
void img_store_settle(struct img_store *s);
/* Reads a record of images/ or refs/. A damaged record is set aside; a failed read is retried. */
void img_load_record(struct img_store *s, int dir, const char *file);

/* ---- image_look.c: failed lookups ---- */
/* Nothing is removed before a lookup succeeds; the next one follows after a back-off of 50 ms, doubled up to
 * 60 s. */
void img_look_again(struct img_store *s, const struct err *why);
void img_look_over(struct img_store *s); /* the lookup succeeded */
/* Remembers a record that exists, or may exist, but was not read: <hex>.json of images_fd or refs_fd. */
void img_unread_add(struct img_store *s, int dir, const char *file, const struct err *why);
bool img_unread_has(const struct img_store *s, int dir, const char *hex);
void img_unread_forget(struct img_store *s, int dir, const char *hex); /* it was replaced */
/* Reads the registries that short names may refer to. */
void img_look_at_names(struct img_store *s);
bool img_unread_any(const struct img_store *s);
void img_unread_free(struct img_store *s);
/* img_each_entry() and the unread records, several times within a third of a second: for the start. */
typedef void (*img_entry_fn)(struct img_store *s, const char *name);
enum err_code img_list_surely(struct img_store *s, int dir, const char *name, img_entry_fn fn,
                              struct err *e) MUST_CHECK;
void img_read_surely(struct img_store *s);

/* ---- image_mounted.c ---- */
/* ERR_PRECONDITION: an image unknown to the store is mounted; any other error: unknown. */
enum err_code img_check_mounted(struct img_store *s, struct err *e) MUST_CHECK;

/* ---- image_rubbish.c ---- */
/* Removes layers without an image: now, or after the last pull. */
void img_collect(struct img_store *s);
/* Removes tmp/<name> in the background. */
void img_trash(struct img_store *s, const char *name);
void img_trash_forget(struct img_store *s); /* files still there are found by the next start */
/* Removes a leftover of an earlier run; renames it first, because the name may be reused before the removal
 * is complete. */
void img_trash_leftover(struct img_store *s, const char *name);
/* Calls fn for each entry of a folder except "." and "..", or for none if the folder cannot be listed
 * completely. fn may rename. */
enum err_code img_each_entry(struct img_store *s, int dir, void (*fn)(struct img_store *s, const char *name),
                             struct err *e) MUST_CHECK;
/* "<64 hex><ending>" -> the hex part; false for anything else. */
bool img_named_by_hex(const char *file, const char *ending, char hex[65]);

/* ---- image_bring.c ---- */
/* Called at the end of the job: finishes the run, or tries the next name that the reference may mean. */
void img_bring_answer(struct img_bring_run *run, const struct err *result);

/* ---- image_job.c: one source being pulled or imported, for one or several callers ---- */
struct img_named { /* a name found by a job, and its file */
    char *name;
    char file[65];
    bool written; /* its record is on disk */
};

struct img_found {
    struct img_image *image;
    struct img_named *names;
    size_t n_names;
    json_t *pulled_for; /* its new value in the record; NULL: unchanged */
};

enum img_job_state {
    JOB_WAIT,   /* for a slot */
    JOB_SPACE,  /* files of removed images are being removed */
    JOB_AUTH,   /* queries the credential providers, then reads the node's credentials (pool) */
    JOB_ASK,    /* skopeo inspect: the name's current digest */
    JOB_TWIN,   /* another job is pulling the same digest */
    JOB_NAME,   /* the image is present under another name: coracle-unpack --hash-name */
    JOB_COPY,   /* skopeo copy */
    JOB_UNPACK, /* coracle-unpack */
    JOB_COMMIT, /* writes the records on the pool */
};

TAILQ_HEAD(img_waiters, img_bring_run);

struct img_bring_run { /* one img_bring */
    struct img_bring *bring;
    op_done_fn done;     /* the caller's */
    struct img_job *job; /* NULL: detached or over */
    char *reference;     /* the registry's name; NULL: not a registry */
    char *name, *auth;   /* as requested; may be NULL */
    bool for_pod;
    size_t candidate; /* index among the names the reference may mean */
    struct img_store *store;
    struct img_image *image;
    json_t *names;
    TAILQ_ENTRY(img_bring_run) more;
};

struct img_job {
    struct img_store *store;
    enum img_job_state state;
    enum { IMG_NOT_ASIDE, IMG_ASKS, IMG_ASKED } aside; /* IMG_ASKED: it waits for a slot again */
    char *source, *name, *auth; /* as requested; name normalised or NULL; auth: secrets or NULL */
    char *host;                 /* the registry's, with its port; may be NULL */
    char *key;                  /* must not be pulled twice at once: the name, otherwise the source */
    bool is_registry, cancelled, over_limit;
    bool space_asked;        /* unused images were removed to make space */
    bool for_pod;            /* the image's record keeps the owner of the accepted credentials */
    char tmp[33];            /* folder below tmp/; "" before it exists */
    struct provider_ask ask; /* the run of its credential providers */
    struct provider_ask_options ask_options;
    char repository[IMG_NAME_MAX]; /* the repository in their request */
    char *provided;                /* their answers, for registry_auth.h; NULL: none */
    op_done_fn auth_done;
    struct reg_tries tries; /* credentials to try */
    size_t attempt;         /* the current one */
    char *auth_path;        /* on tmpfs; may be NULL */
    char *auth_home;        /* beside it: a home folder for credential helpers; may be NULL */
    uid_t uid;              /* skopeo's user for this pull: the store's, or 0 */
    gid_t gid;
    char *digest; /* the digest, from the registry */
    char **blobs; /* hex digests of its layers, the names of their files */
    size_t n_blobs;
    struct img_found *found;
    size_t n_found;
    struct img_waiters waiters;
    struct proc proc;
    struct work work;
    uint64_t seen_bytes, progress_ms; /* progress of the copy: the last size, and when it changed */
    uint64_t shared_before,
        copies_before;             /* at the start of the copy: bytes of shared blobs, completed copies */
    uint64_t fetched;              /* bytes fetched since then, approximately */
    struct unpack_progress *meter; /* coracle-unpack's; may be NULL */
    int meter_fd;
    struct err limit; /* why the job was stopped, if over_limit */
    enum img_failure failure;
    uint64_t begun_ms; /* clock_mono_ms() when it got its slot */
    struct img_writer writer;
    bool is_writer; /* also while it waits to write */
    struct img_write *writes;
    size_t n_writes;
    TAILQ_ENTRY(img_job) more;
};

/* Joins an equivalent job, or creates one. */
enum err_code img_job_join(struct img_store *s, struct img_bring_run *run, const char *source,
                           const char *name, struct err *e) MUST_CHECK;
/* Detaches the run from its job. */
void img_job_leave(struct img_bring_run *run);
/* Starts a job that got a slot. */
void img_job_begin(struct img_job *j);
/* Continues a job once its digest is known and no other job pulls it. */
void img_job_decide(struct img_job *j);
/* Unpacks an import if there is enough space. */
void img_job_unpack(struct img_job *j);
/* Ends the job's process; the job fails with `why`. */
void img_job_stop(struct img_job *j, const struct err *why);
/* Whether a running job has found this image. */
bool img_job_holds(const struct img_store *s, const char *id);

/* ---- image_space.c ---- */
enum img_space { IMG_SPACE_ENOUGH, IMG_SPACE_LATER, IMG_SPACE_NONE };
/* LATER: img_space_wake() follows; NONE: *e has the reason. */
enum img_space img_space_for(struct img_job *j, struct err *e);
void img_space_wake(struct img_store *s); /* called when the files of removed images were removed */
void img_space_writing(const struct img_store *s);
/* The bytes that must remain free during a pull or an import. */
uint64_t img_space_reserve(const struct img_store *s);

/* ---- image_progress.c ---- */
/* A page for coracle-unpack's counters; without it (out of memory) no progress is reported. */
void img_meter_open(struct img_job *j);
void img_meter_close(struct img_job *j);

/* ---- image_auth.c: the credentials for a registry ---- */
/* Asks the image's credential providers, reads the node's auth file on the pool and fills j->tries. A job
 * holds no slot while its provider runs, so that a provider that hangs does not block other jobs; at most
 * max_parallel jobs wait in this way. */
void img_auth_start(struct img_job *j, op_done_fn done);
void img_auth_go_on(struct img_job *j); /* the providers have answered, and there is a slot */
/* Writes the credentials of this attempt for skopeo, to a file on tmpfs, never on a disk. */
enum err_code img_auth_write(struct img_job *j, struct err *e) MUST_CHECK;
/* Called when the registry refused: true if there are other credentials, which are used from now on. */
bool img_auth_next(struct img_job *j, const struct err *refused);
/* Adds the source of the refused credentials to the last refusal, or the fact that there were none, because a
 * registry may return the same answer in both cases. */
void img_auth_add_source(const struct img_job *j, struct err *refused);
void img_auth_forget(struct img_job *j); /* overwrites the providers' answers */
void img_auth_remove(struct img_job *j); /* removes the file, and files of credential helpers */
/* Removes leftovers of a killed agent. */
void img_auth_clean(const struct img_store *s);
/* A normalised name without tag and digest. */
void img_auth_repository(const char *reference, char ret[IMG_NAME_MAX]);
/* The source's own name, if --name specified another. */
const char *img_job_reference(const struct img_job *j, char full[IMG_NAME_MAX]);

/* ---- image_skopeo.c ---- */
/* skopeo's form of a normalised name; `digest` (may be NULL) replaces tag and digest. NULL when out of
 * memory. */
char *img_skopeo_source(const char *reference, const char *digest);
enum err_code img_skopeo_ask(struct img_job *j, op_done_fn done, struct err *e) MUST_CHECK;
enum err_code img_skopeo_copy(struct img_job *j, op_done_fn done, struct err *e) MUST_CHECK;
/* Derives the error from skopeo's output: its last fatal message, a matching code, and j->failure. */
void img_skopeo_error(struct img_job *j, struct err *e);

/* ---- image_user.c: skopeo's user ---- */
/* Called once at the start; logs one warning if skopeo has to run as root. */
void img_user_find(struct img_store *s);
/* For one pull, on the pool: sets j->uid, unless that user cannot read a file needed by the pull, which is
 * logged. ERR_UNAVAILABLE: the check itself failed. */
enum err_code img_user_plan(struct img_job *j, struct err *e) MUST_CHECK;
/* Creates tmp/<pull>/fetch, writable for that user, in a folder that the user can only enter. */
enum err_code img_user_folders(struct img_job *j, struct err *e) MUST_CHECK;
/* Makes the user the owner of tmp/blobs/sha256, with the blobs that an earlier agent fetched as root. */
enum err_code img_user_blobs(struct img_store *s, struct err *e) MUST_CHECK;
/* Makes the user the owner of a file or folder of the pull. */
enum err_code img_user_give(const struct img_job *j, const char *path, struct err *e) MUST_CHECK;

/* ---- image_turn.c: slots ---- */
/* Starts waiting jobs while there are slots. */
void img_jobs_start(struct img_store *s);
static inline bool img_has_slot(const struct img_store *s)
{
    return s->running - s->aside < s->max_parallel;
}
/* Whether another job fetches or unpacks the same digest. */
bool img_job_has_elder(const struct img_job *j);
void img_twins_wake(struct img_store *s);

/* ---- image_blobs.c: downloads ---- */
/*
 * tmp/blobs has complete blobs for all pulls in progress, and for the retry of an interrupted pull, even
 * after a restart of the agent. skopeo names them by the digest it computed, and coracle-unpack checks it
 * again; bad blobs are removed immediately. When a pull is over, its blobs are removed, except those that
 * another pull may rely on.
 */
/* Reads the registry's answer: the name's digest, then the digests of its layers. ERR_UNKNOWN: invalid;
 * ERR_INVALID: too many layers. */
enum err_code img_blobs_take(struct img_job *j, char *answer, struct err *e) MUST_CHECK;
enum err_code img_blobs_begin(struct img_job *j, struct err *e) MUST_CHECK; /* a copy begins */
void img_blobs_end(struct img_job *j);                                      /* the copy ended */
void img_blobs_ended(struct img_job *j, const struct err *e);               /* the job ended */
void img_blobs_settle(struct img_store *s); /* removes those no longer needed, now or later */
void img_blobs_adopt(struct img_store *s);  /* takes the blobs of the previous agent */

/* ---- image_pulled_for.c: the pods whose pulls of an image succeeded; the "pulledFor" of its record ---- */
bool img_pulled_for_is_valid(const json_t *pulled_for);
/* A copy of `is` (may be NULL) with `whose` added to the owners of a repository. `whose` NULL: all pods of
 * the node or, if `unsure`, no particular pod. NULL when out of memory. */
json_t *img_pulled_for_add(const json_t *is, const char *repository, json_t *whose, bool unsure);
bool img_pulled_for_has(const json_t *by, const json_t *whose); /* `by`: of a repository */

/* ---- image_writer.c ---- */
/* begin() runs when no other writer is active, perhaps immediately; call ..._end() after writing, or to give
 * up. */
void img_writer_start(struct img_store *s, struct img_writer *w, void (*begin)(struct img_writer *w));
void img_writer_end(struct img_store *s, struct img_writer *w);

/* ---- image_commit.c ---- */
/* coracle-unpack's output -> j->found. */
enum err_code img_take_result(struct img_job *j, const char *text, size_t n, struct err *e) MUST_CHECK;
/* Converts coracle-unpack's failure record to *e; false: not a failure record. */
bool img_take_failure(const char *text, size_t n, struct err *e);
/* {"names":[{"name","ref"}]} -> the names of the single found image. */
enum err_code img_take_names(struct img_job *j, const char *text, size_t n, struct err *e) MUST_CHECK;
/* Writes the records of j->found on the pool; j is the writer. */
enum err_code img_commit_start(struct img_job *j, op_done_fn done, struct err *e) MUST_CHECK;
/* Called when the records are on disk: updates the tables. */
enum err_code img_commit_finish(struct img_job *j, struct err *e) MUST_CHECK;
/* Called when some records were not written, or the tables are full: keeps images that got a name and removes
 * the others. */
void img_commit_undo(struct img_job *j);
void img_found_free(struct img_job *j);
void img_writes_free(struct img_job *j);
#endif
