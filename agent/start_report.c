/* SPDX-License-Identifier: Apache-2.0 */
/* start_report - logs the agent's tools, features and missing parts at its start. */
#include "agent/internal.h"

#include "base/log.h"
#include "base/process/process.h"

static void log_missing(const char *controller, const char *disables, void *arg)
{
    (void)arg;
    log_warn("cgroup controller is missing", F_STR("controller", controller), F_STR("so", disables));
}

/* Protection is limited by that of every ancestor cgroup. */
static void log_unprotected(const struct agent *a)
{
    char where[512] = "";

    if (a->config.resources.memory_qos && a->config.resources.memory_tiers &&
        cg_protected_above(a->cgroups, where, sizeof(where)) == 0)
        log_warn("memory requests of pods are only protected against each other: an ancestor cgroup has no "
                 "memory.min (MemoryMin= of its unit)",
                 F_STR("cgroup", where));
}

void start_report(const struct agent *a)
{
    const struct rt_features *f = rt_features(a->rt);
    static const char *const layouts[] = { "v2", "v1", "hybrid" };
    const char *why = NULL, *network = cni_default_network(a->cni, &why);

    log_info("coracle starts", F_STR("version", CORACLE_VERSION), F_STR("node", a->node_name),
             F_STR("runtime", f->runtime_name), F_STR("runtimeVersion", f->runtime_version),
             F_STR("cgroups", layouts[cg_layout(a->cgroups)]), F_STR("manifests", a->config.manifests),
             F_STR("socket", a->config.socket));
    cg_missing(a->cgroups, log_missing, NULL);
    log_unprotected(a);
    if (a->config.resources.memory_qos && cg_layout(a->cgroups) != CG_V2)
        log_warn("feature gate MemoryQoS has no effect on cgroup v1");
    if (a->config.resources.limited_swap && cg_layout(a->cgroups) != CG_V2)
        log_warn("swapBehavior LimitedSwap has no effect on cgroup v1: no container gets swap");
    if (!f->lower_oom_score)
        log_warn("cannot lower oom_score_adj (no CAP_SYS_RESOURCE): containers keep at least the "
                 "agent's own value",
                 F_I64("own", f->own_oom_score_adj));
    for (const char *const *m = cni_missing_plugins(a->cni); *m != NULL; m++)
        log_error("network plugin is missing: install Debian's package containernetworking-plugins, or the "
                  "network's own",
                  F_STR("plugin", *m), F_STR("package", "containernetworking-plugins"));
    if (proc_landlock_version() < PROC_LANDLOCK_MIN)
        log_warn(PROC_LANDLOCK_MISSING);
    if (network == NULL)
        log_warn("no network yet: pods without hostNetwork wait for it", F_STR("why", why));
    if (rt_seccomp_problem(a->rt) != NULL)
        log_warn("seccomp RuntimeDefault is not available", F_STR("why", rt_seccomp_problem(a->rt)));
}
