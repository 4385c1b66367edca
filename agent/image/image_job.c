/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void job_step(struct img_job *j, struct err *e);
static void job_end(struct img_job *j, const struct err *e);

/* ---- life ---- */

static void job_free(struct img_job *j)
{
    if (j->auth != NULL)
        explicit_bzero(j->auth, strlen(j->auth));
    img_found_free(j);
    img_writes_free(j);
    img_meter_close(j);
    free(j->source);
    free(j->name);
    free(j->auth);
    free(j->key);
    free(j->host);
    reg_tries_done(&j->tries);
    img_auth_forget(j);
    free(j->digest);
    for (size_t i = 0; i < j->n_blobs; i++)
        free(j->blobs[i]);
    free(j->blobs);
    free(j);
}

static struct img_job *job_new(struct img_store *s, const struct img_bring_run *run, const char *source,
                               const char *name)
{
    const char *auth = run->auth;
    struct img_job *j = calloc(1, sizeof(*j));

    if (j == NULL)
        return NULL;
    j->store = s;
    j->meter_fd = -1;
    j->for_pod = run->for_pod;
    j->is_registry = str_starts(source, "docker://");
    j->source = strdup(source);
    j->key = strdup(name != NULL ? name : source);
    j->name = name == NULL ? NULL : strdup(name);
    j->auth = auth == NULL ? NULL : strdup(auth);
    TAILQ_INIT(&j->waiters);
    if (j->source != NULL && j->is_registry) {
        char full[IMG_NAME_MAX];
        const char *reference = img_job_reference(j, full);

        j->host = strndup(reference, strcspn(reference, "/"));
    }
    if (j->source != NULL && j->key != NULL && (!j->is_registry || j->host != NULL) &&
        (name == NULL || j->name != NULL) && (auth == NULL || j->auth != NULL))
        return j;
    job_free(j);
    return NULL;
}

enum err_code img_job_join(struct img_store *s, struct img_bring_run *run, const char *source,
                           const char *name, struct err *e)
{
    struct img_job *j;

    TAILQ_FOREACH (j, &s->jobs, more)
        if (!j->cancelled && strcmp(j->source, source) == 0 && str_eq(j->name, name) &&
            str_eq(j->auth, run->auth) && j->for_pod == run->for_pod)
            break;
    if (j == NULL) {
        j = job_new(s, run, source, name);
        if (j == NULL)
            return err_nomem(e);
        TAILQ_INSERT_TAIL(&s->jobs, j, more);
    }
    run->job = j;
    TAILQ_INSERT_TAIL(&j->waiters, run, more);
    img_jobs_start(s);
    return ERR_OK;
}

static void stop_step(struct img_job *j)
{
    provider_ask_cancel(&j->ask); /* an ask that begins later checks for the end itself */
    if (j->aside == IMG_ASKED)
        img_auth_go_on(j); /* it ends at once */
    if (op_live(&j->proc.op))
        proc_cancel(&j->proc); /* the writing of records is not interrupted, so that they are complete */
}

void img_job_stop(struct img_job *j, const struct err *why)
{
    if (j->over_limit)
        return;
    j->over_limit = true;
    if (why->code == ERR_UNAVAILABLE)
        j->failure = IMG_REGISTRY_UNAVAILABLE;
    j->limit = *why;
    err_wrap(&j->limit, "%s %.200s", j->is_registry ? "pull" : "import", j->is_registry ? j->key : j->source);
    stop_step(j);
}

void img_job_leave(struct img_bring_run *run)
{
    struct img_job *j = run->job;

    if (j == NULL)
        return;
    run->job = NULL;
    TAILQ_REMOVE(&j->waiters, run, more);
    if (!TAILQ_EMPTY(&j->waiters) || j->cancelled)
        return;
    j->cancelled = true;
    if (j->state == JOB_WAIT) {
        TAILQ_REMOVE(&j->store->jobs, j, more);
        img_store_settle(j->store);
        job_free(j);
    } else if (j->state == JOB_TWIN || j->state == JOB_SPACE) {
        struct err e = { 0 };

        j->store->running += j->state == JOB_SPACE;
        err_set(&e, ERR_CANCELLED, "cancelled");
        job_end(j, &e);
    } else {
        stop_step(j);
    }
}

