/* SPDX-License-Identifier: Apache-2.0 */
/* plugin - one run of an exec credential plugin. */
#include "agent/kube/credentials/internal.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define STDERR_SHOWN 200 /* of its last bytes */

static void plugin_failed(const struct proc *p, struct err *e)
{
    size_t n = p->err_out.n, cut = n > STDERR_SHOWN ? n - STDERR_SHOWN : 0;
    char tail[STDERR_SHOWN + 3] = "";

    if (e->code != ERR_UNKNOWN || !p->exited)
        return; /* it could not be started, took too long, or wrote too much; the text has the reason */
    while (n > cut && (p->err_out.p[n - 1] == '\n' || p->err_out.p[n - 1] == ' '))
        n--;
    if (n > cut)
        snprintf(tail, sizeof(tail), ": %.*s", (int)(n - cut), p->err_out.p + cut);
    if (WIFSIGNALED(p->status))
        err_set(e, ERR_UNKNOWN, "exec: executable %s was killed by signal %d%s", p->op.subject,
                WTERMSIG(p->status), tail);
    else
        err_set(e, ERR_UNKNOWN, "exec: executable %s failed with exit code %d%s", p->op.subject,
                WEXITSTATUS(p->status), tail);
}

static void plugin_on_end(struct op *op, const struct err *result)
{
    struct cred_plugin *p = op->owner;
    struct kube_exec_answer answer = { 0 };
    struct err e = *result;

    p->running = false;
    if (e.code != ERR_OK)
        plugin_failed(&p->proc, &e);
    else
        ERR_IGNORE(kube_exec_read(&answer, p->proc.out.p, p->proc.out.n, p->version, &e));
    if (e.code != ERR_OK)
        err_wrap(&e, "getting credentials");
    buf_wipe(&p->proc.out);
    free(take_ptr(&p->version));
    p->done(p, &answer, &e);
    kube_exec_answer_done(&answer);
}

void cred_plugin_start(struct cred_plugin *p, const struct kube_exec *exec,
                       const struct kube_credentials_options *o)
{
    const struct proc_spec spec = {
        .name = "exec credential plugin",
        .subject = exec->argv.v[0],
        .argv = strs_list(&exec->argv),
        .env = strs_list(&exec->env),
        .stdout_max = KUBE_EXEC_ANSWER_MAX,
        .cgroup_fd = o->cgroup_fd,
        .cgroup_procs = o->cgroup_procs,
        .deadline_ms = KUBE_EXEC_MS,
    };

    p->running = true;
    p->version = strdup(exec->version);
    proc_start(&p->proc, &spec, o->loop, plugin_on_end, p);
}
