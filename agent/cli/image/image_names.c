/* SPDX-License-Identifier: Apache-2.0 */
/* image tag and image history. */
#include "agent/cli/image/internal.h"

#include "base/codec/percent.h"

#include <string.h>

/* ---- tag ---- */

int cli_image_tag(struct cli *cli, const char *reference, int n, char **names)
{
    int code = EXIT_OK;

    for (int i = 0; i < n; i++) {
        buf_auto more = BUF_INIT(64 * 1024);
        int its;

        buf_adds(&more, "&as=");
        percent_add(&more, names[i]);
        json_decref(cli_image_ask(cli, "tag", reference, more.p, &its));
        if (its == EXIT_OK)
            cli_print(cli, "image \"%s\" tagged \"%s\"\n", reference, names[i]);
        cli_keep_first(&code, its);
    }
    return code;
}

/* ---- history ---- */

static void history_row(struct cli *cli, struct cli_table *t, const json_t *step)
{
    char age[CLI_AGE_SIZE], size[CLI_AGE_SIZE];

    cli_age(cli, cli_text(step, "created"), age);
    cli_size((uint64_t)cli_number(step, "sizeBytes"), size);
    cli_table_cell(t, age);
    cli_table_cell(t, cli_text(step, "createdBy"));
    cli_table_cell(t, cli_true(step, "emptyLayer") ? "0B" : size);
    cli_table_cell(t, cli_text(step, "comment"));
}

/* The newest step first, as docker and podman show them. */
static void history_table(struct cli *cli, const json_t *answer, bool no_headers)
{
    static const char *const headers[] = { "CREATED", "CREATED BY", "SIZE", "COMMENT", NULL };
    const json_t *items = cli_at(answer, "items");
    struct cli_table table;

    cli_table_init(&table, headers, !no_headers);
    for (size_t i = json_array_size(items); i-- > 0;)
        history_row(cli, &table, json_array_get(items, i));
    cli_table_print(&table, cli);
    cli_table_done(&table);
}

int cli_image_history(struct cli *cli, const char *reference, const char *format, bool no_headers)
{
    json_auto_t *answer = NULL;
    int code = cli_check_format(cli, format);

    if (code == EXIT_OK)
        answer = cli_image_ask(cli, "history", reference, "", &code);
    if (answer == NULL)
        return code;
    if (format != NULL)
        return cli_print_value(cli, answer, format);
    history_table(cli, answer, no_headers);
    return EXIT_OK;
}
