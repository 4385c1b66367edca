/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as the user sees them, and the exit codes that follow from them. */
#include "agent/cli/print/print.h"

PRINTF_LIKE(2, 0)
static void print_error(struct cli *cli, const char *fmt, va_list ap)
{
    buf_auto text = BUF_INIT(SIZE_MAX - 1);

    buf_addv(&text, fmt, ap);
    cli_complain(cli, "error: ", text.p);
}

int cli_error(struct cli *cli, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_error(cli, fmt, ap);
    va_end(ap);
    return EXIT_ERROR;
}

int cli_wrong(struct cli *cli, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_error(cli, fmt, ap);
    va_end(ap);
    return EXIT_USAGE;
}

void cli_complain(struct cli *cli, const char *what, const char *text)
{
    buf_auto line = BUF_INIT(SIZE_MAX - 1);

    buf_adds(&line, what);
    cli_add_clean(&line, text);
    buf_addc(&line, '\n');
    fputs(line.p, cli->err);
}

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
