/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/usage_text.h"

void usage_label(struct buf *out, const char *key, const char *value, bool first)
{
    if (!first)
        buf_addc(out, ',');
    buf_adds(out, key);
    buf_adds(out, "=\"");
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            buf_addc(out, '\\');
        if (*c == '\n')
            buf_adds(out, "\\n");
        else
            buf_addc(out, *c);
    }
    buf_addc(out, '"');
}

void usage_value(struct buf *out, uint64_t value, enum usage_unit unit)
{
    unsigned long long v = value;

    switch (unit) {
    case UNIT_LIMIT:
        buf_addf(out, "%llu", value == UINT64_MAX ? 0ull : v);
        return;
    case UNIT_ONE:
        buf_addf(out, "%llu", v);
        return;
    case UNIT_NS:
        buf_addf(out, "%llu.%09llu", v / 1000000000, v % 1000000000);
        return;
    case UNIT_US:
        buf_addf(out, "%llu.%06llu", v / 1000000, v % 1000000);
        return;
    }
}
