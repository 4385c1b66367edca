/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/print/print.h"
#include "base/array.h"

#include <string.h>

enum { TABLE_MIN_WIDTH = 6, TABLE_PADDING = 3 }; /* kubectl's table format */

/* Number of characters (wide ones count as one, as in kubectl). */
static size_t width_of(const char *text, size_t n)
{
    size_t width = 0;

    for (size_t i = 0; i < n; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

static void add_blanks(struct buf *b, size_t n)
{
    while (n-- > 0)
        buf_addc(b, ' ');
}

/* ---- tables ---- */

void cli_table_init(struct cli_table *t, const char *const *headers, bool show_headers)
{
    *t = (struct cli_table){ 0 };
    while (headers[t->n_columns] != NULL)
        t->n_columns++;
    for (size_t i = 0; show_headers && i < t->n_columns; i++)
        cli_table_cell(t, headers[i]);
}

void cli_table_cell(struct cli_table *t, const char *text)
{
    cli_table_coloured(t, text, COLOUR_NONE);
}

void cli_table_coloured(struct cli_table *t, const char *text, enum cli_colour colour)
{
    size_t column = t->n_cells % t->n_columns, width, n = strcspn(text, "\n\r\f");
    buf_auto cell = BUF_INIT(SIZE_MAX - 1);
    str_auto first = strndup(text, n);

    if (t->failed || first == NULL) {
        t->failed = true;
        return;
    }
    cli_add_clean(&cell, first);
    if (text[n] != '\0')
        buf_adds(&cell, "...");
    if (!array_room(t->cells, t->n_cells)) {
        t->failed = true;
        return;
    }
    width = width_of(cell.p, cell.n) + TABLE_PADDING;
    t->cells[t->n_cells] = (struct cli_cell){ cell.failed ? NULL : buf_detach(&cell), colour };
    if (t->cells[t->n_cells].text == NULL) {
        t->failed = true;
        return;
    }
    t->n_cells++;
    if (width < TABLE_MIN_WIDTH)
        width = TABLE_MIN_WIDTH;
    if (width > t->widths[column])
        t->widths[column] = width;
}

static void forget_rows(struct cli_table *t)
{
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    free(t->cells);
    t->cells = NULL;
    t->n_cells = 0;
}

void cli_table_print(struct cli_table *t, struct cli *cli)
{
    buf_auto b = BUF_INIT(SIZE_MAX - 1);

    for (size_t i = 0; i < t->n_cells; i++) {
        size_t column = i % t->n_columns;
        const char *text = t->cells[i].text;
        size_t n = strlen(text);

        cli_add_coloured(&b, cli->colours ? t->cells[i].colour : COLOUR_NONE, text, n);
        if (column + 1 < t->n_columns)
            add_blanks(&b, t->widths[column] - width_of(text, n));
        else
            buf_addc(&b, '\n');
    }
    if (t->failed || b.failed)
        cli_error(cli, "out of memory");
    else
        cli_write(cli, b.p, b.n);
    forget_rows(t);
}

void cli_table_done(struct cli_table *t)
{
    forget_rows(t);
}

/* ---- elastic tabs ---- */

/* A column is a block of adjacent lines with a cell there; its width is that of its widest cell. Blocks of
 * the column to the right are within it. Text after a line's last tab is in no column. */
struct line {
    const char *text;
    size_t n;
    size_t n_cells; /* terminated by a tab */
};

struct aligner {
    struct line *lines;
    size_t widths[CLI_COLUMNS_MAX];
    size_t n_widths;
    size_t min_width, padding;
    struct buf *out;
};

/* The cell at `index`; *ret_n bytes. */
static const char *cell_at(const struct line *l, size_t index, size_t *ret_n)
{
    const char *p = l->text, *end = l->text + l->n;

    for (; index > 0; index--)
        p = (const char *)memchr(p, '\t', (size_t)(end - p)) + 1;
    *ret_n = (size_t)((const char *)(memchr(p, '\t', (size_t)(end - p)) ?: end) - p);
    return p;
}

static void write_lines(struct aligner *a, size_t from, size_t to)
{
    for (; from < to; from++) {
        const struct line *l = &a->lines[from];

        for (size_t i = 0; i <= l->n_cells; i++) {
            size_t n, width;
            const char *cell = cell_at(l, i, &n);

            buf_add(a->out, cell, n);
            width = width_of(cell, n);
            if (i < a->n_widths && i < l->n_cells && width < a->widths[i])
                add_blanks(a->out, a->widths[i] - width);
        }
        buf_addc(a->out, '\n');
    }
}

/* Lines [from, to), whose first n_widths columns are known. */
static void align_block(struct aligner *a, size_t from, size_t to)
{
    size_t column = a->n_widths;

    for (size_t at = from; at < to && column < CLI_COLUMNS_MAX; at++) {
        size_t begin = at, width = a->min_width;

        if (a->lines[at].n_cells <= column)
            continue;
        write_lines(a, from, begin);
        for (; at < to && a->lines[at].n_cells > column; at++) {
            size_t n;
            const char *cell = cell_at(&a->lines[at], column, &n);

            if (width_of(cell, n) + a->padding > width)
                width = width_of(cell, n) + a->padding;
        }
        a->widths[a->n_widths++] = width;
        align_block(a, begin, at);
        a->n_widths--;
        from = at;
    }
    write_lines(a, from, to);
}

void cli_align(const char *text, size_t min_width, size_t padding, struct buf *out)
{
    struct aligner a = { .min_width = min_width, .padding = padding, .out = out };
    size_t n = 0, room = 1;

    for (const char *p = text; *p != '\0'; p++)
        room += *p == '\n';
    a.lines = calloc(room, sizeof(*a.lines));
    if (a.lines == NULL) {
        out->failed = true;
        return;
    }
    for (const char *p = text; *p != '\0'; n++) {
        struct line *l = &a.lines[n];

        l->text = p;
        l->n = strcspn(p, "\n");
        for (size_t i = 0; i < l->n; i++)
            l->n_cells += p[i] == '\t';
        p += l->n;
        p += *p == '\n';
    }
    align_block(&a, 0, n);
    free(a.lines);
}
