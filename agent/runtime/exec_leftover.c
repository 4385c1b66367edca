/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process in a container whose `coracle-exec` has ended: it was killed together with the agent, or
 * before it could end the process. */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec_report.h"

#include "base/files/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KILL_ROUNDS = 5 }; /* a process that forks faster ends with its container */

/* "PID START-TIME" or, if that was not written yet, the runtime's "PID". */
static struct presence read_leader(const char *folder, pid_t *ret_pid, uint64_t *ret_start_time,
                                   struct err *e)
{
    static const char *const files[] = { EXEC_FILE_LEADER, EXEC_FILE_PID };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct presence found;
        str_auto text = NULL;
        char path[640];
        int pid = 0;

        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        *ret_start_time = 0;
        found = fs_read_if_there(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, e);
        if (presence_is_unknown(found))
            return found;
        if (!presence_is_absent(found) && sscanf(text, "%d %" SCNu64, &pid, ret_start_time) >= 1 && pid > 1) {
            *ret_pid = pid;
            return found;
        }
    }
    return presence_absent();
}

/* The process is identified by its cgroup, the container's, and its start time (without that: it must not be
 * the container's main process); a pidfd is held meanwhile, so that the answers are about one process. */
static enum err_code kill_leader(struct rt *rt, const char *id, pid_t pid, uint64_t start_time, struct err *e)
{
    fd_auto pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    uint64_t now_start_time;
    struct presence its_own, found;
    struct rt_state s;
    pid_t session;

    if (pidfd < 0)
        return errno == ESRCH || errno == EINVAL ? ERR_OK : err_sys(e, errno, "open process %d", (int)pid);
    if (rt_state(rt, id, &s, e) != ERR_OK)
        return e->code;
    its_own = rt_is_in_cgroup(pid, id, e);
    if (presence_is_unknown(its_own))
        return e->code;
    if (presence_is_absent(its_own))
        return ERR_OK;
    found = exec_read_process(pid, &session, &now_start_time);
    if (presence_is_unknown(found))
        return err_sys(e, errno, "process %d in container %.12s: examine its session", (int)pid, id);
    if (presence_is_absent(found)) {
        if (rt_pidfd_ended(pidfd))
            return ERR_OK;
        return err_set(e, ERR_UNAVAILABLE,
                       "process %d in container %.12s: not all of its processes have ended", (int)pid, id);
    }
    if (start_time != 0 ? start_time != now_start_time : pid == s.pid)
        return ERR_OK;
    log_info("ended a leftover process in a container", F_STR("containerID", id), F_I64("pid", pid));
    for (int i = 0; i < KILL_ROUNDS; i++) {
        found = exec_session_kill(pid, session);
        if (presence_is_absent(found))
            return ERR_OK;
        if (presence_is_unknown(found))
            return err_sys(e, errno, "processes of %d in container %.12s: examine them", (int)pid, id);
    }
    return ERR_OK;
}

enum err_code rt_exec_clear(struct rt *rt, const char *id, const char *folder, struct err *e)
{
    static const char *const files[] = { EXEC_FILE_PID, EXEC_FILE_LEADER, EXEC_FILE_CONSOLE };
    struct presence found = fs_look_at(AT_FDCWD, folder, NULL, e);
    uint64_t start_time;
    char path[640];
    pid_t pid;

    if (presence_is_unknown(found))
        return e->code;
    if (presence_is_absent(found))
        return ERR_OK;
    found = read_leader(folder, &pid, &start_time, e);
    if (presence_is_unknown(found))
        return e->code;
    if (!presence_is_absent(found) && kill_leader(rt, id, pid, start_time, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        fs_remove_quietly(AT_FDCWD, path);
    }
    fs_remove_quietly(AT_FDCWD, folder);
    return ERR_OK;
}

struct leftovers {
    struct rt *rt;
    const char *id;
    struct rt_path all;
    struct err e; /* about the first process that may be left */
};

static bool clear_one(const char *name, void *arg)
{
    struct leftovers *l = arg;
    struct err e = { 0 };
    char folder[600];

    /* The folder's name shows whether it belongs to this run of the agent; before the first exec of this run,
     * all folders belong to earlier runs. */
    if (name[0] == '.' || strlen(name) > 64 || (l->rt->execs > 0 && atoi(name) == (int)getpid()))
        return true;
    snprintf(folder, sizeof(folder), "%s/%s", l->all.s, name);
    if (rt_exec_clear(l->rt, l->id, folder, &e) != ERR_OK && l->e.code == ERR_OK)
        l->e = e;
    return true;
}

enum err_code rt_exec_clear_all(struct rt *rt, const char *id, struct err *e)
{
    struct leftovers l = { .rt = rt, .id = id, .all = rt_container_file(rt, id, RT_EXEC_FOLDER) };

    if (presence_is_unknown(fs_list(AT_FDCWD, l.all.s, clear_one, &l, e)))
        return e->code;
    if (l.e.code != ERR_OK)
        *e = l.e;
    return l.e.code;
}
