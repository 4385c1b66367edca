/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seccomp: resolves profiles with conditions to the OCI specification's plain form.
 *
 * RuntimeDefault is the distribution's profile (package golang-github-containers-common on Debian,
 * containers-common elsewhere; format of github.com/containers/common/pkg/seccomp): each rule may be limited
 * to architectures, capabilities and kernel versions. Localhost profiles are in the format of Docker, of the
 * containers package, or plain OCI.
 */
#include "agent/runtime/spec/internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum {
    PROFILE_MAX =
        1024 * 1024,  /* the distribution's has 16 KiB; the API server rejects larger objects anyway */
    ERRNO_LAST = 133, /* EHWPOISON, the highest */
};

/* uname -m, the name in conditions (Go's, as Docker's profiles use it), libseccomp's name, and its names of
 * the other architectures that this machine's kernel runs (archMap of the distribution's profile). */
static const struct {
    const char *machine, *name, *seccomp, *also[2];
} architectures[] = {
    { "x86_64", "amd64", "SCMP_ARCH_X86_64", { "SCMP_ARCH_X86", "SCMP_ARCH_X32" } },
    { "i686", "x86", "SCMP_ARCH_X86", { 0 } },
    { "aarch64", "arm64", "SCMP_ARCH_AARCH64", { "SCMP_ARCH_ARM" } },
    { "armv7l", "arm", "SCMP_ARCH_ARM", { 0 } },
    { "armv6l", "arm", "SCMP_ARCH_ARM", { 0 } },
    { "ppc64le", "ppc64le", "SCMP_ARCH_PPC64LE", { 0 } },
    { "ppc64", "ppc64", "SCMP_ARCH_PPC64", { "SCMP_ARCH_PPC" } },
    { "s390x", "s390x", "SCMP_ARCH_S390X", { "SCMP_ARCH_S390" } },
    { "riscv64", "riscv64", "SCMP_ARCH_RISCV64", { 0 } },
    { "mips64", "mips64", "SCMP_ARCH_MIPS64", { "SCMP_ARCH_MIPS", "SCMP_ARCH_MIPS64N32" } },
    { "mips", "mips", "SCMP_ARCH_MIPS", { 0 } },
};

struct resolving {
    const struct rt_seccomp_host *host;
    const char *arch;         /* NULL: a machine unknown to conditions */
    const char *seccomp_arch; /* NULL: a machine unknown to libseccomp */
};

/* ---- conditions ---- */

static bool has_cap(const struct resolving *r, const json_t *name)
{
    int number = json_is_string(name) ? rt_cap_number(json_string_value(name)) : -1;

    return number >= 0 && (r->host->caps & RT_CAP_BIT(number)) != 0;
}

/* "4.8" */
static bool kernel_is_older(const struct resolving *r, const char *wanted)
{
    unsigned major = 0, minor = 0;

    if (sscanf(wanted, "%u.%u", &major, &minor) < 1)
        return true;
    return r->host->kernel_major != major ? r->host->kernel_major < major : r->host->kernel_minor < minor;
}

static bool applies(const struct resolving *r, const json_t *rule)
{
    const json_t *in = json_object_get(rule, "includes"), *ex = json_object_get(rule, "excludes"), *v, *caps;
    const char *kernel;
    size_t i;

    json_array_foreach (json_object_get(ex, "caps"), i, v)
        if (has_cap(r, v))
            return false;
    if (json_has(json_object_get(ex, "arches"), r->arch))
        return false;
    kernel = json_str(ex, "minKernel");
    if (kernel != NULL && !kernel_is_older(r, kernel))
        return false;

    caps = json_object_get(in, "caps");
    json_array_foreach (caps, i, v)
        if (!has_cap(r, v))
            return false;
    if (json_array_size(json_object_get(in, "arches")) > 0 &&
        !json_has(json_object_get(in, "arches"), r->arch))
        return false;
    kernel = json_str(in, "minKernel");
    return kernel == NULL || !kernel_is_older(r, kernel);
}

