/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads of pulls: the shared folder of whole blobs, the progress, and stall detection. */
#include "agent/image/image_internal.h"

#include "base/clock.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Longer than a pod's longest back-off (5 minutes), so that its next try finds them. */
/* Less than this per progress deadline is a stall: a registry that sends a byte now and then must not keep a
 * slot. */
#define KEEP_MS (10 * 60 * 1000)
#define DROP_AGAIN_MS (10 * 1000)
#define STALL_BYTES (16u << 10)

/* ---- downloaded bytes ---- */

struct sum {
    int folder;
    int depth;
    uint64_t bytes;
    struct err e;
};

static enum err_code add_below(int dir, const char *name, int depth, uint64_t *sum, struct err *e);

static bool add_one(const char *name, void *arg)
{
    struct sum *s = arg;
    struct stat st;
    struct presence found = fs_look_at(s->folder, name, &st, &s->e);

    if (presence_is_unknown(found))
        return false;
    if (presence_is_absent(found)) /* a completed blob was moved */
        return true;
    if (S_ISREG(st.st_mode))
        s->bytes += (uint64_t)st.st_size;
    else if (S_ISDIR(st.st_mode) && s->depth > 1)
        ERR_IGNORE(add_below(s->folder, name, s->depth - 1, &s->bytes, &s->e));
    return s->e.code == ERR_OK;
}

static enum err_code add_below(int dir, const char *name, int depth, uint64_t *sum, struct err *e)
{
    fd_auto fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct sum s = { .folder = fd, .depth = depth };

    if (fd < 0) {
        err_sys(e, errno, "open %s", name);
        return presence_is_absent(presence_from_err(e)) ? ERR_OK : e->code;
    }
    if (presence_is_unknown(fs_list(fd, ".", add_one, &s, e)))
        return e->code;
    *sum += s.bytes;
    if (s.e.code != ERR_OK)
        *e = s.e;
    return e->code;
}

/* Adds up the bytes of files below, in four levels of folders (the pull's, skopeo's, its layout,
 * blobs/sha256). Missing folders count as empty. */
static enum err_code bytes_below(int dir, const char *name, int depth, uint64_t *ret, struct err *e)
{
    *ret = 0;
    return add_below(dir, name, depth, ret, e);
}

/* The number never decreases, although bad blobs are removed. */
static void note_fetched(struct img_job *j, uint64_t all)
{
    if (all > j->shared_before && all - j->shared_before > j->fetched)
        j->fetched = all - j->shared_before;
}

/* Completed blobs are moved out of the pull's folder, so a smaller size is also progress. */
static void check_stall(struct img_job *j, uint64_t bytes, uint64_t now_ms)
{
    const double seconds = (double)j->store->stall_ms / 1000;
    struct err stalled = { 0 };

    if (bytes < j->seen_bytes || bytes >= j->seen_bytes + STALL_BYTES || j->progress_ms == 0) {
        j->seen_bytes = bytes;
        j->progress_ms = now_ms;
    } else if (now_ms - j->progress_ms >= j->store->stall_ms) {
        if (bytes == j->seen_bytes)
            err_set(&stalled, ERR_UNAVAILABLE, "no data received for %.3g s", seconds);
        else
            err_set(&stalled, ERR_UNAVAILABLE, "only %llu bytes received in %.3g s",
                    (unsigned long long)(bytes - j->seen_bytes), seconds);
        img_job_stop(j, &stalled);
    }
}

/* Complete blobs are shared and cannot be attributed to a pull: the limit is reached if more bytes arrived
 * since this pull began than all pulls together may fetch. */
static bool image_blobs_too_large(const struct img_job *j, uint64_t own, uint64_t shared)
{
    const struct img_store *s = j->store;

    return own > s->max_bytes ||
           shared > j->shared_before + s->max_bytes * (s->copies_begun - j->copies_before);
}

