/* SPDX-License-Identifier: Apache-2.0 */
/* The support table of every Pod field as Markdown (docs/pod-fields.md), made from the schema tables. */
#ifndef TESTS_AGENT_API_SUPPORT_TABLE_H
#define TESTS_AGENT_API_SUPPORT_TABLE_H
#include "agent/api/annotations.h"
#include "agent/api/manifest/internal.h"

#include <stdio.h>
#include <string.h>

#define SECTIONS_MAX 160
#define USES_MAX 24
#define TABLE_MAX (512 * 1024)

struct use { /* a field that holds an object of the type */
    const char *type, *field;
    enum api_support support;
};

struct section {
    const struct api_schema *schema;
    bool reached[API_REFUSED + 1]; /* with which support */
    struct use uses[USES_MAX];
    size_t n_uses;
};

struct sections {
    struct section v[SECTIONS_MAX];
    size_t n;
};

static struct section *section_of(struct sections *s, const struct api_schema *schema)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].schema == schema)
            return &s->v[i];
    }
    if (s->n == SECTIONS_MAX)
        return NULL;
    s->v[s->n].schema = schema;
    return &s->v[s->n++];
}

static void support_add_use(struct section *s, const struct use *use)
{
    for (size_t i = 0; i < s->n_uses; i++) {
        if (s->uses[i].support == use->support && strcmp(s->uses[i].type, use->type) == 0 &&
            strcmp(s->uses[i].field, use->field) == 0)
            return;
    }
    if (s->n_uses < USES_MAX)
        s->uses[s->n_uses++] = *use;
}

/* Depth first; each type once for each support that it is reached with. What an object that is refused as a
 * whole holds is listed, but is no use of it. */
static void support_collect(struct sections *s, const struct api_schema *schema, enum api_support holder)
{
    struct section *here = section_of(s, schema);
    const bool whole = holder == API_REFUSED || holder == API_IGNORED;

    if (here == NULL || here->reached[holder])
        return;
    here->reached[holder] = true;
    for (const struct api_row *row = schema->rows; row->name != NULL; row++) {
        const enum api_support support = api_support_below(row, holder);
        const bool known = row->nested != NULL && whole && section_of(s, row->nested)->n_uses > 0;

        if (row->nested == NULL || known)
            continue;
        support_add_use(section_of(s, row->nested), &(struct use){ schema->name, row->name, support });
        support_collect(s, row->nested, support);
    }
    if (schema->base != NULL && !whole)
        support_collect(s, schema->base, holder);
}

/* What the columns show: the most that is done with an object of the type. */
static enum api_support support_most(const struct section *s)
{
    enum api_support most = API_ACTED;

    while (most < API_REFUSED && !s->reached[most])
        most++;
    return most;
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
    enum api_support shown = api_support_below(row, holder);

    buf_addf(b, "| `%s` | ", row->name);
    api_add_type(b, row);
    buf_adds(b, " | ");
    if (row->otherwise != NULL)
        buf_addf(b, "`%s`", row->otherwise[0] == '\0' ? "\"\"" : row->otherwise);
    buf_adds(b, " | ");
    api_add_allowed(b, row);
    buf_addf(b, " | %s%s | ", api_support_name(shown), shown == row->support ? api_support_where(row) : "");
    write_note(b, row, shown);
    buf_adds(b, " |\n");
}

/* Of a type that is not treated alike everywhere. */
static void write_uses(struct buf *b, const struct section *s)
{
    const enum api_support most = support_most(s);

    for (size_t i = 0, n = 0; i < s->n_uses; i++) {
        const struct use *u = &s->uses[i];

        if (u->support != most)
            buf_addf(b, "%s`%s` of %s: %s",
                     n++ == 0 ? "The table shows the use that is acted on. Other uses: " : "; ", u->field,
                     u->type, api_support_name(u->support));
        if (i + 1 == s->n_uses && n > 0)
            buf_adds(b, ".\n\n");
    }
}

static void write_section(struct buf *b, const struct section *s)
{
    buf_addf(b, "\n## %s\n\n", s->schema->name);
    write_uses(b, s);
    buf_adds(b,
             "| field | type | default | allowed | support | why |\n| --- | --- | --- | --- | --- | --- |\n");
    for (const struct api_row *row = s->schema->rows; row->name != NULL; row++)
        write_row(b, row, support_most(s));
    if (s->schema->base != NULL)
        buf_addf(b, "\nThe other fields are those of %s.\n", s->schema->base->name);
}

static void write_resources(struct buf *b)
{
    buf_adds(b, "\n## Resource names\n\n| name | support | why |\n| --- | --- | --- |\n");
    for (const struct api_resource_rule *r = api_resource_rules; r->name != NULL; r++)
        buf_addf(b, "| %s%s | %s | %s |\n",
                 r->name[0] == '\0' ? "names with a domain (example.com/thing)" : r->name,
                 str_ends(r->name, "-") ? "*size*" : "", api_support_name(r->support),
                 r->why != NULL ? r->why : "");
}

static void write_annotations(struct buf *b)
{
    buf_adds(b, "\n## Annotations of this agent\n\nOther keys below `" API_OWN_DOMAIN
                "` are ignored, with a warning; `coracle validate` reports them as problems.\n\n"
                "| annotation | allowed | without it | effect |\n| --- | --- | --- | --- |\n");
    for (const struct api_annotation *a = api_annotations; a->key != NULL; a++)
        buf_addf(b, "| `%s` | `%s` | %s | %s |\n", a->key, a->allowed, a->otherwise, a->about);
}

static char *support_table(void)
{
    static struct sections all;
    buf_auto b = BUF_INIT(TABLE_MAX);

    all.n = 0;
    memset(all.v, 0, sizeof(all.v));
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
    write_annotations(&b);
    return b.failed ? NULL : buf_detach(&b);
}
#endif
