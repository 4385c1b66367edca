/* SPDX-License-Identifier: Apache-2.0 */
/* helper - what the tests of base/ share: cmocka, a scratch folder, a loop that must close cleanly. */
#ifndef TESTS_UNIT_BASE_HELPER_H
#define TESTS_UNIT_BASE_HELPER_H
/* The order cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/fs.h"
#include "base/op.h"
#include "base/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIP(why)                                                                                            \
    do {                                                                                                     \
        print_message("skipped: %s\n", why);                                                                 \
        skip();                                                                                              \
    } while (0)

/* ---- scratch folder ---------------------------------------------------------------------------- */

static inline int scratch_make(void **state)
{
    char path[] = "/tmp/coracle-unit-XXXXXX";

    if (mkdtemp(path) == NULL)
        return -1;
    *state = strdup(path);
    return *state == NULL ? -1 : 0;
}

static inline int scratch_remove(void **state)
{
    struct err e = { 0 };
    int bad = fs_unmount_below(*state, &e) != ERR_OK && e.code != ERR_PERMISSION;

    if (fs_remove_tree(AT_FDCWD, *state, &e) != ERR_OK)
        bad = 1;
    if (bad)
        print_message("%s\n", e.text);
    free(*state);
    return bad;
}

/* ---- loop ----------------------------------------------------------------------------------------- */

struct ended { /* owner of an operation under test */
    uv_loop_t *loop;
    int calls;
    struct err result;
    char *out; /* copy of the output, where the done function takes one */
    size_t out_n;
};

static inline void on_ended(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;

    d->calls++;
    d->result = *result;
}

static inline int loop_make(void **state)
{
    struct ended *d = calloc(1, sizeof(*d));
    uv_loop_t *loop = calloc(1, sizeof(*loop));

    if (d == NULL || loop == NULL || uv_loop_init(loop) != 0)
        return -1;
    d->loop = loop;
    *state = d;
    return 0;
}

/* No live handle, no live operation. */
static inline int loop_remove(void **state)
{
    struct ended *d = *state;
    int bad = 0;

    proc_forget(d->loop);
    uv_run(d->loop, UV_RUN_NOWAIT);
    if (op_count() != 0) {
        print_message("%zu operations are still live\n", op_count());
        bad = 1;
    }
    if (uv_loop_close(d->loop) != 0) {
        uv_print_all_handles(d->loop, stderr);
        bad = 1;
    }
    free(d->out);
    free(d->loop);
    free(d);
    return bad;
}

/* done of a proc_call: its output is kept in the owner's `out`. */
static inline void take_call_output(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;
    struct proc_call *c = container_of(op, struct proc_call, op);

    d->calls++;
    d->result = *result;
    free(d->out);
    d->out_n = c->out.n;
    d->out = buf_detach(&c->out);
}

/* done of a proc_call that stands in memory of its own. */
static inline void free_call_in_done(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;

    d->calls++;
    d->result = *result;
    free(container_of(op, struct proc_call, op));
}

static inline void run_until_ended(struct ended *d, int calls)
{
    while (d->calls < calls && uv_run(d->loop, UV_RUN_ONCE) != 0)
        ;
    assert_int_equal(d->calls, calls);
}

static inline void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Those left behind do not keep the loop alive: something else must. */
static inline void run_until_reaped(struct ended *d)
{
    uv_timer_t tick;

    uv_timer_init(d->loop, &tick);
    uv_timer_start(&tick, on_tick, 1, 1);
    while (proc_left_behind() > 0)
        uv_run(d->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(d->loop, UV_RUN_NOWAIT);
}

#endif