/* ---- translation ---- */

static int errno_number(const char *name)
{
    int n;

    for (n = 1; n <= ERRNO_LAST; n++) {
        const char *known = strerrorname_np(n);

        if (known != NULL && strcmp(known, name) == 0)
            return n;
    }
    return -1;
}

/* errnoRet, or errno by name, as member `key` of to. */
static enum err_code put_errno(json_t *to, const char *key, const json_t *number, const char *name,
                               struct err *e)
{
    int n = name != NULL && *name != '\0' ? errno_number(name) : 0;

    if (n < 0)
        return err_set(e, ERR_NOT_FOUND, "unknown errno \"%.32s\"", name);
    if (n == 0 && !json_is_integer(number))
        return ERR_OK;
    return json_object_set_new(to, key, n > 0 ? json_integer(n) : json_integer(json_integer_value(number))) ==
                   0
               ? ERR_OK
               : err_nomem(e);
}

enum err_code rt_seccomp_architectures(const char *machine, json_t **ret, struct err *e)
{
    *ret = NULL;
    for (size_t i = 0; i < ARRAY_LEN(architectures); i++) {
        if (strcmp(architectures[i].machine, machine) != 0)
            continue;
        json_auto_t *list = json_pack("[s]", architectures[i].seccomp);

        for (size_t k = 0; k < 2 && architectures[i].also[k] != NULL; k++)
            if (json_array_append_new(list, json_string(architectures[i].also[k])) != 0)
                return err_nomem(e);
        *ret = json_incref(list);
        return *ret != NULL ? ERR_OK : err_nomem(e);
    }
    return ERR_OK;
}

static bool spec_seccomp_copy(json_t *to, const json_t *from, const char *key)
{
    json_t *v = json_object_get(from, key);

    return v == NULL || json_is_null(v) || json_object_set(to, key, v) == 0;
}

static enum err_code convert_rule(const json_t *rule, json_t *list, struct err *e)
{
    json_auto_t *out = json_object();
    const json_t *names = json_object_get(rule, "names"), *args = json_object_get(rule, "args");
    const char *name = json_str(rule, "name"); /* the oldest format: one rule per call */

    if (out == NULL)
        return err_nomem(e);
    if (json_str(rule, "action") == NULL || (!json_is_array(names) && name == NULL))
        return err_set(e, ERR_NOT_FOUND, "a rule needs names and an action");
    if ((json_array_size(names) > 0
             ? json_object_set(out, "names", (json_t *)names)
             : json_object_set_new(out, "names", json_pack("[s]", name != NULL ? name : ""))) != 0 ||
        !spec_seccomp_copy(out, rule, "action") ||
        (json_array_size(args) > 0 && json_object_set(out, "args", (json_t *)args) != 0))
        return err_nomem(e);
    if (put_errno(out, "errnoRet", json_object_get(rule, "errnoRet"), json_str(rule, "errno"), e) != ERR_OK)
        return e->code;
    return json_array_append(list, out) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code convert_architectures(const struct resolving *r, const json_t *profile, json_t *out,
                                           struct err *e)
{
    const json_t *map = json_object_get(profile, "archMap"), *entry, *sub;
    json_auto_t *list = NULL;
    size_t i, k;

