/* SPDX-License-Identifier: Apache-2.0 */
/* The tables as text, for people: docs/pod-fields.md and `coracle explain pod.spec`. */
#include "agent/api/schema/schema.h"

enum { VALUES_SHOWN = 12 }; /* of a longer list, such as the signals: the first and the last */

enum api_support api_support_below(const struct api_row *row, enum api_support holder)
{
    if (holder == API_REFUSED || holder == API_IGNORED)
        return holder;
    if (row->support != API_WITH_PARENT)
        return row->support;
    return holder;
}

const char *api_support_where(const struct api_row *row)
{
    if (row->flags & API_IN_CLUSTER)
        return " without a cluster";
    return row->flags & API_NOT_STATIC ? " in static pods of a cluster" : "";
}

const char *api_support_name(enum api_support support)
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

void api_add_type(struct buf *b, const struct api_row *row)
{
    buf_addf(b, "%s%s%s", type_name(row->type), row->nested != NULL ? row->nested->name : "",
             row->flags & API_REQUIRED ? ", required" : "");
}

void api_add_allowed(struct buf *b, const struct api_row *row)
{
    size_t n = 0;

    for (const struct api_value *v = row->values; v != NULL && v->text != NULL; v++)
        n++;
    if (n > VALUES_SHOWN) {
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