bool img_job_holds(const struct img_store *s, const char *id)
{
    const struct img_job *j;

    TAILQ_FOREACH (j, &s->jobs, more)
        for (size_t i = 0; i < j->n_found; i++)
            if (strcmp(j->found[i].image->id, id) == 0)
                return true;
    return false;
}

/* ---- the end ---- */

static json_t *all_names(const struct img_job *j)
{
    json_t *names = json_array();

    for (size_t i = 0; i < j->n_found && names != NULL; i++)
        for (size_t k = 0; k < j->found[i].n_names; k++)
            if (json_array_append_new(names, json_string(j->found[i].names[k].name)) != 0) {
                json_decref(names);
                return NULL;
            }
    return names;
}

static void image_job_answer(struct img_job *j, const struct err *e)
{
    struct img_bring_run *run, *next;

    TAILQ_FOREACH_SAFE (run, &j->waiters, more, next) {
        struct err result = *e;

        TAILQ_REMOVE(&j->waiters, run, more);
        run->job = NULL;
        run->bring->failure = j->failure;
        run->bring->ran_ms = clock_mono_ms() - j->begun_ms;
        if (result.code == ERR_OK) {
            run->names = all_names(j);
            run->image = img_ref(j->found[0].image);
            if (run->names == NULL)
                err_nomem(&result);
            run->bring->names = run->names;
            run->bring->image = run->image;
        }
        img_bring_answer(run, &result);
    }
}

static void job_end(struct img_job *j, const struct err *e)
{
    struct img_store *s = j->store;

    img_auth_remove(j);
    if (j->tmp[0] != '\0')
        img_trash(s, j->tmp);
    TAILQ_REMOVE(&s->jobs, j, more);
    s->running--;
    if (j->state == JOB_COMMIT && e->code != ERR_OK)
        img_commit_undo(j);
    if (j->is_writer)
        img_writer_end(s, &j->writer);
    if (j->is_registry) {
        img_blobs_ended(j, e);
        img_blobs_settle(s);
    }
    image_job_answer(j, e);
    job_free(j);
    img_collect(s); /* layers that were completed before the failure, or hidden by an opaque root */
    img_twins_wake(s);
    img_jobs_start(s);
    img_store_settle(s);
}

/* ---- steps ---- */

static enum err_code image_job_make_folder(struct img_job *j, struct err *e)
{
    id_random_hex(j->tmp, sizeof(j->tmp) - 1);
    if (mkdirat(j->store->tmp_fd, j->tmp, 0700) != 0) {
        int sys = errno;

        j->tmp[0] = '\0';
        return err_sys(e, sys, "create a temporary folder in the image store");
    }
    return ERR_OK;
}

static void on_step_done(struct op *op, const struct err *result)
{
    struct img_job *j = op->owner;
    struct err e = *result;

    job_step(j, &e);
}

static void run_unpack(struct img_job *j, const char *const *more)
{
    struct img_store *s = j->store;
    const char *argv[24] = { s->unpack_path };
    char max[24], reserve[24];
    struct proc_spec spec;
    size_t n = 1;

    snprintf(max, sizeof(max), "%llu", (unsigned long long)s->max_bytes);
    snprintf(reserve, sizeof(reserve), "%llu", (unsigned long long)img_space_reserve(s));
    if (j->state == JOB_UNPACK) {
        img_meter_open(j);
        img_space_writing(s);
    }
    if (j->meter != NULL) {
        argv[n++] = "--progress";
        argv[n++] = "3";
    }
    while (*more != NULL)
        argv[n++] = *more++;
    if (j->state == JOB_UNPACK) {
        argv[n++] = "--max-bytes";
        argv[n++] = max;
        argv[n++] = "--reserve-bytes";
        argv[n++] = reserve;
        if (j->name != NULL) {
            argv[n++] = "--name";
            argv[n++] = j->name;
        }
    }
    spec = img_unpack_spec(s, j->key, argv, IMG_RECORD_MAX, IMG_BRING_DEADLINE_MS);
    spec.fds = &(struct proc_fd){ j->meter_fd, 3 };
    spec.n_fds = j->meter != NULL;
    proc_start(&j->proc, &spec, s->loop, on_step_done, j);
}

