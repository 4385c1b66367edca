/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours, used on a terminal unless NO_COLOR (no-color.org) or TERM=dumb disables them. They are added after
 * the text is cleaned and aligned, so that containers' output cannot contain any.
 */
#include "agent/cli/print/print.h"

#include <string.h>
#include <unistd.h>

static const char *const begins[] = {
    [COLOUR_NONE] = "",        [COLOUR_GOOD] = "\033[32m", [COLOUR_WAITING] = "\033[33m",
    [COLOUR_BAD] = "\033[31m", [COLOUR_TITLE] = "\033[1m",
};
#define END "\033[0m"

bool cli_is_terminal(int fd, const char *term)
{
    return fd >= 0 && isatty(fd) && (term == NULL || strcmp(term, "dumb") != 0);
}

bool cli_colours_wanted(int fd, const char *term, const char *no_color)
{
    return cli_is_terminal(fd, term) && (no_color == NULL || no_color[0] == '\0');
}

void cli_add_coloured(struct buf *b, enum cli_colour colour, const char *text, size_t n)
{
    buf_adds(b, begins[colour]);
    buf_add(b, text, n);
    if (colour != COLOUR_NONE)
        buf_adds(b, END);
}

enum cli_colour cli_colour_of_status(const char *status)
{
    static const char *const plain[] = { "", "Completed", "Succeeded", "<none>" };
    static const char *const waiting[] = { "Pending",     "ContainerCreating", "PodInitializing",
                                           "Terminating", "NotReady",          "Stale" };

    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        if (strcmp(status, plain[i]) == 0)
            return COLOUR_NONE;
    for (size_t i = 0; i < ARRAY_LEN(waiting); i++)
        if (strcmp(status, waiting[i]) == 0)
            return COLOUR_WAITING;
    if (strcmp(status, "Running") == 0 || strcmp(status, "OK") == 0)
        return COLOUR_GOOD;
    if (strncmp(status, "Init:", 5) == 0 && status[5] >= '0' && status[5] <= '9')
        return COLOUR_WAITING; /* Init:0/2 */
    return COLOUR_BAD;         /* there are many reasons for not running */
}

enum cli_colour cli_colour_of_event(const char *type)
{
    return strcmp(type, "Warning") == 0 ? COLOUR_WAITING : COLOUR_NONE;
}

/* ---- output of describe and explain ---- */

struct cell {
    const char *p;
    size_t n;
};

/* The cell at or after `from`: cells are separated by two blanks. */
static struct cell next_cell(const char *from, const char *end)
{
    struct cell c;

    while (from < end && *from == ' ')
        from++;
    c.p = from;
    while (from < end && !(*from == ' ' && (from + 1 == end || from[1] == ' ')))
        from++;
    c.n = (size_t)(from - c.p);
    return c;
}

static bool colour_is(const struct cell *c, const char *word)
{
    return c->n == strlen(word) && memcmp(c->p, word, c->n) == 0;
}

static enum cli_colour colour_of_word(const struct cell *c)
{
    if (colour_is(c, "failed") || colour_is(c, "error"))
        return COLOUR_BAD;
    return colour_is(c, "Warning") || colour_is(c, "warning") ? COLOUR_WAITING : COLOUR_NONE;
}

static enum cli_colour colour_of_value(const struct cell *name, const struct cell *value)
{
    char text[64];

    if (!colour_is(name, "Status:") && !colour_is(name, "Reason:"))
        return colour_of_word(value);
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(value->p, " \n"), value->p);
    return cli_colour_of_status(text);
}

/* "Name:   web", "  Warning  BackOff  ...", "  network  failed  2s  ..." */
static void add_line(struct buf *out, const char *line, size_t n)
{
    const char *end = line + n;
    const struct cell first = next_cell(line, end), second = next_cell(first.p + first.n, end);
    const bool title = n > 0 && line[0] != ' ' && first.n > 0 && first.p[first.n - 1] == ':';

    buf_add(out, line, (size_t)(first.p - line));
    cli_add_coloured(out, title ? COLOUR_TITLE : colour_of_word(&first), first.p, first.n);
    buf_add(out, first.p + first.n, (size_t)(second.p - first.p) - first.n);
    cli_add_coloured(out, colour_of_value(&first, &second), second.p, second.n);
    buf_add(out, second.p + second.n, (size_t)(end - second.p) - second.n);
}

void cli_show_described(struct cli *cli, const struct buf *text)
{
    buf_auto clean = BUF_INIT(SIZE_MAX - 1), coloured = BUF_INIT(SIZE_MAX - 1);

    cli_add_clean(&clean, text->p);
    for (const char *p = clean.p; cli->colours && *p != '\0';) {
        const size_t n = strcspn(p, "\n");

        add_line(&coloured, p, n);
        p += n;
        if (*p == '\n') {
            buf_addc(&coloured, '\n');
            p++;
        }
    }
    if (cli->colours)
        cli_write(cli, coloured.p, coloured.n);
    else
        cli_write(cli, clean.p, clean.n);
}
