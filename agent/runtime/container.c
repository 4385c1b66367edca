/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime object: its paths, opening and closing. */
#include "agent/runtime/container_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_LOG_MAX = 64 * 1024 }; /* a failing runtime writes a line or two */

/* ---- names and paths ---- */

bool rt_id_valid(const char *id)
{
    return id != NULL && strlen(id) == RT_ID_SIZE - 1 && strspn(id, "0123456789abcdef") == RT_ID_SIZE - 1;
}

PRINTF_LIKE(1, 2) static struct rt_path make_path(const char *fmt, ...)
{
    struct rt_path p;
    va_list ap;

    /* The path fits: rt_open() limits the roots, ids have 64 digits, the other parts are ours. */
    va_start(ap, fmt);
    vsnprintf(p.s, sizeof(p.s), fmt, ap);
    va_end(ap);
    return p;
}

struct rt_path rt_container_dir(const struct rt *rt, const char *id)
{
    return make_path("%s/containers/%s", rt->run_dir, id);
}

struct rt_path rt_container_file(const struct rt *rt, const char *id, const char *name)
{
    return make_path("%s/containers/%s/%s", rt->run_dir, id, name);
}

struct rt_path rt_exit_file(const struct rt *rt, const char *id)
{
    return make_path("%s/exits/%s", rt->run_dir, id);
}

struct rt_path rt_oci_dir(const struct rt *rt, const char *id)
{
    return make_path("%s/oci/%s", rt->run_dir, id);
}

struct rt_path rt_layer_dir(const struct rt *rt, const char *id)
{
    return make_path("%s/containers/%s", rt->state_dir, id);
}

bool rt_writable_dir(const struct rt *rt, const char *id, char *ret, size_t size)
{
    return (size_t)snprintf(ret, size, "%s/containers/%s/upper", rt->state_dir, id) < size;
}

bool rt_cgroup_path_valid(const char *path, const char *id)
{
    size_t n = path != NULL ? strlen(path) : 0;

    return n > RT_ID_SIZE && n < RT_CGROUP_PATH_MAX && path[0] == '/' && path[n - RT_ID_SIZE] == '/' &&
           str_ends(path, id) && fs_path_is_safe(path + 1);
}

/* ---- the OCI runtime's command line ---- */

void rt_runtime_args(const struct rt *rt, const struct rt_handler *h, const char *id,
                     struct rt_runtime_args *ret)
{
    ret->root = make_path("--root=%s/oci", rt->run_dir);
    ret->n = 0;
    ret->v[ret->n++] = ret->root.s;
    if (id != NULL) {
        ret->log = make_path("--log=%s/containers/%s/log", rt->run_dir, id);
        ret->v[ret->n++] = ret->log.s;
        ret->v[ret->n++] = "--log-format=json";
    }
    if (strcmp(h->features.runtime_name, "crun") == 0) /* its default may be systemd; runc's is cgroupfs */
        ret->v[ret->n++] = "--cgroup-manager=cgroupfs";
    for (size_t i = 0; i < h->n_options; i++)
        ret->v[ret->n++] = h->options[i];
    ret->v[ret->n] = NULL;
    ret->clone_env = id != NULL ? make_path("_LIBCONTAINER_STATEDIR=%s/containers/%s", rt->run_dir, id)
                                : make_path("_LIBCONTAINER_STATEDIR=%s/runtime", rt->run_dir);
    ret->env[0] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    ret->env[1] = ret->clone_env.s;
    ret->env[2] = NULL;
}

char *rt_runtime_words(const struct rt *rt, const char *id)
{
    struct rt_path path = rt_container_file(rt, id, "log");
    struct err e = { 0 };
    str_auto text = NULL;
    char *words = NULL, *cursor, *line;

    if (fs_read_at(AT_FDCWD, path.s, WORDS_LOG_MAX, &text, NULL, &e) != ERR_OK)
        return NULL;
    cursor = text;
    while ((line = strsep(&cursor, "\n")) != NULL) {
        json_auto_t *entry = NULL;
        const char *level, *message;

        if (*line == '\0' || json_parse(line, strlen(line), WORDS_LOG_MAX, &entry, "log line", &e) != ERR_OK)
            continue;
        level = json_str(entry, "level");
        message = json_str(entry, "msg");
        if (message != NULL && str_eq(level, "error")) {
            free(words);
            words = strdup(message);
        }
    }
    return words;
}

const char *rt_seccomp_problem(const struct rt *rt)
{
    return rt_host_seccomp_problem(&rt->host);
}

/* ---- opening and closing ---- */

static enum err_code check_options(const struct rt_options *o, struct err *e)
{
    const char *dirs[] = { o->run_dir, o->state_dir };
    size_t i;

