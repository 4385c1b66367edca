/* SPDX-License-Identifier: Apache-2.0 */
/* The stored images, for `get images` and `image ls`. */
#include "agent/cli/show/internal.h"

#include <string.h>

static void get_images_row(const struct cli *cli, struct cli_table *t, const char *name, const json_t *image,
                           bool wide)
{
    const char *id = cli_text(image, "id"), *colon = strchr(id, ':');
    char short_id[13], size[CLI_AGE_SIZE], age[CLI_AGE_SIZE];

    snprintf(short_id, sizeof(short_id), "%s", colon != NULL ? colon + 1 : id);
    cli_size((uint64_t)cli_number(image, "sizeBytes"), size);
    cli_age(cli, cli_text(image, "created"), age);
    cli_table_cell(t, name);
    cli_table_cell(t, short_id);
    cli_table_cell(t, age);
    cli_table_cell(t, size);
    if (!wide)
        return;
    cli_size((uint64_t)cli_number(image, "ownBytes"), size);
    cli_table_cell(t, size);
    cli_size((uint64_t)cli_number(image, "sharedBytes"), size);
    cli_table_cell(t, size);
    cli_table_cell(t, cli_true(image, "pinned") ? "yes" : "no");
}

static void print_names(struct cli *cli, const json_t *images)
{
    const json_t *image, *name;
    size_t i, k;

    json_array_foreach (images, i, image) {
        json_array_foreach (cli_at(image, "names"), k, name)
            cli_print(cli, "image/%s\n", json_string_value(name));
    }
}

static void get_images_table(struct cli *cli, const json_t *images, bool wide, bool no_headers)
{
    static const char *const headers[] = { "NAME", "IMAGE ID", "CREATED", "SIZE", NULL };
    static const char *const wide_headers[] = { "NAME", "IMAGE ID", "CREATED", "SIZE",
                                                "OWN",  "SHARED",   "PINNED",  NULL };
    const json_t *image, *name;
    struct cli_table table;
    size_t i, k;

    cli_table_init(&table, wide ? wide_headers : headers, !no_headers);
    json_array_foreach (images, i, image) {
        json_array_foreach (cli_at(image, "names"), k, name)
            get_images_row(cli, &table, json_string_value(name), image, wide);
        if (json_array_size(cli_at(image, "names")) == 0)
            get_images_row(cli, &table, "<none>", image, wide);
    }
    cli_table_print(&table, cli);
    cli_table_done(&table);
}

static json_t *read_images(struct cli *cli, char **names, int n_names, int *ret_code)
{
    const struct api_kind_row *kind = cli_kind_find("images");
    json_t *images;

    if (n_names == 0)
        return cli_get_all(cli, kind, NULL, NULL, ret_code);
    images = json_array();
    *ret_code = EXIT_OK;
    for (int i = 0; i < n_names; i++) {
        int code;
        json_t *one = cli_get_one(cli, kind, NULL, names[i], &code);

        cli_keep_first(ret_code, code);
        if (one != NULL)
            json_array_append_new(images, one);
    }
    return images;
}

int cli_list_images(struct cli *cli, const char *format, bool no_headers, char **names, int n_names)
{
    const bool wide = format != NULL && strcmp(format, "wide") == 0;
    int code;
    json_auto_t *images = read_images(cli, names, n_names, &code);
    json_auto_t *list = images != NULL ? json_pack("{s:O}", "items", images) : NULL;

    if (images == NULL || (json_array_size(images) == 0 && n_names > 0))
        return code;
    if (format != NULL && strcmp(format, "name") == 0)
        print_names(cli, images);
    else if (format != NULL && str_starts(format, CLI_CUSTOM_COLUMNS))
        cli_keep_first(&code, cli_print_columns(cli, images, format, !no_headers));
    else if (format != NULL && !wide)
        cli_keep_first(&code, cli_print_value(cli, n_names == 1 ? json_array_get(images, 0) : list, format));
    else if (json_array_size(images) == 0)
        fputs("No images found\n", cli->err);
    else
        get_images_table(cli, images, wide, no_headers);
    return code;
}
