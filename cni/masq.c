/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/masq.h"
#include "cni/host/hoststate.h"
#include "cni/host/rules.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>
#include <unistd.h>

enum masq_state { MASQ_HASH, MASQ_SAVE_4, MASQ_RESTORE_4, MASQ_SAVE_6, MASQ_RESTORE_6, MASQ_OVER };

#define CHAIN_DIGITS 24

bool cni_masq_wanted(const struct cni_list *l)
{
    for (size_t i = 0; i < cni_list_size(l); i++)
        if (json_flag(cni_list_plugin(l, i), "ipMasq"))
            return true;
    return false;
}

/* ---- the text ---- */

enum err_code cni_masq_removal(const char *save, const char *chain, struct buf *ret, struct err *e)
{
    str_auto declared = str_printf(":%s ", chain);
    str_auto jump = str_printf(" -j %s", chain);
    size_t n_jump;
    bool in_nat = false, found = false;

    if (declared == NULL || jump == NULL)
        return err_nomem(e);
    n_jump = strlen(jump);
    buf_adds(ret, "*nat\n");
    for (const char *line = save; *line != '\0';) {
        size_t n = strcspn(line, "\n");

        if (line[0] == '*')
            in_nat = n == 4 && memcmp(line, "*nat", 4) == 0;
        else if (in_nat && str_starts(line, declared))
            found = true;
        else if (in_nat && n > n_jump && memcmp(line, "-A ", 3) == 0 &&
                 memcmp(line + n - n_jump, jump, n_jump) == 0) {
            buf_adds(ret, "-D"); /* delete the rule by its exact text */
            buf_add(ret, line + 2, n - 2);
            buf_addc(ret, '\n');
        }
        line += n + (line[n] == '\n');
    }
    buf_addf(ret, "-F %s\n-X %s\nCOMMIT\n", chain, chain);
    if (!found)
        buf_reset(ret);
    return buf_check(ret, e);
}

/* ---- the operation ---- */

static void masq_step(struct cni_masq *m);
static void masq_on_proc_done(struct op *op, const struct err *result);

static const char *program(enum masq_state s)
{
    switch (s) {
    case MASQ_HASH:
        return "sha512sum";
    case MASQ_SAVE_4:
        return "iptables-save";
    case MASQ_RESTORE_4:
        return "iptables-restore";
    case MASQ_SAVE_6:
        return "ip6tables-save";
    case MASQ_RESTORE_6:
        return "ip6tables-restore";
    case MASQ_OVER:
        break;
    }
    return "";
}

/* False: not installed, so there is nothing to remove. */
static bool masq_run(struct cni_masq *m, const char *const *args, const char *input, size_t n)
{
    const char *name = program((enum masq_state)m->op.state);
    str_auto path = cni_hoststate_program(name);
    const char *argv[6] = { path };
    struct proc_spec spec = {
        .name = name,
        .subject = m->op.subject,
        .argv = argv,
        .stdin_data = input,
        .stdin_size = n,
        .stdout_max = CNI_IPTABLES_MAX,
        .cgroup_fd = m->cgroup_fd,
        .cgroup_procs = m->cgroup_procs,
        .deadline_ms = CNI_MASQ_DEADLINE_MS,
    };

    if (path == NULL)
        return false;
    for (size_t i = 0; args[i] != NULL; i++)
        argv[i + 1] = args[i];
    proc_start(&m->proc, &spec, m->op.loop, masq_on_proc_done, m);
    return true;
}

static void masq_end(struct cni_masq *m, const struct err *e)
{
    m->op.state = MASQ_OVER;
    op_finish(&m->op, e);
}

/* Every `restore` state follows its `save` and is skipped without a chain. */
static void masq_on_saved(struct cni_masq *m)
{
    static const char *const args[] = { "--noflush", "--wait", "20", NULL };
    struct buf script = BUF_INIT(64 * 1024);
    struct err e = { 0 };
    bool started = false;

    m->op.state++;
    if (cni_masq_removal(m->proc.out.p, m->chain, &script, &e) == ERR_OK && script.n > 0)
        started = masq_run(m, args, script.p, script.n);
    buf_done(&script);
    if (e.code != ERR_OK) {
        masq_end(m, &e);
    } else if (!started) {
        m->op.state++;
        masq_step(m);
    }
}

static void masq_on_proc_done(struct op *op, const struct err *result)
{
    struct cni_masq *m = op->owner;

    if (m->op.why.code != ERR_OK) {
        masq_end(m, NULL);
        return;
    }
    switch ((enum masq_state)m->op.state) {
    case MASQ_HASH:
        if (result->code != ERR_OK) {
            masq_end(m, result);
            return;
        }
        snprintf(m->chain, sizeof(m->chain), "CNI-%.*s", CHAIN_DIGITS, m->proc.out.p);
        m->op.state++;
        break;
    case MASQ_SAVE_4:
    case MASQ_SAVE_6:
        if (result->code == ERR_OK) {
            masq_on_saved(m);
            return;
        }
        m->op.state += 2; /* a kernel without this family */
        break;
    case MASQ_RESTORE_4:
    case MASQ_RESTORE_6:
        if (result->code != ERR_OK) {
            masq_end(m, result);
            return;
        }
        m->op.state++;
        break;
    case MASQ_OVER:
        return;
    }
    masq_step(m);
}

static void masq_step(struct cni_masq *m)
{
    static const char *const args[] = { "-t", "nat", NULL };

    while (m->op.state != MASQ_OVER) { /* only entered in a listing state */
        if (masq_run(m, args, NULL, 0))
            return;
        m->op.state += 2;
    }
    masq_end(m, NULL);
}

static void masq_on_abort(struct op *op)
{
    struct cni_masq *m = container_of(op, struct cni_masq, op);

    if (op_live(&m->proc.op))
        proc_cancel(&m->proc);
}

void cni_masq_start(struct cni_masq *m, uv_loop_t *loop, const char *network, const char *container_id,
                    int cgroup_fd, const char *cgroup_procs, op_done_fn done, void *owner)
{
    static const char *const no_args[] = { NULL };
    str_auto input = str_printf("%s%s", network, container_id);
    struct err e = { 0 };

    *m = (struct cni_masq){ .cgroup_fd = cgroup_fd, .cgroup_procs = cgroup_procs };
    op_init(&m->op, loop, "remove masquerading", 0, masq_on_abort, done, owner);
    op_set_subject(&m->op, container_id);
    m->op.state = MASQ_HASH;
    if (input == NULL) {
        err_nomem(&e);
        masq_end(m, &e);
    } else if (!masq_run(m, no_args, input, strlen(input))) {
        err_set(&e, ERR_PRECONDITION, "sha512sum is missing; install Debian's package coreutils");
        masq_end(m, &e);
    }
}
