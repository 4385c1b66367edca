/*
 * conmon: how it is called, what it says, and how to recognise it again.
 *
 * It is started without --sync, so it forks twice and belongs to init: it outlives the agent.  Options as
 * CRI-O and podman use them (conmon 2.1: src/cli.c); its attach socket and control fifos stand in the bundle
 * (--full-attach).
 */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec_report.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/parse.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    COMMAND_LINE_MAX = 64 * 1024, /* ours has about 1 KiB */
    SYNC_LINE_MAX = 64 * 1024,    /* conmon passes on at most 8 KiB of the runtime's words */
    PID_MAX_VALUE = 1 << 22,      /* the kernel's PID_MAX_LIMIT */
};

/* ---- command line ---------------------------------------------------------------------------- */

void rt_conmon_args(const struct rt *rt, const struct rt_config *c, struct rt_conmon_args *ret)
{
    bool streams = c->userns != NULL && rt->exec_path != NULL; /* what for: exec_main.c */
    size_t n = 0, i;

    rt_runtime_args(rt, c->id, &ret->runtime);
    ret->bundle = rt_container_dir(rt, c->id);
    ret->pid_file = rt_container_file(rt, c->id, "pid");
    ret->conmon_pid_file = rt_container_file(rt, c->id, "conmon.pid");
    ret->exits = rt_exit_file(rt, "");
    snprintf(ret->log, sizeof(ret->log), "k8s-file:%s", c->log_path);

    const char *const fixed[] = {
        rt->conmon_path,
        "--api-version",
        "1", /* an option without a value and a word that is ignored */
        "--cid",
        c->id,
        "--cuuid",
        c->id,
        "--name",
        c->container_name,
        "--runtime",
        streams ? rt->exec_path : rt->runtime_path,
        "--bundle",
        ret->bundle.s,
        "--container-pidfile",
        ret->pid_file.s,
        "--conmon-pidfile",
        ret->conmon_pid_file.s,
        "--log-path",
        ret->log,
        "--exit-dir",
        ret->exits.s,
        "--full-attach",
        "--no-sync-log", /* no fsync of the log between the end and its exit file */
    };
    for (i = 0; i < ARRAY_LEN(fixed); i++)
        ret->v[n++] = fixed[i];
    if (c->log_max_bytes > 0) {
        snprintf(ret->log_max, sizeof(ret->log_max), "%lld", (long long)c->log_max_bytes);
        ret->v[n++] = "--log-size-max";
        ret->v[n++] = ret->log_max;
    }
    if (c->tty)
        ret->v[n++] = "--terminal";
    if (c->stdin_open) {
        ret->v[n++] = "--stdin";
        if (!c->stdin_once)
            ret->v[n++] = "--leave-stdin-open";
    }
    if (streams) {
        snprintf(ret->streams, sizeof(ret->streams), "--runtime-arg=%u%s", c->first_id,
                 c->tty          ? "io"
                 : c->stdin_open ? ""
                                 : "i");
        snprintf(ret->real_runtime, sizeof(ret->real_runtime), "--runtime-arg=%s", rt->runtime_path);
        ret->v[n++] = "--runtime-arg=" EXEC_STREAMS;
        ret->v[n++] = ret->streams;
        ret->v[n++] = ret->real_runtime;
    }
    for (i = 0; i < ret->runtime.n; i++) {
        snprintf(ret->runtime_args[i], sizeof(ret->runtime_args[i]), "--runtime-arg=%s", ret->runtime.v[i]);
        ret->v[n++] = ret->runtime_args[i];
    }
    ret->v[n] = NULL;
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* 2026-01-02T03:04:05.123456Z: text */
static size_t timestamp_length(const char *text)
{
    size_t n = strspn(text, "0123456789-T:.Z");

    return n > 20 && text[n - 1] == ':' && text[n] == ' ' ? n + 1 : 0;
}

void rt_words_tidy(char *text)
{
    size_t n = timestamp_length(text);
    const char *message = strstr(text, "msg=\"");
    char *to = text;

    if (str_starts(text, "time=\"") && message != NULL) { /* logfmt: runc without a log file */
        for (message += strlen("msg=\""); *message != '\0' && *message != '"'; message++) {
            if (*message == '\\' && message[1] != '\0')
                message++;
            *to++ = *message;
        }
        *to = '\0';
    } else if (n > 0) { /* crun without a log file */
        memmove(text, text + n, strlen(text + n) + 1);
    }
    n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        text[--n] = '\0';
}

enum err_code rt_conmon_parse_sync(const char *line, size_t n, pid_t *ret, struct err *e)
{
    json_auto_t *answer = NULL;
    const char *message;
    str_auto words = NULL;
    json_int_t pid;

    if (json_parse(line, n, SYNC_LINE_MAX, &answer, "conmon's answer", e) != ERR_OK) {
        e->code = ERR_UNAVAILABLE;
        return e->code;
    }
    pid = json_int(answer, "data", json_int(answer, "pid", 0));
    if (pid > 0 && pid <= PID_MAX_VALUE) {
        *ret = (pid_t)pid;
        return ERR_OK;
    }
    message = json_str(answer, "message");
    words = strdup(message != NULL ? message : "");
    if (words == NULL)
        return err_nomem(e);
    rt_words_tidy(words);
    if (*words == '\0')
        return err_set(e, ERR_UNKNOWN, "the container runtime failed without a message");
    return err_set(e, ERR_UNKNOWN, "%s", words);
}

/* ---- recognising it -------------------------------------------------------------------------- */

/*
 * Whether the command line begins with `program` (NULL: any) and has the id among its arguments, after
 * `option` if that is given.  A zombie's command line is empty.
 */
static bool has_command_line(pid_t pid, const char *program, const char *option, const char *id)
{
    struct err e = { 0 };
    str_auto line = NULL;
    char path[64];
    const char *p, *before = "";
    size_t n = 0, words = 0;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    if (fs_read_at(AT_FDCWD, path, COMMAND_LINE_MAX, &line, &n, &e) != ERR_OK)
        return false;
    /* A script stands after its interpreter, a runtime after coracle-exec and its two words. */
    for (p = line; program != NULL && words < 4 && p < line + n && strcmp(p, program) != 0; words++)
        p += strlen(p) + 1;
    if (program != NULL && (words == 4 || p >= line + n))
        return false;
    for (p = line; p < line + n; p += strlen(p) + 1) {
        if (strcmp(p, id) == 0 && (option == NULL || strcmp(before, option) == 0))
            return true;
        before = p;
    }
    return false;
}

/* The descriptor first, then the question, then whether it still lives: so the answer was about that process.
 */
static int open_if_conmon(pid_t pid, const char *id)
{
    fd_auto pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd < 0 || !has_command_line(pid, NULL, "--cid", id) || rt_pidfd_ended(pidfd))
        return -1;
    return take_fd(&pidfd);
}

