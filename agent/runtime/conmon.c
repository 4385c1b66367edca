/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conmon: its command line, its messages, and how its process is identified later.
 *
 * conmon is started without --sync, so it forks twice and becomes a child of init: it outlives the agent.
 * Options as used by CRI-O and podman (conmon 2.1: src/cli.c); its attach socket and control fifos are in the
 * bundle (--full-attach).
 */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec_report.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    COMMAND_LINE_MAX = 64 * 1024, /* ours has about 1 KiB */
    SYNC_LINE_MAX = 64 * 1024,    /* conmon passes on at most 8 KiB of the runtime's message */
    PID_MAX_VALUE = 1 << 22,      /* the kernel's PID_MAX_LIMIT */
};

/* ---- command line ---- */

void rt_conmon_args(const struct rt *rt, const struct rt_handler *h, const struct rt_config *c,
                    struct rt_conmon_args *ret)
{
    bool streams = c->userns != NULL && rt->exec_path != NULL; /* see exec_main.c */
    size_t n = 0, i;

    rt_runtime_args(rt, h, c->id, &ret->runtime);
    ret->bundle = rt_container_dir(rt, c->id);
    ret->pid_file = rt_container_file(rt, c->id, "pid");
    ret->conmon_pid_file = rt_container_file(rt, c->id, "conmon.pid");
    ret->exits = rt_exit_file(rt, "");
    snprintf(ret->log, sizeof(ret->log), "k8s-file:%s", c->log_path);

    const char *const fixed[] = {
        rt->conmon_path,
        "--api-version",
        "1", /* an option without a value, and an ignored word */
        "--cid",
        c->id,
        "--cuuid",
        c->id,
        "--name",
        c->container_name,
        "--runtime",
        streams ? rt->exec_path : h->program,
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
        "--no-sync-log", /* no fsync of the log before writing the exit file */
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
        snprintf(ret->real_runtime, sizeof(ret->real_runtime), "--runtime-arg=%s", h->program);
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

/* ---- messages ---- */

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

/* ---- identification ---- */

/* Whether the command line begins with `program` (NULL: any) and has the id among its arguments, after
 * `option` if given. A zombie's command line is empty. Absent: another process, or it has ended. */
static struct presence look_command_line(pid_t pid, const char *program, const char *option, const char *id,
                                         struct err *e)
{
    str_auto line = NULL;
    char path[64];
    const char *p, *before = "";
    size_t n = 0, words = 0;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    if (fs_read_at(AT_FDCWD, path, COMMAND_LINE_MAX, &line, &n, e) != ERR_OK) {
        if (e->sys != ESRCH && !(e->sys == 0 && e->code == ERR_EXHAUSTED))
            return presence_from_err(e);
        *e = (struct err){ 0 }; /* it has ended, or its command line is longer than ours */
        return presence_absent();
    }
    /* A script's path follows its interpreter; a runtime's path follows coracle-exec and its two arguments.
     */
    for (p = line; program != NULL && words < 4 && p < line + n && strcmp(p, program) != 0; words++)
        p += strlen(p) + 1;
    if (program != NULL && (words == 4 || p >= line + n))
        return presence_absent();
    for (p = line; p < line + n; p += strlen(p) + 1) {
        if (strcmp(p, id) == 0 && (option == NULL || strcmp(before, option) == 0))
            return presence_present();
        before = p;
    }
    return presence_absent();
}

static struct presence open_process(pid_t pid, int *ret_pidfd, struct err *e)
{
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (*ret_pidfd >= 0)
        return presence_present();
    if (errno == ESRCH || errno == EINVAL) /* EINVAL: a thread's number */
        return presence_absent();
    err_sys(e, errno, "open process %d", (int)pid);
    return presence_from_err(e);
}

/* Opens the descriptor, then checks the command line, then whether the process is still alive: so the result
 * is about this process. */
static struct presence open_if_conmon(pid_t pid, const char *id, int *ret_pidfd, struct err *e)
{
    fd_auto pidfd = -1;
    struct presence found = open_process(pid, &pidfd, e);

    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    found = look_command_line(pid, NULL, "--cid", id, e);
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    if (rt_pidfd_ended(pidfd))
        return presence_absent();
    *ret_pidfd = take_fd(&pidfd);
    return found;
}

struct presence rt_conmon_open(const struct rt *rt, const char *id, int *ret_pidfd, pid_t *ret_pid,
                               struct err *e)
{
    struct rt_path path = rt_container_file(rt, id, "conmon.pid");
    int64_t pid = 0;
    struct presence found = rt_read_number(path.s, 1, PID_MAX_VALUE, &pid, e);

    *ret_pidfd = -1;
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    found = open_if_conmon((pid_t)pid, id, ret_pidfd, e);
    if (*ret_pidfd >= 0 && ret_pid != NULL)
        *ret_pid = (pid_t)pid;
    return found;
}

struct creators {
    const struct rt *rt;
    const char *id, *runtime;
    size_t n;
    struct err e; /* about the first process that could not be examined */
};

static struct presence look_creator(const struct creators *c, pid_t pid, struct err *e)
{
    struct presence found = look_command_line(pid, c->rt->conmon_path, NULL, c->id, e);

    return presence_is_absent(found) ? look_command_line(pid, c->runtime, NULL, c->id, e) : found;
}

static bool kill_creator(const char *name, void *arg)
{
    struct creators *c = arg;
    pid_t pid = (pid_t)atoi(name);
    struct err e = { 0 };
    struct presence found;
    fd_auto pidfd = -1;

    if (pid <= 1 || pid == getpid() || !isdigit((unsigned char)name[0]))
        return true;
    found = look_creator(c, pid, &e);
    /* Check again once its pid cannot be reused. */
    if (!presence_is_unknown(found) && !presence_is_absent(found))
        found = open_process(pid, &pidfd, &e);
    if (!presence_is_unknown(found) && !presence_is_absent(found))
        found = look_creator(c, pid, &e);
    if (presence_is_unknown(found)) {
        c->e = c->e.code != ERR_OK ? c->e : e;
    } else if (!presence_is_absent(found)) {
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        c->n++;
    }
    return true;
}

enum err_code rt_kill_creators(const struct rt *rt, const struct rt_handler *h, const char *id, size_t *ret_n,
                               struct err *e)
{
    struct creators c = { .rt = rt, .id = id, .runtime = h->program };

    if (presence_is_unknown(fs_list(AT_FDCWD, "/proc", kill_creator, &c, e)))
        return e->code;
    *ret_n = c.n;
    if (c.e.code != ERR_OK)
        *e = c.e;
    return c.e.code;
}
