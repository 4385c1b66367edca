/* SPDX-License-Identifier: Apache-2.0 */
/* A container's state, read each time from the files of its bundle, the runtime's folder and conmon's
 * process. */
#include "agent/runtime/container_internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/parse.h"
#include "cgroups/oom_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct presence state_look(struct rt_path path, struct err *e)
{
    return fs_look_at(AT_FDCWD, path.s, NULL, e);
}

/* Time of the last change; 0 if absent. */
static struct presence state_look_changed(struct rt_path path, int64_t *ret_ns, struct err *e)
{
    struct stat st = { 0 };
    struct presence found = fs_look_at(AT_FDCWD, path.s, &st, e);

    *ret_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return found;
}

struct presence rt_read_number(const char *path, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
    struct err no_number = { 0 };
    str_auto text = NULL;
    struct presence found = fs_read_if_there(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, e);

    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    text[strcspn(text, "\n")] = '\0';
    return parse_i64(text, min, max, ret, "number", &no_number) == ERR_OK ? found : presence_absent();
}

/* ---- start time ---- */

/* When the runtime started the container's init: the time at which exec.fifo vanished from the folder. 0: not
 * yet. */
static enum err_code started_by_runtime(const struct rt *rt, const char *id, int64_t *ret_ns, struct err *e)
{
    struct rt_path dir = rt_oci_dir(rt, id), fifo = dir;
    struct presence waits;

    strcat(fifo.s, "/exec.fifo");
    waits = state_look(fifo, e);
    *ret_ns = 0;
    if (presence_is_unknown(waits))
        return e->code;
    if (presence_is_absent(waits) && presence_is_unknown(state_look_changed(dir, ret_ns, e)))
        return e->code;
    return ERR_OK;
}

void rt_record_start(const struct rt *rt, const char *id)
{
    struct rt_path path = rt_container_file(rt, id, RT_STARTED);
    struct err e = { 0 };
    int64_t at = 0;
    char text[32];

    if (started_by_runtime(rt, id, &at, &e) != ERR_OK)
        log_debug("start time is unknown; using the current time", F_STR("containerID", id), F_ERR(&e));
    e = (struct err){ 0 };

    snprintf(text, sizeof(text), "%" PRId64 "\n", at != 0 ? at : clock_wall_ns());
    if (fs_replace_at(AT_FDCWD, path.s, text, strlen(text), 0600, false, &e) != ERR_OK)
        log_debug("cannot record the start time", F_STR("containerID", id), F_ERR(&e));
}

static enum err_code started_ns(const struct rt *rt, const char *id, int64_t *ret_ns, struct err *e)
{
    struct rt_path file = rt_container_file(rt, id, RT_STARTED);
    struct presence noted = rt_read_number(file.s, 1, INT64_MAX, ret_ns, e);

    if (presence_is_unknown(noted))
        return e->code;
    if (presence_is_absent(noted)) /* the agent was killed before it could record that */
        return started_by_runtime(rt, id, ret_ns, e);
    return ERR_OK;
}

/* ---- identity ---- */

static bool copy_text(const json_t *meta, const char *key, char *ret, size_t size)
{
    const char *text = json_str(meta, key);

    return text != NULL && snprintf(ret, size, "%s", text) < (int)size;
}

struct presence rt_identity(const struct rt *rt, const char *id, struct rt_identity *ret, struct err *e)
{
    struct rt_path path = rt_container_file(rt, id, "meta.json");
    struct rt_identity found = { 0 };
    struct presence there;
    str_auto text = NULL;
    json_auto_t *meta = NULL;
    json_int_t attempt;
    size_t n = 0;

    if (!rt_id_valid(id))
        return presence_absent();
    there = fs_read_if_there(AT_FDCWD, path.s, RT_META_MAX, &text, &n, e);
    if (presence_is_unknown(there) || presence_is_absent(there))
        return there;
    if (json_parse(text, n, RT_META_MAX, &meta, "meta.json", e) != ERR_OK) {
        if (e->code != ERR_INVALID)
            return presence_unknown(e);
        *e = (struct err){ 0 };
        return presence_absent();
    }
    attempt = json_int(meta, "attempt", -1);
    if (!copy_text(meta, "podUID", found.pod_uid, sizeof(found.pod_uid)) ||
        !copy_text(meta, "podNamespace", found.pod_namespace, sizeof(found.pod_namespace)) ||
        !copy_text(meta, "podName", found.pod_name, sizeof(found.pod_name)) ||
        !copy_text(meta, "containerName", found.container_name, sizeof(found.container_name)) ||
        !copy_text(meta, "cgroupPath", found.cgroup_path, sizeof(found.cgroup_path)) || attempt < 0 ||
        attempt > UINT32_MAX)
        return presence_absent();
    found.attempt = (unsigned)attempt;
    *ret = found;
    return there;
}