    if (!json_is_array(map))
        return spec_seccomp_copy(out, profile, "architectures") ? ERR_OK : err_nomem(e);
    json_array_foreach (map, i, entry) {
        const char *name = json_str(entry, "architecture");

        if (name == NULL || r->seccomp_arch == NULL || strcmp(name, r->seccomp_arch) != 0)
            continue;
        json_decref(list);
        list = json_pack("[s]", name);
        json_array_foreach (json_object_get(entry, "subArchitectures"), k, sub)
            if (list == NULL || json_array_append(list, (json_t *)sub) != 0)
                return err_nomem(e);
        if (list == NULL)
            return err_nomem(e);
    }
    /* Without an entry the runtime filters only the native architecture. */
    return list == NULL || json_object_set(out, "architectures", list) == 0 ? ERR_OK : err_nomem(e);
}

enum err_code rt_seccomp_convert(const json_t *profile, const struct rt_seccomp_host *host, json_t **ret,
                                 struct err *e)
{
    struct resolving r = { .host = host };
    json_auto_t *out = json_object(), *list = json_array();
    const json_t *rule;
    size_t i;

    for (i = 0; i < ARRAY_LEN(architectures); i++)
        if (strcmp(architectures[i].machine, host->machine) == 0) {
            r.arch = architectures[i].name;
            r.seccomp_arch = architectures[i].seccomp;
        }
    if (out == NULL || list == NULL)
        return err_nomem(e);
    if (json_str(profile, "defaultAction") == NULL)
        return err_set(e, ERR_NOT_FOUND, "defaultAction is missing");
    if (!spec_seccomp_copy(out, profile, "defaultAction") || !spec_seccomp_copy(out, profile, "flags") ||
        !spec_seccomp_copy(out, profile, "listenerPath") ||
        !spec_seccomp_copy(out, profile, "listenerMetadata"))
        return err_nomem(e);
    if (put_errno(out, "defaultErrnoRet", json_object_get(profile, "defaultErrnoRet"),
                  json_str(profile, "defaultErrno"), e) != ERR_OK ||
        convert_architectures(&r, profile, out, e) != ERR_OK)
        return e->code;
    json_array_foreach (json_object_get(profile, "syscalls"), i, rule)
        if (applies(&r, rule) && convert_rule(rule, list, e) != ERR_OK)
            return err_wrap(e, "syscalls[%zu]", i);
    if (json_array_size(list) > 0 && json_object_set(out, "syscalls", list) != 0)
        return err_nomem(e);
    *ret = json_incref(out);
    return ERR_OK;
}

/* ---- choosing the profile ---- */

static const struct api_seccomp *spec_seccomp_wanted(const struct rt_config *c,
                                                     enum api_seccomp_type *ret_type)
{
    const struct api_seccomp *s = NULL;

    if (c->security != NULL && c->security->seccomp.type != API_SECCOMP_UNSET)
        s = &c->security->seccomp;
    else if (c->pod_security != NULL && c->pod_security->seccomp.type != API_SECCOMP_UNSET)
        s = &c->pod_security->seccomp;
    *ret_type = s != NULL            ? s->type
                : c->seccomp_default ? API_SECCOMP_RUNTIME_DEFAULT
                                     : API_SECCOMP_UNCONFINED;
    return s;
}

static enum err_code read_profile(int fd, json_t **ret, struct err *e)
{
    str_auto text = NULL;
    struct stat st;
    size_t n = 0;

    if (fstat(fd, &st) != 0)
        return err_sys(e, errno, "stat");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "not a regular file");
    if (fs_read_fd(fd, PROFILE_MAX, &text, &n, e) != ERR_OK)
        return e->code;
    return json_parse(text, n, PROFILE_MAX, ret, "seccomp profile", e);
}

static enum err_code load_localhost(const struct rt_host *host, const char *profile, json_t **ret,
                                    struct err *e)
{
    const char *dir = host->localhost_seccomp_dir;
    struct err why = { 0 };
    fd_auto root = -1;
    fd_auto fd = -1;

