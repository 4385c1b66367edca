/* SPDX-License-Identifier: Apache-2.0 */
/* process_result - describes how a child ended in one line: why it could not start, its signal or exit
 * status, and its last error output. */
#include "base/process/internal.h"
#include "base/utf8.h"

#include <string.h>

#define ERR_TAIL_SHOWN 360

/* The end of standard error as part of a one-line message: ": a; b". */
static void add_tail(const struct proc *p, struct err *e)
{
    char shown[ERR_TAIL_SHOWN + 1], line[2 * ERR_TAIL_SHOWN + 1];
    const char *text = p->err_out.p;
    size_t n = p->err_out.n, i, out = 0;
    char before[sizeof(e->text)];
    enum err_code code = e->code;

    while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
        n--;
    if (n > ERR_TAIL_SHOWN) { /* start at a nearby line start */
        const char *start = text + n - ERR_TAIL_SHOWN, *newline = memchr(start, '\n', ERR_TAIL_SHOWN / 2);

        if (newline != NULL)
            start = newline + 1;
        n -= (size_t)(start - text);
        text = start;
    }
    if (n == 0)
        return;
    memcpy(shown, text, n);
    shown[n] = '\0';
    for (i = 0; i < n; i++) {
        if (shown[i] == '\n') {
            if (out > 0 && line[out - 1] != ' ')
                line[out++] = ';';
            line[out++] = ' ';
        } else if (shown[i] != '\r') {
            line[out++] = shown[i] == '\0' || shown[i] == '\t' ? ' ' : shown[i];
        }
    }
    line[out] = '\0';
    text_printable(line);
    memcpy(before, e->text, sizeof(before));
    err_set(e, code, "%s: %s", before, line);
}

/* The child could not exec: name the step that failed. */
static void report_text(const struct proc *p, struct err *e)
{
    int sys = p->report_sys;

    switch ((enum spawn_step)p->report_step) {
    case SPAWN_EXEC:
        err_sys(e, sys, "%s: %s", p->name, p->prog);
        return;
    case SPAWN_CWD:
        err_sys(e, sys, "%s: enter the working directory", p->name);
        break;
    case SPAWN_CGROUP:
        err_sys(e, sys, "%s: join the cgroup", p->name);
        break;
    case SPAWN_FDS:
        err_sys(e, sys, "%s: arrange descriptors", p->name);
        break;
    case SPAWN_RIGHTS:
        err_sys(e, sys, "%s: drop privileges", p->name);
        break;
    case SPAWN_GROUP:
        err_sys(e, sys, "%s: create the process group", p->name);
        break;
    }
    if (e->code == ERR_NOT_FOUND) /* reserved for a program that does not exist */
        e->code = ERR_PRECONDITION;
}

void proc_result_text(const struct proc *p, struct err *e)
{
    const char *sig;

    if (p->report_step != 0) {
        report_text(p, e);
        return;
    }
    if (p->overflow) {
        err_set(e, ERR_EXHAUSTED, "%s: more than %zu bytes of output", p->name, p->out.max);
        return;
    }
    if (p->out.failed) {
        err_nomem(e);
        err_wrap(e, "%s: output", p->name);
        return;
    }
    if (!p->exited) {
        err_set(e, ERR_INTERNAL, "%s: the exit status is lost", p->name);
        return;
    }
    if (WIFSIGNALED(p->status)) {
        sig = sigabbrev_np(WTERMSIG(p->status));
        if (sig != NULL)
            err_set(e, ERR_UNKNOWN, "%s: killed by SIG%s", p->name, sig);
        else
            err_set(e, ERR_UNKNOWN, "%s: killed by signal %d", p->name, WTERMSIG(p->status));
    } else if (WEXITSTATUS(p->status) != 0) {
        err_set(e, ERR_UNKNOWN, "%s: exit status %d", p->name, WEXITSTATUS(p->status));
    } else {
        return;
    }
    add_tail(p, e);
}
