/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of the OCI runtime and the kernel, probed once. */
#include "agent/runtime/container_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PROBE_DEADLINE_MS = 10000,
    PROBE_OUTPUT_MAX = 64 * 1024, /* runc's features have 8 KiB */
};

/* ---- probing the runtime ---- */

struct question {
    struct proc proc;
    struct err result;
    char *out; /* NULL: no answer */
    size_t *n_open;
};

struct probe { /* of a runtime */
    struct rt_handler *handler;
    struct question version, features;
};

static void on_answer(struct op *op, const struct err *result)
{
    struct question *q = op->owner;
    uv_loop_t *loop = op->loop;

    q->result = *result;
    if (result->code == ERR_OK && (q->out = buf_detach(&q->proc.out)) == NULL)
        err_nomem(&q->result);
    if (--*q->n_open == 0)
        proc_forget(loop); /* nothing else runs on this loop */
}

static void features_ask(const struct rt *rt, const struct rt_handler *h, const char *word, uv_loop_t *loop,
                         size_t *n_open, struct question *q)
{
    const char *const argv[] = { h->program, word, NULL };
    struct rt_runtime_args args;
    const struct proc_spec spec = {
        .name = "runtime probe",
        .subject = word,
        .argv = argv,
        .env = args.env,
        .stdout_max = PROBE_OUTPUT_MAX,
        CG_OPS(rt->cgroups),
        .deadline_ms = PROBE_DEADLINE_MS,
    };

    rt_runtime_args(rt, h, NULL, &args);
    q->n_open = n_open;
    ++*n_open;
    proc_start(&q->proc, &spec, loop, on_answer, q);
}

/* Runs to completion on its own loop: this happens once, before anything else. */
static enum err_code ask_all(const struct rt *rt, struct probe *probes, size_t n, struct err *e)
{
    uv_loop_t loop;
    size_t n_open = 0;
    int status = uv_loop_init(&loop);

    if (status != 0)
        return err_sys(e, -status, "create an event loop");
    for (size_t i = 0; i < n; i++) {
        features_ask(rt, probes[i].handler, "--version", &loop, &n_open, &probes[i].version);
        features_ask(rt, probes[i].handler, "features", &loop, &n_open, &probes[i].features);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return ERR_OK;
}

bool rt_features_parse_version(const char *text, struct rt_features *ret)
{
    char name[sizeof(ret->runtime_name)], version[sizeof(ret->runtime_version)];

    if (sscanf(text, "%15s version %31s", name, version) != 2 || !isdigit((unsigned char)version[0]))
        return false;
    memcpy(ret->runtime_name, name, sizeof(name));
    memcpy(ret->runtime_version, version, sizeof(version));
    return true;
}

enum err_code rt_features_parse(const char *text, struct rt_features *ret, struct err *e)
{
    json_auto_t *features = NULL;
    const json_t *rdt;

    if (json_parse(text, strlen(text), PROBE_OUTPUT_MAX, &features, "runtime features", e) != ERR_OK)
        return e->code;
    if (!json_is_array(json_object_get(features, "mountOptions")))
        return err_set(e, ERR_INVALID, "runtime features: mountOptions is not a list");
    ret->user_namespaces =
        json_has(json_object_get(json_object_get(features, "linux"), "namespaces"), "user");
    rdt = json_object_get(json_object_get(features, "linux"), "intelRdt");
    ret->net_devices = json_is_true(
        json_object_get(json_object_get(json_object_get(features, "linux"), "netDevices"), "enabled"));
    ret->rdt_schemata =
        json_is_true(json_object_get(rdt, "schemata")) && json_is_true(json_object_get(rdt, "monitoring"));
    ret->recursive_read_only = json_has(json_object_get(features, "mountOptions"), "rro");
    return ERR_OK;
}

static bool is_since(const struct rt_features *f, const char *name, unsigned minor_wanted)
{
    unsigned major = 0, minor = 0;

    return strcmp(f->runtime_name, name) == 0 && sscanf(f->runtime_version, "%u.%u", &major, &minor) == 2 &&
           (major > 1 || (major == 1 && minor >= minor_wanted));
}

/* Mount option rro: crun since 1.4, runc since 1.1; their `features` command exists since 1.10 and 1.1. User
 * namespaces are older; tested with crun 1.8 and runc 1.1. */
void rt_features_by_version(struct rt_features *f)
{
    f->recursive_read_only = is_since(f, "crun", 4) || is_since(f, "runc", 1);
    f->user_namespaces = is_since(f, "crun", 8) || is_since(f, "runc", 1);
}

/* Uses the runtime's own answer, or the version of a runtime that is too old to answer. */
static enum err_code take_answers(struct probe *p, struct err *e)
{
    struct rt_features *f = &p->handler->features;
    struct err none = { 0 };