static void start_unpack(struct img_job *j, struct err *e)
{
    const struct img_store *s = j->store;
    str_auto work = str_printf("%s/tmp/%s", s->dir, j->tmp);
    str_auto layout = str_printf("%s/tmp/%s/fetch/layout", s->dir, j->tmp);
    str_auto layers = str_printf("%s/layers", s->dir);
    str_auto parts = str_printf("%s/parts", s->dir);
    str_auto blobs = str_printf("%s/tmp/blobs", s->dir);

    j->state = JOB_UNPACK;
    if (work == NULL || layout == NULL || layers == NULL || parts == NULL || blobs == NULL) {
        err_nomem(e);
        job_end(j, e);
        return;
    }
    run_unpack(j, (const char *const[]){ "--source", j->is_registry ? layout : j->source, "--work", work,
                                         "--layers", layers, "--parts", parts,
                                         j->is_registry ? "--blobs" : NULL, blobs, NULL });
}

void img_job_unpack(struct img_job *j)
{
    struct err e = { 0 };

    switch (img_space_for(j, &e)) {
    case IMG_SPACE_ENOUGH:
        start_unpack(j, &e);
        return;
    case IMG_SPACE_LATER:
        j->state = JOB_SPACE;
        j->store->running--; /* the layers it waits for are only removed while no other job runs */
        return;
    case IMG_SPACE_NONE:
        job_end(j, &e);
        return;
    }
}

static void start_copy(struct img_job *j, struct err *e)
{
    j->state = JOB_COPY;
    img_space_writing(j->store);
    if (img_blobs_begin(j, e) == ERR_OK) {
        if (img_skopeo_copy(j, on_step_done, e) == ERR_OK)
            return;
        img_blobs_end(j);
    }
    job_end(j, e);
}

static void image_job_on_writers_turn(struct img_writer *w)
{
    struct img_job *j = container_of(w, struct img_job, writer);
    struct err e = { 0 };

    if (img_commit_start(j, on_step_done, &e) != ERR_OK)
        job_end(j, &e);
}

static void start_commit(struct img_job *j)
{
    j->state = JOB_COMMIT;
    j->is_writer = true;
    img_writer_start(j->store, &j->writer, image_job_on_writers_turn);
}

/* The present image for the digest reported by the registry, or NULL. */
static struct img_entry *present(struct img_store *s, const char *digest)
{
    for (const struct img_name *n = s->names; n != NULL; n = n->hh.next)
        if (str_eq(n->digest, digest))
            return n->entry;
    for (struct img_entry *entry = s->images; entry != NULL; entry = entry->hh.next)
        if (strcmp(entry->image->digest, digest) == 0)
            return entry;
    return NULL;
}

static enum err_code image_job_take_present(struct img_job *j, struct img_entry *entry, struct err *e)
{
    j->found = calloc(1, sizeof(*j->found));
    if (j->found == NULL)
        return err_nomem(e);
    j->n_found = 1;
    j->found->image = img_ref(entry->image);
    return ERR_OK;
}

static void start_ask(struct img_job *j, struct err *e)
{
    j->state = JOB_ASK;
    if (img_user_folders(j, e) != ERR_OK || img_auth_write(j, e) != ERR_OK ||
        img_skopeo_ask(j, on_step_done, e) != ERR_OK)
        job_end(j, e);
}

