/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of the OCI runtime and the kernel, probed once. */
#include "agent/runtime/container_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

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

struct probe {
    struct proc proc;
    struct err result;
    char *out;
    uv_loop_t *loop;
};

static void on_probed(struct op *op, const struct err *result)
{
    struct probe *p = op->owner;

    p->result = *result;
    if (result->code == ERR_OK)
        p->out = buf_detach(&p->proc.out);
    proc_forget(p->loop); /* nothing else is running on it */
}

/* Runs to completion on its own loop: this happens once, before anything else. */
static enum err_code features_ask(const struct rt *rt, const char *question, char **ret, struct err *e)
{
    const char *const argv[] = { rt->runtime_path, question, NULL };
    struct rt_runtime_args args;
    const struct proc_spec spec = {
        .name = "runtime probe",
        .subject = question,
        .argv = argv,
        .env = args.env,
        .stdout_max = PROBE_OUTPUT_MAX,
        CG_OPS(rt->cgroups),
        .deadline_ms = PROBE_DEADLINE_MS,
    };
    uv_loop_t loop;
    struct probe p = { .loop = &loop };
    int status = uv_loop_init(&loop);

    if (status != 0)
        return err_sys(e, -status, "make a loop");
    rt_runtime_args(rt, NULL, &args);
    proc_start(&p.proc, &spec, &loop, on_probed, &p);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    if (p.result.code != ERR_OK) {
        *e = p.result;
        return err_wrap(e, "%s %s", rt->runtime_path, question);
    }
    if (p.out == NULL)
        return err_nomem(e);
    *ret = p.out;
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

/* Mount option rro: crun since 1.4, runc since 1.1; their `features` command came with 1.10 and 1.1. User
 * namespaces are older; tested with crun 1.8 and runc 1.1. */
void rt_features_by_version(struct rt_features *f)
{
    f->recursive_read_only = is_since(f, "crun", 4) || is_since(f, "runc", 1);
    f->user_namespaces = is_since(f, "crun", 8) || is_since(f, "runc", 1);
}

/* Uses its own answer, or for runtimes too old to answer, their version. */
static void ask_features(struct rt *rt)
{
    struct err e = { 0 };
    str_auto text = NULL;

    if (features_ask(rt, "features", &text, &e) != ERR_OK ||
        rt_features_parse(text, &rt->host.features, &e) != ERR_OK)
        rt_features_by_version(&rt->host.features);
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
    str_auto version = NULL;
    str_auto score = NULL;

    if (features_ask(rt, "--version", &version, e) != ERR_OK)
        return e->code;
    if (!rt_features_parse_version(version, &rt->host.features))
        return err_set(e, ERR_INVALID, "%s --version: not an OCI runtime's answer: %.80s", rt->runtime_path,
                       version);
    ask_features(rt);
    if (read_own_caps(&rt->host.own_caps, e) != ERR_OK ||
        fs_read_at(AT_FDCWD, "/proc/self/oom_score_adj", FS_SMALL_MAX, &score, NULL, e) != ERR_OK)
        return e->code;
    rt->host.features.lower_oom_score = (rt->host.own_caps & RT_CAP_BIT(CAP_SYS_RESOURCE)) != 0;
    rt->host.features.own_oom_score_adj = atoi(score);
    rt->host.swap_accounting = has_swap_accounting(rt);
    return ERR_OK;
}
