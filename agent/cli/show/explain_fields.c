/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle explain pod.spec.containers`: the fields of an object and their effect, from the tables that
 * validate manifests. It does not contact the daemon. */
#include "agent/cli/show/internal.h"

#include "agent/api/schema/about.h"
#include "agent/api/schema/kinds.h"

#include <string.h>

enum { PATH_SHOWN = 200 }; /* of a path that is wrong */

struct place {                       /* on the way along a path */
    const struct api_schema *schema; /* NULL: a plain value */
    const struct api_row *row;       /* NULL: the object itself */
    const struct api_schema *holder; /* the table that has the row */
    enum api_support support;
};

/* The kind before the first dot; NULL: none is meant. */
static const struct api_kind_row *root_of(const char *path)
{
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++)
        if (k->schema != NULL && api_kind_is_word(k, path, strcspn(path, ".")))
            return k;
    return NULL;
}

bool cli_explain_is_path(const char *word)
{
    return strchr(word, '/') == NULL && root_of(word) != NULL &&
           (strchr(word, '.') != NULL || cli_is_kind(word, cli_pod_kinds));
}

/* A step down: "containers", "containers[0]", "containers[*]". */
static int step_down(struct cli *cli, struct place *p, const char *path, const char *name, size_t n)
{
    char field[PATH_SHOWN];
    const char *meant;

    if (memchr(name, '[', n) != NULL)
        n = strcspn(name, "[");
    snprintf(field, sizeof(field), "%.*s", (int)n, name);
    if (p->schema == NULL)
        return cli_wrong(cli, "%.*s: %s has no fields", PATH_SHOWN, path,
                         p->row != NULL ? p->row->name : "it");
    p->row = api_row_find(p->schema, field);
    if (p->row == NULL) {
        meant = api_row_similar(p->schema, field);
        return cli_wrong(cli, "%.*s: %s has no field %s%s%s%s", PATH_SHOWN, path, p->schema->name, field,
                         meant != NULL ? " (did you mean " : "", meant != NULL ? meant : "",
                         meant != NULL ? "?)" : "");
    }
    p->holder = api_row_holder(p->schema, p->row);
    p->support = api_support_below(p->row, p->support);
    p->schema = p->row->nested;
    return EXIT_OK;
}

static int walk(struct cli *cli, struct place *p, const char *path)
{
    const char *at = strchr(path, '.');
    int code = EXIT_OK;

    for (; code == EXIT_OK && at != NULL && at[1] != '\0'; at = strchr(at + 1, '.'))
        code = step_down(cli, p, path, at + 1, strcspn(at + 1, "."));
    return code;
}

/* ---- output ---- */

static void add_default(struct buf *b, const struct api_row *row)
{
    if (row->otherwise != NULL)
        buf_adds(b, row->otherwise[0] == '\0' ? "\"\"" : row->otherwise);
}

/* The reason why it is not acted on, or a note about it. */
static void add_note(struct buf *b, const struct api_row *row)
{
    if (row->why != NULL)
        buf_addf(b, "%s", row->why);
    if (row->why != NULL && row->harmless != NULL)
        buf_addf(b, " (except %s)", row->harmless);
}

static void add_line(struct buf *b, const char *title, const struct api_row *row,
                     void (*add)(struct buf *b, const struct api_row *row))
{
    const size_t before = b->n;
    size_t start;

    buf_addf(b, "%s:\t", title);
    start = b->n;
    add(b, row);
    if (b->n > start) {
        buf_addc(b, '\n');
        return;
    }
    b->n = before;
    b->p[before] = '\0';
}

static void add_head(struct buf *b, const struct api_kind_row *root, const struct place *p, const char *path)
{
    buf_addf(b, "KIND:\t%s\nVERSION:\t%s\n", root->kind, root->api_version);
    if (p->row == NULL) {
        buf_addf(b, "ABOUT:\t%s\n", api_about_type(root->kind));
        return;
    }
    buf_addf(b, "FIELD:\t%s\n", strchr(path, '.') + 1);
    add_line(b, "TYPE", p->row, api_add_type);
    add_line(b, "DEFAULT", p->row, add_default);
    add_line(b, "ALLOWED", p->row, api_add_allowed);
    buf_addf(b, "SUPPORT:\t%s\n", api_support_name(p->support));
    add_line(b, "NOTE", p->row, add_note);
    buf_addf(b, "ABOUT:\t%s\n", api_about_field(p->holder, p->row->name));
}

static void cell(struct cli_table *t, const struct api_row *row,
                 void (*add)(struct buf *b, const struct api_row *row))
{
    buf_auto text = BUF_INIT(64 * 1024);

    add(&text, row);
    cli_table_cell(t, text.p);
}

static void print_fields(struct cli *cli, const struct api_schema *schema, enum api_support holder)
{
    static const char *const headers[] = { "FIELD",   "TYPE", "DEFAULT", "ALLOWED",
                                           "SUPPORT", "NOTE", "ABOUT",   NULL };
    struct cli_table t;

    cli_table_init(&t, headers, true);
    for (const struct api_schema *s = schema; s != NULL; s = s->base)
        for (const struct api_row *row = s->rows; row->name != NULL; row++) {
            if (s != schema && api_row_find(schema, row->name) != row)
                continue; /* the type has its own */
            cli_table_cell(&t, row->name);
            cell(&t, row, api_add_type);
            cell(&t, row, add_default);
            cell(&t, row, api_add_allowed);
            cli_table_cell(&t, api_support_name(api_support_below(row, holder)));
            cell(&t, row, add_note);
            cli_table_cell(&t, api_about_field(s, row->name));
        }
    cli_table_print(&t, cli);
    cli_table_done(&t);
}

int cli_explain_fields(struct cli *cli, const char *path)
{
    const struct api_kind_row *root = root_of(path);
    struct place p = { .support = API_ACTED };
    buf_auto head = BUF_INIT(64 * 1024), shown = BUF_INIT(64 * 1024);
    int code;

    if (root == NULL)
        return cli_wrong(cli, "%.*s: no kind has this name", PATH_SHOWN, path);
    p.schema = root->schema;
    code = walk(cli, &p, path);
    if (code != EXIT_OK)
        return code;
    add_head(&head, root, &p, path);
    cli_align(head.p, 0, 2, &shown);
    cli_show_described(cli, &shown);
    if (p.schema == NULL)
        return EXIT_OK;
    cli_print(cli, "\n");
    print_fields(cli, p.schema, p.support);
    return EXIT_OK;
}