int rt_conmon_open(const struct rt *rt, const char *id, pid_t *ret_pid)
{
    struct rt_path path = rt_container_file(rt, id, "conmon.pid");
    struct err e = { 0 };
    str_auto text = NULL;
    int64_t pid;
    int pidfd;

    if (fs_read_at(AT_FDCWD, path.s, FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return -1;
    text[strcspn(text, "\n")] = '\0';
    if (parse_i64(text, 1, PID_MAX_VALUE, &pid, "pid", &e) != ERR_OK)
        return -1;
    pidfd = open_if_conmon((pid_t)pid, id);
    if (pidfd >= 0 && ret_pid != NULL)
        *ret_pid = (pid_t)pid;
    return pidfd;
}

size_t rt_kill_creators(const struct rt *rt, const char *id)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    size_t n = 0;

    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        fd_auto pidfd = -1;

        if (pid <= 1 || pid == getpid() || !isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (!has_command_line(pid, rt->conmon_path, NULL, id) &&
            !has_command_line(pid, rt->runtime_path, NULL, id))
            continue;
        /* Asked again once its number cannot be given to another. */
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0 || (!has_command_line(pid, rt->conmon_path, NULL, id) &&
                          !has_command_line(pid, rt->runtime_path, NULL, id)))
            continue;
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        n++;
    }
    if (proc != NULL)
        closedir(proc);
    return n;
}
