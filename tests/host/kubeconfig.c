/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfig - for tests: what a client would send, by kubectl's flags and environment. Prints the message
 * `credentials` with what the exec plugin answers, all in the clear; an error on standard error, status 1.
 */
#include "agent/kube/config/message.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static int fail(const struct err *e)
{
    fprintf(stderr, "error: %s\n", e->text);
    return 1;
}

static const char *after(const char *word, const char *flag)
{
    size_t n = strlen(flag);

    return strncmp(word, flag, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static void take_word(struct kube_flags *f, const char *word, const char **groups, size_t *n_groups)
{
    const struct {
        const char *flag, **at;
    } texts[] = {
        { "--kubeconfig", &f->kubeconfig },
        { "--context", &f->context },
        { "--cluster", &f->cluster },
        { "--user", &f->user },
        { "--namespace", &f->namespace_ },
        { "--server", &f->server },
        { "--tls-server-name", &f->tls_server_name },
        { "--certificate-authority", &f->ca },
        { "--client-certificate", &f->certificate },
        { "--client-key", &f->key },
        { "--token", &f->token },
        { "--username", &f->username },
        { "--password", &f->password },
        { "--as", &f->as },
        { "--as-uid", &f->as_uid },
    };
    const char *group = after(word, "--as-group");

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (after(word, texts[i].flag) != NULL)
            *texts[i].at = after(word, texts[i].flag);
    if (group != NULL && *n_groups < 15)
        groups[(*n_groups)++] = group;
    f->insecure |= strncmp(word, "--insecure-skip-tls-verify", 26) == 0 && strstr(word, "=false") == NULL;
    f->no_compression |= strncmp(word, "--disable-compression", 21) == 0;
}

/* Runs the plugin and reads its answer. */
static enum err_code ask_plugin(const struct kube_exec *exec, struct kube_exec_answer *ret, struct err *e)
{
    static char text[KUBE_EXEC_ANSWER_MAX];
    size_t n = 0;
    ssize_t got;
    int status, fds[2];
    pid_t pid;

    if (pipe(fds) != 0 || (pid = fork()) < 0)
        return err_sys(e, errno, "fork");
    if (pid == 0) {
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        execve(exec->argv.v[0], exec->argv.v, exec->env.v);
        dprintf(2, "exec: fork/exec %s: %s\n", exec->argv.v[0], strerror(errno));
        _exit(127);
    }
    close(fds[1]);
    while (n < sizeof(text) && (got = read(fds[0], text + n, sizeof(text) - n)) > 0)
        n += (size_t)got;
    close(fds[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return err_set(e, ERR_UNKNOWN, "getting credentials: exec: executable %s failed with exit code %d",
                       exec->argv.v[0], WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return kube_exec_read(ret, text, n, exec->version, e) == ERR_OK ? ERR_OK
                                                                    : err_wrap(e, "getting credentials");
}

int main(int argc, char **argv)
{
    const char *const *env = (const char *const *)environ;
    struct kube_ask ask = kube_ask_of(env);
    struct kube_config all = { 0 };
    struct kube_choice choice = { 0 };
    struct kube_message m = { 0 };
    struct kube_exec_answer answer = { 0 };
    const char *groups[16] = { NULL };
    size_t n_groups = 0;
    json_auto_t *json = NULL;
    struct err e = { 0 };

    for (int i = 1; i < argc; i++)
        take_word(&ask.flags, argv[i], groups, &n_groups);
    ask.flags.as_groups = groups;
    if (kube_config_load(&all, &ask, &e) != ERR_OK ||
        kube_config_choose(&choice, &all, &ask.flags, &e) != ERR_OK ||
        kube_config_check(&choice, &all, &e) != ERR_OK || kube_message_make(&m, &choice, env, &e) != ERR_OK)
        return fail(&e);
    if (m.exec.argv.n > 0 && ask_plugin(&m.exec, &answer, &e) != ERR_OK)
        return fail(&e);
    json = kube_message_answer(&m, &answer);
    if (json == NULL)
        return fail(&e);
    json_dumpf(json, stdout, JSON_INDENT(2));
    kube_exec_answer_done(&answer);
    kube_message_done(&m);
    kube_choice_done(&choice);
    kube_config_done(&all);
    return 0;
}
