/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/netlink.h"
#include "base/scope.h"
#include "cni/attachment.h"
#include "cni/plugin/names.h"

#include <string.h>

/* ---- the end ---- */

void cni_run_drop_entry(struct cni_run *r)
{
    if (!r->cached) {
        json_decref(r->entry.result); /* ADD: ours; otherwise inside the document */
    }
    cni_entry_done(&r->entry);
    r->cached = false;
}

static void cni_run_free(struct cni_run *r)
{
    if (r == NULL)
        return;
    cni_run_drop_entry(r);
    json_decref(r->capability_args);
    free(r->container_id);
    free(r->netns);
    free(r->ifname);
    free(r->args);
    free(r->found);
    free(r);
}

static void give_place_back(struct cni_run *r)
{
    if (r->counted)
        r->c->n_running--;
    r->counted = false;
}

static void on_slow(uv_timer_t *timer)
{
    struct cni_run *r = timer->data;
    struct cni *c = r->c;

    if (!r->slow) {
        r->slow = true;
        cni_width_slow(&c->width);
        uv_timer_start(timer, on_slow, CNI_HANG_MS - CNI_PLACE_MS, 0);
        return;
    }
    give_place_back(r);
    cni_run_next(c);
}

void cni_run_finish(struct cni_run *r, const struct err *e)
{
    struct cni *c = r->c;
    struct cni_op *o = r->o;

    give_place_back(r);
    if (r->verb != CNI_CHECK && r->done > 0 && e->code == ERR_OK)
        cni_width_took(&c->width, clock_mono_ms() - r->began_ms);
    if (r->live)
        c->n_live--;
    op_close_handle(&o->op, (uv_handle_t *)&o->slow);
    o->op.state = RUN_OVER;
    o->run = NULL;
    cni_run_free(r);
    op_finish(&o->op, e->code != ERR_OK ? e : NULL);
    if (c->n_live == 0 && c->idle != NULL)
        c->idle(c);
    cni_run_next(c);
}

static void abort_run(struct op *op)
{
    struct cni_op *o = container_of(op, struct cni_op, op);
    struct cni_run *r = o->run;

    switch ((enum run_state)op->state) {
    case RUN_WAITING:
        if (r == NULL) /* the operation failed before it was queued */
            return;
        TAILQ_REMOVE(&r->c->waiting, r, link);
        op->state = RUN_OVER;
        o->run = NULL;
        cni_run_free(r);
        op_finish(op, NULL); /* the operation has its own reason */
        return;
    case RUN_PLUGIN:
        op_cancel(&r->plugin.op);
        return;
    case RUN_MASQ:
        op_cancel(&r->masq.rules.op);
        return;
    case RUN_OVER:
        return;
    }
}

/* ---- running ---- */

/* Runs the next plugin, or continues after the last one. */
static void cni_run_step(struct cni_run *r)
{
    struct err e = { 0 };

    if (r->done < cni_list_size(&r->entry.list)) {
        cni_run_plugin(r);
    } else if (r->verb == CNI_DEL) {
        cni_del_over(r);
    } else {
        if (r->verb == CNI_CHECK) {
            e = r->inside;
            r->o->inside = true;
            cni_check_judge(r, &e);
        }
        cni_run_finish(r, &e);
    }
}

/* CHECK is not timed: no caller waits for it. */
static void note_time(struct cni_run *r)
{
    uint64_t us = (uv_hrtime() - r->began_ns) / 1000;

    if (r->verb == CNI_CHECK)
        return;
    cni_timed_add(&r->o->timed, r->plugin.call.type, us);
    cni_times_add(&r->c->times, r->plugin.call.type, r->verb == CNI_DEL, us);
}

