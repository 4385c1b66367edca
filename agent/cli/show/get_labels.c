/* SPDX-License-Identifier: Apache-2.0 */
/* The columns that all tables of objects share: the name, --label-columns and --show-labels. */
#include "agent/cli/show/internal.h"

#include "base/codec/json.h"

#include <ctype.h>
#include <string.h>

/* "app=web,tier=front" */
static void add_labels(struct cli_table *t, const json_t *labels)
{
    mem_auto const char **keys = json_sorted_keys(labels);
    buf_auto text = BUF_INIT(1u << 20);

    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
        buf_addf(&text, "%s%s=%s", i > 0 ? "," : "", keys[i], json_str(labels, keys[i]));
    cli_table_cell(t, text.n > 0 ? text.p : "<none>");
}

/* Calls fn for each label of -L app,tier -L other. False: too many. */
static bool each_column(const struct get *g, void (*fn)(const char *label, size_t n, void *arg), void *arg)
{
    size_t seen = 0;

    for (size_t i = 0; i < g->label_columns.n; i++) {
        for (const char *p = g->label_columns.v[i];; p++) {
            const size_t n = strcspn(p, ",");

            if (n > 0 && seen++ == GET_LABELS_MAX)
                return false;
            if (n > 0 && fn != NULL)
                fn(p, n, arg);
            p += n;
            if (*p == '\0')
                break;
        }
    }
    return true;
}

int get_check_labels(const struct get *g)
{
    return each_column(g, NULL, NULL) ? EXIT_OK
                                      : cli_wrong(g->cli, "at most %d columns of labels", GET_LABELS_MAX);
}

struct headers {
    const char *v[CLI_COLUMNS_MAX + 1];
    char text[GET_LABELS_MAX][64];
    size_t n, labels;
};

/* "app.kubernetes.io/name": "NAME", as kubectl. */
static void add_header(const char *label, size_t n, void *arg)
{
    const char *slash = memrchr(label, '/', n), *from = slash != NULL ? slash + 1 : label;
    struct headers *h = arg;
    char *text = h->text[h->labels++];

    snprintf(text, sizeof(h->text[0]), "%.*s", (int)(label + n - from), from);
    for (char *p = text; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
    h->v[h->n++] = text;
}

void get_table_init(const struct get *g, struct cli_table *t, const char *const *headers)
{
    struct headers h = { .n = 0 };

    while (headers[h.n] != NULL && h.n < CLI_COLUMNS_MAX - GET_LABELS_MAX - 1) {
        h.v[h.n] = headers[h.n];
        h.n++;
    }
    each_column(g, add_header, &h);
    if (g->show_labels)
        h.v[h.n++] = "LABELS";
    cli_table_init(t, h.v, !g->no_headers);
}

void get_name_cell(const struct get *g, struct cli_table *t, const json_t *o)
{
    str_auto name = g->many ? str_printf("%s/%s", g->kind, cli_text(o, "metadata.name")) : NULL;

    cli_table_cell(t, name != NULL ? name : cli_text(o, "metadata.name"));
}

struct label_row {
    struct cli_table *table;
    const json_t *labels;
};

static void add_label(const char *label, size_t n, void *arg)
{
    const struct label_row *row = arg;
    str_auto key = str_printf("%.*s", (int)n, label);
    const char *value = key != NULL ? json_str(row->labels, key) : NULL;

    cli_table_cell(row->table, value != NULL ? value : "<none>");
}

void get_label_cells(const struct get *g, struct cli_table *t, const json_t *o)
{
    struct label_row row = { t, cli_at(o, "metadata.labels") };

    each_column(g, add_label, &row);
    if (g->show_labels)
        add_labels(t, row.labels);
}

/* Tables of several kinds have an empty line between them. */
void get_table_print(struct get *g, struct cli_table *t)
{
    if (g->many && g->shown)
        cli_print(g->cli, "\n");
    g->shown = true;
    cli_table_print(t, g->cli);
}
