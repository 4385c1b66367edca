/* SPDX-License-Identifier: Apache-2.0 */
/* The support table of every Pod field as Markdown (docs/pod-fields.md), made from the schema tables. */
#ifndef TESTS_AGENT_API_SUPPORT_TABLE_H
#define TESTS_AGENT_API_SUPPORT_TABLE_H
#include "agent/api/manifest/internal.h"

#include <stdio.h>
#include <string.h>

#define SECTIONS_MAX 160
#define TABLE_MAX (512 * 1024)

struct section {
    const struct api_schema *schema;
    enum api_support holder; /* applies to the field through which it was reached first */
};

struct sections {
    struct section v[SECTIONS_MAX];
    size_t n;
};

static enum api_support effective(const struct api_row *row, enum api_support holder)
{
    if (holder == API_REFUSED || holder == API_IGNORED)
        return holder;
    if (row->support != API_WITH_PARENT)
        return row->support;
    return holder;
}

/* Depth first, each type once. */
static void support_collect(struct sections *s, const struct api_schema *schema, enum api_support holder)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].schema == schema)
            return;
    }
    if (s->n == SECTIONS_MAX)
        return;
    s->v[s->n++] = (struct section){ schema, holder };
    for (const struct api_row *row = schema->rows; row->name != NULL; row++) {
        if (row->nested != NULL)
            support_collect(s, row->nested, effective(row, holder));
    }
    if (schema->base != NULL)
        support_collect(s, schema->base, holder);
}

static const char *type_name(enum api_type type)
{
    switch (type) {
    case API_STRING:
    case API_ENUM:
        return "string";
    case API_INT32:
    case API_INT64:
        return "number";
    case API_BOOL:
        return "boolean";
    case API_QUANTITY:
        return "quantity";
    case API_OBJECT:
        return "";
    case API_LIST:
        return "list of ";
    case API_STRINGS:
        return "list of strings";
    case API_INT32S:
    case API_INT64S:
        return "list of numbers";
    case API_STRING_MAP:
        return "map of strings";
    case API_BYTES_MAP:
        return "map of base64";
    case API_RESOURCES:
        return "map of quantities";
    case API_INT_OR_STRING:
        return "number or string";
    case API_ANY:
        break;
    }
    return "anything";
}

static const char *support_name(enum api_support support)
{
    switch (support) {
    case API_WITH_PARENT:
    case API_ACTED:
        return "acted on";
    case API_ACCEPTED:
        return "accepted";
    case API_IGNORED:
        return "ignored, with a warning";
    case API_REFUSED:
        break;
    }
    return "refused";
}

static void write_allowed(struct buf *b, const struct api_row *row)
{
    size_t n = 0;

    for (const struct api_value *v = row->values; v != NULL && v->text != NULL; v++)
        n++;
    if (n > 12) {
        buf_addf(b, "%s ... %s", row->values[0].text, row->values[n - 1].text);
    } else {
        for (size_t i = 0; i < n; i++)
            buf_addf(b, "%s%s", i == 0 ? "" : ", ",
                     row->values[i].text[0] == '\0' ? "\"\"" : row->values[i].text);
    }
    if (row->flags & API_OCTAL)
        buf_addf(b, "0 to 0%llo (octal)", (long long)row->max);
    else if (row->min < row->max && row->max == INT64_MAX)
        buf_addf(b, "%lld and more", (long long)row->min);
    else if (row->min < row->max)
        buf_addf(b, "%lld to %lld", (long long)row->min, (long long)row->max);
}

static void write_note(struct buf *b, const struct api_row *row, enum api_support shown)
{
    if (row->support != shown || row->why == NULL)
        return;
    if (row->harmless != NULL)
        buf_addf(b, "%s (except `%s`)", row->why, row->harmless);
    else
        buf_adds(b, row->why);
}

static void write_row(struct buf *b, const struct api_row *row, enum api_support holder)
{
    enum api_support shown = effective(row, holder);

    buf_addf(b, "| `%s` | %s%s%s | ", row->name, type_name(row->type),
             row->nested != NULL ? row->nested->name : "", row->flags & API_REQUIRED ? ", required" : "");
    if (row->otherwise != NULL)
        buf_addf(b, "`%s`", row->otherwise[0] == '\0' ? "\"\"" : row->otherwise);
    buf_adds(b, " | ");
    write_allowed(b, row);
    buf_addf(b, " | %s | ", support_name(shown));
    write_note(b, row, shown);
    buf_adds(b, " |\n");
}

static void write_section(struct buf *b, const struct section *s)
{
    buf_addf(b, "\n## %s\n\n", s->schema->name);
    buf_adds(b,
             "| field | type | default | allowed | support | why |\n| --- | --- | --- | --- | --- | --- |\n");
    for (const struct api_row *row = s->schema->rows; row->name != NULL; row++)
        write_row(b, row, s->holder);
    if (s->schema->base != NULL)
        buf_addf(b, "\nThe other fields are those of %s.\n", s->schema->base->name);
}

static void write_resources(struct buf *b)
{
    buf_adds(b, "\n## Resource names\n\n| name | support | why |\n| --- | --- | --- |\n");
    for (const struct api_resource_rule *r = api_resource_rules; r->name != NULL; r++)
        buf_addf(b, "| %s%s | %s | %s |\n",
                 r->name[0] == '\0' ? "names with a domain (example.com/thing)" : r->name,
                 str_ends(r->name, "-") ? "*size*" : "", support_name(r->support),
                 r->why != NULL ? r->why : "");
}

static char *support_table(void)
{
    struct sections all = { .n = 0 };
    buf_auto b = BUF_INIT(TABLE_MAX);

    support_collect(&all, &api_schema_pod, API_ACTED);
    buf_adds(
        &b,
        "# Every field of a Pod, and what happens to it\n\n"
        "Made from the tables in `agent/api/schema/schema_*.c` (`coracle` and the unit tests use the same "
        "ones); do "
        "not edit by hand.\n\n"
        "- **acted on**: the node does what the field says.\n"
        "- **accepted**: the field has no meaning for a node, or for a node without a control plane.\n"
        "- **ignored, with a warning**: accepted, and named in the pod's list of ignored fields.\n"
        "- **refused**: the manifest is not accepted; the problem names the reason.\n\n"
        "Fields of an object that is refused, ignored or accepted as a whole are treated the same. Fields "
        "that "
        "are not listed are refused as unknown.\n");
    for (size_t i = 0; i < all.n; i++)
        write_section(&b, &all.v[i]);
    write_resources(&b);
    return b.failed ? NULL : buf_detach(&b);
}
#endif