static void on_plugin_done(struct op *op, const struct err *result)
{
    struct cni_run *r = op->owner;
    struct err e = *result;
    json_auto_t *answer = take_ptr(&r->plugin.result);

    if (e.code == ERR_OK)
        note_time(r);
    if (r->verb == CNI_ADD) {
        if (e.code == ERR_OK)
            cni_add_proceed(r, answer, &e);
        else if (r->plugin.never_ran)
            cni_add_not_run(r);
    } else if (r->verb == CNI_CHECK) {
        if (e.code == ERR_UNKNOWN && r->plugin.cni_code == 0) {
            log_debug("CNI plugin fails in CHECK without an error message",
                      F_STR("plugin", r->plugin.call.type), F_STR("containerID", r->container_id));
            e = (struct err){ 0 };
        }
        if (r->plugin.cni_code > 0 && r->done == 0) {
            r->inside = e;
            e = (struct err){ 0 };
        }
        if (e.code == ERR_OK)
            r->done++;
        else if (r->plugin.cni_code > 0 && r->o->op.why.code == ERR_OK) {
            cni_check_judge(r, &e);
            cni_run_finish(r, &e);
            return;
        }
    } else {
        if (r->plugin.cni_code == CNI_CODE_UNKNOWN_CONTAINER)
            e = (struct err){ 0 }; /* "no clean-up needed" per the specification */
        if (e.code == ERR_OK)
            r->done++;
        else if (r->o->op.why.code == ERR_OK && cni_del_by_todays_list(r)) {
            cni_run_plugin(r);
            return;
        }
    }
    if (e.code != ERR_OK || r->o->op.why.code != ERR_OK)
        cni_run_finish(r, &e);
    else
        cni_run_step(r);
}

static void start_plugin(struct cni_run *r)
{
    const struct cni_list *l = &r->entry.list;
    size_t n = cni_list_size(l), i = r->verb == CNI_DEL ? n - 1 - r->done : r->done;
    bool with_prev = r->verb == CNI_ADD || l->version >= CNI_V(0, 4, 0);
    json_auto_t *input = cni_plugin_stdin(l, i, r->entry.capability_args, with_prev ? r->entry.result : NULL);
    struct cni_plugin_call call = {
        .verb = r->verb,
        .type = cni_plugin_type(cni_list_plugin(l, i)),
        .container_id = r->container_id,
        .netns = r->netns,
        .ifname = r->ifname,
        .args = r->entry.args,
        .bin_dirs = strs_list(&r->c->bin_dirs),
        .input = input,
        .config_version = l->version,
        .cgroup_fd = r->c->cgroup_fd,
        .cgroup_procs = r->c->cgroup_procs,
        .deadline_at_ms = r->deadline_at_ms,
    };
    struct err e = { 0 };

    if (input == NULL) {
        err_nomem(&e);
        cni_run_finish(r, &e);
        return;
    }
    r->o->op.state = RUN_PLUGIN;
    r->began_ns = uv_hrtime();
    cni_plugin_start(&r->plugin, &call, r->c->loop, on_plugin_done, r);
}

void cni_run_plugin(struct cni_run *r)
{
    if (r->verb == CNI_DEL && r->done == cni_list_size(&r->entry.list))
        cni_del_over(r);
    else
        start_plugin(r);
}

static void cni_run_begin(struct cni_run *r)
{
    struct err e = { 0 };
    bool more = true;

    r->began_ms = clock_mono_ms();
    r->deadline_at_ms = r->began_ms + (r->verb == CNI_ADD ? CNI_ADD_DEADLINE_MS : CNI_DEL_DEADLINE_MS);
    r->c->n_live++;
    r->live = true;
    switch (r->verb) {
    case CNI_ADD:
        cni_add_begin(r, &e);
        break;
    case CNI_CHECK:
        cni_check_begin(r, &more, &e);
        break;
    default:
        cni_del_begin(r, &more, &e);
        break;
    }
    if (e.code != ERR_OK || !more)
        cni_run_finish(r, &e);
    else
        cni_run_plugin(r);
}

/* The bridge plugin (1.1) fails when two of them create the same bridge at once ("could not set bridge's mac:
 * invalid argument"). So while a bridge of the current list is missing, operations run one at a time. */