static void check_all(struct img_store *s)
{
    const uint64_t now_ms = clock_mono_ms();
    struct err full = { 0 }, large = { 0 }, unknown = { 0 };
    uint64_t shared;
    struct img_job *j, *next;
    struct statvfs fs;

    if (bytes_below(s->tmp_fd, "blobs", 2, &shared, &unknown) != ERR_OK)
        return; /* the next tick reads the size again */
    if (fstatvfs(s->tmp_fd, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < img_space_reserve(s))
        err_set(&full, ERR_EXHAUSTED,
                "no space left for images: less than %llu MiB are free on the store's file system",
                (unsigned long long)(img_space_reserve(s) >> 20));
    err_set(&large, ERR_EXHAUSTED, "the image is larger than the limit of %llu bytes",
            (unsigned long long)s->max_bytes);

    TAILQ_FOREACH_SAFE (j, &s->jobs, more, next) {
        uint64_t bytes;

        if (j->state != JOB_COPY)
            continue;
        if (bytes_below(s->tmp_fd, j->tmp, 4, &bytes, &unknown) != ERR_OK)
            return;
        note_fetched(j, bytes + shared);
        if (full.code != ERR_OK)
            img_job_stop(j, &full);
        else if (image_blobs_too_large(j, bytes, shared))
            img_job_stop(j, &large);
        else
            check_stall(j, bytes, now_ms);
    }
}

/* ---- the folder ---- */

static bool registry_is_asked(const struct img_store *s)
{
    const struct img_job *j;

    TAILQ_FOREACH (j, &s->jobs, more)
        if (j->state != JOB_WAIT && j->is_registry)
            return true;
    return false;
}

static void on_tick(uv_timer_t *timer);

static void image_blobs_drop(struct img_store *s)
{
    char away[33];

    id_random_hex(away, sizeof(away) - 1);
    if (renameat(s->tmp_fd, "blobs", s->tmp_fd, away) == 0) {
        img_trash(s, away);
    } else if (errno != ENOENT) { /* not usable for a retry */
        uv_timer_start(&s->usage, on_tick, DROP_AGAIN_MS, 0);
        return;
    }
    s->have_blobs = s->blobs_bad = false;
    s->blobs_until_ms = 0;
    free(take_ptr(&s->blobs_for));
}

static void on_tick(uv_timer_t *timer)
{
    struct img_store *s = timer->data;

    if (s->copying > 0)
        check_all(s);
    else
        img_blobs_settle(s);
}

void img_blobs_settle(struct img_store *s)
{
    const uint64_t now_ms = clock_mono_ms();

    if (!s->have_blobs || registry_is_asked(s) || s->closing) /* the next agent continues with them */
        return;
    if (s->blobs_bad || s->blobs_until_ms <= now_ms)
        image_blobs_drop(s);
    else
        uv_timer_start(&s->usage, on_tick, s->blobs_until_ms - now_ms, 0);
}

/* ---- owners of blobs ---- */

enum err_code img_blobs_take(struct img_job *j, char *answer, struct err *e)
{
    char *rest = answer, *line = strsep(&rest, " \r\n");

    if (!img_digest_is_valid(line))
        return err_set(e, ERR_UNKNOWN, "skopeo inspect: it did not print a digest for %.300s", j->key);
    j->digest = strdup(line);
    j->blobs = calloc(IMG_MAX_LAYERS, sizeof(*j->blobs));
    if (j->digest == NULL || j->blobs == NULL)
        return err_nomem(e);
    while ((line = strsep(&rest, " \r\n")) != NULL) {
        if (!img_digest_is_valid(line))
            continue; /* such an image fails later, with a clearer message */
        if (j->n_blobs == IMG_MAX_LAYERS)
            return err_set(e, ERR_INVALID, "pull %.200s: it has more than %d layers", j->key, IMG_MAX_LAYERS);
        j->blobs[j->n_blobs] = strdup(line + strlen("sha256:"));
        if (j->blobs[j->n_blobs] == NULL)
            return err_nomem(e);
        j->n_blobs++;
    }
    return ERR_OK;
}

/* skopeo checks for existing layers as it reaches them, so a pull that copies may rely on any of its layers.
 */
static bool image_blobs_is_wanted(const struct img_job *by_others_than, const char *hex)
{
    const struct img_job *j;

    TAILQ_FOREACH (j, &by_others_than->store->jobs, more) {
        if (j == by_others_than || !j->is_registry || (j->state != JOB_COPY && j->state != JOB_UNPACK))
            continue;
        if (j->n_blobs == 0)
            return true; /* its layers are unknown */
        for (size_t i = 0; i < j->n_blobs; i++)
            if (strcmp(j->blobs[i], hex) == 0)
                return true;
    }
    return false;
}

/* Returns its size; 0: missing, or kept. */
static uint64_t move_away(const struct img_job *j, const char *hex, int from, int to)
{
    struct stat st;

    if (image_blobs_is_wanted(j, hex) || fstatat(from, hex, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        renameat(from, hex, to, hex) != 0)
        return 0;
    return (uint64_t)st.st_size;
}

/* Its configuration and manifests are kept: they are small, and another image may share them. */
static uint64_t move_own(const struct img_job *j, int from, int to)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < j->n_blobs; i++)
        bytes += move_away(j, j->blobs[i], from, to);
    return bytes;
}

