/* SPDX-License-Identifier: Apache-2.0 */
/* The exit codes, also shown by coracle(1) and `coracle help`. */
#include "agent/cli/internal.h"

const struct cli_exit cli_exits[] = { CLI_EXITS, CLI_EXITS_DAEMON, { 0, NULL } };
const struct cli_exit cli_exits_local[] = { CLI_EXITS, { 0, NULL } };

static int exit_of(enum err_code code)
{
    switch ((int)code) {
    case ERR_UNAVAILABLE:
    case ERR_DEADLINE:
        return EXIT_NO_DAEMON;
    case ERR_PERMISSION:
        return EXIT_DENIED;
    case ERR_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case ERR_INVALID:
        return EXIT_USAGE;
    default:
        return EXIT_ERROR;
    }
}

int cli_failed(struct cli *cli, const struct err *e)
{
    cli_error(cli, "%s", e->text);
    return exit_of(e->code);
}

int cli_exit_of_http(int code)
{
    switch (code) {
    case 200:
        return EXIT_OK;
    case 401:
    case 403:
        return EXIT_DENIED;
    case 404:
        return EXIT_NOT_FOUND;
    default:
        return EXIT_ERROR;
    }
}

void cli_keep_first(int *code, int next)
{
    if (*code == EXIT_OK)
        *code = next;
}