/* ---- state ---- */

/* conmon's notice, or the kernel's count while the cgroup exists. */
static enum err_code look_oom_killed(struct rt *rt, const char *id, bool *ret, struct err *e)
{
    struct rt_identity identity = { 0 };
    struct presence found = state_look(rt_container_file(rt, id, "oom"), e);
    uint64_t kills = 0;

    *ret = false;
    if (presence_is_unknown(found))
        return e->code;
    if (!presence_is_absent(found)) {
        *ret = true;
        return ERR_OK;
    }
    if (presence_is_unknown(rt_identity(rt, id, &identity, e)))
        return e->code;
    if (identity.cgroup_path[0] == '\0' || rt->cgroups == NULL)
        return ERR_OK;
    if (presence_is_unknown(cg_read_oom_kills(rt->cgroups, identity.cgroup_path, false, &kills, e)))
        return e->code;
    *ret = kills > 0;
    return ERR_OK;
}

/* *ret: the exit file exists, and *s has its content. */
static enum err_code read_exit(struct rt *rt, const char *id, struct rt_state *s, bool *ret, struct err *e)
{
    struct rt_path file = rt_exit_file(rt, id);
    int64_t code = 255; /* if the file has no code */
    struct presence ended = state_look_changed(file, &s->finished_ns, e);

    *ret = false;
    if (presence_is_unknown(ended))
        return e->code;
    if (presence_is_absent(ended))
        return ERR_OK;
    if (presence_is_unknown(rt_read_number(file.s, 0, 255, &code, e)) ||
        started_ns(rt, id, &s->started_ns, e) != ERR_OK ||
        look_oom_killed(rt, id, &s->oom_killed, e) != ERR_OK)
        return e->code;
    s->phase = RT_EXITED;
    s->exit_code = (int)code;
    if (s->started_ns > s->finished_ns) /* a process that ended before `start` returned */
        s->started_ns = s->finished_ns;
    *ret = true;
    return ERR_OK;
}

static struct presence look_conmon(struct rt *rt, const char *id, pid_t *ret, struct err *e)
{
    const struct rt_watch *w = rt_watch_find(rt, id);
    struct rt_path file = rt_container_file(rt, id, "conmon.pid");
    fd_auto pidfd = -1;
    int64_t pid = 0;

    if (w == NULL)
        return rt_conmon_open(rt, id, &pidfd, ret, e);
    if (rt_pidfd_ended(w->pidfd))
        return presence_absent();
    if (presence_is_unknown(rt_read_number(file.s, 1, INT32_MAX, &pid, e)))
        return (struct presence){ 0 }; /* already counted */
    *ret = (pid_t)pid;
    return presence_present();
}

/* The state of a container without an exit file. */
static enum err_code read_life(struct rt *rt, const char *id, struct rt_state *s, struct err *e)
{
    struct rt_path pid_file = rt_container_file(rt, id, "pid");
    int64_t pid = 0;
    struct presence created = rt_read_number(pid_file.s, 1, INT32_MAX, &pid, e), conmon;
    bool ended;

    if (!presence_is_unknown(created) && !presence_is_absent(created))
        created = state_look(rt_container_file(rt, id, "conmon.pid"), e);
    if (presence_is_unknown(created))
        return e->code;
    if (presence_is_absent(created)) {
        s->phase = RT_PARTIAL;
        /* With a pid, the runtime had finished its create: only conmon.pid is missing. */
        return pid > 0 ? started_ns(rt, id, &s->started_ns, e) : ERR_OK;
    }
    conmon = look_conmon(rt, id, &s->conmon_pid, e);
    if (presence_is_unknown(conmon))
        return e->code;
    if (!presence_is_absent(conmon)) {
        s->pid = (pid_t)pid;
        if (started_ns(rt, id, &s->started_ns, e) != ERR_OK)
            return e->code;
        s->phase = s->started_ns != 0 ? RT_RUNNING : RT_CREATED;
        return ERR_OK;
    }
    /* conmon may have written the file in between. */
    if (read_exit(rt, id, s, &ended, e) != ERR_OK || ended)
        return e->code;
    s->phase = RT_LOST;
    s->conmon_pid = 0;
    return started_ns(rt, id, &s->started_ns, e);
}

