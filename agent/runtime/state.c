/* A container's state, read from the files of its bundle, the runtime's folder and conmon's process each
 * time. */
#include "agent/runtime/container_internal.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { META_MAX = 16 * 1024 };

static bool exists(struct rt_path path)
{
    return access(path.s, F_OK) == 0;
}

/* 0: not there. */
static int64_t changed_ns(struct rt_path path)
{
    struct stat st;

    return stat(path.s, &st) == 0 ? (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec : 0;
}

/* A whole number in a small file; false when there is none. */
static bool read_number(struct rt_path path, int64_t min, int64_t max, int64_t *ret)
{
    struct err e = { 0 };
    str_auto text = NULL;

    if (fs_read_at(AT_FDCWD, path.s, FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return parse_i64(text, min, max, ret, "number", &e) == ERR_OK;
}

/* ---- start time ------------------------------------------------------------------------------ */

/* The moment the runtime let the container's init go: its exec.fifo vanished from the folder.  0: not yet, or
 * unknown. */
static int64_t started_by_runtime(const struct rt *rt, const char *id)
{
    struct rt_path dir = rt_oci_dir(rt, id), fifo = dir;

    strcat(fifo.s, "/exec.fifo");
    return exists(fifo) ? 0 : changed_ns(dir);
}

void rt_record_start(const struct rt *rt, const char *id)
{
    struct rt_path path = rt_container_file(rt, id, RT_STARTED);
    int64_t at = started_by_runtime(rt, id);
    struct err e = { 0 };
    char text[32];

    snprintf(text, sizeof(text), "%" PRId64 "\n", at != 0 ? at : clock_wall_ns());
    if (fs_replace_at(AT_FDCWD, path.s, text, strlen(text), 0600, false, &e) != ERR_OK)
        log_debug("start time cannot be kept", F_STR("containerID", id), F_ERR(&e));
}

static int64_t started_ns(const struct rt *rt, const char *id)
{
    int64_t at;

    if (read_number(rt_container_file(rt, id, RT_STARTED), 1, INT64_MAX, &at))
        return at;
    return started_by_runtime(rt, id); /* the agent was killed before it could write that down */
}

/* ---- identity -------------------------------------------------------------------------------- */

static bool copy_text(const json_t *meta, const char *key, char *ret, size_t size)
{
    const char *text = json_str(meta, key);

    return text != NULL && snprintf(ret, size, "%s", text) < (int)size;
}

bool rt_identity(struct rt *rt, const char *id, struct rt_identity *ret)
{
    struct rt_path path = rt_container_file(rt, id, "meta.json");
    struct rt_identity found = { 0 };
    struct err e = { 0 };
    str_auto text = NULL;
    json_auto_t *meta = NULL;
    json_int_t attempt;
    size_t n = 0;

    if (!rt_id_valid(id) || fs_read_at(AT_FDCWD, path.s, META_MAX, &text, &n, &e) != ERR_OK ||
        json_parse(text, n, META_MAX, &meta, "meta.json", &e) != ERR_OK)
        return false;
    attempt = json_int(meta, "attempt", -1);
    if (!copy_text(meta, "podUID", found.pod_uid, sizeof(found.pod_uid)) ||
        !copy_text(meta, "podNamespace", found.pod_namespace, sizeof(found.pod_namespace)) ||
        !copy_text(meta, "podName", found.pod_name, sizeof(found.pod_name)) ||
        !copy_text(meta, "containerName", found.container_name, sizeof(found.container_name)) ||
        !copy_text(meta, "cgroupPath", found.cgroup_path, sizeof(found.cgroup_path)) || attempt < 0 ||
        attempt > UINT32_MAX)
        return false;
    found.attempt = (unsigned)attempt;
    *ret = found;
    return true;
}

/* ---- state ----------------------------------------------------------------------------------- */

/* conmon's own notice, or the kernel's count as long as the cgroup is there. */
static bool oom_killed(struct rt *rt, const char *id)
{
    struct rt_identity identity;
    struct cg_usage usage;
    struct err e = { 0 };

    return exists(rt_container_file(rt, id, "oom")) ||
           (rt_identity(rt, id, &identity) && identity.cgroup_path[0] != '\0' &&
            cg_usage(rt->cgroups, identity.cgroup_path, &usage, &e) == ERR_OK && usage.oom_kills > 0);
}

static bool read_exit(struct rt *rt, const char *id, struct rt_state *s)
{
    struct rt_path file = rt_exit_file(rt, id);
    int64_t code;

    s->finished_ns = changed_ns(file);
    if (s->finished_ns == 0)
        return false;
    s->phase = RT_EXITED;
    s->exit_code = read_number(file, 0, 255, &code) ? (int)code : 255;
    s->started_ns = started_ns(rt, id);
    if (s->started_ns > s->finished_ns) /* a process that ended before `start` returned */
        s->started_ns = s->finished_ns;
    s->oom_killed = oom_killed(rt, id);
    return true;
}

static bool conmon_runs(struct rt *rt, const char *id, pid_t *ret)
{
    const struct rt_watch *w = rt_watch_find(rt, id);
    struct rt_path file = rt_container_file(rt, id, "conmon.pid");
    fd_auto pidfd = -1;
    int64_t pid;

    if (w == NULL) {
        pidfd = rt_conmon_open(rt, id, ret);
        return pidfd >= 0;
    }
    if (rt_pidfd_ended(w->pidfd))
        return false;
    if (read_number(file, 1, INT32_MAX, &pid))
        *ret = (pid_t)pid;
    return true;
}

void rt_state(struct rt *rt, const char *id, struct rt_state *ret)
{
    struct rt_state s = { .phase = RT_ABSENT };
    int64_t pid = 0;

    *ret = s;
    if (!rt_id_valid(id) || !exists(rt_container_dir(rt, id)))
        return;
    s.created_ns = changed_ns(rt_container_file(rt, id, "pid"));
    if (!read_exit(rt, id, &s)) {
        bool created = read_number(rt_container_file(rt, id, "pid"), 1, INT32_MAX, &pid) &&
                       exists(rt_container_file(rt, id, "conmon.pid"));

        if (!created) {
            s.phase = RT_PARTIAL;
            if (pid > 0) /* the runtime was done with it: conmon.pid is what is missing */
                s.started_ns = started_ns(rt, id);
        } else if (conmon_runs(rt, id, &s.conmon_pid)) {
            s.pid = (pid_t)pid;
            s.started_ns = started_ns(rt, id);
            s.phase = s.started_ns != 0 ? RT_RUNNING : RT_CREATED;
        } else if (!read_exit(rt, id, &s)) { /* it may have written the file between the two looks */
            s.phase = RT_LOST;
            s.conmon_pid = 0;
            s.started_ns = started_ns(rt, id);
        }
    }
    *ret = s;
}

void rt_adopt(struct rt *rt, const char *id)
{
    struct err e = { 0 };
    int pidfd;

    if (!rt_id_valid(id) || rt_watch_find(rt, id) != NULL)
        return;
    if (!exists(rt_container_file(rt, id, RT_STARTED)) && started_by_runtime(rt, id) != 0 &&
        exists(rt_container_dir(rt, id)))
        rt_record_start(rt, id);
    rt_exec_clear_all(rt, id);
    pidfd = rt_conmon_open(rt, id, NULL);
    if (pidfd >= 0 && rt_watch_add(rt, id, pidfd, &e) != ERR_OK)
        log_warn("container cannot be watched; only its exit file will be noticed", F_STR("containerID", id),
                 F_ERR(&e));
}

void rt_kill_supervisor(struct rt *rt, const char *id)
{
    fd_auto pidfd = rt_id_valid(id) ? rt_conmon_open(rt, id, NULL) : -1;

    if (pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) != 0 && errno != ESRCH)
        log_warn("conmon cannot be killed", F_STR("containerID", id), F_STR("err", strerror(errno)));
}

/* ---- list ------------------------------------------------------------------------------------ */

struct ids {
    char **v;
    size_t n;
};

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum err_code add_ids(struct ids *ids, struct rt_path dir, struct err *e)
{
    DIR *stream = opendir(dir.s);
    const struct dirent *entry;
    enum err_code code = ERR_OK;

    if (stream == NULL)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "open %s", dir.s);
    while (code == ERR_OK && (entry = readdir(stream)) != NULL) {
        char **more;

        if (!rt_id_valid(entry->d_name))
            continue;
        more = reallocarray(ids->v, ids->n + 1, sizeof(*more));
        if (more != NULL)
            ids->v = more;
        if (more == NULL || (ids->v[ids->n] = strdup(entry->d_name)) == NULL)
            code = err_nomem(e);
        else
            ids->n++;
    }
    closedir(stream);
    return code;
}

enum err_code rt_list(struct rt *rt, char ***ret, struct err *e)
{
    struct ids ids = { 0 };
    size_t i, kept = 0;
    char **more;

    if (add_ids(&ids, rt_container_dir(rt, ""), e) == ERR_OK &&
        add_ids(&ids, rt_layer_dir(rt, ""), e) == ERR_OK && add_ids(&ids, rt_oci_dir(rt, ""), e) == ERR_OK &&
        add_ids(&ids, rt_exit_file(rt, ""), e) == ERR_OK &&
        (more = reallocarray(ids.v, ids.n + 1, sizeof(*more))) != NULL) {
        ids.v = more;
        if (ids.n > 0)
            qsort(ids.v, ids.n, sizeof(*ids.v), compare);
        for (i = 0; i < ids.n; i++)
            if (kept > 0 && strcmp(ids.v[kept - 1], ids.v[i]) == 0)
                free(ids.v[i]);
            else
                ids.v[kept++] = ids.v[i];
        ids.v[kept] = NULL;
        *ret = ids.v;
        return ERR_OK;
    }
    for (i = 0; i < ids.n; i++)
        free(ids.v[i]);
    free(ids.v);
    return e->code != ERR_OK ? e->code : err_nomem(e);
}
