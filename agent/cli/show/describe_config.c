/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps, Secrets and PriorityClasses. */
#include "agent/cli/show/internal.h"

#include "base/codec/json.h"

#include <string.h>

static void describe_config_add_head(const json_t *o, bool namespaced, struct buf *out)
{
    buf_addf(out, "Name:\t%s\n", cli_text(o, "metadata.name"));
    if (namespaced)
        buf_addf(out, "Namespace:\t%s\n", cli_text(o, "metadata.namespace"));
    cli_describe_pairs(out, "Labels", cli_at(o, "metadata.labels"));
    cli_describe_annotations(out, cli_at(o, "metadata.annotations"));
}

static void add_immutable(const json_t *o, struct buf *out)
{
    if (cli_true(o, "immutable"))
        buf_adds(out, "Immutable:\ttrue\n");
}

void cli_describe_config_map(const struct cli *cli, const json_t *o, struct buf *out)
{
    mem_auto const char **keys = json_sorted_keys(cli_at(o, "data"));
    mem_auto const char **binary = json_sorted_keys(cli_at(o, "binaryData"));

    (void)cli;
    describe_config_add_head(o, true, out);
    add_immutable(o, out);
    buf_adds(out, "\nData\n====\n");
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        buf_addf(out, "%s:\n----\n", keys[i]);
        cli_add_clean(out, json_str(cli_at(o, "data"), keys[i]));
        buf_adds(out, "\n\n");
    }
    buf_adds(out, "\nBinaryData\n====\n");
    for (size_t i = 0; binary != NULL && binary[i] != NULL; i++)
        buf_addf(out, "%s: %lld bytes\n", binary[i],
                 (long long)json_integer_value(json_object_get(cli_at(o, "sizes"), binary[i])));
    buf_adds(out, "\nEvents:\t<none>\n");
}

void cli_describe_secret(const struct cli *cli, const json_t *o, struct buf *out)
{
    const json_t *sizes = cli_at(o, "sizes");
    mem_auto const char **keys = json_sorted_keys(sizes);

    (void)cli;
    describe_config_add_head(o, true, out);
    add_immutable(o, out);
    buf_addf(out, "\nType:\t%s\n\nData\n====\n", cli_text(o, "type"));
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
        buf_addf(out, "%s:\t%lld bytes\n", keys[i],
                 (long long)json_integer_value(json_object_get(sizes, keys[i])));
}

void cli_describe_class(const struct cli *cli, const json_t *o, struct buf *out)
{
    (void)cli;
    describe_config_add_head(o, false, out);
    buf_addf(out, "Value:\t%lld\nGlobalDefault:\t%s\n", (long long)cli_number(o, "value"),
             cli_true(o, "globalDefault") ? "true" : "false");
    cli_describe_text(out, "PreemptionPolicy", cli_text(o, "preemptionPolicy"));
    cli_describe_text(out, "Description", cli_text(o, "description"));
}

void cli_describe_image(const struct cli *cli, const json_t *o, struct buf *out)
{
    static const struct {
        const char *title, *path;
    } sizes[] = { { "Size", "sizeBytes" }, { "Own", "ownBytes" }, { "Shared", "sharedBytes" } };
    char text[CLI_TIME_SIZE], age[CLI_AGE_SIZE];
    const json_t *name, *user;
    size_t i;

    buf_adds(out, json_array_size(cli_at(o, "names")) == 0 ? "Names:\t<none>\n" : "Names:\t");
    json_array_foreach (cli_at(o, "names"), i, name)
        buf_addf(out, "%s%s\n", i > 0 ? "\t" : "", json_string_value(name));
    buf_addf(out, "Image ID:\t%s\n", cli_text(o, "id"));
    cli_describe_text(out, "Digest", cli_text(o, "digest"));
    if (cli_text(o, "created")[0] != '\0') {
        cli_time(cli_text(o, "created"), text);
        cli_age(cli, cli_text(o, "created"), age);
        buf_addf(out, "Created:\t%s (%s ago)\n", text, age);
    }
    for (i = 0; i < ARRAY_LEN(sizes); i++) {
        cli_size((uint64_t)cli_number(o, sizes[i].path), age);
        buf_addf(out, "%s:\t%s\n", sizes[i].title, age);
    }
    buf_addf(out, "Pinned:\t%s\nUsed By:\t%s", cli_true(o, "pinned") ? "yes" : "no",
             json_array_size(cli_at(o, "usedBy")) == 0 ? "<none>\n" : "");
    json_array_foreach (cli_at(o, "usedBy"), i, user)
        buf_addf(out, "%spod %s/%s\n", i > 0 ? "\t" : "", cli_text(user, "namespace"),
                 cli_text(user, "name"));
}
