/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output: text, and values as JSON, YAML or through a template. */
#include "agent/cli/print/print.h"

#include "agent/api/yaml/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* One line, of which only the line break at its end is ours. */
PRINTF_LIKE(2, 0)
static void output_add_line(struct buf *b, const char *fmt, va_list ap)
{
    buf_auto text = BUF_INIT(SIZE_MAX - 1);
    char *rest, *line;

    buf_addv(&text, fmt, ap);
    if (text.n > 0 && text.p[text.n - 1] == '\n')
        text.p[--text.n] = '\0';
    rest = text.p;
    while ((line = strsep(&rest, "\n")) != NULL) {
        cli_add_clean(b, line);
        buf_adds(b, rest != NULL ? "^J" : "\n");
    }
}

void cli_say(struct cli *cli, const char *fmt, ...)
{
    buf_auto line = BUF_INIT(SIZE_MAX - 1);
    va_list ap;

    va_start(ap, fmt);
    output_add_line(&line, fmt, ap);
    va_end(ap);
    errno = 0;
    if (fwrite(line.p, 1, line.n, cli->out) < line.n && cli->write_errno == 0)
        cli->write_errno = errno != 0 ? errno : EIO;
}

void cli_note(struct cli *cli, const char *fmt, ...)
{
    buf_auto line = BUF_INIT(SIZE_MAX - 1);
    va_list ap;

    va_start(ap, fmt);
    output_add_line(&line, fmt, ap);
    va_end(ap);
    fputs(line.p, cli->err);
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
