/* SPDX-License-Identifier: Apache-2.0 */
/* exec - a command in a container: options. */
#include "agent/cli/stream/internal.h"
#include "base/codec/percent.h"

#include <string.h>
#include <unistd.h>

struct exec {
    const char *namespace_, *container;
    bool stdin_, tty;
};

static void cli_exec_add_param(struct buf *url, const char *key, const char *value)
{
    buf_addf(url, "&%s=", key);
    percent_add(url, value);
}

static enum err_code make_url(const struct exec *x, const char *pod, const char *container, char **command,
                              struct buf *url, struct err *e)
{
    cli_add_pod_path(url, x->namespace_, pod);
    buf_adds(url, "/exec?container=");
    percent_add(url, container);
    for (; *command != NULL; command++)
        cli_exec_add_param(url, "command", *command);
    buf_addf(url, "&stdout=true%s%s", x->stdin_ ? "&stdin=true" : "", x->tty ? "&tty=true" : "&stderr=true");
    return url->failed ? err_set(e, ERR_EXHAUSTED, "the command is too long") : ERR_OK;
}

static int cli_exec_run(struct cli *cli, const struct exec *x, const char *name, char **command)
{
    int code;
    json_auto_t *pod = cli_get_pod(cli, x->namespace_, name, &code);
    buf_auto url = BUF_INIT(64 * 1024);
    struct err e = { 0 };

    if (pod == NULL)
        return code;
    if (x->container != NULL && cli_find_container(pod, x->container) == NULL)
        return cli_no_container(cli, x->container, name);
    if (make_url(x, name, x->container != NULL ? x->container : cli_choose_container(cli, pod), command, &url,
                 &e) != ERR_OK)
        return cli_error(cli, "%s", e.text);
    return exec_stream(&(struct exec_session){ .cli = cli,
                                               .input = x->stdin_ ? STDIN_FILENO : -1,
                                               .output = -1,
                                               .terminal = x->tty ? STDIN_FILENO : -1 },
                       url.p);
}

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct exec, namespace_, "the pod's namespace (default)"),
    { "container", 'c', FLAG_TEXT, offsetof(struct exec, container), "NAME",
      "the container (default: the first)", "@container" },
    { "stdin", 'i', FLAG_SWITCH, offsetof(struct exec, stdin_), NULL, "pass standard input to the command" },
    { "tty", 't', FLAG_SWITCH, offsetof(struct exec, tty), NULL, "allocate a terminal (with -i)" },
    CLI_FLAGS_END,
};

static int exec_command(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct exec x = { .namespace_ = "default" };
    str_auto made = NULL;
    char **words;
    const char *name;
    int code;

    if (!cli_parse(cli, command, &x, &argc, argv, &code))
        return code;
    if (argc < 2)
        return cli_usage_error(cli, command, "expected 'exec POD [--] COMMAND [ARG...]'");
    name = cli_pod_of(cli, argv[0], x.namespace_, &made, &code);
    if (name == NULL)
        return code;
    if (!x.stdin_) /* as in kubectl: a terminal is only useful with input */
        x.tty = false;
    if (x.tty && !isatty(STDIN_FILENO)) {
        fputs("Unable to use a TTY - input is not a terminal or the right kind of file\n", cli->err);
        x.tty = false;
    }
    words = calloc((size_t)argc, sizeof(*words));
    if (words == NULL)
        return cli_error(cli, "out of memory");
    memcpy(words, argv + 1, (size_t)(argc - 1) * sizeof(*words));
    code = cli_exec_run(cli, &x, name, words);
    free(words);
    return code;
}

static const struct cli_example examples[] = {
    { "a shell", "coracle exec -it web -- sh" },
    { "run a command in one of several containers", "coracle exec -c proxy web -- nginx -t" },
    { "pass a file to a command", "coracle exec -i web -- tee /tmp/x < x" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "the command exited with 0" },
    { 1, "an error, described on standard error" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 126, "the command cannot be executed" },
    { 127, "the command was not found" },
    { 128, "and above: with a terminal: 128 plus the number of the signal that ended coracle" },
    { 141, "the reader of the output has closed it, as for a local command" },
    { 255, "and any other: the command's own exit code" },
    { 0, NULL },
};

const struct cli_command command_exec = {
    .name = "exec",
    .run = exec_command,
    .summary = "run a command in a container",
    .usage = "exec [-i] [-t] [-c CONTAINER] POD [--] COMMAND [ARG...]",
    .about = "Runs a command in a container and exits with its exit code.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "logs",
    .words = "@pod @nothing",
    .rest_from = 2,
};
