/* SPDX-License-Identifier: Apache-2.0 */
/* run - programs of the system, in a child that has no loop. The group of that child ends with it, and so do
 * they. */
#include "volumes/storage/run.h"
#include "base/process/process.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 32
#define ANSWER_MAX (1u << 20) /* of a program whose output is read; fsck and its like may say more */

static const char path_of_programs[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static bool find_program(const char *name, char *ret, size_t size)
{
    static const char *const dirs[] = { "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin" };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        snprintf(ret, size, "%s/%s", dirs[i], name);
        if (access(ret, X_OK) == 0)
            return true;
    }
    return false;
}

static void child(const char *path, const struct storage_run *r, int out, int err)
{
    const char *argv[ARGS_MAX] = { path };
    const char *env[] = { path_of_programs, "LC_ALL=C", NULL };
    size_t n = 1;

    for (; r->args[n - 1] != NULL && n < ARGS_MAX - 1; n++)
        argv[n] = r->args[n - 1];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 || close_range(3, ~0U, 0) != 0)
        _exit(126);
    execve(path, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    _exit(127);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Keeps what fits; the rest is read and forgotten, up to `most`. A program that ended while a child of its
 * has the pipe is not waited for. False: it prints without end. */
static bool read_all(int fd, struct buf *out, size_t max, size_t most, pid_t pid, int64_t until)
{
    char part[4096];
    size_t total = 0;

    while (now_ms() < until) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        siginfo_t info = { 0 };
        int ready = poll(&p, 1, 200);

        if (ready > 0) {
            ssize_t n = read(fd, part, sizeof(part));

            if (n == 0 || (n < 0 && errno != EINTR))
                break;
            if (n > 0 && out->n < max)
                buf_add(out, part, (size_t)n);
            total += n > 0 ? (size_t)n : 0;
            if (total > most)
                return false;
        } else if (ready == 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                   info.si_pid != 0) {
            break;
        }
    }
    return true;
}

static bool ends(pid_t pid, int64_t until, int *ret_status)
{
    for (;;) {
        pid_t found = waitpid(pid, ret_status, WNOHANG);

        if (found == pid || (found < 0 && errno != EINTR))
            return found == pid;
        if (now_ms() >= until) {
            kill(pid, SIGKILL);
            return false;
        }
        poll(NULL, 0, 10);
    }
}

static enum err_code result(const struct storage_run *r, int status, struct buf *said, struct err *e)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

    if (r->ret_exit != NULL) {
        *r->ret_exit = code;
        return ERR_OK;
    }
    if (code == 0)
        return ERR_OK;
    while (said->n > 0 && (said->p[said->n - 1] == '\n' || said->p[said->n - 1] == ' '))
        said->p[--said->n] = '\0';
    if (said->n > 0)
        text_printable(said->p);
    return err_set(e, ERR_UNKNOWN, "%s: exit status %d%s%.350s", r->program, code, said->n > 0 ? ": " : "",
                   said->n > 0 ? said->p : "");
}

enum err_code storage_run(const struct storage_run *r, struct err *e)
{
    buf_auto said = BUF_INIT(2 * STORAGE_OUT_MAX);
    const unsigned ms = r->ms > 0 ? r->ms : STORAGE_RUN_MS;
    int64_t until = now_ms() + ms;
    int pipe_fd[2], status = 0, null;
    char path[200];
    pid_t pid;

    if (r->path == NULL && !find_program(r->program, path, sizeof(path)))
        return err_set(e, ERR_NOT_FOUND, "program %s is missing on this node: install %s", r->program,
                       r->package);
    if (pipe2(pipe_fd, O_CLOEXEC) != 0)
        return err_sys(e, errno, "pipe for %s", r->program);
    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid = proc_call_fork();
    if (pid == 0)
        child(r->path != NULL ? r->path : path, r, pipe_fd[1], r->out == NULL ? pipe_fd[1] : null);
    if (pid < 0)
        err_sys(e, errno, "start %s", r->program);
    close(pipe_fd[1]);
    if (null >= 0)
        close(null);
    if (pid > 0) {
        if (!read_all(pipe_fd[0], r->out != NULL ? r->out : &said,
                      r->out_max > 0 ? r->out_max : STORAGE_OUT_MAX, r->out != NULL ? ANSWER_MAX : SIZE_MAX,
                      pid, until)) {
            until = now_ms();
            err_set(e, ERR_EXHAUSTED, "%s printed more than %u bytes", r->program, ANSWER_MAX);
        }
        if (!ends(pid, until, &status) && e->code == ERR_OK)
            err_set(e, ERR_DEADLINE, "%s did not end within %u s", r->program, ms / 1000);
        if (e->code == ERR_OK)
            ERR_IGNORE(result(r, status, r->out != NULL ? r->out : &said, e));
    }
    close(pipe_fd[0]);
    return e->code;
}
