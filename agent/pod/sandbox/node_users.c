/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/node_users.h"

#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/userns.h"
#include "agent/runtime/mount/idmap_probe.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define DEADLINE_MS 20000

/* ---- asking, in a child ---- */

static enum err_code ask_in_child(const void *arg, struct buf *out, struct err *e)
{
    const struct node *n = arg;
    const struct idmap_probe probe = { .run_dir = n->o.run_dir,
                                       .folders = { n->o.state_dir, n->o.root_dir } };
    struct err outcome = { 0 }; /* its text must not get a prefix */

    ERR_IGNORE(idmap_probe(&probe, &outcome));
    buf_add(out, &outcome, sizeof(outcome));
    return buf_check(out, e);
}

static void node_users_on_asked(struct op *op, const struct err *result)
{
    struct node *n = op->owner;
    struct sandbox_node *part = sandbox_node(n);
    struct err e = *result;
    struct pod *p, *tmp;

    if (e.code == ERR_CANCELLED)
        return;
    if (e.code == ERR_OK && part->users.call.out.n == sizeof(e)) {
        memcpy(&e, part->users.call.out.p, sizeof(e));
        e.text[sizeof(e.text) - 1] = '\0';
    } else if (e.code == ERR_OK) {
        err_set(&e, ERR_INTERNAL, "no answer");
    }
    part->users.state = e.code == ERR_OK ? USERS_CAN : USERS_CANNOT;
    snprintf(part->users.why, sizeof(part->users.why), "%s", e.text);
    if (e.code != ERR_OK)
        log_info("this node does not support user namespaces for pods (hostUsers: false)", F_ERR(&e));
    HASH_ITER (hh, n->pods, p, tmp)
        if (userns_wanted(p))
            pod_wake(p, "user namespaces were tried");
}

void node_users_ask(struct node *n)
{
    struct sandbox_node *part = sandbox_node(n);
    const struct rt_features *f = rt_features(n->rt);
    const struct proc_call_spec call = {
        .name = "user namespace probe",
        .fn = ask_in_child,
        .arg = n,
        .out_max = sizeof(struct err),
        .deadline_ms = DEADLINE_MS,
        CG_OPS(n->o.cgroups),
    };

    if (!f->user_namespaces) {
        part->users.state = USERS_CANNOT;
        snprintf(part->users.why, sizeof(part->users.why), "%s %s does not support user namespaces",
                 f->runtime_name, f->runtime_version);
        return;
    }
    part->users.state = USERS_ASKING;
    proc_call_start(&part->users.call, &call, n->o.loop, node_users_on_asked, n);
}

void node_users_cancel(struct node *n)
{
    struct sandbox_node *part = sandbox_node(n);

    if (op_live(&part->users.call.op))
        op_cancel(&part->users.call.op);
}

bool node_users_live(const struct node *n)
{
    return op_live(&sandbox_node(n)->users.call.op);
}

/* ---- the pods' blocks ---- */

enum err_code node_users_check(const struct pod *p, struct err *e)
{
    const struct node *n = p->node;
    const struct sandbox_node *part = sandbox_node(n);

    switch (part->users.state) {
    case USERS_ASKING:
        return err_set(e, ERR_UNAVAILABLE, "testing whether pods can have user namespaces here");
    case USERS_CANNOT:
        return err_set(e, ERR_UNIMPLEMENTED, "hostUsers: false is not possible on this node: %s",
                       part->users.why);
    case USERS_CAN:
        break;
    }
    return ERR_OK;
}

/* ---- output for people ---- */

void node_users_explain(const struct node *n, json_t *steps)
{
    const struct sandbox_node *part = sandbox_node(n);
    str_auto text = NULL;
    bool wanted = false;

    pods_each (n, p)
        wanted = wanted || userns_wanted(p);
    switch (part->users.state) {
    case USERS_ASKING:
        explain_step(steps, "user namespaces", "running", 0, "being tested", 0);
        return;
    case USERS_CANNOT:
        text = str_printf("not possible (hostUsers: false): %s", part->users.why);
        explain_step(steps, "user namespaces", wanted ? "failed" : "done", 0,
                     text != NULL ? text : part->users.why, 0);
        return;
    case USERS_CAN:
        explain_step(steps, "user namespaces", "done", 0, "possible (hostUsers: false)", 0);
        return;
    }
}