    if (p->version.out == NULL) {
        *e = p->version.result;
        return err_wrap(e, "%s --version", p->handler->program);
    }
    if (!rt_features_parse_version(p->version.out, f))
        return err_set(e, ERR_INVALID, "%s --version: not an OCI runtime's answer: %.80s",
                       p->handler->program, p->version.out);
    if (p->features.out == NULL || rt_features_parse(p->features.out, f, &none) != ERR_OK)
        rt_features_by_version(f);
    return ERR_OK;
}

/* The handler whose program was already probed. */
static struct rt_handler *asked_before(const struct probe *probes, size_t n, const struct rt_handler *h)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(probes[i].handler->program, h->program) == 0)
            return probes[i].handler;
    return NULL;
}

/* Each program is probed once. If the default fails, so does the call; other failed handlers are dropped,
 * together with the handlers that share their program. */
static enum err_code probe_runtimes(struct rt *rt, struct probe *probes, struct err *e)
{
    size_t n = 0;

    for (struct rt_handler *h = rt->handlers; h != NULL; h = h->next)
        if (asked_before(probes, n, h) == NULL)
            probes[n++].handler = h;
    if (ask_all(rt, probes, n, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < n; i++) {
        struct err why = { 0 };

        if (take_answers(&probes[i], &why) != ERR_OK && i == 0)
            *e = why;
        else if (why.code != ERR_OK)
            log_warn("a runtime handler cannot be used", F_STR("handler", probes[i].handler->name),
                     F_ERR(&why));
        free(probes[i].version.out);
        free(probes[i].features.out);
    }
    for (struct rt_handler *h = rt->handlers; h != NULL; h = h->next) {
        const struct rt_handler *asked = asked_before(probes, n, h);

        if (asked != NULL)
            h->features = asked->features;
    }
    for (struct rt_handler *h = rt->handlers, *next; h != NULL; h = next) {
        next = h->next;
        if (h->features.runtime_name[0] == '\0' && h != rt->handlers)
            rt_handler_drop(rt, h);
    }
    return e->code;
}

/* ---- probing the kernel ---- */

static enum err_code read_own_caps(uint64_t *ret, struct err *e)
{
    str_auto text = NULL;
    const char *line;
    unsigned long long caps;

    if (fs_read_at(AT_FDCWD, "/proc/self/status", FS_SMALL_MAX, &text, NULL, e) != ERR_OK)
        return e->code;
    line = strstr(text, "\nCapEff:");
    if (line == NULL || sscanf(line, "\nCapEff: %llx", &caps) != 1)
        return err_set(e, ERR_INTERNAL, "/proc/self/status has no CapEff");
    *ret = caps;
    return ERR_OK;
}

/* kubelet's test (pkg/kubelet/kuberuntime, isSwapControllerAvailable): on v2 the root cgroup does not have
 * this file. */
static bool has_swap_accounting(const struct rt *rt)
{
    struct err e = { 0 };
    str_auto text = NULL;
    char path[PATH_MAX];
    char *own;

    if (!rt->host.cgroup_v2)
        return access("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", F_OK) == 0;
    if (fs_read_at(AT_FDCWD, "/proc/self/cgroup", FS_SMALL_MAX, &text, NULL, &e) != ERR_OK ||
        !str_starts(text, "0::/"))
        return false;
    own = text + strlen("0::");
    own[strcspn(own, "\n")] = '\0';
    return snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.swap.max", own) < (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

enum err_code rt_features_probe(struct rt *rt, struct err *e)
{
    struct probe *probes = calloc(RT_HANDLERS_MAX + 1, sizeof(*probes));
    enum err_code code = probes != NULL ? probe_runtimes(rt, probes, e) : err_nomem(e);
    str_auto score = NULL;

    free(probes);
    if (code != ERR_OK)
        return code;
    if (read_own_caps(&rt->host.own_caps, e) != ERR_OK ||
        fs_read_at(AT_FDCWD, "/proc/self/oom_score_adj", FS_SMALL_MAX, &score, NULL, e) != ERR_OK)
        return e->code;
    for (struct rt_handler *h = rt->handlers; h != NULL; h = h->next) {
        h->features.lower_oom_score = (rt->host.own_caps & RT_CAP_BIT(CAP_SYS_RESOURCE)) != 0;
        h->features.own_oom_score_adj = atoi(score);
    }
    rt->host.features = rt->handlers->features;
    rt->host.swap_accounting = has_swap_accounting(rt);
    return ERR_OK;
}
