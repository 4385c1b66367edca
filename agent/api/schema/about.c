/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/schema/about.h"

#include <string.h>

static const struct api_about *const tables[] = { api_about_object, api_about_pod,    api_about_container,
                                                  api_about_rules,  api_about_volume, api_about_work,
                                                  api_about_storage };

/* The name without its part in brackets: "ObjectMeta (without namespace)". */
static bool is_schema(const char *schema, const char *name)
{
    const char *bracket = strstr(name, " (");
    const size_t n = bracket == NULL ? strlen(name) : (size_t)(bracket - name);

    return strlen(schema) == n && strncmp(schema, name, n) == 0;
}

static const char *find(const char *schema, const char *field)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        for (const struct api_about *a = tables[i]; a->schema != NULL; a++) {
            if (strcmp(a->field, field) == 0 && is_schema(a->schema, schema))
                return a->text;
        }
    }
    return "";
}

const char *api_about_type(const char *schema)
{
    return find(schema, "");
}

const char *api_about_field(const struct api_schema *schema, const char *field)
{
    const char *text = find(schema->name, field);

    return text[0] != '\0' ? text : find("", field);
}

const struct api_schema *api_row_holder(const struct api_schema *schema, const struct api_row *row)
{
    for (const struct api_schema *s = schema; s != NULL; s = s->base) {
        for (const struct api_row *r = s->rows; r->name != NULL; r++) {
            if (r == row)
                return s;
        }
    }
    return schema;
}

void api_add_about(struct buf *b, const struct api_schema *schema, const struct api_row *row)
{
    buf_adds(b, api_about_field(schema, row->name));
    if (row->values == NULL && row->min < row->max) {
        buf_adds(b, " Allowed: ");
        api_add_allowed(b, row);
        buf_addc(b, '.');
    }
    switch (row->support) {
    case API_WITH_PARENT:
        return;
    case API_ACTED:
        if (row->why != NULL)
            buf_addf(b, " Here: %s.", row->why);
        return;
    case API_ACCEPTED:
        buf_addf(b, " Accepted here without effect: %s.", row->why);
        return;
    case API_IGNORED:
        buf_addf(b, " Ignored here, with a warning: %s.", row->why);
        return;
    case API_REFUSED:
        break;
    }
    buf_addf(b, " Refused here%s: %s.", api_support_where(row), row->why);
}
