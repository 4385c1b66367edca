/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op - one asynchronous operation on the loop: a state, a deadline, one completion callback.
 *
 * An operation is a struct that embeds `struct op`, with one enum for its states and one _step
 * function; callbacks record what happened and call _step.  Promises:
 *   - done runs exactly once, from the loop, never from inside *_start(), also for immediate failure;
 *   - inside done the memory is the caller's again (free it there, or start anew);
 *   - op_cancel() asks, done(ERR_CANCELLED) answers (or another result that came first);
 *   - a deadline of 0 ms means none (only for operations that cannot hang); when it passes, `abort` is
 *     called like for a cancel and the result becomes ERR_DEADLINE.
 * Loop thread only.  Live operations are listed (op_each) so that a stuck node explains itself.
 */
#ifndef BASE_OP_H
#define BASE_OP_H
#include "base/error.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct op;
typedef void (*op_done_fn)(struct op *op, const struct err *result);

/*
 * Called once when the operation is cancelled or its deadline passes: stop what is under way, then
 * let the operation come to op_finish() (at once or later).  op_finish's result is replaced by why.
 * NULL: nothing can be stopped, only the result changes.
 */
typedef void (*op_abort_fn)(struct op *op);

struct op {
    uv_loop_t *loop;
    op_done_fn done;
    op_abort_fn abort;
    void *owner;         /* the caller's, untouched */
    const char *name;    /* constant: "cni add", "crun start", ... */
    char subject[96];    /* what it works on, for people: "default/web" */
    uint64_t started_ms; /* clock_mono_ms() */
    int state;           /* the embedding operation's enum */
    bool finished;
    struct err why; /* set when cancelled or past the deadline */
    struct err result;
    uv_timer_t deadline; /* also defers done to a later turn */
    int open_handles;    /* handles that still have to close; done waits for zero */
    TAILQ_ENTRY(op) live;
};

/* Prepares and lists the operation; deadline_ms counts from now (0: none). */
void op_init(struct op *op, uv_loop_t *loop, const char *name, uint64_t deadline_ms, op_abort_fn abort,
             op_done_fn done, void *owner);
void op_set_subject(struct op *op, const char *subject);

/* The operation is over with *result (NULL: success).  done follows on a later turn of the loop. */
void op_finish(struct op *op, const struct err *result);
void op_cancel(struct op *op);     /* no effect once finished */
bool op_live(const struct op *op); /* initialised and done not yet called; false for { 0 } */

/* Close a handle owned by the operation; done waits for it.  handle->data is used. */
void op_close_handle(struct op *op, uv_handle_t *handle);

void op_each(void (*fn)(const struct op *op, void *arg), void *arg);
size_t op_count(void);
#endif