enum err_code rt_state(struct rt *rt, const char *id, struct rt_state *ret, struct err *e)
{
    struct rt_state s = { .phase = RT_ABSENT };
    struct presence bundle = presence_absent();
    bool ended = false;

    if (rt_id_valid(id))
        bundle = state_look(rt_container_dir(rt, id), e);
    if (presence_is_unknown(bundle))
        return e->code;
    if (!presence_is_absent(bundle)) {
        if (presence_is_unknown(state_look_changed(rt_container_file(rt, id, "pid"), &s.created_ns, e)) ||
            read_exit(rt, id, &s, &ended, e) != ERR_OK || (!ended && read_life(rt, id, &s, e) != ERR_OK))
            return e->code;
    }
    *ret = s;
    return ERR_OK;
}

enum err_code rt_watch_conmon(struct rt *rt, const char *id, struct err *e)
{
    struct presence runs;
    int pidfd = -1;

    if (!rt_id_valid(id) || rt_watch_find(rt, id) != NULL)
        return ERR_OK;
    runs = rt_conmon_open(rt, id, &pidfd, NULL, e);
    if (presence_is_unknown(runs))
        return e->code;
    return presence_is_absent(runs) ? ERR_OK : rt_watch_add(rt, id, pidfd, e);
}

static enum err_code adopt_start(struct rt *rt, const char *id, struct err *e)
{
    struct presence noted = state_look(rt_container_file(rt, id, RT_STARTED), e), bundle;
    int64_t at = 0;

    if (presence_is_unknown(noted))
        return e->code;
    if (!presence_is_absent(noted))
        return ERR_OK;
    bundle = state_look(rt_container_dir(rt, id), e);
    if (presence_is_unknown(bundle) || started_by_runtime(rt, id, &at, e) != ERR_OK)
        return e->code;
    if (at != 0 && !presence_is_absent(bundle))
        rt_record_start(rt, id);
    return ERR_OK;
}

enum err_code rt_adopt(struct rt *rt, const char *id, struct err *e)
{
    if (!rt_id_valid(id))
        return ERR_OK;
    if (adopt_start(rt, id, e) != ERR_OK || rt_exec_clear_all(rt, id, e) != ERR_OK)
        return e->code;
    return rt_watch_conmon(rt, id, e);
}

void rt_kill_supervisor(struct rt *rt, const char *id)
{
    struct err e = { 0 };
    fd_auto pidfd = -1;

    if (rt_id_valid(id) && presence_is_unknown(rt_conmon_open(rt, id, &pidfd, NULL, &e)))
        log_warn("cannot find conmon", F_STR("containerID", id), F_ERR(&e));
    if (pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) != 0 && errno != ESRCH)
        log_warn("cannot kill conmon", F_STR("containerID", id), F_STR("err", strerror(errno)));
}

/* ---- list ---- */

struct ids {
    struct strs list;
    bool failed; /* out of memory */
};

static bool rt_state_add_id(const char *name, void *arg)
{
    struct ids *ids = arg;

    ids->failed = rt_id_valid(name) && !strs_add(&ids->list, name);
    return !ids->failed;
}

static enum err_code add_ids(struct ids *ids, struct rt_path dir, struct err *e)
{
    if (presence_is_unknown(fs_list(AT_FDCWD, dir.s, rt_state_add_id, ids, e)))
        return e->code;
    return ids->failed ? err_nomem(e) : ERR_OK;
}

enum err_code rt_list(struct rt *rt, struct strs *ret, struct err *e)
{
    struct ids ids = { 0 };

    if (add_ids(&ids, rt_container_dir(rt, ""), e) != ERR_OK ||
        add_ids(&ids, rt_layer_dir(rt, ""), e) != ERR_OK || add_ids(&ids, rt_oci_dir(rt, ""), e) != ERR_OK ||
        add_ids(&ids, rt_exit_file(rt, ""), e) != ERR_OK) {
        strs_done(&ids.list);
        return e->code;
    }
    strs_unique(&ids.list);
    *ret = ids.list;
    return ERR_OK;
}
