/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include <string.h>

static void image_task_release(struct img_task_run *run)
{
    for (size_t i = 0; i < run->n_held; i++)
        run->held[i]->held--;
    run->n_held = 0;
}

static void image_task_on_done(struct op *op, const struct err *result)
{
    struct img_task_run *run = container_of(op, struct img_task, op)->run;
    json_t *answer = run->answer;
    op_done_fn done = run->done;

    free(run->held);
    free(run->text);
    free(run->name);
    free(run->auth);
    free(run);
    done(op, result); /* the caller may have freed the img_task */
    json_decref(answer);
}

/* The writing of a record is not interrupted: only the result changes. */
static void image_task_on_abort(struct op *op)
{
    struct img_task_run *run = container_of(op, struct img_task, op)->run;

    if (op_live(&run->proc.op))
        proc_cancel(&run->proc);
}

static enum err_code hold(struct img_task_run *run, const char *reference, struct err *e)
{
    struct img_store *s = run->store;
    struct img_entry *one = NULL;

    if (reference != NULL && img_find_reference(s, reference, &one, e) != ERR_OK)
        return e->code;
    run->of_all = reference == NULL;
    run->held = calloc(run->of_all ? HASH_COUNT(s->images) + 1 : 1, sizeof(struct img_entry *));
    if (run->held == NULL)
        return err_nomem(e);
    if (one != NULL)
        run->held[run->n_held++] = one;
    for (struct img_entry *entry = s->images; run->of_all && entry != NULL; entry = entry->hh.next)
        run->held[run->n_held++] = entry;
    for (size_t i = 0; i < run->n_held; i++)
        run->held[i]->held++;
    return ERR_OK;
}

struct img_task_run *img_task_begin(struct img_task *t, struct img_store *s, const char *name,
                                    const char *reference, uint64_t deadline_ms, op_done_fn done, void *owner)
{
    struct img_task_run *run = calloc(1, sizeof(*run));
    struct err e = { 0 };

    t->run = run;
    t->answer = NULL;
    op_init(&t->op, s->loop, name, deadline_ms, run != NULL ? image_task_on_abort : NULL,
            run != NULL ? image_task_on_done : done, owner);
    op_set_subject(&t->op, reference != NULL ? reference : "all images");
    if (run == NULL) {
        err_nomem(&e);
        op_finish(&t->op, &e);
        return NULL;
    }
    run->task = t;
    run->store = s;
    run->jobs_before = s->jobs_begun;
    run->done = done;
    TAILQ_INSERT_TAIL(&s->tasks, run, more);
    if (s->closing)
        err_set(&e, ERR_CANCELLED, "the image store is closing");
    else if (hold(run, reference, &e) == ERR_OK)
        return run;
    img_task_end(run, &e);
    return NULL;
}

void img_task_end(struct img_task_run *run, const struct err *result)
{
    struct img_store *s = run->store;

    image_task_release(run);
    TAILQ_REMOVE(&s->tasks, run, more);
    run->task->answer = run->answer;
    op_finish(&run->task->op, result);
    img_store_settle(s);
}
