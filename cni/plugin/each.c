/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/plugin/each.h"

#include "base/clock.h"
#include "base/scope.h"

static void cni_each_step(struct cni_each *each);

static void cni_each_end(struct cni_each *each, const struct err *e)
{
    cni_list_done(&each->list);
    json_decref(each->call.more);
    op_finish(&each->op, e->code != ERR_OK ? e : NULL);
}

static void on_plugin(struct op *op, const struct err *result)
{
    struct cni_each *each = op->owner;

    if (result->code != ERR_OK && each->first.code == ERR_OK)
        each->first = *result;
    if (each->op.why.code != ERR_OK || (each->first.code != ERR_OK && each->call.verb != CNI_GC))
        cni_each_end(each, &each->first);
    else
        cni_each_step(each);
}

static void cni_each_step(struct cni_each *each)
{
    size_t i = each->next++;
    json_auto_t *input = NULL;
    struct err e = { 0 };

    if (i >= cni_list_size(&each->list)) {
        cni_each_end(each, &each->first);
        return;
    }
    input = cni_plugin_stdin(&each->list, i, NULL, NULL);
    if (input == NULL || (each->call.more != NULL && json_object_update(input, each->call.more) < 0)) {
        err_nomem(&e);
        cni_each_end(each, &e);
        return;
    }
    cni_plugin_start(&each->plugin,
                     &(struct cni_plugin_call){ .verb = each->call.verb,
                                                .type = cni_plugin_type(cni_list_plugin(&each->list, i)),
                                                .container_id = each->list.name,
                                                .bin_dirs = each->call.bin_dirs,
                                                .input = input,
                                                .cgroup_fd = each->call.cgroup_fd,
                                                .cgroup_procs = each->call.cgroup_procs,
                                                .deadline_at_ms = each->deadline_at_ms },
                     each->op.loop, on_plugin, each);
}

static void abort_each(struct op *op)
{
    op_cancel(&container_of(op, struct cni_each, op)->plugin.op);
}

void cni_each_start(struct cni_each *each, const struct cni_each_call *call, uv_loop_t *loop, op_done_fn done,
                    void *owner)
{
    *each = (struct cni_each){ .call = *call, .list = *call->list };
    json_incref(each->list.conf);
    json_incref(each->call.more);
    each->deadline_at_ms = clock_mono_ms() + call->deadline_ms;
    op_init(&each->op, loop, call->verb == CNI_GC ? "cni gc" : "cni status", 0, abort_each, done, owner);
    op_set_subject(&each->op, each->list.name);
    cni_each_step(each);
}