static void drop_own(const struct img_job *j)
{
    struct img_store *s = j->store;
    fd_auto from = openat(s->tmp_fd, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    fd_auto to = -1;
    struct img_job *other;
    uint64_t bytes;
    char away[33];

    id_random_hex(away, sizeof(away) - 1);
    if (from < 0 || mkdirat(s->tmp_fd, away, 0700) != 0)
        return;
    to = openat(s->tmp_fd, away, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bytes = to >= 0 ? move_own(j, from, to) : 0;
    TAILQ_FOREACH (other, &s->jobs, more) /* their counts include blobs that existed before */
        other->shared_before -= bytes < other->shared_before ? bytes : other->shared_before;
    img_trash(s, away);
}

void img_blobs_ended(struct img_job *j, const struct err *e)
{
    struct img_store *s = j->store;

    const bool again = e->code == ERR_UNAVAILABLE || e->code == ERR_DEADLINE || e->code == ERR_CANCELLED;
    /* otherwise img_blobs_settle() */
    const bool others_stay = registry_is_asked(s) || s->blobs_until_ms != 0;

    if (j->state >= JOB_COPY && !again && others_stay)
        drop_own(j);
    if (e->code == ERR_OK) {
        if (s->blobs_for == NULL || strcmp(s->blobs_for, j->key) == 0) /* the retry has succeeded */
            s->blobs_until_ms = 0;
    } else if (e->code == ERR_UNAVAILABLE || e->code == ERR_DEADLINE) {
        if (j->state < JOB_COPY) /* the job has fetched nothing */
            return;
        /* The time runs from the first failure, so that blobs of a pull that never completes do not stay. */
        if (s->blobs_until_ms == 0)
            s->blobs_until_ms = clock_mono_ms() + KEEP_MS;
        free(s->blobs_for);
        s->blobs_for = strdup(j->key);
    } else if (j->state >= JOB_COPY && e->code != ERR_CANCELLED) {
        s->blobs_bad = true;
    }
}

void img_blobs_adopt(struct img_store *s)
{
    struct stat st = { .st_mode = S_IFDIR }; /* replaced by the result of a successful lookup */

    if (presence_is_absent(fs_look_at(s->tmp_fd, "blobs", &st, ERR_IGNORED)))
        return;
    s->have_blobs = true;
    if (S_ISDIR(st.st_mode))
        s->blobs_until_ms = clock_mono_ms() + KEEP_MS;
    img_blobs_settle(s);
}

enum err_code img_blobs_begin(struct img_job *j, struct err *e)
{
    struct img_store *s = j->store;

    if (mkdirat(s->tmp_fd, "blobs", 0700) != 0 && errno != EEXIST)
        return err_sys(e, errno, "create the blob folder");
    s->have_blobs = true;
    if (img_user_blobs(s, e) != ERR_OK)
        return e->code;
    if (bytes_below(s->tmp_fd, "blobs", 2, &j->shared_before, e) != ERR_OK) {
        e->code = ERR_UNAVAILABLE; /* the blobs are not bad: the retry checks them again */
        return err_wrap(e, "read the existing blobs");
    }
    j->copies_before = s->copies_begun++ - s->copying;
    if (s->copying++ == 0)
        uv_timer_start(&s->usage, on_tick, IMG_USAGE_PERIOD_MS, IMG_USAGE_PERIOD_MS);
    return ERR_OK;
}

void img_blobs_end(struct img_job *j)
{
    if (--j->store->copying == 0)
        uv_timer_stop(&j->store->usage);
}
