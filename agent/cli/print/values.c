/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/print/print.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/duration.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define SECOND_NS 1000000000LL

int64_t cli_now(const struct cli *cli)
{
    return cli->now_ns != 0 ? cli->now_ns : clock_wall_ns();
}

json_t *cli_at(const json_t *object, const char *path)
{
    return json_at(object, path);
}

const char *cli_text(const json_t *object, const char *path)
{
    const char *text = json_string_value(cli_at(object, path));

    return text != NULL ? text : "";
}

const json_t *cli_find(const json_t *list, const char *path, const char *text)
{
    const json_t *v;
    size_t i;

    json_array_foreach (list, i, v)
        if (strcmp(cli_text(v, path), text) == 0)
            return v;
    return NULL;
}

int64_t cli_number(const json_t *object, const char *path)
{
    return json_integer_value(cli_at(object, path));
}

bool cli_true(const json_t *object, const char *path)
{
    return json_is_true(cli_at(object, path));
}

/* Text from outside must not move the reader's cursor, nor turn its own direction. */
void cli_add_clean(struct buf *b, const char *text)
{
    const char *end = text + strlen(text);

    while (text < end) {
        uint32_t c = 0;
        size_t n = utf8_decode(text, (size_t)(end - text), &c);

        if (n == 0)
            buf_addf(b, "<%02x>", (unsigned char)*text); /* 0x9b alone is an ESC [ to some terminals */
        else if (c == '\n' || utf8_is_drawn(c))
            buf_add(b, text, n);
        else if (c == '\t')
            buf_addc(b, ' '); /* a tab would end a column */
        else if (c < ' ')
            buf_addf(b, "^%c", (char)c + '@');
        else if (c == 0x7f)
            buf_adds(b, "^?");
        else
            buf_addf(b, c < 0xa0 ? "<%02x>" : "<U+%04X>", c);
        text += n > 0 ? n : 1;
    }
}

bool cli_is_clean(const char *text)
{
    buf_auto clean = BUF_INIT(SIZE_MAX - 1);

    cli_add_clean(&clean, text);
    return str_eq(clean.p, text) && strchr(text, '\n') == NULL;
}

/* ---- times ---- */

void cli_duration(int64_t ns, char ret[CLI_AGE_SIZE])
{
    snprintf(ret, CLI_AGE_SIZE, "%s", duration_human(ns).s);
}

void cli_age(const struct cli *cli, const char *when, char ret[CLI_AGE_SIZE])
{
    int64_t ns;

    if (when[0] == '\0' || clock_parse(when, &ns, ERR_IGNORED) != ERR_OK)
        strcpy(ret, "<unknown>");
    else
        cli_duration(cli_now(cli) - ns, ret);
}

void cli_time(const char *when, char ret[CLI_TIME_SIZE])
{
    struct tm tm;
    time_t seconds;
    int64_t ns;

    if (when[0] == '\0' || clock_parse(when, &ns, ERR_IGNORED) != ERR_OK) {
        strcpy(ret, "Mon, 01 Jan 0001 00:00:00 +0000"); /* Go's format of an unset time */
        return;
    }
    seconds = (time_t)(ns / SECOND_NS);
    localtime_r(&seconds, &tm);
    strftime(ret, CLI_TIME_SIZE, "%a, %d %b %Y %H:%M:%S %z", &tm);
}

void cli_size(uint64_t bytes, char ret[CLI_AGE_SIZE])
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 999.5 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1000;
        unit++;
    }
    snprintf(ret, CLI_AGE_SIZE, "%.3g%s", value, units[unit]);
}

/* ---- Go's durations ---- */

enum err_code cli_parse_duration(const char *text, int64_t *ret_ns, struct err *e)
{
    if (text[0] == '-' || !duration_parse(text, ret_ns))
        return err_set(e, ERR_INVALID, "\"%s\" is not a duration such as 10s, 5m or 1h30m", text);
    return ERR_OK;
}
