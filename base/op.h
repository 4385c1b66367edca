/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op - an asynchronous operation on the loop: a state, a deadline, one completion callback.
 *
 * An operation is a struct that embeds `struct op`, with an enum for its states and a _step function;
 * callbacks record what happened and call _step. Guarantees:
 * - done runs exactly once, from the loop, never from inside *_start(), even if it fails immediately;
 * - inside done the memory belongs to the caller again, who may free or reuse it;
 * - after op_cancel(), done gets ERR_CANCELLED, unless another result came first;
 * - when the deadline passes, `abort` is called as for a cancel, and the result becomes ERR_DEADLINE. 0 ms
 *   means no deadline (only for operations that cannot hang).
 * Loop thread only. Live operations are listed (op_each), so that a stuck node can be diagnosed.
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

/* Called once when the operation is cancelled or its deadline passes: stops the work, so that the operation
 * reaches op_finish() (now or later). The result is then `why`. NULL: the work cannot be stopped, only its
 * result changes. */
typedef void (*op_abort_fn)(struct op *op);

struct op {
    uv_loop_t *loop;
    op_done_fn done;
    op_abort_fn abort;
    void *owner;         /* the caller's, never touched */
    const char *name;    /* constant: "cni add", "crun start", ... */
    char subject[96];    /* the object the operation works on, for messages: "default/web" */
    uint64_t started_ms; /* clock_mono_ms() */
    int state;           /* the embedding operation's enum */
    bool finished;
    struct err_kept why; /* set when cancelled or past the deadline; its code stays readable in done */
    struct err_kept result;
    uv_timer_t deadline; /* also used to call done from a later turn */
    int open_handles;    /* handles that still have to close; done waits for them */
    TAILQ_ENTRY(op) live;
};

/* Initializes and lists the operation; deadline_ms starts now (0: none). */
void op_init(struct op *op, uv_loop_t *loop, const char *name, uint64_t deadline_ms, op_abort_fn abort,
             op_done_fn done, void *owner);
void op_set_subject(struct op *op, const char *subject);

/* Ends the operation with *result (NULL: success). done follows on a later turn of the loop. */
void op_finish(struct op *op, const struct err *result);
/* Removes the deadline: the operation waits for work that is bounded elsewhere. */
void op_no_deadline(struct op *op);
/* Sets a new deadline, `ms` from now (more than 0), for example when a wait has ended and the work begins. */
void op_deadline(struct op *op, uint64_t ms);
void op_cancel(struct op *op); /* no effect after op_finish() */
/* Replaces the reason for which the operation was stopped. */
void op_set_why(struct op *op, const struct err *why);
bool op_live(const struct op *op); /* initialized and done not yet called; false for { 0 } */

/* Closes a handle owned by the operation; done waits for it. Uses handle->data. */
void op_close_handle(struct op *op, uv_handle_t *handle);

void op_each(void (*fn)(const struct op *op, void *arg), void *arg);
size_t op_count(void);
#endif
