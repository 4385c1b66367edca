/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include <stdio.h>
#include <string.h>

/* An img_bring is one caller's request; the work is done by a job (image_job.c), which several requests may
 * share. This file connects the two and holds the results that the caller may read in done. */

static void img_image_bring_run_free(struct img_bring_run *run)
{
    if (run->auth != NULL)
        explicit_bzero(run->auth, strlen(run->auth));
    free(run->auth);
    free(run->reference);
    free(run->name);
    free(run);
}

static void img_image_bring_on_done(struct op *op, const struct err *result)
{
    struct img_bring_run *run = container_of(op, struct img_bring, op)->run;
    struct img_image *image = run->image;
    json_t *names = run->names;
    op_done_fn done = run->done;

    img_image_bring_run_free(run);
    done(op, result); /* the caller may have freed the img_bring */
    img_unref(image);
    json_decref(names);
}

/* Cancelled, or past the deadline: the job continues for its other callers. */
static void img_image_bring_on_abort(struct op *op)
{
    struct img_bring *b = container_of(op, struct img_bring, op);

    img_job_leave(b->run);
    op_finish(op, NULL);
}

static enum err_code check_source(const char *source, const char *name, char full[IMG_NAME_MAX],
                                  struct err *e)
{
    if (str_starts(source, "docker://"))
        return img_normalise(name != NULL ? name : source + strlen("docker://"), full, e);
    if (source[0] != '/')
        return err_set(e, ERR_INVALID,
                       "image source \"%.300s\" is neither docker://<name> nor the absolute path of an OCI "
                       "layout, an OCI "
                       "archive or a docker archive",
                       source);
    full[0] = '\0';
    return name == NULL ? ERR_OK : img_normalise(name, full, e);
}

bool img_candidate(struct img_store *s, const char *reference, size_t k, char ret[IMG_NAME_MAX])
{
    return reg_names_candidate(&s->short_names, reference, k, ret);
}

/* Tries the next name that the reference may mean; false if there is none. */
static bool join_next(struct img_bring_run *run, struct err *e)
{
    char name[IMG_NAME_MAX], source[IMG_NAME_MAX + sizeof("docker://")];

    if (run->store->names_unknown.code != ERR_OK && run->candidate == 0 &&
        reg_names_is_short(run->reference)) {
        *e = run->store->names_unknown; /* otherwise a wrong registry might be asked */
        e->code = ERR_UNAVAILABLE;
        return true;
    }
    if (!img_candidate(run->store, run->reference, run->candidate, name))
        return false;
    run->candidate++;
    snprintf(source, sizeof(source), "docker://%s", name);
    ERR_IGNORE(img_job_join(run->store, run, source, run->name != NULL ? run->name : name, e));
    return true;
}

void img_bring_answer(struct img_bring_run *run, const struct err *result)
{
    struct err e = { 0 };

    if (result->code != ERR_OK && result->code != ERR_CANCELLED && run->reference != NULL &&
        !run->store->closing && join_next(run, &e)) {
        if (e.code == ERR_OK)
            return;
        result = &e;
    }
    op_finish(&run->bring->op, result);
}

static enum err_code keep_wishes(struct img_bring_run *run, const char *reference, const char *name,
                                 const char *auth, struct err *e)
{
    run->reference = strdup(reference);
    run->name = name != NULL ? strdup(name) : NULL;
    run->auth = auth != NULL ? strdup(auth) : NULL;
    if (run->reference == NULL || (name != NULL && run->name == NULL) || (auth != NULL && run->auth == NULL))
        return err_nomem(e);
    return ERR_OK;
}

/* A name equal to the reference is ignored: the place where the image is found determines the name. */
static enum err_code img_image_bring_begin(struct img_bring_run *run, const char *source, const char *name,
                                           const char *auth, struct err *e)
{
    const char *reference = source + strlen("docker://");
    char full[IMG_NAME_MAX] = "", whole[IMG_NAME_MAX];

    if (check_source(source, name, full, e) != ERR_OK)
        return e->code;
    if (!str_starts(source, "docker://"))
        return img_job_join(run->store, run, source, full[0] != '\0' ? full : NULL, e);
    if (img_normalise(reference, whole, e) != ERR_OK ||
        keep_wishes(run, reference, name == NULL || strcmp(name, reference) == 0 ? NULL : full, auth, e) !=
            ERR_OK)
        return e->code;
    if (!join_next(run, e))
        return err_set(e, ERR_INVALID, "couldn't parse image name \"%.300s\" with a registry before it",
                       reference);
    return e->code;
}

static void img_image_bring_start(struct img_bring *b, struct img_store *s, const char *source,
                                  const char *name, const char *auth_json, bool for_pod, op_done_fn done,
                                  void *owner)
{
    struct img_bring_run *run = calloc(1, sizeof(*run));
    struct err e = { 0 };

    b->run = run;
    b->image = NULL;
    b->ran_ms = 0;
    b->failure = IMG_FAILED;
    b->names = NULL;
    op_init(&b->op, s->loop, "image bring", IMG_BRING_DEADLINE_MS,
            run != NULL ? img_image_bring_on_abort : NULL, run != NULL ? img_image_bring_on_done : done,
            owner);
    op_set_subject(&b->op, name != NULL ? name : source);
    if (run == NULL) {
        err_nomem(&e);
        op_finish(&b->op, &e);
        return;
    }
    run->bring = b;
    run->done = done;
    run->store = s;
    run->for_pod = for_pod;
    if (s->closing)
        err_set(&e, ERR_CANCELLED, "the image store is closing");
    else if (auth_json != NULL && strlen(auth_json) > REG_AUTH_MAX)
        err_set(&e, ERR_INVALID, "the registry credentials are larger than %u MiB together",
                REG_AUTH_MAX >> 20);
    else if (img_image_bring_begin(run, source, name, auth_json, &e) == ERR_OK)
        return;
    op_finish(&b->op, &e);
}

void img_bring_start(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                     op_done_fn done, void *owner)
{
    img_image_bring_start(b, s, source, name, NULL, false, done, owner);
}

void img_bring_start_auth(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                          const char *auth_json, op_done_fn done, void *owner)
{
    img_image_bring_start(b, s, source, name, auth_json, true, done, owner);
}