/* The digest is known: the image is present, being pulled under another name, or must be fetched. */
void img_job_decide(struct img_job *j)
{
    struct img_entry *entry = present(j->store, j->digest);
    struct err e = { 0 };

    if (entry == NULL && img_job_has_elder(j)) {
        j->state = JOB_TWIN;
    } else if (entry == NULL) {
        start_copy(j, &e);
    } else if (image_job_take_present(j, entry, &e) == ERR_OK) {
        j->state = JOB_NAME;
        run_unpack(j, (const char *const[]){ "--hash-name", j->name, NULL });
    } else {
        job_end(j, &e);
    }
}

static void asked(struct img_job *j, struct err *e)
{
    if (e->code == ERR_OK) {
        if (img_blobs_take(j, j->proc.out.p, e) == ERR_OK)
            img_job_decide(j);
        else
            job_end(j, e);
        return;
    }
    img_skopeo_error(j, e);
    if (img_auth_next(j, e)) {
        *e = (struct err){ 0 };
        start_ask(j, e);
    } else {
        img_auth_add_source(j, e);
        job_end(j, e);
    }
}

static void copied(struct img_job *j, struct err *e)
{
    img_blobs_end(j);
    if (e->code == ERR_OK) {
        start_unpack(j, e);
        return;
    }
    if (j->over_limit) {
        *e = j->limit;
    } else {
        img_skopeo_error(j, e);
        img_auth_add_source(j, e);
    }
    job_end(j, e);
}

static void unpacked(struct img_job *j, struct err *e)
{
    struct err why = { 0 };

    if (e->code == ERR_OK) {
        if (img_take_result(j, j->proc.out.p, j->proc.out.n, e) == ERR_OK) {
            start_commit(j);
            return;
        }
    } else if (j->over_limit) {
        *e = j->limit;
    } else if (img_take_failure(j->proc.out.p, j->proc.out.n, &why)) {
        *e = why;
        err_wrap(e, "%s", j->is_registry ? j->key : j->source);
    }
    job_end(j, e);
}

static void job_step(struct img_job *j, struct err *e)
{
    /* All callers have left. COMMIT has written complete records, and the tables must match them. */
    if (j->cancelled && j->state != JOB_COMMIT) {
        if (j->state == JOB_COPY)
            img_blobs_end(j);
        if (e->code == ERR_OK) /* the step has just finished: keep blobs that wait for another try */
            err_set(e, ERR_CANCELLED, "cancelled");
        job_end(j, e);
        return;
    }
    switch (j->state) {
    case JOB_WAIT:
        if (image_job_make_folder(j, e) != ERR_OK) {
            job_end(j, e);
        } else if (!j->is_registry) {
            img_job_unpack(j);
        } else if (j->store->skopeo_path == NULL) {
            err_set(e, ERR_PRECONDITION,
                    "cannot pull %.300s: skopeo is not installed (Debian package skopeo)", j->key);
            job_end(j, e);
        } else {
            j->state = JOB_AUTH;
            img_auth_start(j, on_step_done);
        }
        return;
    case JOB_AUTH:
        if (e->code == ERR_OK) {
            start_ask(j, e);
        } else {
            err_wrap(e, "pull %.200s", j->key);
            job_end(j, e);
        }
        return;
    case JOB_ASK:
        asked(j, e);
        return;
    case JOB_SPACE:
    case JOB_TWIN: /* the job has no process */
        return;
    case JOB_NAME:
        if (e->code == ERR_OK && img_take_names(j, j->proc.out.p, j->proc.out.n, e) == ERR_OK)
            start_commit(j);
        else
            job_end(j, e);
        return;
    case JOB_COPY:
        copied(j, e);
        return;
    case JOB_UNPACK:
        unpacked(j, e);
        return;
    case JOB_COMMIT:
        if (e->code == ERR_OK && img_commit_finish(j, e) == ERR_OK)
            log_debug("image is here", F_STR("image", j->key));
        job_end(j, e);
        return;
    }
}

void img_job_begin(struct img_job *j)
{
    struct err e = { 0 };

    job_step(j, &e);
}
