/* SPDX-License-Identifier: Apache-2.0 */
/* Help for one command on the terminal.  The manual page is made from the same tables. */
#include "agent/cli/command/command.h"

#include <string.h>

const struct cli_exit cli_exits[] = { CLI_EXITS, CLI_EXITS_DAEMON, { 0, NULL } };
const struct cli_exit cli_exits_local[] = { CLI_EXITS, { 0, NULL } };

void cli_add_exits(struct buf *out, const struct cli_exit *exits)
{
    buf_adds(out, "\nExit codes:\n");
    for (const struct cli_exit *x = exits; x->when != NULL; x++)
        buf_addf(out, "    %-3d %s\n", x->code, x->when);
}

static void usage_add_flag(struct buf *b, const struct cli_flag *f)
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
        usage_add_flag(out, f);
    for (const struct cli_flag *f = cli_common_flags; f->name != NULL; f++)
        usage_add_flag(out, f);
    buf_adds(out, "\nExamples:\n");
    for (const struct cli_example *x = command->examples; x->line != NULL; x++)
        buf_addf(out, "    # %s\n    %s\n", x->what, x->line);
    cli_add_exits(out, command->exits);
    if (command->see_also != NULL)
        buf_addf(out, "\nSee also: %s\n", command->see_also);
}

int cli_usage_error(struct cli *cli, const struct cli_command *command, const char *fmt, ...)
{
    buf_auto text = BUF_INIT(64 * 1024), error = BUF_INIT(64 * 1024);
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&error, fmt, ap);
    va_end(ap);
    cli_complain(cli, "error: ", error.p);
    add_usage(&text, command);
    fprintf(cli->err, "\n%s\nSee \"coracle %s --help\".\n", text.p, command->name);
    return EXIT_USAGE;
}
