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

void cli_print(struct cli *cli, const char *fmt, ...)
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

/* Unchanged for programs; on a terminal without control characters. What a template printed before an error
 * is shown, too. */
static int print_made(struct cli *cli, const struct buf *out, const struct err *e)
{
    if (cli->terminal)
        cli_show(cli, out);
    else
        cli_write(cli, out->p, out->n);
    return out->failed ? cli_error(cli, "out of memory") : e->code != ERR_OK ? cli_failed(cli, e) : EXIT_OK;
}

static int print_template(struct cli *cli, const json_t *value, const char *format)
{
    buf_auto out = BUF_INIT(SIZE_MAX - 1);
    struct err e = { 0 };

    if (str_starts(format, CLI_JSONPATH))
        ERR_IGNORE(cli_jsonpath(format + strlen(CLI_JSONPATH), value, &out, &e));
    else
        ERR_IGNORE(cli_go_template(format + strlen(CLI_GO_TEMPLATE), value, &out, &e));
    return print_made(cli, &out, &e);
}

int cli_print_columns(struct cli *cli, const json_t *items, const char *format, bool headers)
{
    buf_auto lines = BUF_INIT(CLI_OUTPUT_MAX), out = BUF_INIT(CLI_OUTPUT_MAX);
    struct err e = { 0 };

    if (cli_columns(format + strlen(CLI_CUSTOM_COLUMNS), items, headers, &lines, &e) == ERR_OK)
        cli_align(lines.p, 6, 3, &out); /* kubectl's widths */
    out.failed |= lines.failed;
    return print_made(cli, &out, &e);
}

int cli_print_value(struct cli *cli, const json_t *value, const char *format)
{
    bool yaml = strcmp(format, "yaml") == 0;
    char *text;

    if (str_starts(format, CLI_JSONPATH) || str_starts(format, CLI_GO_TEMPLATE))
        return print_template(cli, value, format);
    text = yaml ? yaml_from_json(value) : json_dumps(value, JSON_INDENT(4) | JSON_SORT_KEYS);
    if (text == NULL)
        return cli_error(cli, "out of memory");
    cli_write(cli, text, strlen(text));
    if (!yaml)
        cli_write(cli, "\n", 1);
    free(text);
    return EXIT_OK;
}
