/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_files - <root>/cpu_manager_state and <root>/memory_manager_state: read at the start, written whenever
 * a pod got or lost something. The texts are made on the loop and written on the pool, both in one go;
 * changes during a write go into the next one.
 *
 * A file that is damaged, or that does not fit, ends the start, as in kubelet: without it the processors of
 * running containers would be given again.
 */
#include "agent/pod/placement/internal.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>

#define AGAIN_MS 5000 /* after a write that failed */

/* ---- reading ---- */

static enum err_code unusable(struct err *e, const char *path)
{
    return err_wrap(e, "%.160s (drain this node and remove the file before the agent starts again)", path);
}

static enum err_code check_policy(char *found, const char *policy, struct err *e)
{
    bool same = strcmp(found, policy) == 0;

    if (!same)
        err_set(e, ERR_PRECONDITION,
                "configured policy \"%s\" differs from state checkpoint policy \"%.64s\"", policy, found);
    free(found);
    return same ? ERR_OK : e->code;
}

/* *ret NULL: there is no file. */
static enum err_code read_text(const char *path, char **ret, size_t *ret_n, struct err *e)
{
    *ret = NULL;
    return presence_is_unknown(fs_read_if_there(AT_FDCWD, path, PL_STATE_MAX, ret, ret_n, e)) ? e->code
                                                                                              : ERR_OK;
}

static enum err_code read_cpus(struct placement_node *part, struct err *e)
{
    const char *path = part->files[0].path;
    struct pl_cpu_state s = { 0 };
    str_auto text = NULL;
    char *policy;
    size_t n = 0;

    if (read_text(path, &text, &n, e) != ERR_OK)
        return e->code;
    if (text != NULL && pl_cpu_state_read(text, n, &s, &policy, e) == ERR_OK)
        ERR_IGNORE(check_policy(policy, "static", e));
    if (e->code == ERR_OK)
        ERR_IGNORE(pl_cpu_manager_start(&part->cpus, &s, e));
    pl_cpu_state_done(&s);
    return e->code == ERR_OK ? ERR_OK : unusable(e, path);
}

static enum err_code read_memory(struct placement_node *part, struct err *e)
{
    const char *path = part->files[1].path;
    struct pl_memory_state s = { 0 };
    str_auto text = NULL;
    char *policy;
    size_t n = 0;

    if (read_text(path, &text, &n, e) != ERR_OK)
        return e->code;
    if (text != NULL && pl_memory_state_read(text, n, &s, &policy, e) == ERR_OK)
        ERR_IGNORE(check_policy(policy, "Static", e));
    if (e->code == ERR_OK)
        ERR_IGNORE(pl_memory_manager_start(&part->memories, &s, e));
    pl_memory_state_done(&s);
    return e->code == ERR_OK ? ERR_OK : unusable(e, path);
}

enum err_code placement_read(struct node *n, struct err *e)
{
    struct placement_node *part = placement_node(n);

    part->files[0].path = str_printf("%s/cpu_manager_state", n->o.root_dir);
    part->files[1].path = str_printf("%s/memory_manager_state", n->o.root_dir);
    if (part->files[0].path == NULL || part->files[1].path == NULL)
        return err_nomem(e);
    if (part->cpu && read_cpus(part, e) != ERR_OK)
        return e->code;
    return part->memory ? read_memory(part, e) : ERR_OK;
}

/* ---- writing ---- */

static void start(struct node *n);

/* Before the runtime is known nothing can be asked about containers: then all pods are woken anyway. */
static void wake(struct pod *p, const char *why)
{
    if (p->node->rt != NULL)
        pod_wake(p, why);
}

static enum err_code write_files(void *arg, struct err *e)
{
    const struct placement_node *part = arg;

    for (size_t i = 0; i < 2; i++) {
        const struct placement_file *f = &part->files[i];

        if (f->text != NULL && fs_replace_at(AT_FDCWD, f->path, f->text, f->n_text, 0600, true, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static void on_timer(uv_timer_t *timer)
{
    start(timer->data);
}

static void try_again(struct node *n, const struct err *why)
{
    struct placement_node *part = placement_node(n);

    if (!part->failing && !n->closing)
        log_error("cannot write the state of the CPU and memory managers; will retry", F_ERR(why));
    part->failing = true;
    if (!n->closing)
        uv_timer_start(&part->timer, on_timer, AGAIN_MS, 0);
}

static void on_written(struct op *op, const struct err *result)
{
    struct node *n = op->owner;
    struct placement_node *part = placement_node(n);
    uint64_t had = part->written;

    free(take_ptr(&part->files[0].text));
    free(take_ptr(&part->files[1].text));
    if (result->code != ERR_OK) {
        try_again(n, result);
        return;
    }
    part->failing = false;
    part->written = part->writing;
    pods_each (n, p)
        if (placement_of(p)->generation > had)
            wake(p, "the state of processors and memory is written");
    if (part->written != part->generation)
        start(n);
}

static enum err_code make_texts(struct placement_node *part, struct err *e)
{
    struct placement_file *f = part->files;

    if (part->cpu && pl_cpu_state_write(&part->cpus.state, "static", &f[0].text, &f[0].n_text, e) != ERR_OK)
        return e->code;
    if (part->memory &&
        pl_memory_state_write(&part->memories.state, "Static", &f[1].text, &f[1].n_text, e) != ERR_OK)
        return e->code;
    return ERR_OK;
}

static void start(struct node *n)
{
    struct placement_node *part = placement_node(n);
    struct err e = { 0 };

    if (op_live(&part->work.op) || (!part->cpu && !part->memory))
        return;
    uv_timer_stop(&part->timer);
    part->writing = part->generation;
    if (make_texts(part, &e) != ERR_OK) {
        free(take_ptr(&part->files[0].text));
        free(take_ptr(&part->files[1].text));
        try_again(n, &e);
        return;
    }
    work_start(&part->work, "placement state", "", write_files, part, n->o.loop, on_written, n);
}

void placement_changed(struct node *n)
{
    placement_node(n)->generation++;
    start(n);
    pods_each (n, p)
        wake(p, "processors of containers changed");
}

void placement_write_last(struct node *n)
{
    struct placement_node *part = placement_node(n);

    uv_timer_stop(&part->timer);
    if (part->written != part->generation)
        start(n);
}

bool placement_durable(const struct pod *p)
{
    const struct placement_node *part = placement_node(p->node);

    return (!part->cpu && !part->memory) || part->failing || part->written >= placement_of(p)->generation;
}
