/* SPDX-License-Identifier: Apache-2.0 */
/* attach - the streams of a container's main process. */
#include "agent/cli/stream/internal.h"
#include "base/codec/percent.h"

#include <string.h>
#include <unistd.h>

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct attach, namespace_, "the pod's namespace (default)"),
    { "container", 'c', FLAG_TEXT, offsetof(struct attach, container), "NAME",
      "the container (default: the first)", "@container" },
    { "stdin", 'i', FLAG_SWITCH, offsetof(struct attach, stdin_), NULL,
      "pass standard input to the container (its manifest must have stdin: true)" },
    { "tty", 't', FLAG_SWITCH, offsetof(struct attach, tty), NULL,
      "allocate a terminal (with -i; the container's manifest must have tty: true)" },
    CLI_FLAGS_END,
};

/* Returns whether to use a terminal, which both ends must support; otherwise prints the reason. */
static bool terminal_wanted(struct cli *cli, const struct attach *o, const json_t *container)
{
    if (!o->stdin_ || !o->tty)
        return false;
    if (!cli_true(container, "tty")) {
        cli_note(cli, "Unable to use a TTY - container %s did not allocate one\n",
                 cli_text(container, "name"));
        return false;
    }
    if (!isatty(STDIN_FILENO)) {
        fputs("Unable to use a TTY - input is not a terminal or the right kind of file\n", cli->err);
        return false;
    }
    return true;
}

int attach_to(struct cli *cli, const struct attach *o, const char *name)
{
    int code;
    json_auto_t *pod = cli_get_pod(cli, o->namespace_, name, &code);
    buf_auto url = BUF_INIT(64 * 1024);
    const char *container = o->container;
    const json_t *spec;
    bool tty;

    if (pod == NULL)
        return code;
    if (container == NULL)
        container = cli_choose_container(cli, pod);
    spec = cli_find_container(pod, container);
    if (spec == NULL)
        return cli_no_container(cli, container, name);
    tty = terminal_wanted(cli, o, spec);
    cli_add_pod_path(&url, o->namespace_, name);
    buf_adds(&url, "/attach?container=");
    percent_add(&url, container);
    buf_addf(&url, "&stdout=true%s%s", o->stdin_ ? "&stdin=true" : "",
             cli_true(spec, "tty") ? "&tty=true" : "&stderr=true");
    if (tty)
        fputs("If you don't see a command prompt, try pressing enter; ctrl-p, ctrl-q detaches.\n", cli->err);
    return exec_stream(&(struct exec_session){ .cli = cli,
                                               .input = o->stdin_ ? STDIN_FILENO : -1,
                                               .output = -1,
                                               .terminal = tty ? STDIN_FILENO : -1,
                                               .detaches = tty },
                       url.p);
}

static int cli_attach_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct attach o = { .namespace_ = "default" };
    const char *name;
    int code;

    return cli_parse_one_pod(cli, command, &o, argc, argv, &name, &code) ? attach_to(cli, &o, name) : code;
}

static const struct cli_example examples[] = {
    { "show new output of a container", "coracle attach web" },
    { "use the shell that is a container's main process", "coracle attach -it shell" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "the container ended, or ctrl-p, ctrl-q was typed" },
    { 1, "an error, described on standard error" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 128, "and above: with a terminal: 128 plus the number of the signal that ended coracle" },
    { 0, NULL },
};

const struct cli_command command_attach = {
    .name = "attach",
    .run = cli_attach_run,
    .summary = "attach to a container's main process",
    .usage = "attach [-i] [-t] [-c CONTAINER] POD [flags]",
    .about = "Shows the output of a container's main process, and passes input to it.  On a terminal, "
             "press ctrl-p, ctrl-q to detach; the container keeps running.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "exec logs",
    .words = "@pod",
};
