#include "agent/runtime/image_internal.h"

#include <string.h>

/*
 * An img_bring is one caller's wish; the work is done by a job (image_job.c), which several wishes may share.
 * This file turns the one into the other and holds what the caller may look at in done.
 */

static void on_done(struct op *op, const struct err *result)
{
    struct img_bring_run *run = container_of(op, struct img_bring, op)->run;
    struct img_image *image = run->image;
    json_t *names = run->names;
    op_done_fn done = run->done;

    free(run);
    done(op, result); /* the img_bring is the caller's again: not touched any more */
    img_unref(image);
    json_decref(names);
}

/* Cancelled, or past the deadline: the job goes on for the others. */
static void on_abort(struct op *op)
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

void img_bring_start_auth(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                          const char *auth_json, op_done_fn done, void *owner)
{
    struct img_bring_run *run = calloc(1, sizeof(*run));
    char full[IMG_NAME_MAX] = "";
    struct err e = { 0 };

    b->run = run;
    b->image = NULL;
    b->ran_ms = 0;
    b->names = NULL;
    op_init(&b->op, s->loop, "image bring", IMG_BRING_DEADLINE_MS, run != NULL ? on_abort : NULL,
            run != NULL ? on_done : done, owner);
    op_set_subject(&b->op, name != NULL ? name : source);
    if (run == NULL) {
        err_nomem(&e);
        op_finish(&b->op, &e);
        return;
    }
    run->bring = b;
    run->done = done;
    if (s->closing)
        err_set(&e, ERR_CANCELLED, "the image store is closing");
    else if (auth_json != NULL && strlen(auth_json) > IMG_AUTH_MAX)
        err_set(&e, ERR_INVALID, "the registry credentials are larger than %u bytes", IMG_AUTH_MAX);
    else if (check_source(source, name, full, &e) == ERR_OK &&
             img_job_join(s, run, source, full[0] != '\0' ? full : NULL, auth_json, &e) == ERR_OK)
        return;
    op_finish(&b->op, &e);
}

void img_bring_start(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                     op_done_fn done, void *owner)
{
    img_bring_start_auth(b, s, source, name, NULL, done, owner);
}
