/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands, and the command that explains one of them (usage.c). */
#include "agent/cli/internal.h"

#include <string.h>

static const char where[] = "Clients reach the daemon at " CLI_SOCKET ", or at "
                            "--socket PATH or CORACLE_SOCKET.\n"
                            "-n, -A, -o, --socket and --request-timeout may also precede the command.\n"
                            "Colours are used on terminals only; NO_COLOR=1 disables them.\n";

void help_overview(struct buf *out)
{
    buf_adds(out, "coracle - a node agent for Kubernetes pods\n\n");
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (!cli_commands[i]->hidden)
            buf_addf(out, "    coracle %-17s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    buf_addf(out, "\nSee coracle COMMAND --help or coracle(1) for details and examples.\n%s", where);
    cli_add_exits(out, cli_exits);
}

/* ---- the command ---- */

static const struct cli_flag flags[] = { CLI_FLAGS_END };

static int cli_help_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    buf_auto text = BUF_INIT(4u << 20);
    const struct cli_command *about;
    str_auto both = NULL;
    int code;

    if (!cli_parse(cli, command, NULL, &argc, argv, &code))
        return code;
    if (argc == 2 && (both = str_printf("%s %s", argv[0], argv[1])) != NULL &&
        (about = cli_command_find(both)) != NULL)
        argc = 1;
    else
        about = argc == 1 ? cli_command_find(argv[0]) : NULL;
    if (argc > 1)
        return cli_usage_error(cli, command, "at most one command can be explained");
    if (argc == 0) {
        help_overview(&text);
    } else if (about != NULL) {
        help_command(about, &text);
    } else {
        return cli_unknown_command(cli, argv[0]);
    }
    if (text.failed)
        return cli_error(cli, "out of memory");
    cli_write(cli, text.p, text.n);
    return EXIT_OK;
}

static const struct cli_example examples[] = {
    { "list the commands", "coracle help" },
    { "show help for a command", "coracle help logs" },
    { NULL, NULL },
};

const struct cli_command command_help = {
    .name = "help",
    .run = cli_help_run,
    .summary = "show help",
    .usage = "help [COMMAND]",
    .about = "Shows all commands, or one of them with flags, examples and exit codes.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits_local,
    .words = "@command",
};