static bool may_run_together(struct cni *c)
{
    if (c->n_running == 0)
        c->bridges_made = true;
    for (size_t i = 0; c->n_running == 0 && c->networks.n > 0 && i < cni_list_size(&c->networks.lists[0]);
         i++) {
        const char *bridge = cni_plugin_bridge(cni_list_plugin(&c->networks.lists[0], i));
        if (bridge != NULL && !nl_link_exists(bridge))
            c->bridges_made = false;
    }
    return c->bridges_made || c->n_running == 0;
}

void cni_run_next(struct cni *c)
{
    struct cni_run *r;

    if (c->starting) /* called from inside cni_run_begin() */
        return;
    if (c->alone || c->n_held > 0 || cni_ask_holds(c))
        return;
    c->starting = true;
    while (c->n_running < c->width.now && may_run_together(c) && (r = TAILQ_FIRST(&c->waiting)) != NULL) {
        TAILQ_REMOVE(&c->waiting, r, link);
        c->n_running++;
        r->counted = true;
        uv_timer_init(c->loop, &r->o->slow);
        r->o->slow.data = r;
        uv_timer_start(&r->o->slow, on_slow, CNI_PLACE_MS, 0);
        cni_run_begin(r);
    }
    c->starting = false;
    if (c->n_live == 0 && c->idle != NULL)
        c->idle(c);
}

bool cni_waits(const struct cni_op *o, struct cni_turn *ret)
{
    struct cni_run *one;
    size_t before = 0;

    if (!op_live(&o->op) || o->run == NULL || o->op.state != RUN_WAITING)
        return false;
    TAILQ_FOREACH (one, &o->run->c->waiting, link) {
        if (one == o->run)
            break;
        before++;
    }
    *ret = (struct cni_turn){ .before = before, .now = o->run->c->width.now, .most = o->run->c->width.most };
    return true;
}

static void cni_run_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, enum cni_verb verb,
                          const char *found, bool fresh, op_done_fn done, void *owner)
{
    struct cni_run *r = calloc(1, sizeof(*r));
    struct err e = { 0 };

    *o = (struct cni_op){ 0 };
    op_init(&o->op, c->loop,
            verb == CNI_ADD     ? "cni add"
            : verb == CNI_CHECK ? "cni check"
                                : "cni del",
            0, abort_run, done, owner);
    o->op.state = RUN_WAITING;
    if (a->pod_name != NULL && a->pod_namespace != NULL) {
        str_auto subject = str_printf("%s/%s", a->pod_namespace, a->pod_name);

        op_set_subject(&o->op, subject != NULL ? subject : "");
    } else {
        op_set_subject(&o->op, a->container_id != NULL ? a->container_id : "");
    }

    if (r == NULL) {
        err_nomem(&e);
    } else if (cni_attachment_check(a, verb != CNI_DEL, &e) == ERR_OK) {
        r->o = o;
        r->c = c;
        r->verb = verb;
        r->container_id = strdup(a->container_id);
        r->netns = strdup(a->netns != NULL ? a->netns : "");
        r->ifname = strdup(a->ifname);
        r->args = cni_attachment_args(a);
        r->capability_args = cni_attachment_capability_args(a);
        if (r->container_id == NULL || r->netns == NULL || r->ifname == NULL || r->args == NULL ||
            r->capability_args == NULL || (found != NULL && (r->found = strdup(found)) == NULL))
            err_nomem(&e);
        r->fresh = fresh;
    }
    if (e.code != ERR_OK) {
        cni_run_free(r);
        op_finish(&o->op, &e);
        return;
    }
    o->run = r;
    TAILQ_INSERT_TAIL(&c->waiting, r, link);
    cni_run_next(c);
}

void cni_add_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner)
{
    cni_run_start(o, c, a, CNI_ADD, NULL, false, done, owner);
}

void cni_del_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner)
{
    cni_run_start(o, c, a, CNI_DEL, NULL, false, done, owner);
}

void cni_check_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, const char *found,
                     bool fresh, op_done_fn done, void *owner)
{
    cni_run_start(o, c, a, CNI_CHECK, found, fresh, done, owner);
}
