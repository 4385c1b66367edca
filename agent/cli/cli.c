/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void overview(FILE *to)
{
    buf_auto text = BUF_INIT(64 * 1024);

    help_overview(&text);
    fputs(text.p, to);
}

int cli_run(struct cli *cli, int argc, char **argv)
{
    const struct cli_command *command;
    const int code = cli_take_early(cli, &argc, argv);

    if (code != EXIT_OK)
        return code;
    if (argc < 2) {
        overview(cli->err);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        overview(cli->out);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        fputs("coracle v" CORACLE_VERSION "\n", cli->out);
        return EXIT_OK;
    }
    command = cli_command_find(argv[1]);
    return command != NULL ? command->run(cli, command, argc - 2, argv + 2)
                           : cli_unknown_command(cli, argv[1]);
}

int cli_main(int argc, char **argv)
{
    const char *socket = getenv("CORACLE_SOCKET");
    struct cli cli = {
        .out = stdout,
        .err = stderr,
        .terminal = isatty(STDOUT_FILENO) != 0,
        .colours = cli_colours_wanted(STDOUT_FILENO, getenv("TERM"), getenv("NO_COLOR")),
        .socket = socket != NULL && socket[0] != '\0' ? socket : CLI_SOCKET,
    };
    int code;

    signal(SIGPIPE, SIG_IGN); /* reported as EPIPE below */
    code = cli_run(&cli, argc, argv);
    if (!cli_flush(&cli) && cli.write_errno != EPIPE) {
        fprintf(stderr, "error: write to standard output: %s\n", strerror(cli.write_errno));
        return EXIT_ERROR;
    }
    return code;
}