    for (i = 0; i < ARRAY_LEN(dirs); i++) {
        if (dirs[i][0] != '/' || strlen(dirs[i]) >= RT_ROOT_MAX)
            return err_set(e, ERR_INVALID, "folder \"%s\": not an absolute path of less than %d bytes",
                           dirs[i], RT_ROOT_MAX);
        if (strchr(dirs[i], ':') != NULL) /* conmon splits its log option there */
            return err_set(e, ERR_INVALID, "folder \"%s\": its path must not hold a colon", dirs[i]);
    }
    if (o->conmon_path[0] != '/' || strlen(o->conmon_path) >= PATH_MAX)
        return err_set(e, ERR_INVALID, "program \"%s\": not an absolute path", o->conmon_path);
    if (access(o->conmon_path, X_OK) != 0)
        return err_sys(e, errno, "program %s", o->conmon_path);
    return ERR_OK;
}

static enum err_code make_folders(const struct rt *rt, struct err *e)
{
    const struct rt_path folders[] = {
        make_path("%s/containers", rt->run_dir),   make_path("%s/exits", rt->run_dir),
        make_path("%s/oci", rt->run_dir),          make_path("%s/tty", rt->run_dir),
        make_path("%s/containers", rt->state_dir),
    };
    const struct rt_path runtime = make_path("%s/runtime", rt->run_dir);
    size_t i;

    struct err why = { 0 };

    for (i = 0; i < ARRAY_LEN(folders); i++)
        if (fs_mkdirs(folders[i].s, 0700, e) != ERR_OK)
            return e->code;
    fs_spread_below(folders[4].s); /* of containers' own files */
    /* The users of a user namespace must be able to reach their own bundle; each bundle is closed to
     * others. */
    if (chmod(folders[0].s, 0711) != 0)
        return err_sys(e, errno, "chmod %s", folders[0].s);
    /* Leftovers of a runtime that was killed during its start; only the agent's children use the folder, and
     * children of an earlier run have ended. */
    if (fs_unmount_below(runtime.s, &why) != ERR_OK || fs_remove_tree(AT_FDCWD, runtime.s, &why) != ERR_OK)
        log_warn("cannot remove leftovers of the OCI runtime", F_STR("path", runtime.s), F_ERR(&why));
    return fs_mkdirs(runtime.s, 0700, e);
}

void rt_free(struct rt *rt)
{
    free(rt->run_dir);
    free(rt->state_dir);
    free(rt->conmon_path);
    rt_handlers_free(rt);
    free(rt->exec_path);
    free(rt->unpack_path);
    free(rt->host.seccomp_profile);
    free(rt->host.localhost_seccomp_dir);
    free(rt);
}

static bool copy_options(struct rt *rt, const struct rt_options *o)
{
    rt->loop = o->loop;
    rt->cgroups = o->cgroups;
    rt->on_event = o->on_event;
    rt->arg = o->arg;
    rt->run_dir = strdup(o->run_dir);
    rt->state_dir = strdup(o->state_dir);
    rt->conmon_path = strdup(o->conmon_path);
    rt->exec_path = o->exec_path != NULL ? strdup(o->exec_path) : NULL;
    rt->unpack_path = o->unpack_path != NULL ? strdup(o->unpack_path) : NULL;
    rt->host.seccomp_profile = strdup(o->seccomp_profile);
    rt->host.localhost_seccomp_dir =
        o->localhost_seccomp_dir != NULL ? strdup(o->localhost_seccomp_dir) : NULL;
    snprintf(rt->host.seccomp_problem, sizeof(rt->host.seccomp_problem),
             "seccomp profile RuntimeDefault: %.80s is missing; it comes with the package "
             "golang-github-containers-common (Debian, Ubuntu) or containers-common (others)",
             o->seccomp_profile);
    return rt->run_dir != NULL && rt->state_dir != NULL && rt->conmon_path != NULL &&
           rt->host.seccomp_profile != NULL && (o->exec_path == NULL || rt->exec_path != NULL) &&
           (o->unpack_path == NULL || rt->unpack_path != NULL) &&
           (o->localhost_seccomp_dir == NULL || rt->host.localhost_seccomp_dir != NULL);
}

enum err_code rt_open(struct rt **ret, const struct rt_options *o, struct err *e)
{
    struct rt *rt;

    if (check_options(o, e) != ERR_OK)
        return e->code;
    rt = calloc(1, sizeof(*rt));
    if (rt == NULL)
        return err_nomem(e);
    if (!copy_options(rt, o)) {
        rt_free(rt);
        return err_nomem(e);
    }
    if (rt_handlers_copy(rt, o, e) != ERR_OK) {
        rt_free(rt);
        return e->code;
    }
    rt->host.cgroup_v2 = cg_layout(rt->cgroups) == CG_V2;
    if (make_folders(rt, e) != ERR_OK || rt_features_probe(rt, e) != ERR_OK ||
        rt_exits_open(rt, e) != ERR_OK) {
        rt_free(rt);
        return e->code;
    }
    *ret = rt;
    return ERR_OK;
}

void rt_close(struct rt *rt)
{
    if (rt != NULL)
        rt_exits_close(rt);
}
