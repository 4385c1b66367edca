/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/internal.h"

#include "agent/api/yaml/yaml.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- output ---- */

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

static void cli_show(struct cli *cli, const struct buf *text)
{
    buf_auto clean = BUF_INIT(SIZE_MAX - 1);

    cli_add_clean(&clean, text->p);
    cli_write(cli, clean.p, clean.n);
}

bool cli_flush(struct cli *cli)
{
    errno = 0;
    if (cli->write_errno == 0 && (fflush(cli->out) != 0 || ferror(cli->out)))
        cli->write_errno = errno != 0 ? errno : EIO;
    return cli->write_errno == 0;
}

bool cli_write(struct cli *cli, const char *data, size_t n)
{
    errno = 0;
    if (fwrite(data, 1, n, cli->out) < n && cli->write_errno == 0)
        cli->write_errno = errno != 0 ? errno : EIO;
    return cli_flush(cli);
}

void cli_say(struct cli *cli, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    errno = 0;
    if (vfprintf(cli->out, fmt, ap) < 0 && cli->write_errno == 0)
        cli->write_errno = errno != 0 ? errno : EIO;
    va_end(ap);
}

int cli_check_format(struct cli *cli, const char *format)
{
    if (format == NULL || strcmp(format, "json") == 0 || strcmp(format, "yaml") == 0)
        return EXIT_OK;
    return cli_wrong(cli, "unknown output format \"%s\": json or yaml", format);
}

/* Unchanged for programs; on a terminal without control characters. */
static int print_jsonpath(struct cli *cli, const json_t *value, const char *text)
{
    buf_auto out = BUF_INIT(SIZE_MAX - 1);
    struct err e = { 0 };

    if (cli_jsonpath(text, value, &out, &e) != ERR_OK)
        return cli_failed(cli, &e);
    if (out.failed)
        return cli_error(cli, "out of memory");
    if (cli->terminal)
        cli_show(cli, &out);
    else
        cli_write(cli, out.p, out.n);
    return EXIT_OK;
}

int cli_print_value(struct cli *cli, const json_t *value, const char *format)
{
    bool yaml = strcmp(format, "yaml") == 0;
    char *text;

    if (str_starts(format, CLI_JSONPATH))
        return print_jsonpath(cli, value, format + strlen(CLI_JSONPATH));
    text = yaml ? yaml_from_json(value) : json_dumps(value, JSON_INDENT(4) | JSON_SORT_KEYS);
    if (text == NULL)
        return cli_error(cli, "out of memory");
    cli_write(cli, text, strlen(text));
    if (!yaml)
        cli_write(cli, "\n", 1);
    free(text);
    return EXIT_OK;
}

/* ---- dispatch ---- */

static void overview(FILE *to)
{
    buf_auto text = BUF_INIT(64 * 1024);

    help_overview(&text);
    fputs(text.p, to);
}

int cli_unknown_command(struct cli *cli, const char *name)
{
    const char *near = cli_command_near(name), *here = cli_command_elsewhere(name);

    if (name[0] == '-')
        fprintf(cli->err, "error: %s is before the command: flags of a command must follow it\n", name);
    else if (here != NULL)
        fprintf(cli->err, "error: unknown command \"%s\": use \"%s\"\n", name, here);
    else if (near != NULL)
        fprintf(cli->err, "error: unknown command \"%s\": did you mean \"%s\"?\n", name, near);
    else
        fprintf(cli->err, "error: unknown command \"%s\"\n", name);
    fputs("\"coracle help\" lists the commands.\n", cli->err);
    return EXIT_USAGE;
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
