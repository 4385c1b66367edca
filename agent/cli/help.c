/* SPDX-License-Identifier: Apache-2.0 */
/* Help on the terminal; the manual page has the same content from the same tables. */
#include "agent/cli/internal.h"

#include <string.h>

static const char where[] = "Clients reach the daemon at " CLI_SOCKET ", or at "
                            "--socket PATH or CORACLE_SOCKET.\n"
                            "-n, -A, -o, --socket and --request-timeout may also precede the command.\n"
                            "Colours are used on terminals only; NO_COLOR=1 disables them.\n";

static void add_exits(struct buf *out, const struct cli_exit *x)
{
    buf_adds(out, "\nExit codes:\n");
    for (; x->when != NULL; x++)
        buf_addf(out, "    %-3d %s\n", x->code, x->when);
}

void help_overview(struct buf *out)
{
    buf_adds(out, "coracle - a node agent for Kubernetes pods\n\n");
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (!cli_commands[i]->hidden)
            buf_addf(out, "    coracle %-12s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    buf_addf(out, "\nSee coracle COMMAND --help or coracle(1) for details and examples.\n%s", where);
    add_exits(out, cli_exits);
}

static void cli_help_add_flag(struct buf *b, const struct cli_flag *f)
{
    char left[80];
    int n;

    n = snprintf(left, sizeof(left), "    %s%c%s--%s%s%s", f->letter ? "-" : " ", f->letter ? f->letter : ' ',
                 f->letter ? ", " : "  ", f->name, f->value != NULL ? " " : "",
                 f->value != NULL ? f->value : "");
    buf_addf(b, "%-*s %s\n", n > 31 ? n + 1 : 31, left, f->help);
}

static void add_usage(struct buf *out, const struct cli_command *command)
{
    const char *line = command->usage;

    buf_adds(out, "Usage:\n");
    for (;;) {
        size_t n = strcspn(line, "\n");

        buf_addf(out, "    coracle %.*s\n", (int)n, line);
        if (line[n] == '\0')
            return;
        line += n + 1;
    }
}

/* Wraps words at WIDTH. */
static void add_wrapped(struct buf *out, const char *text)
{
    enum { WIDTH = 100 };
    size_t column = 0;

    while (*text != '\0') {
        size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " ");

        if (column > 0 && column + blanks + word > WIDTH) {
            buf_addc(out, '\n');
            column = 0;
        } else if (column > 0) {
            buf_add(out, text, blanks);
            column += blanks;
        }
        buf_add(out, text + blanks, word);
        column += word;
        text += blanks + word;
    }
    buf_addc(out, '\n');
}

void help_command(const struct cli_command *command, struct buf *out)
{
    add_wrapped(out, command->about);
    buf_addc(out, '\n');
    add_usage(out, command);
    buf_adds(out, "\nFlags:\n");
    for (const struct cli_flag *f = command->flags; f->name != NULL; f++)
        cli_help_add_flag(out, f);
    for (const struct cli_flag *f = cli_common_flags; f->name != NULL; f++)
        cli_help_add_flag(out, f);
    buf_adds(out, "\nExamples:\n");
    for (const struct cli_example *x = command->examples; x->line != NULL; x++)
        buf_addf(out, "    # %s\n    %s\n", x->what, x->line);
    add_exits(out, command->exits);
    if (command->see_also != NULL)
        buf_addf(out, "\nSee also: %s\n", command->see_also);
}

int cli_usage_error(struct cli *cli, const struct cli_command *command, const char *fmt, ...)
{
    buf_auto text = BUF_INIT(64 * 1024);
    va_list ap;

    va_start(ap, fmt);
    fputs("error: ", cli->err);
    vfprintf(cli->err, fmt, ap);
    va_end(ap);
    add_usage(&text, command);
    fprintf(cli->err, "\n\n%s\nSee \"coracle %s --help\".\n", text.p, command->name);
    return EXIT_USAGE;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = { CLI_FLAGS_END };

static int cli_help_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    buf_auto text = BUF_INIT(4u << 20);
    const struct cli_command *about;
    int code;

    if (!cli_parse(cli, command, NULL, &argc, argv, &code))
        return code;
    if (argc > 1)
        return cli_usage_error(cli, command, "at most one command can be explained");
    if (argc == 0) {
        help_overview(&text);
    } else if ((about = cli_command_find(argv[0])) != NULL) {
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
