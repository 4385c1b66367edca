/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/host/iptables.h"

#include "base/list.h"
#include "base/log.h"
#include "base/scope.h"
#include "cni/host/hoststate.h"
#include "cni/host/rules.h"

#include <string.h>

enum iptables_state {
    IPTABLES_SAVE_4,
    IPTABLES_RESTORE_4,
    IPTABLES_SAVE_6,
    IPTABLES_RESTORE_6,
    IPTABLES_OVER
};

#define SCRIPT_MAX (1024 * 1024) /* a dozen rules */

static void iptables_on_proc_done(struct op *op, const struct err *result);

static const char *iptables_family(const struct cni_iptables *t)
{
    return t->op.state < IPTABLES_SAVE_6 ? "iptables" : "ip6tables";
}

static void iptables_note(struct cni_iptables *t, const struct err *e)
{
    if (t->first.code == ERR_OK)
        t->first = *e;
}

/* False: the program is not installed, so there are no rules either. */
static bool iptables_run(struct cni_iptables *t, const char *suffix, const char *const *args,
                         const char *input)
{
    str_auto name = str_printf("%s-%s", iptables_family(t), suffix);
    str_auto program = name != NULL ? cni_hoststate_program(name) : NULL;
    const char *argv[6] = { program };
    const struct proc_spec spec = {
        .name = name,
        .subject = t->op.subject,
        .argv = argv,
        .stdin_data = input,
        .stdin_size = input != NULL ? strlen(input) : 0,
        .stdout_max = CNI_IPTABLES_MAX,
        .cgroup_fd = t->spec.cgroup_fd,
        .cgroup_procs = t->spec.cgroup_procs,
        .deadline_ms = t->spec.deadline_ms,
    };

    if (program == NULL)
        return false;
    for (size_t i = 0; args[i] != NULL; i++)
        argv[i + 1] = args[i];
    proc_start(&t->proc, &spec, t->op.loop, iptables_on_proc_done, t);
    return true;
}

static void iptables_next_family(struct cni_iptables *t)
{
    const char *const args[] = { "-t", t->spec.table, NULL };

    t->op.state = t->op.state < IPTABLES_SAVE_6 ? IPTABLES_SAVE_6 : IPTABLES_OVER;
    if (t->op.state == IPTABLES_OVER ||
        !iptables_run(t, "save", t->spec.table != NULL ? args : args + 2, NULL))
        op_finish(&t->op, t->first.code != ERR_OK ? &t->first : NULL);
}

/* True: its script is being applied. */
static bool iptables_edit(struct cni_iptables *t)
{
    /* Legacy iptables has a lock that other processes may hold. */
    static const char *const noflush[] = { "--noflush", "--wait", "20", NULL };
    struct buf script = BUF_INIT(SCRIPT_MAX);
    struct err e = { 0 };
    bool started = false;

    t->op.state++;
    if (t->spec.edit(t->spec.arg, iptables_family(t), t->proc.out.p, &script, &e) != ERR_OK)
        iptables_note(t, &e);
    else if (script.n > 0)
        started = iptables_run(t, "restore", noflush, script.p);
    buf_done(&script);
    return started;
}

static void iptables_on_proc_done(struct op *op, const struct err *result)
{
    struct cni_iptables *t = op->owner;
    bool saved = t->op.state == IPTABLES_SAVE_4 || t->op.state == IPTABLES_SAVE_6;

    if (t->op.why.code != ERR_OK) {
        op_finish(&t->op, NULL);
        return;
    }
    if (saved && result->code == ERR_OK && iptables_edit(t))
        return;
    if (saved && result->code == ERR_UNKNOWN)
        log_debug("rules not listed", F_ERR(result));
    else if (result->code != ERR_OK)
        iptables_note(t, result);
    iptables_next_family(t);
}

static void iptables_on_abort(struct op *op)
{
    struct cni_iptables *t = container_of(op, struct cni_iptables, op);

    if (op_live(&t->proc.op))
        proc_cancel(&t->proc);
}

void cni_iptables_start(struct cni_iptables *t, uv_loop_t *loop, const char *name, const char *subject,
                        const struct cni_iptables_spec *spec, op_done_fn done, void *owner)
{
    const char *const args[] = { "-t", spec->table, NULL };

    *t = (struct cni_iptables){ .spec = *spec };
    op_init(&t->op, loop, name, 0, iptables_on_abort, done, owner);
    if (subject != NULL)
        op_set_subject(&t->op, subject);
    t->op.state = IPTABLES_SAVE_4;
    if (!iptables_run(t, "save", spec->table != NULL ? args : args + 2, NULL))
        iptables_next_family(t);
}
