/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a created container. */
#include "agent/runtime/action.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { START_DEADLINE_MS = 60000 }; /* takes 5 ms, unless the machine is overloaded */

/* ---- shared with delete ---- */

static void rt_start_on_over(struct op *op, const struct err *result)
{
    struct rt_action *a = container_of(op, struct rt_action, op);
    struct rt_action_run *run = take_ptr(&a->run);
    op_done_fn done = run->done;

    if (run->conmon_fd >= 0)
        close(run->conmon_fd);
    free(run);
    done(op, result);
}

bool rt_action_begin(struct rt_action *a, struct rt *rt, const char *id, const char *name,
                     uint64_t deadline_ms, op_abort_fn abort, op_done_fn done, void *owner)
{
    struct rt_action_run *run = calloc(1, sizeof(*run));
    struct err e = { 0 };

    a->run = run;
    op_init(&a->op, rt->loop, name, deadline_ms, abort, run != NULL ? rt_start_on_over : done, owner);
    op_set_subject(&a->op, id);
    if (run == NULL) {
        err_nomem(&e);
        op_finish(&a->op, &e);
        return false;
    }
    run->rt = rt;
    run->done = done;
    run->conmon_fd = -1;
    if (!rt_id_valid(id)) {
        err_set(&e, ERR_NOT_FOUND, "container id \"%.70s\" is not 64 hex digits", id);
        op_finish(&a->op, &e);
        return false;
    }
    snprintf(run->id, sizeof(run->id), "%s", id);
    if (rt_handler_of(rt, id, &run->handler, &e) != ERR_OK) {
        op_finish(&a->op, &e);
        return false;
    }
    return true;
}

void rt_action_call_runtime(struct rt_action *a, const char *name, const char *command, const char *option,
                            uint64_t deadline_ms, op_done_fn done)
{
    struct rt_action_run *run = a->run;
    struct rt_path bundle = rt_container_dir(run->rt, run->id);
    struct rt_runtime_args global;
    const char *argv[RT_GLOBAL_ARGS + 5];
    size_t n = 0, i;

    rt_runtime_args(run->rt, run->handler, access(bundle.s, F_OK) == 0 ? run->id : NULL, &global);
    argv[n++] = run->handler->program;
    for (i = 0; i < global.n; i++)
        argv[n++] = global.v[i];
    argv[n++] = command;
    if (option != NULL)
        argv[n++] = option;
    argv[n++] = run->id;
    argv[n] = NULL;
    const struct proc_spec spec = {
        .name = name,
        .subject = run->id,
        .argv = argv,
        .env = global.env,
        CG_OPS(run->rt->cgroups),
        .deadline_ms = deadline_ms,
    };
    proc_start(&run->proc, &spec, run->rt->loop, done, a);
}

/* ---- start ---- */

static void rt_start_on_abort(struct op *op)
{
    struct rt_action *a = container_of(op, struct rt_action, op);

    if (a->run != NULL && op_live(&a->run->proc.op))
        proc_cancel(&a->run->proc);
}

static void rt_start_on_started(struct op *op, const struct err *result)
{
    struct rt_action *a = op->owner;
    struct rt_action_run *run = a->run;
    struct err e = *result;

    if (e.code == ERR_OK) {
        rt_record_start(run->rt, run->id);
    } else if (e.code == ERR_UNKNOWN) { /* without a prefix to the runtime's message */
        str_auto words = strdup(run->proc.err_out.p);

        if (words != NULL)
            rt_words_tidy(words);
        if (words != NULL && *words != '\0')
            err_set(&e, ERR_UNKNOWN, "%s", words);
    }
    op_finish(&a->op, e.code == ERR_OK ? NULL : &e);
}

void rt_start_start(struct rt_action *a, struct rt *rt, const char *id, op_done_fn done, void *owner)
{
    if (rt_action_begin(a, rt, id, "container start", START_DEADLINE_MS, rt_start_on_abort, done, owner))
        rt_action_call_runtime(a, "runtime start", "start", NULL, START_DEADLINE_MS, rt_start_on_started);
}