    if (dir == NULL || profile == NULL || !fs_path_is_safe(profile))
        return err_set(e, ERR_NOT_FOUND,
                       "cannot load seccomp profile \"%s\": not a path below the profile folder",
                       profile != NULL ? profile : "");
    root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 && errno != ENOENT)
        return err_sys(e, errno, "cannot load seccomp profile \"%s/%s\": open %s", dir, profile, dir);
    if (root >= 0)
        fd = fs_open_beneath(root, profile, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0, &why);
    if (root < 0 || (fd < 0 && why.code == ERR_NOT_FOUND))
        return err_set(e, ERR_NOT_FOUND,
                       "cannot load seccomp profile \"%s/%s\": open %s/%s: no such file or directory", dir,
                       profile, dir, profile);
    if (fd < 0 || read_profile(fd, ret, &why) != ERR_OK)
        return err_set(e, ERR_UNAVAILABLE, "cannot load seccomp profile \"%s/%s\": %s", dir, profile,
                       why.text);
    return ERR_OK;
}

const char *rt_host_seccomp_problem(const struct rt_host *host)
{
    return access(host->seccomp_profile, R_OK) == 0 ? NULL : host->seccomp_problem;
}

static enum err_code load_default(const struct rt_host *host, json_t **ret, struct err *e)
{
    const char *problem = rt_host_seccomp_problem(host);
    struct err why = { 0 };
    fd_auto fd = -1;

    if (problem != NULL)
        return err_set(e, ERR_NOT_FOUND, "%s", problem);
    fd = open(host->seccomp_profile, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "open %s", host->seccomp_profile);
    if (read_profile(fd, ret, &why) != ERR_OK)
        return err_set(e, ERR_UNAVAILABLE, "read %s: %s", host->seccomp_profile, why.text);
    return ERR_OK;
}

static enum err_code read_host(struct utsname *uts, struct rt_seccomp_host *ret, struct err *e)
{
    if (uname(uts) != 0)
        return err_sys(e, errno, "uname");
    ret->machine = uts->machine;
    if (sscanf(uts->release, "%u.%u", &ret->kernel_major, &ret->kernel_minor) != 2)
        return err_set(e, ERR_INTERNAL, "kernel release \"%s\" has no version", uts->release);
    return ERR_OK;
}

/* `localhost`: NULL for RuntimeDefault. */
static enum err_code profile_load(const struct rt_host *host, const struct rt_seccomp_host *kernel,
                                  const struct api_seccomp *localhost, json_t **ret, struct err *e)
{
    json_auto_t *profile = NULL;

    if ((localhost != NULL ? load_localhost(host, localhost->localhost_profile, &profile, e)
                           : load_default(host, &profile, e)) != ERR_OK)
        return e->code;
    if (rt_seccomp_convert(profile, kernel, ret, e) != ERR_OK)
        return localhost != NULL ? err_wrap(e, "cannot load seccomp profile \"%s/%s\"",
                                            host->localhost_seccomp_dir, localhost->localhost_profile)
                                 : err_wrap(e, "%s", host->seccomp_profile);
    return ERR_OK;
}

enum err_code rt_seccomp_resolve(const struct rt_host *host, const struct rt_config *c, uint64_t caps,
                                 json_t **ret, struct err *e)
{
    struct rt_seccomp_host kernel = { .caps = caps };
    enum api_seccomp_type type;
    const struct api_seccomp *s = spec_seccomp_wanted(c, &type);
    bool confined = type != API_SECCOMP_UNCONFINED && type != API_SECCOMP_UNSET;
    bool keep_projects = c->keep_projects && c->userns == NULL;
    json_auto_t *profile = NULL;
    struct utsname uts;

    *ret = NULL;
    if (rt_privileged(c) || (!confined && !keep_projects))
        return ERR_OK;
    if (read_host(&uts, &kernel, e) != ERR_OK)
        return e->code;
    if (confined &&
        profile_load(host, &kernel, type == API_SECCOMP_LOCALHOST ? s : NULL, &profile, e) != ERR_OK)
        return e->code;
    if (keep_projects && rt_seccomp_keep_projects(&profile, &kernel, e) != ERR_OK)
        return e->code;
    *ret = json_incref(profile);
    return ERR_OK;
}
