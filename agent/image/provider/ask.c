/* SPDX-License-Identifier: Apache-2.0 */
/* ask - runs the providers of an image, one after another. */
#include "agent/image/provider/image_glob.h"
#include "agent/image/provider/internal.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

static void ask_next(struct provider_ask *a);

/* Docker's key for its hub is not a glob of docker.io; registry_auth.h handles it. */
static bool ask_wants(const char *glob, const char *repository)
{
    for (const char *const *scheme = (const char *const[]){ "https://", "http://", NULL }; *scheme != NULL;
         scheme++)
        if (str_starts(glob, *scheme))
            glob += strlen(*scheme);
    return image_glob_matches(glob, repository) ||
           (str_starts(repository, "docker.io/") && str_starts(glob, "index.docker.io"));
}

static void ask_failed(struct provider_ask *a, const struct provider *p, const struct err *why)
{
    a->problem = *why;
    err_wrap(&a->problem, "image credential provider \"%.100s\"", p->name);
    if (!a->cancelled)
        log_warn("an image credential provider failed; the image is pulled without it",
                 F_STR("provider", p->name), F_STR("image", a->options->repository), F_ERR(why));
}

/* Copies the entries of an answer that match the image, because the cache may drop its entries meanwhile. */
static void ask_take(struct provider_ask *a, const struct provider *p, json_t *auths)
{
    json_t *wanted = json_object(), *value, *config = NULL;
    const char *glob;
    bool failed = wanted == NULL;

    json_object_foreach (auths, glob, value)
        if (ask_wants(glob, a->options->repository))
            failed = failed || json_object_set_new(wanted, glob, json_deep_copy(value)) != 0;
    if (a->configs == NULL)
        a->configs = json_array();
    if (!failed)
        config = json_pack("{s:O}", "auths", wanted);
    if (config == NULL || json_array_append_new(a->configs, config) != 0) {
        struct err e = { 0 };

        err_nomem(&e);
        ask_failed(a, p, &e);
    }
    json_decref(wanted);
}

static void ask_answered(struct provider_ask *a, const struct provider *p, struct err *e)
{
    struct provider_answer answer = { 0 };
    const size_t bytes = a->proc.out.n;
    int64_t keep_ns;

    if (provider_answer_read(&answer, a->proc.out.p != NULL ? a->proc.out.p : "", bytes, p->version, e) !=
        ERR_OK)
        return;
    keep_ns = answer.has_duration ? answer.duration_ns : p->default_ns;
    if (keep_ns > 0)
        provider_cache_put(&a->set->cache, p->name, a->options->repository, answer.scope, answer.auths, bytes,
                           keep_ns);
    ask_take(a, p, answer.auths);
    provider_answer_done(&answer);
}

static void ask_on_end(struct op *op, const struct err *result)
{
    struct provider_ask *a = op->owner;
    const struct provider *p = &a->set->v[a->next++];
    struct err e = *result;

    a->running = false;
    if (e.code == ERR_OK)
        ask_answered(a, p, &e);
    if (e.code != ERR_OK)
        ask_failed(a, p, &e);
    buf_wipe(&a->proc.out);
    ask_next(a);
}

static void ask_run(struct provider_ask *a, const struct provider *p)
{
    json_auto_t *request = json_pack("{s:s, s:s, s:s}", "apiVersion", p->version, "kind",
                                     "CredentialProviderRequest", "image", a->options->repository);
    str_auto text = json_text(request);
    const struct proc_spec spec = {
        .name = "image credential provider",
        .subject = p->name,
        .argv = strs_list(&p->argv),
        .env = strs_list(&p->env),
        .stdin_data = text != NULL ? text : "",
        .stdin_size = text != NULL ? strlen(text) : 0,
        .stdout_max = PROVIDER_ANSWER_MAX,
        .cgroup_fd = a->options->cgroup_fd,
        .cgroup_procs = a->options->cgroup_procs,
        .deadline_ms = PROVIDER_DEADLINE_MS,
    };

    a->running = true;
    proc_start(&a->proc, &spec, a->options->loop, ask_on_end, a);
}

static void ask_next(struct provider_ask *a)
{
    for (; a->next < a->set->n && !a->cancelled; a->next++) {
        const struct provider *p = &a->set->v[a->next];
        json_t *kept;

        if (!provider_is_for(p, a->options->repository))
            continue;
        kept = provider_cache_find(&a->set->cache, p->name, a->options->repository);
        if (kept == NULL) {
            ask_run(a, p);
            return;
        }
        ask_take(a, p, kept);
        provider_wipe(kept);
    }
    a->options->done(a);
}

void provider_ask_start(struct provider_ask *a, struct provider_set *set,
                        const struct provider_ask_options *o)
{
    a->set = set;
    a->options = o;
    ask_next(a);
}

void provider_ask_cancel(struct provider_ask *a)
{
    a->cancelled = true;
    if (a->running)
        proc_cancel(&a->proc);
}

void provider_ask_done(struct provider_ask *a)
{
    provider_wipe(take_ptr(&a->configs));
}
