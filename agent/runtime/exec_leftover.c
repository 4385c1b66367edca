/*
 * What remains of a process in a container whose `coracle-exec` is gone: it was killed together with the
 * agent, or before it could end the process.
 */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec_report.h"

#include "base/fs.h"
#include "base/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KILL_ROUNDS = 5 }; /* one that forks faster goes with its container */

/* "PID START-TIME" or, when that was not written any more, the runtime's "PID". */
static bool read_leader(const char *folder, pid_t *ret_pid, uint64_t *ret_start_time)
{
    static const char *const files[] = { EXEC_FILE_LEADER, EXEC_FILE_PID };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct err e = { 0 };
        str_auto text = NULL;
        char path[640];
        int pid = 0;

        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        *ret_start_time = 0;
        if (fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, &e) == ERR_OK &&
            sscanf(text, "%d %" SCNu64, &pid, ret_start_time) >= 1 && pid > 1) {
            *ret_pid = pid;
            return true;
        }
    }
    return false;
}

/*
 * The process is known by its cgroup, which is the container's, and its start time (where that was not
 * written any more: it is not the container's first process); a pidfd is held while that is asked, so that
 * the answers are about one process.
 */
static void kill_leader(struct rt *rt, const char *id, pid_t pid, uint64_t start_time)
{
    fd_auto pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    uint64_t now_start_time;
    struct rt_state s;
    pid_t session;

    rt_state(rt, id, &s);
    if (pidfd < 0 || !exec_process_fields(pid, &session, &now_start_time) ||
        (start_time != 0 ? start_time != now_start_time : pid == s.pid) || !rt_is_in_cgroup(pid, id))
        return;
    log_info("process in a container ended: who had asked for it is gone", F_STR("containerID", id),
             F_I64("pid", pid));
    for (int i = 0; i < KILL_ROUNDS && exec_session_kill(pid, session) > 0; i++)
        ;
}

void rt_exec_clear(struct rt *rt, const char *id, const char *folder)
{
    static const char *const files[] = { EXEC_FILE_PID, EXEC_FILE_LEADER, EXEC_FILE_CONSOLE };
    uint64_t start_time;
    char path[640];
    pid_t pid;

    if (access(folder, F_OK) != 0)
        return;
    if (read_leader(folder, &pid, &start_time))
        kill_leader(rt, id, pid, start_time);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        fs_remove_quietly(AT_FDCWD, path);
    }
    fs_remove_quietly(AT_FDCWD, folder);
}

void rt_exec_clear_all(struct rt *rt, const char *id)
{
    struct rt_path all = rt_container_file(rt, id, RT_EXEC_FOLDER);
    DIR *stream = opendir(all.s);
    const struct dirent *entry;
    char folder[600];

    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) > 64)
            continue;
        snprintf(folder, sizeof(folder), "%s/%s", all.s, entry->d_name);
        rt_exec_clear(rt, id, folder);
    }
    if (stream != NULL)
        closedir(stream);
}
