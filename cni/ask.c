/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask - VERSION: queries the plugins of the loaded lists, in parallel, for their supported versions; then the
 * lists are evaluated again.
 *
 * Operations wait only for the plugins of the list they use, and only for the first question to a program: a
 * program that hangs costs ASK_MS once (plus 2 s to kill it if it ignores SIGTERM); later questions, after
 * changes in the folders, delay nothing.
 */
#include "cni/internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/scope.h"
#include "cni/plugin/names.h"
#include "cni/plugin/plugin.h"

#include <errno.h>
#include <string.h>

#define ASK_MS 2000 /* a plugin answers in 5 ms */

struct ask { /* outlives struct cni while its child ends */
    struct cni_plugin plugin;
    struct cni *c; /* NULL: closed */
    struct cni_speaker *speaker;
    bool first; /* the first question to this program */
    char *type, *cgroup_procs;
    struct strs bin_dirs;
    json_t *input;
    TAILQ_ENTRY(ask) link;
};

static void ask_free(struct ask *a)
{
    if (a == NULL)
        return;
    free(a->type);
    free(a->cgroup_procs);
    strs_done(&a->bin_dirs);
    json_decref(a->input);
    free(a);
}

/* libcni's rule: such a plugin predates the VERSION command. */
static bool never_heard_of_it(const struct err *e)
{
    return strstr(e->text, "unknown CNI_COMMAND: VERSION") != NULL;
}

static void ask_note(struct cni_speaker *s, const json_t *answer, const struct err *result)
{
    struct err e = *result;

    s->n = 0;
    if (e.code == ERR_OK && cni_versions_parse(answer, s->versions, &s->n, &e) == ERR_OK) {
        s->state = SPEAKER_KNOWN;
    } else if (never_heard_of_it(&e)) {
        s->state = SPEAKER_KNOWN;
        s->versions[s->n++] = CNI_V(0, 1, 0);
    } else {
        /* The plugin itself answered with an error, as opposed to a failure to run it. */
        bool said = e.sys == 0 && (e.code == ERR_UNKNOWN || e.code == ERR_INVALID ||
                                   e.code == ERR_PRECONDITION || e.code == ERR_EXHAUSTED);
        /* This changes only with the file; other obstacles (a missing interpreter) are reported by each
         * ADD. */
        bool no_program = e.sys == ENOEXEC || e.sys == ELIBBAD;

        s->state = said || no_program ? SPEAKER_BROKEN : SPEAKER_SILENT;
        s->why = e;
        log_debug("CNI plugin does not report its versions", F_STR("plugin", s->path), F_ERR(&e));
    }
}

static void ask_on_answer(struct op *op, const struct err *result)
{
    struct ask *a = op->owner;
    struct cni *c = a->c;
    json_auto_t *answer = take_ptr(&a->plugin.result);

    if (c != NULL) {
        TAILQ_REMOVE(&c->asks, a, link);
        a->speaker->asking = false;
        ask_note(a->speaker, answer, result);
    }
    ask_free(a);
    if (c != NULL && !cni_ask_holds(c)) {
        cni_load_again(c);
        cni_run_next(c);
    }
}

static void cni_ask(struct cni *c, const char *type)
{
    mem_auto char *path = NULL;
    struct cni_speaker *s = NULL;
    struct err e = { 0 };
    struct ask *a;
    bool ok;

    if (!presence_is_unknown(cni_plugin_find(strs_list(&c->bin_dirs), type, &path, &e)) && path != NULL)
        s = cni_versions_of(&c->versions, path);
    if (s == NULL || s->asking || (s->state != SPEAKER_UNASKED && !s->again))
        return;
    a = calloc(1, sizeof(*a));
    if (a == NULL)
        return; /* the plugin may support any version */
    a->c = c;
    a->speaker = s;
    a->type = strdup(type);
    a->input = json_pack("{s:s}", "cniVersion", CNI_VERSION_HIGHEST);
    a->cgroup_procs = c->cgroup_procs != NULL ? strdup(c->cgroup_procs) : NULL;
    ok = a->type != NULL && a->input != NULL && (a->cgroup_procs != NULL) == (c->cgroup_procs != NULL);
    if (!ok || !strs_copy(&a->bin_dirs, &c->bin_dirs)) {
        ask_free(a);
        return;
    }
    a->first = s->state == SPEAKER_UNASKED;
    s->asking = true;
    s->again = false;
    TAILQ_INSERT_TAIL(&c->asks, a, link);
    cni_plugin_start(&a->plugin,
                     &(struct cni_plugin_call){ .verb = CNI_VERSION,
                                                .type = a->type,
                                                .container_id = a->type,
                                                .bin_dirs = strs_list(&a->bin_dirs),
                                                .input = a->input,
                                                .cgroup_fd = c->cgroup_fd,
                                                .cgroup_procs = a->cgroup_procs,
                                                .deadline_at_ms = clock_mono_ms() + ASK_MS },
                     c->loop, ask_on_answer, a);
}

bool cni_ask_holds(const struct cni *c)
{
    const struct ask *a;

    TAILQ_FOREACH (a, &c->asks, link)
        for (size_t i = 0; a->first && c->networks.n > 0 && i < cni_list_size(&c->networks.lists[0]); i++)
            if (strcmp(cni_plugin_type(cni_list_plugin(&c->networks.lists[0], i)), a->type) == 0)
                return true;
    return false;
}

void cni_ask_versions(struct cni *c)
{
    for (size_t i = 0; i < c->networks.unasked.n; i++)
        cni_ask(c, c->networks.unasked.v[i]);
}

void cni_ask_close(struct cni *c)
{
    struct ask *a, *tmp;

    TAILQ_FOREACH_SAFE (a, &c->asks, link, tmp) {
        TAILQ_REMOVE(&c->asks, a, link);
        a->c = NULL;
        op_cancel(&a->plugin.op);
    }
}
