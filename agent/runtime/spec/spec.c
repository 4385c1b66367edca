/* SPDX-License-Identifier: Apache-2.0 */
/* The OCI runtime specification of a container, in the form used by containerd and CRI-O under Kubernetes. */
#include "agent/runtime/spec/internal.h"
#include "cgroups/cgroup.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The name of the profile that administrators load for RuntimeDefault; we do not ship one. */
#define DEFAULT_APPARMOR "coracle-default"

#define OCI_VERSION "1.0.2"

/* kubelet's defaults for procMount Default, pkg/securitycontext/util.go; plus thermal_throttle. */
static const char *const masked_paths[] = {
    "/proc/asound",      "/proc/acpi",          "/proc/interrupts", "/proc/kcore",
    "/proc/keys",        "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
    "/proc/sched_debug", "/proc/scsi",          "/sys/firmware",    "/sys/devices/virtual/powercap",
};
static const char *const readonly_paths[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                              "/proc/sysrq-trigger" };
#define THERMAL_THROTTLE "/sys/devices/system/cpu/cpu*/thermal_throttle"

/* Sets obj[key], taking the value; NULL value: out of memory. */
static bool spec_put(json_t *obj, const char *key, json_t *value)
{
    return json_object_set_new(obj, key, value) == 0;
}

static json_t *string_array(const char *const *v, size_t n)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; list != NULL && i < n; i++)
        if (json_array_append_new(list, json_string(v[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* ---- process ---- */

static int oom_score_adj(const struct rt_host *host, const struct rt_config *c)
{
    /* Without CAP_SYS_RESOURCE the kernel allows no value below our own, so our own is used. */
    if (!host->features.lower_oom_score && c->oom_score_adj < host->features.own_oom_score_adj)
        return host->features.own_oom_score_adj;
    return c->oom_score_adj;
}

/* A user namespace contains a limited range of users. */
static enum err_code check_mapped(const struct rt_config *c, const struct rt_user *u, struct err *e)
{
    int64_t most = u->uid > u->gid ? u->uid : u->gid;

    for (size_t i = 0; i < u->n_gids; i++)
        most = u->gids[i] > most ? u->gids[i] : most;
    for (size_t i = 0; c->edits != NULL && i < c->edits->n_gids; i++)
        most = c->edits->gids[i] > most ? c->edits->gids[i] : most;
    if (c->userns != NULL && most >= c->n_ids)
        return err_set(e, ERR_INVALID,
                       "user or group %lld: with hostUsers: false a pod has users and groups 0 to %u",
                       (long long)most, c->n_ids - 1);
    return ERR_OK;
}

/* Whether the user or an earlier edit has the group of edit i. */
static bool has_group(const struct rt_user *u, const struct rt_edits *edits, size_t i)
{
    for (size_t k = 0; k < u->n_gids; k++)
        if (u->gids[k] == edits->gids[i])
            return true;
    for (size_t k = 0; k < i; k++)
        if (edits->gids[k] == edits->gids[i])
            return true;
    return false;
}

static bool put_user(const struct rt_config *c, const struct rt_user *u, json_t *process)
{
    json_t *gids = json_array();
    bool ok = spec_put(process, "user",
                       json_pack("{s:I,s:I,s:o}", "uid", (json_int_t)u->uid, "gid", (json_int_t)u->gid,
                                 "additionalGids", gids));
    size_t i;

    for (i = 0; ok && i < u->n_gids; i++)
        ok = json_array_append_new(gids, json_integer(u->gids[i])) == 0;
    for (i = 0; ok && c->edits != NULL && i < c->edits->n_gids; i++)
        if (c->edits->gids[i] != 0 && !has_group(u, c->edits, i))
            ok = json_array_append_new(gids, json_integer(c->edits->gids[i])) == 0;
    return ok;
}

/* The same set as bounding, effective and permitted; none inheritable or ambient. Users other than root lose
 * the latter two at execve, as under containerd. */
static enum err_code put_caps(uint64_t caps, json_t *process, struct err *e)
{
    json_auto_t *names = rt_caps_names(caps);

    return names != NULL && spec_put(process, "capabilities",
                                     json_pack("{s:O,s:O,s:O}", "bounding", names, "effective", names,
                                               "permitted", names))
               ? ERR_OK
               : err_nomem(e);
}

static enum err_code put_cwd(const struct rt_config *c, json_t *process, struct err *e)
{
    const char *cwd = c->working_dir;

    if (cwd == NULL || *cwd == '\0')
        cwd = c->image->working_dir;
    if (cwd == NULL || *cwd == '\0')
        cwd = "/";
    /* runc's message, for a StartError; crun would silently use the root. */
    if (*cwd != '/')
        return err_set(e, ERR_UNKNOWN, "Cwd must be an absolute path");
    if (!spec_put(process, "cwd", json_string(cwd)))
        return err_set(e, ERR_DATA_LOSS, "working directory: not UTF-8");
    return ERR_OK;
}

/* The container's profile, otherwise the pod's. Privileged containers have none. The runtime rejects profiles
 * that are not loaded. */
static enum err_code put_apparmor(const struct rt_config *c, json_t *process, struct err *e)
{
    const struct api_apparmor *a = c->security != NULL && c->security->apparmor.type != NULL
                                       ? &c->security->apparmor
                                   : c->pod_security != NULL ? &c->pod_security->apparmor
                                                             : NULL;
    const char *name;

    if (a == NULL || a->type == NULL || strcmp(a->type, "Unconfined") == 0 || rt_privileged(c))
        return ERR_OK;
    name = strcmp(a->type, "Localhost") == 0 ? a->localhost_profile : DEFAULT_APPARMOR;
    return spec_put(process, "apparmorProfile", json_string(name))
               ? ERR_OK
               : err_set(e, ERR_DATA_LOSS, "AppArmor profile: not UTF-8");
}

static enum err_code build_process(const struct rt_host *host, const struct rt_config *c, int rootfs_fd,
                                   uint64_t caps, json_t *spec, struct err *e)
{
    const struct api_security *s = c->security;
    bool no_new_privs = s != NULL && s->has_allow_privilege_escalation && !s->allow_privilege_escalation;
    struct rt_user user = { 0 };
    enum err_code code;
    json_t *args = json_array(), *env = json_array();
    json_t *process =
        json_pack("{s:b,s:b,s:i,s:o,s:o}", "terminal", (int)c->tty, "noNewPrivileges", (int)no_new_privs,
                  "oomScoreAdj", oom_score_adj(host, c), "args", args, "env", env);

    if (process == NULL || !spec_put(spec, "process", process) ||
        !spec_put(process, "rlimits", rt_limits_build()))
        return err_nomem(e);
    if (rt_args_build(c, args, e) != ERR_OK || put_cwd(c, process, e) != ERR_OK ||
        put_caps(caps, process, e) != ERR_OK || put_apparmor(c, process, e) != ERR_OK ||
        rt_user_resolve(c, rootfs_fd, &user, e) != ERR_OK)
        return e->code;
    if (check_mapped(c, &user, e) != ERR_OK)
        code = e->code;
    else if (put_user(c, &user, process))
        code = rt_env_build(c, user.home, env, e);
    else
        code = err_nomem(e);
    rt_user_done(&user);
    return code;
}

/* ---- linux ---- */

static bool add_namespace(json_t *list, const char *type, const char *path)
{
    json_t *n =
        path != NULL ? json_pack("{s:s,s:s}", "type", type, "path", path) : json_pack("{s:s}", "type", type);

    return json_array_append_new(list, n) == 0;
}

/* The pod's namespaces by path; the others are the host's, except mount and (by default) PID, which are the
 * container's own. */
static bool put_namespaces(const struct rt_host *host, const struct rt_config *c, json_t *linux_section)
{
    json_t *list = json_array();

    return spec_put(linux_section, "namespaces", list) && add_namespace(list, "mount", NULL) &&
           (c->host_pid || add_namespace(list, "pid", c->pidns)) &&
           (c->netns == NULL || add_namespace(list, "network", c->netns)) &&
           (c->ipcns == NULL || add_namespace(list, "ipc", c->ipcns)) &&
           (c->utsns == NULL || add_namespace(list, "uts", c->utsns)) &&
           (c->userns == NULL || add_namespace(list, "user", c->userns)) &&
           (!host->cgroup_v2 || (rt_privileged(c) && c->userns == NULL) ||
            add_namespace(list, "cgroup", NULL));
}

/* The mappings of the joined namespace: runc requires them, crun reads its users from them. */
static bool put_mappings(const struct rt_config *c, json_t *linux_section)
{
    static const char *const keys[] = { "uidMappings", "gidMappings" };

    for (size_t i = 0; c->userns != NULL && i < ARRAY_LEN(keys); i++)
        if (!spec_put(linux_section, keys[i],
                      json_pack("[{s:i,s:I,s:I}]", "containerID", 0, "hostID", (json_int_t)c->first_id,
                                "size", (json_int_t)c->n_ids)))
            return false;
    return true;
}

static bool spec_put_number(json_t *unified, const char *file, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    return spec_put(unified, file, json_string(text));
}

/* Settings without a field in the specification, as the kernel's files. Also the CPU weight, because runtimes
 * convert shares differently. */
static bool put_unified(const struct rt_host *host, const struct rt_config *c, json_t *unified)
{
    const struct {
        const char *file;
        int64_t value;
    } memory[] = {
        { "memory.min", c->memory_min },
        { "memory.low", c->memory_low },
        { "memory.high", c->memory_high },
        { "memory.oom.group", c->oom_group },
    };

    if (c->cpu_shares >= 0 &&
        !spec_put_number(unified, "cpu.weight", (int64_t)cg_weight_from_shares((uint64_t)c->cpu_shares)))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(memory); i++)
        if (memory[i].value > 0 && !spec_put_number(unified, memory[i].file, memory[i].value))
            return false;
    /* crun only supports the limit for pages in use. */
    for (size_t i = 0; i < c->n_hugepages; i++) {
        char file[64];
        snprintf(file, sizeof(file), "hugetlb.%s.rsvd.max", c->hugepages[i].size);
        if (c->hugepages[i].reserved && !spec_put_number(unified, file, c->hugepages[i].limit))
            return false;
    }
    return !host->swap_accounting || spec_put_number(unified, "memory.swap.max", c->swap_max);
}

/* On v1 a memory limit means no additional swap, as in kubelet. */
static bool put_limits(const struct rt_host *host, const struct rt_config *c, json_t *resources)
{
    json_t *cpu = json_object(), *memory = json_object(), *unified = json_object();
    bool ok = spec_put(resources, "cpu", cpu);

    ok = spec_put(resources, "memory", memory) && ok; /* in this order: it always takes the value */
    ok = unified != NULL && ok;
    if (ok && c->cpu_shares >= 0 && !host->cgroup_v2)
        ok = spec_put(cpu, "shares", json_integer(c->cpu_shares));
    if (ok && c->cpu_quota_us >= 0)
        ok =
            spec_put(cpu, "quota", json_integer(c->cpu_quota_us)) &&
            spec_put(cpu, "period", json_integer(c->cpu_period_us > 0 ? c->cpu_period_us : CG_CPU_PERIOD_US));
    if (ok && c->cpus != NULL)
        ok = spec_put(cpu, "cpus", json_string(c->cpus));
    if (ok && c->mems != NULL)
        ok = spec_put(cpu, "mems", json_string(c->mems));
    if (ok && c->memory_limit >= 0)
        ok = spec_put(memory, "limit", json_integer(c->memory_limit)) &&
             (host->cgroup_v2 || !host->swap_accounting ||
              spec_put(memory, "swap", json_integer(c->memory_limit)));
    if (ok && host->cgroup_v2)
        ok = put_unified(host, c, unified);
    if (ok && json_object_size(unified) > 0) /* crun rejects the section on v1, even if empty */
        return spec_put(resources, "unified", unified);
    json_decref(unified);
    return ok;
}

static bool put_hugepages(const struct rt_config *c, json_t *resources)
{
    json_t *list;
    size_t i;

    if (c->n_hugepages == 0)
        return true;
    list = json_array();
    if (!spec_put(resources, "hugepageLimits", list))
        return false;
    for (i = 0; i < c->n_hugepages; i++)
        if (json_array_append_new(list, json_pack("{s:s,s:I}", "pageSize", c->hugepages[i].size, "limit",
                                                  (json_int_t)c->hugepages[i].limit)) != 0)
            return false;
    return true;
}

/* Masking a path costs a mount, so only for CPUs that have the folder. */
static bool add_thermal_throttle(json_t *list)
{
    glob_t found = { 0 };
    bool ok = true;
    size_t i;

    if (glob(THERMAL_THROTTLE, GLOB_NOSORT, NULL, &found) == 0)
        for (i = 0; ok && i < found.gl_pathc; i++)
            ok = json_array_append_new(list, json_string(found.gl_pathv[i])) == 0;
    globfree(&found);
    return ok;
}

static bool put_masks(const struct rt_config *c, json_t *linux_section)
{
    bool unmasked = rt_privileged(c) || (c->security != NULL && str_eq(c->security->proc_mount, "Unmasked"));
    json_t *masked = string_array(masked_paths, unmasked ? 0 : ARRAY_LEN(masked_paths));

    return spec_put(linux_section, "maskedPaths", masked) && (unmasked || add_thermal_throttle(masked)) &&
           spec_put(linux_section, "readonlyPaths",
                    string_array(readonly_paths, unmasked ? 0 : ARRAY_LEN(readonly_paths)));
}

static enum err_code build_linux(const struct rt_host *host, const struct rt_config *c, int rootfs_fd,
                                 uint64_t caps, const char *root_propagation, json_t *spec, struct err *e)
{
    json_t *linux_section = json_object(), *resources = json_object(), *devices = json_array(),
           *rules = json_array();
    bool ok = spec_put(spec, "linux", linux_section);
    json_t *seccomp = NULL;

    /* Separate calls: each takes ownership of its value, even if another failed. */
    ok = spec_put(linux_section, "resources", resources) && ok;
    ok = spec_put(linux_section, "devices", devices) && ok;
    ok = spec_put(resources, "devices", rules) && ok;
    if (!ok || !spec_put(linux_section, "cgroupsPath", json_string(c->cgroup_path)) ||
        !put_namespaces(host, c, linux_section) || !put_mappings(c, linux_section) ||
        !put_limits(host, c, resources) || !put_hugepages(c, resources) || !put_masks(c, linux_section) ||
        (root_propagation != NULL &&
         !spec_put(linux_section, "rootfsPropagation", json_string(root_propagation))))
        return err_nomem(e);
    if (rt_devices_build(c, rootfs_fd, devices, rules, e) != ERR_OK ||
        rt_seccomp_resolve(host, c, caps, &seccomp, e) != ERR_OK)
        return e->code;
    return seccomp == NULL || spec_put(linux_section, "seccomp", seccomp) ? ERR_OK : err_nomem(e);
}

static enum err_code put_annotations(const struct rt_config *c, json_t *spec, struct err *e)
{
    json_t *annotations;

    if (c->n_annotations == 0)
        return ERR_OK;
    annotations = json_object();
    if (!spec_put(spec, "annotations", annotations))
        return err_nomem(e);
    for (size_t i = 0; i < c->n_annotations; i++) {
        const struct rt_annotation *a = &c->annotations[i];

        if (json_object_get(annotations, a->name) == NULL &&
            !spec_put(annotations, a->name, json_string(a->value)))
            return err_set(e, ERR_DATA_LOSS, "annotation \"%.200s\" of a device: not UTF-8", a->name);
    }
    return ERR_OK;
}

enum err_code rt_spec_build(const struct rt_host *host, const struct rt_config *c, int rootfs_fd,
                            json_t **ret, struct err *e)
{
    json_t *mounts = json_array();
    json_auto_t *spec = json_pack("{s:s,s:{s:s,s:b},s:o}", "ociVersion", OCI_VERSION, "root", "path",
                                  "rootfs", "readonly", (int)rt_read_only_root(c), "mounts", mounts);
    const char *root_propagation = NULL;
    uint64_t caps = 0;

    if (spec == NULL)
        return err_nomem(e);
    if (rt_user_check_non_root(c, e) != ERR_OK || rt_caps_resolve(host, c->security, &caps, e) != ERR_OK ||
        build_process(host, c, rootfs_fd, caps, spec, e) != ERR_OK ||
        rt_mounts_build(host, c, mounts, &root_propagation, e) != ERR_OK ||
        build_linux(host, c, rootfs_fd, caps, root_propagation, spec, e) != ERR_OK ||
        put_annotations(c, spec, e) != ERR_OK || rt_edits_put(host, c, spec, e) != ERR_OK)
        return e->code;
    *ret = json_incref(spec);
    return ERR_OK;
}
